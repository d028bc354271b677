//! Witnesses: commit markers of this process that the database must still have, and what happens when one is missing.
//!
//! A database may lose commits that it has answered, when an asynchronous replica takes over or a snapshot is restored. It
//! loses the end of its history. So it is enough to check the last answered commit, and every commit that was in flight
//! beside it. Those are the witnesses, and each renewal of a lease adds one. A marker is a random name and a number, so no
//! later commit looks like a lost one.
//!
//! Every new connection and every renewal checks the witnesses. If one is missing, the store refuses everything from then
//! on: the state of this process depends on a lost history. A witness is deleted only after the answer to a commit that
//! began after its own answer. Not here: reading everything anew, which takes a reopened store.

use super::batches::{self, Batch};
use super::link::Link;
use super::row::Fields;
use super::text::Script;
use crate::StoreError;
use crate::servers::LostCommits;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The number of checks before a witness counts as missing. The database shows a commit to every statement after its answer,
/// so the second check is a precaution.
const CHECKS: usize = 2;

/// The markers of a process, and whether its database has lost one.
#[derive(Debug, Default)]
pub(super) struct Witnesses {
    markers: Mutex<Markers>,
    is_lost: AtomicBool,
    lost: Mutex<Option<LostCommits>>,
}

#[derive(Debug, Default)]
struct Markers {
    /// The number of answered commits.
    answered: u64,
    witnesses: Vec<Witness>,
    /// Markers of commits that are answered and published. They are deleted when they are no witnesses any more.
    settled: Vec<Batch>,
}

/// An answered commit; `answered` is its number in the order of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Witness {
    batch: Batch,
    version: u64,
    answered: u64,
}

/// The number of answered commits when a transaction began to commit.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommitStart(u64);

impl CommitStart {
    /// For a commit whose beginning is unknown: it proves no other.
    pub(super) const UNKNOWN: Self = Self(0);
}

impl Witnesses {
    fn markers(&self) -> MutexGuard<'_, Markers> {
        self.markers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a commit. Returns the markers that its transaction deletes: none while there are fewer than `least`.
    pub(super) fn begin(&self, least: usize) -> (CommitStart, Vec<Batch>) {
        let mut markers = self.markers();
        let start = CommitStart(markers.answered);
        if markers.settled.len() < least {
            return (start, Vec::new());
        }
        let Markers { settled, witnesses, .. } = &mut *markers;
        let (mut some, mut left) = (Vec::new(), Vec::new());
        for batch in settled.drain(..) {
            let is_witness = witnesses.iter().any(|witness| witness.batch == batch);
            let to = if is_witness || some.len() == batches::SETTLED_MAX { &mut left } else { &mut some };
            to.push(batch);
        }
        *settled = left;
        // In the order of the key, like every transaction that locks several rows.
        some.sort_unstable();
        (start, some)
    }

    /// Records an answered commit: it proves all commits that were answered before it began.
    pub(super) fn answered(&self, batch: Batch, version: u64, CommitStart(start): CommitStart) {
        self.markers().answer(batch, version, start);
    }

    /// Like [`Self::answered`], for a commit that leaves nothing to publish.
    pub(super) fn answered_and_settled(&self, batch: Batch, version: u64, CommitStart(start): CommitStart) {
        let mut markers = self.markers();
        markers.answer(batch, version, start);
        markers.settled.push(batch);
    }

    /// Adds markers to delete: those of published transactions, or those whose deletion failed.
    pub(super) fn settle(&self, batches: impl IntoIterator<Item = Batch>) {
        self.markers().settled.extend(batches);
    }

    /// The commits that the database has lost, once that is known.
    pub(super) fn lost(&self) -> Option<LostCommits> {
        if !self.is_lost.load(Ordering::Acquire) {
            return None;
        }
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether no loss of the database is known. Cheap.
    pub(super) fn is_intact(&self) -> bool {
        !self.is_lost.load(Ordering::Acquire)
    }

    /// Returns an error once the database has lost commits.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        self.lost().map_or(Ok(()), |lost| Err(StoreError::Unavailable(lost.to_string())))
    }

    /// Refuses everything from now on. The first report counts.
    pub(super) fn lose(&self, what: LostCommits) -> StoreError {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        let what = lost.get_or_insert(what).to_string();
        self.is_lost.store(true, Ordering::Release);
        StoreError::Unavailable(what)
    }

