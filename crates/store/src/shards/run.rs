//! A transaction on each shard that a plan concerns.
//!
//! A plan that concerns one shard is one transaction of that database. A plan that concerns several is one transaction on
//! each, without a transaction between them. Each shard reads and locks its rows, the highest first. Then `decide` runs
//! once. Then the shards commit, the lowest first and the highest last. So the slice of the first shard commits before that
//! of a player's home shard.
//!
//! Earlier commits stay when a later one fails. So a plan may concern several shards only if each slice is harmless alone
//! and a retry finishes the rest. The last slice has the stored requests.
//!
//! Not here: batches of players of several shards, whose callers ask for each shard separately.

use super::directory::Delta;
use super::split::{self, FIRST, Split};
use super::{Inner, Shards, home};
use crate::mysql::{MySqlStore, Noted};
use crate::plan::{BatchId, BoardNo, Committed, Loaded, ReadSet, WriteSet};
use crate::{Coordination, ShardSet, StoreError, Transactions};
use std::collections::BTreeMap;
use tally_rules::PlayerId;

type Decide<'a> = &'a mut dyn FnMut(&Loaded) -> WriteSet;

/// The needs of a transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Needs {
    shards: ShardSet,
    /// Whether it changes what every shard must know of boards.
    boards: bool,
    /// Whether the first shard has confirmed that a board which another shard does not know is deleted.
    sure: bool,
}

/// A running transaction.
struct Run<'a> {
    split: Split<'a>,
    needs: Needs,
    /// The plans of its shards, in the order in which their transactions begin.
    plans: Vec<(usize, ReadSet)>,
    loaded: BTreeMap<usize, Loaded>,
    version: u64,
    /// The results of the commits, by shard.
    committed: BTreeMap<usize, Committed>,
    slices: BTreeMap<usize, WriteSet>,
    /// What the other shards have to get of boards.
    delta: Delta,
    /// Boards that shards other than the first do not know.
    unknown: Vec<(usize, Vec<BoardNo>)>,
    /// What the transaction turned out to need.
    more: Option<Needs>,
    /// Shards whose slice is committed.
    done: ShardSet,
    /// Why the rest was not committed, and on which shard.
    stopped: Option<(usize, StoreError)>,
}

impl Transactions for Shards {
    fn shards(&self) -> usize {
        self.inner.all.len()
    }

    fn shard_of(&self, player: &PlayerId) -> usize {
        home::home(player, self.inner.all.len())
    }

    fn run(
        &self,
        plan: &ReadSet,
        decide: &mut dyn FnMut(&Loaded) -> WriteSet,
    ) -> Result<Committed, StoreError> {
        // A decision on the state of a shard that has lost commits must not be applied to another state.
        if let Some(lost) = self.lost() {
            return Err(StoreError::Unavailable(lost.to_string()));
        }
        self.inner.run(plan, decide)
    }

    fn resolve(&self, batch: &BatchId) -> Result<Option<Committed>, StoreError> {
        self.inner.resolve(batch)
    }
}

impl Inner {
    /// See [`crate::Transactions::run`].
    pub(super) fn run(&self, plan: &ReadSet, decide: Decide<'_>) -> Result<Committed, StoreError> {
        plan.assert_sorted();
        let mut needs = Needs { shards: split::concerned(plan, self.all.len()), boards: false, sure: false };
        loop {
            let _changing = needs.boards.then(|| self.directory.change());
            match self.attempt(needs, plan, decide)? {
                Ok(committed) => return Ok(committed),
                Err(more) => needs = more,
            }
        }
    }

