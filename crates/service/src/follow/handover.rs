//! Leading with the rankings of a follower.
//!
//! The database is at rest: the leader before has lost its lease, and no other server held it since. It may have committed what this
//! server has not heard of. Leaderboards that have changed show another revision, and are loaded anew. Changed records are named by
//! marks, which the database keeps for a while, and are read by their keys. Not here: whether the marks reach far enough
//! ([`Following::can_catch_up`](super::Following::can_catch_up)).

use super::TakeoverFacts;
use super::apply::publish;
use crate::boards::Boards;
use crate::clock::ClockReading;
use crate::contests::play;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::rebuild::{self, Rebuilt};
use crate::settings::Settings;
use crate::tally::Tally;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tally_rules::Micros;
use tally_store::{BatchId, BoardNo, Changes, OutboxContent, ScoreKey, Store};

/// Records that are read at once.
const KEYS_AT_ONCE: usize = 2_000;

/// The rankings of a follower for the server that leads from now on.
#[derive(Clone, Debug)]
pub struct Handover {
    boards: Arc<Boards>,
    /// The newest instant of their records.
    newest: Micros,
    /// What is known of the leader before.
    known: TakeoverFacts,
}

impl Handover {
    /// Of a service that followed, and does nothing more.
    pub fn of(tally: &Tally) -> Option<Self> {
        let following = tally.following.as_ref()?;
        following.end();
        let newest = Micros(following.newest.load(Ordering::Acquire));
        Some(Self { boards: Arc::clone(&tally.boards), newest, known: following.takeover_facts().clone() })
    }

    /// What a start needs to know; `None` if the database has lost what this server has. The contests of leaderboards are read again,
    /// because a follower does not follow them.
    pub(crate) fn resume(
        &self,
        store: &dyn Store,
        settings: &Settings,
        time: ClockReading,
        progress: &Progress,
    ) -> Result<Option<Rebuilt>, Failure> {
        let Some(keys) = self.changed_records(store)? else { return Ok(None) };
        let outdated = self.outdated(store)?;
        let reloaded = self.reload((store, settings), &outdated, time, progress)?;
        let newest = reloaded.max(self.read(store, &keys)?);
        for board in self.boards.from_no(BoardNo(0), usize::MAX) {
            play::load(store, &board)?;
        }
        Ok(Some(Rebuilt { boards: Arc::clone(&self.boards), newest, claim: None }))
    }

    /// The records that marks of other transactions than those that were made here name; `None` if one of the latter has no marks,
    /// because the database has lost it.
    fn changed_records(&self, store: &dyn Store) -> Result<Option<Vec<ScoreKey>>, Failure> {
        // The oldest ones may be deleted by now.
        let kept = self.known.marks_kept();
        let applied = self.known.applied.iter();
        let mut missing: BTreeSet<BatchId> =
            applied.clone().filter(|(at, _)| at.elapsed() < kept).map(|(_, batch)| *batch).collect();
        let applied: BTreeSet<BatchId> = applied.map(|(_, batch)| *batch).collect();
        let (mut keys, mut after) = (BTreeSet::new(), None);
        loop {
            let marks = store.outbox(Duration::ZERO, after)?;
            let Some(last) = marks.last() else { break };
            after = Some(last.batch);
            for mark in marks {
                missing.remove(&mark.batch);
                match mark.what {
                    _ if applied.contains(&mark.batch) => {}
                    OutboxContent::Records(some) => keys.extend(some),
                    // Too many records were changed at once to name them: their leaderboard is loaded anew.
                    OutboxContent::Windows(some) => {
                        let boards = some.iter().filter_map(|window| self.boards.by_no(window.board));
                        boards.for_each(|board| self.boards.set_gone(&board));
                    }
                }
            }
        }
        Ok(missing.is_empty().then(|| keys.into_iter().collect()))
    }

    /// Leaderboards that are not here as they are stored. One that is stored no more is removed.
    fn outdated(&self, store: &dyn Store) -> Result<BTreeSet<BoardNo>, Failure> {
        let stored = store.board_revisions()?;
        for board in self.boards.from_no(BoardNo(0), usize::MAX) {
            if !stored.iter().any(|(no, _)| *no == board.no) {
                self.boards.set_gone(&board);
            }
        }
        let is_known = |(no, revision): &(BoardNo, u64)| {
            self.known.revisions.get(no) == Some(revision) && self.boards.by_no(*no).is_some()
        };
        Ok(stored.into_iter().filter(|one| !is_known(one)).map(|(no, _)| no).collect())
    }

    /// Loads these leaderboards; returns the newest instant of their records.
    fn reload(
        &self,
        (store, settings): (&dyn Store, &Settings),
        which: &BTreeSet<BoardNo>,
        time: ClockReading,
        progress: &Progress,
    ) -> Result<Micros, Failure> {
        let mut newest = self.newest;
        if which.is_empty() {
            return Ok(newest);
        }
        for row in store.boards()?.into_iter().filter(|row| which.contains(&row.no)) {
            if let Some(board) = self.boards.by_no(row.no) {
                self.boards.set_gone(&board);
            }
            let name = row.id.clone();
            let loaded = rebuild::load((store, &settings.ranking, false), row, time, &mut newest, progress);
            rebuild::put(&self.boards, &name, loaded.map(|board| Some(Arc::new(board))))?;
        }
        Ok(newest)
    }

    /// Reads records by their keys, and makes the rankings have them; returns their newest instant.
    fn read(&self, store: &dyn Store, keys: &[ScoreKey]) -> Result<Micros, Failure> {
        let mut newest = self.newest;
        for some in keys.chunks(KEYS_AT_ONCE) {
            let states = store.states(some)?.into_iter().map(|state| state.and_then(|(record, _)| record));
            let scores: Vec<_> = some.iter().cloned().zip(states).collect();
            newest =
                scores.iter().filter_map(|(_, record)| Some(record.as_ref()?.at)).fold(newest, Micros::max);
            publish(&self.boards, &Changes { scores, ..Changes::default() });
        }
        Ok(newest)
    }
}
