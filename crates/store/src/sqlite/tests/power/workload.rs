//! The workload, its answers, and the rows that must be there afterwards.
//!
//! Transaction `k` writes a row of its own and one of three counters. So the rows show which transactions are there, and
//! whether one of them is there by half.

use super::*;
use crate::{Reads, Transactions};
use std::collections::BTreeSet;

/// A step of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Durable,
    Relaxed,
    /// A transaction that fills several pages.
    Large,
    /// The background work of threads: syncs and flushes.
    Work,
    /// Only the sync of that work.
    Sync,
    Settle,
    Reopen,
    /// A value in the tables, without the journal.
    Meta,
    /// A deleted period, and its purge.
    Purge,
    Backup,
}

use Step::{Backup, Durable, Large, Meta, Purge, Relaxed, Reopen, Settle, Sync, Work};

#[rustfmt::skip]
pub(super) const STEPS: &[Step] = &[
    Durable, Durable, Relaxed, Relaxed, Sync, Relaxed, Durable, Relaxed, Work, Durable, Relaxed, Meta, Large,
    Durable, Work, Relaxed, Relaxed, Work, Durable, Backup, Durable, Purge, Relaxed, Durable, Reopen, Durable,
    Meta, Large, Relaxed, Work, Work, Durable, Settle, Meta, Durable, Relaxed, Reopen, Relaxed, Durable, Work,
    Large, Sync, Durable, Meta, Relaxed,
];

/// The outcome of a transaction, as far as its caller knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Acknowledged, and on the disk.
    Safe,
    /// Acknowledged, and soon on the disk.
    Soon,
    Refused,
    Unknown,
}

/// The answers that callers got.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    transactions: Vec<Fate>,
    metas: Vec<Fate>,
    /// Transactions that were acknowledged when the backup began.
    backed_up: Option<usize>,
}

/// A store under the workload.
pub(super) struct Run {
    pub(super) disk: Arc<SimulatedDisk>,
    pub(super) store: Option<SqliteStore>,
    pub(super) answers: Answers,
    /// The number of steps that the disk made fail.
    pub(super) failures: usize,
}

const META: &str = "value";

impl Run {
    pub(super) fn new(disk: Arc<SimulatedDisk>) -> Self {
        Self { disk, store: None, answers: Answers::default(), failures: 0 }
    }

    /// Runs all steps in order. A failed step is recorded, and the next one runs.
    pub(super) fn all(&mut self) {
        STEPS.iter().for_each(|step| self.step(*step));
    }

    pub(super) fn step(&mut self, step: Step) {
        if step == Reopen {
            self.store = None;
        }
        if self.store.is_none() {
            match open_on(&self.disk) {
                Ok(store) => self.store = Some(store),
                Err(StoreError::Unavailable(_) | StoreError::Conflict(_) | StoreError::InDoubt { .. }) => {
                    self.failures += 1;
                }
                Err(other) => panic!("a disk that fails is no damage: {other}"),
            }
        }
        let done = match step {
            Durable => self.transaction(Durability::Commit, 0),
            Relaxed => self.transaction(Durability::Relaxed, 0),
            Large => self.transaction(Durability::Commit, 300),
            Meta => self.meta(),
            Backup => self.backup(),
            Work | Sync | Settle | Purge | Reopen => self.store.as_ref().map_or(Ok(()), |store| match step {
                Work => store.work(),
                Sync => {
                    store.shared.unsynced.sync_now();
                    Ok(())
                }
                Settle => store.checkpoint(),
                Purge => purge(store),
                _ => Ok(()),
            }),
        };
        match done {
            Ok(()) if step == Settle && self.store.is_some() => self.all_safe(),
            Ok(()) => {}
            Err(_) => self.failures += 1,
        }
    }

    fn transaction(&mut self, durability: Durability, more: usize) -> Result<(), StoreError> {
        let Some(store) = &self.store else { return Ok(()) };
        let no = self.answers.transactions.len();
        let filler = (0..more).map(|row| format!("filler {no} {row}"));
        let names = [own(no), counter(no)].into_iter().chain(filler);
        let done = put_as(store, names, i64::try_from(no).unwrap(), durability);
        let fate = match &done {
            Ok(()) if durability == Durability::Commit => Fate::Safe,
            Ok(()) => Fate::Soon,
            Err(StoreError::InDoubt { batch, .. }) => match store.resolve(batch) {
                Ok(None) => Fate::Refused,
                Ok(Some(_)) => unreachable!("a file does not say so"),
                Err(_) => Fate::Unknown,
            },
            Err(_) => Fate::Refused,
        };
        if fate == Fate::Safe {
            self.all_safe();
        }
        self.answers.transactions.push(fate);
        done
    }

    /// Reads the last acknowledged row: an error is accepted, another row or none is not.
    pub(super) fn check_reads(&self) -> Result<(), String> {
        let fates = &self.answers.transactions;
        let last = fates.iter().rposition(|fate| matches!(fate, Fate::Safe | Fate::Soon));
        let (Some(store), Some(no)) = (&self.store, last) else { return Ok(()) };
        let player = PlayerId::new(&own(no)).unwrap();
        match store.records(&[ScoreKey { board: BoardNo(1), window: Window(0), player }]) {
            Ok(rows) if rows[0].is_none_or(|row| row.score != no as i64) => {
                Err(format!("transaction {no} is answered as {rows:?}"))
            }
            Ok(_) | Err(StoreError::Unavailable(_) | StoreError::Conflict(_)) => Ok(()),
            Err(other) => Err(format!("a disk that fails is no damage: {other}")),
        }
    }