    /// Returns what the transaction turned out to need, if that is more than `needs`.
    fn attempt(
        &self,
        needs: Needs,
        plan: &ReadSet,
        decide: Decide<'_>,
    ) -> Result<Result<Committed, Needs>, StoreError> {
        for shard in needs.shards.iter() {
            self.refuse_recent(shard, needs.shards.len() == 1)?;
            self.catch_up(shard)?;
        }
        if needs.boards {
            self.settle_doubt().map_err(|error| self.fault(FIRST, error, true))?;
        }
        let mut run = Run::new(plan, self.all.len(), needs);
        match (needs.shards.len(), needs.shards.lowest()) {
            (1, Some(shard)) => self.run_on_one(shard, plan, &mut run, decide),
            _ => self.descend(0, &mut run, decide),
        }
        if let Some(more) = run.more {
            return Ok(Err(more));
        }
        if !run.unknown.is_empty() {
            for (shard, unknown) in &run.unknown {
                self.was_behind(*shard, unknown).map_err(|error| self.fault(*shard, error, true))?;
            }
            return Ok(Err(Needs { sure: true, ..needs }));
        }
        if let Some((shard, error)) = run.stopped.take() {
            return Err(self.stopped(&run, shard, error));
        }
        needs.shards.iter().for_each(|shard| self.breaker.take(shard));
        if !run.delta.is_empty() && !self.propagate(&run.delta) && !run.delta.closed.is_empty() {
            // A server that does not know of the close could write a row there. The archive of the period would lack it.
            return Err(StoreError::Partly("a database has not heard that a period is over".into()));
        }
        let main = run.committed.get(&run.split.main()).copied().unwrap_or_default();
        Ok(Ok(Committed { version: run.version, ..main }))
    }

    fn run_on_one(&self, shard: usize, plan: &ReadSet, run: &mut Run<'_>, decide: Decide<'_>) {
        let found = vec![Some(shard); plan.requests.len()];
        let done = self.all[shard].run(plan, &mut |loaded| {
            run.unknown(shard, plan, loaded);
            if run.unknown.is_empty() {
                run.decided(decide(loaded), &found);
            }
            run.slice(shard).changes
        });
        run.end(shard, done);
    }

    /// Runs the transaction on one shard, and inside of it those on the lower shards.
    fn descend(&self, at: usize, run: &mut Run<'_>, decide: Decide<'_>) {
        let (shard, plan) = run.plans[at].clone();
        let is_last = at + 1 == run.plans.len();
        let mut is_inside_done = false;
        let done = self.all[shard].run_noting(&plan, &mut |loaded, version| {
            if is_inside_done {
                // A retried transaction whose lower shards have committed: it continues only if it reads the same rows as
                // before.
                run.check_same(shard, loaded);
                return run.slice(shard);
            }
            run.loaded.insert(shard, loaded.clone());
            run.unknown(shard, &plan, loaded);
            run.version = run.version.max(version);
            if is_last {
                if run.unknown.is_empty() {
                    run.decide(decide);
                }
            } else {
                self.descend(at + 1, run, decide);
                is_inside_done = true;
            }
            run.slice(shard)
        });
        run.end(shard, done);
    }

    /// The error for the caller when a part was not committed.
    fn stopped(&self, run: &Run<'_>, shard: usize, error: StoreError) -> StoreError {
        let is_last = run.slices.keys().all(|other| *other <= shard);
        let is_begun = !run.done.is_empty();
        match self.fault(shard, error, run.needs.shards.len() == 1) {
            StoreError::InDoubt { batch, why } => {
                if shard == FIRST && !run.delta.is_empty() {
                    self.doubt(batch);
                }
                // Only the commit of the last slice is worth resolving.
                if is_last { StoreError::InDoubt { batch, why } } else { StoreError::Partly(why) }
            }
            error @ StoreError::ShardUnavailable { .. } if is_begun => StoreError::Partly(error.to_string()),
            error => error,
        }
    }

    /// Fails at once for a shard that failed a moment ago.
    pub(super) fn refuse_recent(&self, shard: usize, alone: bool) -> Result<(), StoreError> {
        if !self.breaker.is_recent(shard) {
            return Ok(());
        }
        Err(self.unavailable(shard, alone, "it did not answer a moment ago".into()))
    }

    /// An error for the caller: with the shard's name, and recorded if it has to be resolved later.
    fn fault(&self, shard: usize, error: StoreError, alone: bool) -> StoreError {
        match error {
            StoreError::Unavailable(why) | StoreError::NoAccess(why) => {
                self.breaker.put(shard);
                self.unavailable(shard, alone, why)
            }
            StoreError::InDoubt { batch, why } => {
                self.breaker.put(shard);
                StoreError::InDoubt {
                    batch: batch_of(shard, batch),
                    why: format!("{}: {why}", self.name(shard)),
                }
            }
            error => error,
        }
    }
}

