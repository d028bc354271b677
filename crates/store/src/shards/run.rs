//! A transaction on each database that a plan concerns.
//!
//! What concerns one database is that database's own transaction. What concerns several is one on each, and there is nothing
//! between them: everything is read and locked, the highest database first, and decided once; then the lowest commits first and the
//! highest last. So the part of the first database is done before a player's own. Where a later commit fails, the earlier ones
//! stay: a plan may concern several only where each part is harmless alone and a retry finishes the rest. What is stored of a
//! request is in the last part.
//!
//! Not here: batches of players of several databases, whose callers ask for each database by itself.

use super::directory::Told;
use super::split::{self, FIRST, Split};
use super::{Inner, Shards, home};
use crate::mysql::{MySqlStore, Noted};
use crate::plan::{BatchId, BoardNo, Committed, Loaded, ReadSet, WriteSet};
use crate::{Coordination, ShardSet, StoreError, Transactions};
use std::collections::BTreeMap;
use tally_rules::PlayerId;

type Decide<'a> = &'a mut dyn FnMut(&Loaded) -> WriteSet;

/// What a transaction needs.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Needs {
    shards: ShardSet,
    /// Whether it changes what every database must know of boards.
    boards: bool,
    /// Whether a board that a database does not know is gone, as the first has said.
    sure: bool,
}

/// A transaction under way.
struct Run<'a> {
    split: Split<'a>,
    needs: Needs,
    /// The plans of its databases, in the order in which they are begun.
    plans: Vec<(usize, ReadSet)>,
    loaded: BTreeMap<usize, Loaded>,
    version: u64,
    /// What is committed, by database.
    committed: BTreeMap<usize, Committed>,
    slices: BTreeMap<usize, WriteSet>,
    /// What the others have to be told of boards.
    told: Told,
    /// Boards that a database behind the first does not know.
    unknown: Vec<(usize, Vec<BoardNo>)>,
    /// What it would have needed.
    more: Option<Needs>,
    /// Databases whose part is done.
    done: ShardSet,
    /// Why the rest was not done, and where.
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
        // What was decided on the state of a shard that is gone must not be done on another.
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
    /// See [`crate::Store::run`].
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

    /// Gives what it turned out to need, where that is more.
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
        if !run.told.is_empty() && !self.tell(&run.told) && !run.told.closed.is_empty() {
            // What is written there by whoever has not heard of it would be missing in the order of the period.
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

    /// The transaction on one database, and inside of it those on the ones below.
    fn descend(&self, at: usize, run: &mut Run<'_>, decide: Decide<'_>) {
        let (shard, plan) = run.plans[at].clone();
        let is_last = at + 1 == run.plans.len();
        let mut is_inside_done = false;
        let done = self.all[shard].run_noting(&plan, &mut |loaded, version| {
            if is_inside_done {
                // Begun again, and what is below is done: it goes on only on what that was decided on.
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

    /// What the caller hears where not all of it is done.
    fn stopped(&self, run: &Run<'_>, shard: usize, error: StoreError) -> StoreError {
        let is_last = run.slices.keys().all(|other| *other <= shard);
        let is_begun = !run.done.is_empty();
        match self.fault(shard, error, run.needs.shards.len() == 1) {
            StoreError::InDoubt { batch, why } => {
                if shard == FIRST && !run.told.is_empty() {
                    self.doubt(batch);
                }
                // Only what the last one did is to be asked for.
                if is_last { StoreError::InDoubt { batch, why } } else { StoreError::Partly(why) }
            }
            error @ StoreError::ShardUnavailable { .. } if is_begun => StoreError::Partly(error.to_string()),
            error => error,
        }
    }

    /// One that was asked in vain a moment ago is not asked again.
    pub(super) fn refuse_recent(&self, shard: usize, alone: bool) -> Result<(), StoreError> {
        if !self.breaker.is_recent(shard) {
            return Ok(());
        }
        Err(self.away(shard, alone, "it did not answer a moment ago".into()))
    }

    /// A fault as the caller hears it: with the shard's name, and remembered where something has to be asked later.
    fn fault(&self, shard: usize, error: StoreError, alone: bool) -> StoreError {
        match error {
            StoreError::Unavailable(why) => {
                self.breaker.put(shard);
                self.away(shard, alone, why)
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

/// A transaction with its database.
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
            told: Told::default(),
            unknown: Vec::new(),
            more: None,
            done: ShardSet::default(),
            stopped: None,
        }
    }

    /// Notes boards that a database does not know: it may have missed that they were made.
    fn unknown(&mut self, shard: usize, plan: &ReadSet, loaded: &Loaded) {
        self.unknown.retain(|(other, _)| *other != shard);
        let unknown = plan.boards.iter().zip(&loaded.boards).filter(|(_, live)| live.is_none());
        let unknown: Vec<BoardNo> = unknown.map(|(no, _)| *no).collect();
        if shard != FIRST && !self.needs.sure && !unknown.is_empty() {
            self.unknown.push((shard, unknown));
        }
    }

    /// Everything is read.
    fn decide(&mut self, decide: Decide<'_>) {
        let (loaded, found) = self.split.loaded(&self.loaded);
        self.decided(decide(&loaded), &found);
        // What a database refuses whatever is tried must be known before another has done its part.
        if let Some(error) = self.slices.values().find_map(|changes| MySqlStore::check(changes).err()) {
            self.stopped = Some((self.split.lowest(), error));
        }
    }

    /// What each database writes.
    fn decided(&mut self, changes: WriteSet, found: &[Option<usize>]) {
        (self.more, self.stopped) = (None, None);
        (self.slices, self.told) = self.split.changes(changes, found);
        let mut needs = self.needs;
        self.slices.keys().for_each(|shard| needs.shards.insert(*shard));
        needs.boards |= !self.told.is_empty();
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

    /// What one database writes.
    fn slice(&self, shard: usize) -> Noted {
        if self.stopped.is_some() || self.more.is_some() || !self.unknown.is_empty() {
            return Noted::default();
        }
        let changes = self.slices.get(&shard).cloned().unwrap_or_default();
        Noted { changes, version: self.version, ..Noted::default() }
    }

    /// The transaction of one database has ended.
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
            // Where nothing is left to be done there, the others have done it.
            Err(_)
                if !self.slices.is_empty() && !self.slices.contains_key(&shard) && !self.done.is_empty() => {}
            Err(error) => {
                self.stopped.get_or_insert((shard, error));
            }
        }
    }
}