    /// A sync of the journal covers everything before.
    fn all_safe(&mut self) {
        let soon = self.answers.transactions.iter_mut().filter(|fate| **fate == Fate::Soon);
        soon.for_each(|fate| *fate = Fate::Safe);
    }

    fn meta(&mut self) -> Result<(), StoreError> {
        let Some(store) = &self.store else { return Ok(()) };
        let no = self.answers.metas.len();
        let done = store.set_meta(META, no.to_string().as_bytes());
        self.answers.metas.push(match &done {
            Ok(()) => Fate::Safe,
            Err(StoreError::InDoubt { .. }) => Fate::Unknown,
            Err(_) => Fate::Refused,
        });
        done
    }

    fn backup(&mut self) -> Result<(), StoreError> {
        let to = self.disk.folder().join("copy.db");
        if self.store.is_none() || to.exists() {
            return Ok(());
        }
        self.answers.backed_up = Some(self.answers.transactions.len());
        backup_on(&options(&self.disk), &path_on(&self.disk), &to, &mut |_, _| {}).map(drop)
    }
}

/// A deleted period of another board, with its rows.
fn purge(store: &SqliteStore) -> Result<(), StoreError> {
    let window = crate::WindowKey { board: BoardNo(9), window: Window(6) };
    let player = PlayerId::new("ann").unwrap();
    let row = ScoreKey { board: window.board, window: window.window, player };
    let record = Record { score: 1, subscore: 0, at: Micros(0) };
    let write = |changes: WriteSet| store.run(&ReadSet::default(), &mut |_| changes.clone()).map(drop);
    write(WriteSet { scores: vec![(row, Some(record))], ..WriteSet::default() })?;
    write(WriteSet { garbage: vec![crate::Garbage::Window(window)], ..WriteSet::default() })?;
    store.purge_deleted(100).map(drop)
}

fn own(no: usize) -> String {
    format!("own {no:04}")
}

fn counter(no: usize) -> String {
    format!("counter {}", no % 3)
}

impl Answers {
    /// Checks a store that was opened after the workload.
    pub(super) fn check(&self, store: &SqliteStore) -> Result<(), String> {
        self.check_transactions(store, self.transactions.len())?;
        self.check_meta(store)
    }

    /// Checks a copy: it has everything that was acknowledged before it began, and nothing by half.
    pub(super) fn check_copy(&self, store: &SqliteStore) -> Result<(), String> {
        self.check_transactions(store, self.backed_up.unwrap_or_default())
    }

    /// Checks that every promised transaction is there, and no refused one.
    fn check_transactions(&self, store: &SqliteStore, promised: usize) -> Result<(), String> {
        let rows = self.rows(store);
        let is_there = |no: usize| rows.iter().any(|(name, score)| *name == own(no) && *score == no as i64);
        let there: BTreeSet<usize> = (0..self.transactions.len()).filter(|no| is_there(*no)).collect();
        let last = there.last().copied();
        for (no, fate) in self.transactions.iter().enumerate() {
            let wrong = match fate {
                Fate::Safe => no < promised && !there.contains(&no),
                // The disk has them in their order.
                Fate::Soon => !there.contains(&no) && last.is_some_and(|last| last > no) && no < promised,
                Fate::Refused => there.contains(&no),
                Fate::Unknown => false,
            };
            if wrong {
                return Err(format!("transaction {no} was {fate:?}; there are {there:?}"));
            }
        }
        for kind in 0..3 {
            let newest = there.iter().copied().filter(|no| no % 3 == kind).max();
            let name = counter(kind);
            let found = rows.iter().find(|(found, _)| *found == name).map(|(_, score)| *score);
            if found != newest.map(|no| no as i64) {
                return Err(format!(
                    "counter {kind} is {found:?}, and the newest is {newest:?}: half a transaction"
                ));
            }
        }
        Ok(())
    }

    fn rows(&self, store: &SqliteStore) -> Vec<(String, i64)> {
        let mut rows = Vec::new();
        let mut each =
            |player: PlayerId, record: Record| rows.push((player.as_str().to_owned(), record.score));
        store.scan_scores(BoardNo(1), Window(0), None, usize::MAX, &mut each).unwrap();
        let names: BTreeSet<&str> = rows.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names.len(), rows.len(), "a row is there once");
        rows
    }

    fn check_meta(&self, store: &SqliteStore) -> Result<(), String> {
        let value = store.meta(META).unwrap().map(|bytes| String::from_utf8(bytes).unwrap().parse().unwrap());
        let last_safe = self.metas.iter().rposition(|fate| *fate == Fate::Safe);
        let may_be =
            |no: usize| Some(no) == last_safe || (Some(no) > last_safe && self.metas[no] == Fate::Unknown);
        let right = match value {
            Some(no) => may_be(no),
            None => last_safe.is_none(),
        };
        if right { Ok(()) } else { Err(format!("the value is {value:?}, of {:?}", self.metas)) }
    }

    /// The number of transactions with an unknown outcome.
    pub(super) fn unknown(&self) -> usize {
        self.transactions.iter().chain(&self.metas).filter(|fate| **fate == Fate::Unknown).count()
    }
}