/// The id of a transaction with its shard.
pub(super) fn batch_of(shard: usize, batch: BatchId) -> BatchId {
    BatchId { shard: u8::try_from(shard).expect("there are 64 at most"), ..batch }
}

impl<'a> Run<'a> {
    fn new(plan: &'a ReadSet, all: usize, needs: Needs) -> Self {
        let split = Split::new(plan, all, needs.shards);
        let plans = if needs.shards.len() == 1 {
            Vec::new()
        } else {
            needs.shards.iter().rev().map(|shard| (shard, split.plan(shard))).collect()
        };
        Self {
            split,
            needs,
            plans,
            loaded: BTreeMap::new(),
            version: 0,
            committed: BTreeMap::new(),
            slices: BTreeMap::new(),
            delta: Delta::default(),
            unknown: Vec::new(),
            more: None,
            done: ShardSet::default(),
            stopped: None,
        }
    }

    /// Records boards that a shard does not know: the shard may lag.
    fn unknown(&mut self, shard: usize, plan: &ReadSet, loaded: &Loaded) {
        self.unknown.retain(|(other, _)| *other != shard);
        let unknown = plan.boards.iter().zip(&loaded.boards).filter(|(_, live)| live.is_none());
        let unknown: Vec<BoardNo> = unknown.map(|(no, _)| *no).collect();
        if shard != FIRST && !self.needs.sure && !unknown.is_empty() {
            self.unknown.push((shard, unknown));
        }
    }

    /// Calls `decide`, after all rows are read.
    fn decide(&mut self, decide: Decide<'_>) {
        let (loaded, found) = self.split.loaded(&self.loaded);
        self.decided(decide(&loaded), &found);
        // An error that no retry can avoid must be known before another shard commits.
        if let Some(error) = self.slices.values().find_map(|changes| MySqlStore::check(changes).err()) {
            self.stopped = Some((self.split.lowest(), error));
        }
    }

    /// Splits the changes by shard.
    fn decided(&mut self, changes: WriteSet, found: &[Option<usize>]) {
        (self.more, self.stopped) = (None, None);
        (self.slices, self.delta) = self.split.changes(changes, found);
        let mut needs = self.needs;
        self.slices.keys().for_each(|shard| needs.shards.insert(*shard));
        needs.boards |= !self.delta.is_empty();
        self.more = (needs != self.needs).then_some(needs);
    }

    fn check_same(&mut self, shard: usize, loaded: &Loaded) {
        let rows = |loaded: &'_ Loaded| {
            (loaded.boards.clone(), loaded.scores.clone(), loaded.requests.clone(), loaded.imports.clone())
        };
        if self.loaded.get(&shard).map(rows) != Some(rows(loaded)) {
            let why = "its rows were changed while another database did its part";
            self.stopped.get_or_insert((shard, StoreError::Conflict(why.into())));
        }
    }

    /// The changes of one shard.
    fn slice(&self, shard: usize) -> Noted {
        if self.stopped.is_some() || self.more.is_some() || !self.unknown.is_empty() {
            return Noted::default();
        }
        let changes = self.slices.get(&shard).cloned().unwrap_or_default();
        Noted { changes, version: self.version, ..Noted::default() }
    }

    /// Records the result of the transaction of one shard.
    fn end(&mut self, shard: usize, done: Result<Committed, StoreError>) {
        match done {
            Ok(committed) => {
                self.version = self.version.max(committed.version);
                let outbox = committed.outbox.map(|batch| batch_of(shard, batch));
                self.committed.insert(shard, Committed { outbox, ..committed });
                if self.stopped.is_none() && self.slices.contains_key(&shard) {
                    self.done.insert(shard);
                }
            }
            // A shard without changes may fail, because the others have committed.
            Err(_)
                if !self.slices.is_empty() && !self.slices.contains_key(&shard) && !self.done.is_empty() => {}
            Err(error) => {
                self.stopped.get_or_insert((shard, error));
            }
        }
    }
}