    /// Checks that the database has every witness.
    pub(super) fn check_all(&self, link: &mut Link, database: &str) -> Result<(), StoreError> {
        let mut missing = self.missing(link)?;
        for _ in 1..CHECKS {
            if missing.is_empty() {
                return Ok(());
            }
            missing = self.missing(link)?;
        }
        let Some(first) = missing.iter().map(|witness| witness.version).min() else { return Ok(()) };
        let newest = missing.iter().map(|witness| witness.version).max().unwrap_or(first);
        let mut script = Script::default();
        script.sql("SELECT COALESCE(MAX(version), 0) FROM batches WHERE version < ").number(first).end();
        let present = link.send(&script)?.one_number("the newest version")?;
        Err(self.lose(LostCommits { database: database.into(), present, newest, by_others: false }))
    }

    /// The witnesses that the database lacks. A witness that was replaced meanwhile may be deleted, so it is ignored.
    fn missing(&self, link: &mut Link) -> Result<Vec<Witness>, StoreError> {
        let wanted = self.markers().witnesses.clone();
        if wanted.is_empty() {
            return Ok(wanted);
        }
        let mut script = Script::default();
        let keys = wanted.iter().map(|witness| witness.batch);
        script.keys(
            "SELECT link, sequence FROM batches WHERE (link, sequence) IN (",
            keys,
            ")",
            |row, batch| {
                row.bytes(&batch.link).number(batch.sequence);
            },
        );
        let (statements, mut results) = (script.len(), link.send(&script)?);
        let mut found = Vec::new();
        results.each(statements, "batches", |row: &mut Fields<'_>| {
            found.push(Batch { link: row.fixed()?, sequence: row.number()?, ..Batch::default() });
            Ok(())
        })?;
        let present = self.markers().witnesses.clone();
        let is_missing = |witness: &Witness| !found.contains(&witness.batch) && present.contains(witness);
        Ok(wanted.into_iter().filter(is_missing).collect())
    }
}

impl Markers {
    fn answer(&mut self, batch: Batch, version: u64, start: u64) {
        self.answered += 1;
        self.witnesses.retain(|witness| witness.answered > start && witness.batch != batch);
        self.witnesses.push(Witness { batch, version, answered: self.answered });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(sequence: u64) -> Batch {
        Batch { link: [1; 16], sequence, ..Batch::default() }
    }

    fn names(witnesses: &Witnesses) -> Vec<u64> {
        witnesses.markers().witnesses.iter().map(|witness| witness.batch.sequence).collect()
    }

    #[test]
    fn a_commit_stands_for_those_that_were_answered_before_it_began() {
        let witnesses = Witnesses::default();
        let (first, _) = witnesses.begin(1);
        let (beside, _) = witnesses.begin(1);
        witnesses.answered(batch(1), 10, first);
        let (third, _) = witnesses.begin(1);
        assert_eq!(names(&witnesses), [1]);
        // The order in which the database committed both is unknown.
        witnesses.answered(batch(2), 11, beside);
        assert_eq!(names(&witnesses), [1, 2]);
        witnesses.answered(batch(3), 12, third);
        assert_eq!(names(&witnesses), [2, 3]);
        let (last, _) = witnesses.begin(1);
        witnesses.answered(batch(4), 13, last);
        assert_eq!(names(&witnesses), [4]);
        // A resolved commit is reported twice.
        witnesses.answered(batch(4), 13, CommitStart::UNKNOWN);
        assert_eq!(names(&witnesses), [4]);
    }

    #[test]
    fn a_witness_is_not_deleted() {
        let witnesses = Witnesses::default();
        for sequence in 1..=3 {
            let (start, deleted) = witnesses.begin(1);
            // The witness before is deleted when its successor was answered.
            assert_eq!(deleted, if sequence == 3 { vec![batch(1)] } else { vec![] });
            witnesses.answered_and_settled(batch(sequence), sequence, start);
        }
        let (_, deleted) = witnesses.begin(1);
        assert_eq!(deleted, [batch(2)]);
        witnesses.settle(deleted);
        assert_eq!(witnesses.begin(2).1, [batch(2)]);
        assert_eq!(witnesses.begin(1).1, [], "the last one stays");
    }

    #[test]
    fn the_first_report_of_a_loss_counts() {
        let witnesses = Witnesses::default();
        assert!(witnesses.is_intact() && witnesses.lost().is_none() && witnesses.check().is_ok());
        let lost = |newest| LostCommits { database: "d".into(), present: 1, newest, by_others: false };
        witnesses.lose(lost(2));
        witnesses.lose(lost(3));
        assert_eq!(witnesses.lost(), Some(lost(2)));
        assert!(!witnesses.is_intact() && matches!(witnesses.check(), Err(StoreError::Unavailable(_))));
    }
}
