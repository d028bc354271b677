//! A store that is a map, with a log of its commits, and faults on demand.
//!
//! It checks the lane while it runs: bounds and kinds of every batch, and one publish after each commit and before the
//! next. It allows no commit while an outcome is unknown.

use crate::batch::LaneLimits;
use crate::{BatchFailure, BatchHandler, BatchSharing, Resolution, Weight, WorkingSet, keys_to_load};
use shuttle::sync::mpsc::{Receiver, Sender};
use std::collections::{BTreeMap, BTreeSet};

/// Adds to a key. The hundreds of the id are the caller, the rest is the order among that caller's requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Request {
    pub(super) id: u32,
    pub(super) key: u8,
    pub(super) add: i64,
    pub(super) weight: Weight,
    pub(super) kind: BatchSharing,
}

impl Request {
    pub(super) fn new(id: u32, key: u8) -> Self {
        let weight = Weight { rows: 1, bytes: 10 };
        Self { id, key, add: i64::from(id) + 1, weight, kind: BatchSharing::Group(0) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) id: u32,
    pub(super) before: i64,
    pub(super) after: i64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fault {
    Deadlock,
    Poison,
    Unavailable,
    /// The outcome is not known.
    Unknown,
    /// The outcome of an earlier request is not known.
    Behind,
    RolledBack,
}

/// What a call of `commit` does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Event {
    Fine,
    Retry,
    Piece,
    Unavailable,
    /// The answer to the commit is lost, and the next `silent` attempts to resolve it fail.
    Lost {
        committed: bool,
        silent: u32,
    },
}

/// What `publish` needs: the answers, and the changes for readers.
pub(super) struct Committed {
    answers: Vec<Answer>,
    changes: Vec<(u8, Option<i64>)>,
}

pub(super) struct Store {
    pub(super) bounds: LaneLimits,
    /// Chooses what the n-th call of `commit` does.
    pub(super) script: Box<dyn FnMut(u64) -> Event + Send>,
    pub(super) poison: BTreeSet<u32>,
    /// Signals that a commit has begun, then waits for permission (or for the other end to be dropped).
    pub(super) gate: Option<(Sender<()>, Receiver<()>)>,
    pub(super) commits: u64,
    pub(super) pauses: u64,
    /// Ids of each transaction.
    pub(super) log: Vec<Vec<u32>>,
    pub(super) stored: BTreeMap<u8, i64>,
    pub(super) shown: BTreeMap<u8, i64>,
    /// An in-doubt commit, and how many attempts to resolve it still fail.
    pub(super) lost: Option<(Option<Committed>, u32)>,
    /// The ids of a commit that readers do not see yet.
    pub(super) unpublished: Option<Vec<u32>>,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            bounds: LaneLimits::default(),
            script: Box::new(|_| Event::Fine),
            poison: BTreeSet::new(),
            gate: None,
            commits: 0,
            pauses: 0,
            log: Vec::new(),
            stored: BTreeMap::new(),
            shown: BTreeMap::new(),
            lost: None,
            unpublished: None,
        }
    }
}

impl Store {
    /// A store whose first commits go as listed; all later commits succeed.
    pub(super) fn scripted(events: &[Event]) -> Self {
        let events = events.to_vec();
        let script =
            move |call: u64| events.get(usize::try_from(call).unwrap()).copied().unwrap_or(Event::Fine);
        Self { script: Box::new(script), ..Self::default() }
    }

    /// Whether the lane ended with an unresolved commit.
    pub(super) fn left_unresolved(&self) -> bool {
        self.lost.is_some()
    }

    fn check_batch(&self, batch: &[Request]) {
        let rows: u32 = batch.iter().map(|request| request.weight.rows).sum();
        let bytes: u32 = batch.iter().map(|request| request.weight.bytes).sum();
        assert!(!batch.is_empty());
        assert!(batch.len() == 1 || rows as usize <= self.bounds.batch_rows_max);
        assert!(batch.len() == 1 || bytes as usize <= self.bounds.batch_bytes_max);
        assert!(batch.len() == 1 || batch.iter().all(|request| batch[0].kind.shares_with(request.kind)));
    }

    fn transact(&mut self, batch: &[Request]) -> Committed {
        let mut set = WorkingSet::new();
        for key in keys_to_load(batch.iter().map(|request| request.key)) {
            set.load(key, self.stored.get(&key).copied());
        }
        let mut answers = Vec::new();
        for request in batch {
            let before = set.get(&request.key).copied().unwrap_or(0);
            let after = before + request.add;
            set.set(&request.key, Some(after));
            answers.push(Answer { id: request.id, before, after });
        }
        let changes = set.into_writes();
        apply(&mut self.stored, &changes);
        let ids: Vec<u32> = batch.iter().map(|request| request.id).collect();
        self.log.push(ids.clone());
        self.unpublished = Some(ids);
        Committed { answers, changes }
    }
}

impl BatchHandler for Store {
    type Request = Request;
    type Answer = Answer;
    type Fault = Fault;
    type Committed = Committed;

    fn weight(request: &Request) -> Weight {
        request.weight
    }

    fn kind(request: &Request) -> BatchSharing {
        request.kind
    }

    fn commit(&mut self, batch: &[Request]) -> Result<Committed, BatchFailure<Fault>> {
        if let Some((begun, leave)) = &self.gate {
            // Either end may be dropped: then the test no longer watches this store.
            let _ = begun.send(());
            let _ = leave.recv();
        }
        self.check_batch(batch);
        assert!(self.lost.is_none(), "nothing is committed while an outcome is unknown");
        assert!(self.unpublished.is_none(), "what was committed is published before the next commit");
        let call = self.commits;
        self.commits += 1;
        let poison = batch.iter().any(|request| self.poison.contains(&request.id));
        match (self.script)(call) {
            Event::Retry => Err(BatchFailure::Retry(Fault::Deadlock)),
            Event::Piece => Err(BatchFailure::Piece(Fault::Unavailable)),
            Event::Unavailable => Err(BatchFailure::Unavailable(Fault::Unavailable)),
            Event::Fine | Event::Lost { .. } if poison => Err(BatchFailure::PoisonRequest(Fault::Poison)),
            Event::Fine => Ok(self.transact(batch)),
            Event::Lost { committed, silent } => {
                let outcome = committed.then(|| self.transact(batch));
                self.lost = Some((outcome, silent));
                Err(BatchFailure::Unknown(Fault::Unknown))
            }
        }
    }

    fn publish(&mut self, batch: Vec<Request>, committed: Committed) -> Vec<Answer> {
        let ids: Vec<u32> = batch.iter().map(|request| request.id).collect();
        assert_eq!(self.unpublished.take(), Some(ids), "every commit is published once, whole");
        apply(&mut self.shown, &committed.changes);
        committed.answers
    }

    fn resolve(&mut self, _batch: &[Request]) -> Result<Resolution<Committed, Fault>, Fault> {
        let (outcome, silent) = self.lost.take().expect("the lane asks only about a lost commit");
        if silent > 0 {
            self.lost = Some((outcome, silent - 1));
            return Err(Fault::Behind);
        }
        Ok(outcome.map_or(Resolution::NotCommitted(Fault::RolledBack), Resolution::Committed))
    }

    fn pause(&mut self, attempts: u32) {
        assert!(attempts >= 1);
        self.pauses += 1;
        shuttle::thread::yield_now();
    }
}

fn apply(to: &mut BTreeMap<u8, i64>, changes: &[(u8, Option<i64>)]) {
    for (key, value) in changes {
        match value {
            Some(value) => to.insert(*key, *value),
            None => to.remove(key),
        };
    }
}
