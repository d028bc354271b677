//! One transaction, on one shard or on several.
//!
//! What concerns one shard is that shard's own transaction, beside those of others. What concerns several has its shards
//! to itself. It reads and locks on each, the highest first, each inside of the one before; the lowest, which is the last,
//! decides. Its commit is the moment at which all is done: with it goes the intent of what the others have to do. Then
//! they commit from the inside out, with what they read still locked. Whoever fails at that is behind (`pending`), and
//! mended before anybody reads or writes there.
//!
//! Not here: two processes that write to the same shards; the lease keeps the second away.

use super::intent::{self, Intent};
use super::pending::Left;
use super::split::{self, Split};
use super::{Inner, LOST_MAX};
use crate::mysql::{MySqlStore, Noted};
use crate::plan::{BatchId, Changes, Committed, Loaded, Plan};
use crate::{ShardSet, Store, StoreError};
use std::collections::BTreeMap;
use std::sync::PoisonError;

/// How often a shard that is behind is brought to the present at once, where another transaction is in the way.
const TRIES: usize = 5;

/// Notes of an intent at most: 64 MiB, which a million players' removal does not reach.
const INTENT_NOTES_MAX: usize = 2048;

type Decide<'a> = &'a mut dyn FnMut(&Loaded) -> Changes;

/// A transaction of several shards.
struct Wide<'a> {
    split: Split<'a>,
    /// Their plans, in the order in which they are begun.
    plans: Vec<(usize, Plan)>,
    loaded: BTreeMap<usize, Loaded>,
    version: u64,
    /// The number of its intent, and the notes that go with it.
    number: u64,
    old: Vec<crate::mysql::Note>,
    parts: BTreeMap<usize, Changes>,
    intent: Option<(Intent, usize)>,
    /// Shards that it would have needed.
    wider: Option<ShardSet>,
    /// Why nothing was done, and where.
    stopped: Option<(usize, StoreError)>,
    done: bool,
    /// Where it was done and the shard does not know yet.
    left: BTreeMap<usize, StoreError>,
}

impl Inner {
    /// See [`crate::Store::run`].
    pub(super) fn run(&self, plan: &Plan, decide: Decide<'_>) -> Result<Committed, StoreError> {
        plan.assert_sorted();
        let mut shards = split::concerned(plan, self.all.len());
        if let (1, Some(shard)) = (shards.len(), shards.lowest()) {
            match self.run_on_one(shard, plan, decide)? {
                Ok(committed) => return Ok(committed),
                Err(wider) => shards = wider,
            }
        }
        loop {
            match self.run_on_several(shards, plan, decide)? {
                Ok(committed) => return Ok(committed),
                Err(wider) => shards = wider,
            }
        }
    }

    /// Gives the shards that it turned out to need, where they are more.
    fn run_on_one(
        &self,
        shard: usize,
        plan: &Plan,
        decide: Decide<'_>,
    ) -> Result<Result<Committed, ShardSet>, StoreError> {
        let alone = ShardSet::of(shard);
        self.refuse_recent(shard, true)?;
        let _beside = self.enter(shard)?;
        let split = Split::new(plan, self.all.len(), alone);
        let mut wider = None;
        let done = self.all[shard].run(plan, &mut |loaded| {
            let found = vec![Some(shard); plan.requests.len()];
            let mut parts = split.changes(decide(loaded), &found);
            let needed: ShardSet = parts.keys().copied().collect();
            wider = (!needed.is_within(alone)).then(|| needed.and(alone));
            let changes = if wider.is_some() { None } else { parts.remove(&shard) };
            changes.unwrap_or_default()
        });
        let committed = done.map_err(|error| self.fault(shard, error, true))?;
        self.silent.take(shard);
        Ok(wider.map_or(Ok(committed), Err))
    }

    fn run_on_several(
        &self,
        shards: ShardSet,
        plan: &Plan,
        decide: Decide<'_>,
    ) -> Result<Result<Committed, ShardSet>, StoreError> {
        // Whoever is away is asked before others wait for it.
        for shard in self.silent.get().iter().filter(|shard| shards.has(*shard)) {
            self.refuse_recent(shard, false)?;
            self.all[shard].meta("").map_err(|error| self.fault(shard, error, false))?;
            self.silent.take(shard);
        }
        let _alone: Vec<_> = shards
            .iter()
            .map(|shard| self.gates[shard].write().unwrap_or_else(PoisonError::into_inner))
            .collect();
        for shard in shards.iter() {
            self.pending.mend(&self.all, shard).map_err(|error| self.fault(shard, error, false))?;
        }
        let mut wide = self.begin(shards, plan);
        let lowest = wide.split.lowest();
        self.descend(0, &mut wide, decide);
        if let Some(wider) = wide.wider {
            return Ok(Err(wider.and(shards)));
        }
        if let Some((shard, error)) = wide.stopped.take() {
            if let (StoreError::LostAtCommit { batch, .. }, Some((intent, notes))) = (&error, &wide.intent) {
                let left = wide.rest(|_| true);
                self.pending.add((lowest, wide.number, *notes), intent, Some(*batch), left);
            }
            return Err(self.fault(shard, error, false));
        }
        if let Some((intent, notes)) = &wide.intent {
            let left = wide.rest(|shard| wide.left.contains_key(&shard));
            let behind: Vec<usize> = left.keys().copied().collect();
            self.pending.add((lowest, wide.number, *notes), intent, None, left);
            behind.into_iter().for_each(|shard| self.mend_soon(shard));
        }
        Ok(Ok(Committed { version: wide.version, ..Committed::default() }))
    }

    fn begin<'a>(&self, shards: ShardSet, plan: &'a Plan) -> Wide<'a> {
        let split = Split::new(plan, self.all.len(), shards);
        let plans = shards.iter().rev().map(|shard| (shard, split.plan(shard))).collect();
        let (number, old) = self.pending.next(split.lowest());
        Wide {
            split,
            plans,
            loaded: BTreeMap::new(),
            version: 0,
            number,
            old,
            parts: BTreeMap::new(),
            intent: None,
            wider: None,
            stopped: None,
            done: false,
            left: BTreeMap::new(),
        }
    }

    /// The transaction on one shard, and inside of it those on the shards below.
    fn descend(&self, at: usize, wide: &mut Wide<'_>, decide: Decide<'_>) {
        let (shard, plan) = wide.plans[at].clone();
        let last = at + 1 == wide.plans.len();
        let mut inner_ended = false;
        let done = self.all[shard].run_noting(&plan, &mut |loaded, version| {
            // Begun again: what is below was decided on what nobody else can have changed.
            if !inner_ended {
                wide.loaded.insert(shard, loaded.clone());
                wide.version = wide.version.max(version);
                if last {
                    wide.decide(decide);
                } else {
                    self.descend(at + 1, wide, decide);
                    inner_ended = true;
                }
            }
            wide.noted(shard, last)
        });
        wide.end(shard, last, done);
    }

    /// Tries to bring a shard to the present that the caller has to itself. Where that fails, whoever comes next tries.
    fn mend_soon(&self, shard: usize) {
        for _ in 0..TRIES {
            match self.pending.mend(&self.all, shard) {
                Err(StoreError::Conflict(_)) => std::thread::yield_now(),
                Err(StoreError::Away(_)) => return self.silent.put(shard),
                _ => return,
            }
        }
    }

    /// One that was asked in vain a moment ago is not asked again.
    fn refuse_recent(&self, shard: usize, alone: bool) -> Result<(), StoreError> {
        if !self.silent.is_recent(shard) {
            return Ok(());
        }
        Err(self.away(shard, alone, "it did not answer a moment ago".into()))
    }

    /// A fault as the caller hears it: with the shard's name, and remembered where something has to be asked later.
    fn fault(&self, shard: usize, error: StoreError, alone: bool) -> StoreError {
        match error {
            StoreError::Away(why) => {
                self.silent.put(shard);
                self.away(shard, alone, why)
            }
            StoreError::LostAtCommit { batch, why } => {
                self.silent.put(shard);
                let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
                lost.push_back((batch, shard));
                if lost.len() > LOST_MAX {
                    lost.pop_front();
                }
                StoreError::LostAtCommit { batch, why: format!("{}: {why}", self.name(shard)) }
            }
            error => error,
        }
    }

    /// Which shard has a transaction whose end was lost.
    pub(super) fn shard_of_lost(&self, batch: &BatchId) -> Option<usize> {
        let lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        lost.iter().rev().find(|(other, _)| other == batch).map(|(_, shard)| *shard)
    }
}

impl Wide<'_> {
    /// All is read: decides, and says what becomes of it on each shard.
    fn decide(&mut self, decide: Decide<'_>) {
        (self.parts, self.intent, self.wider) = (BTreeMap::new(), None, None);
        let (loaded, found) = self.split.loaded(&self.loaded);
        let parts = self.split.changes(decide(&loaded), &found);
        let needed: ShardSet = parts.keys().copied().collect();
        if !needed.is_within(self.split.shards) {
            self.wider = Some(needed);
            return;
        }
        // What a shard refuses whatever is tried must be known before it is too late.
        if let Some(error) = parts.values().find_map(|changes| MySqlStore::check(changes).err()) {
            self.stopped = Some((self.split.lowest(), error));
            return;
        }
        self.parts = parts;
        if self.parts.len() > 1 {
            let lowest = self.split.lowest();
            let rest = self.parts.iter().filter(|(shard, _)| **shard != lowest);
            let rest = rest.map(|(shard, changes)| (*shard, changes.clone())).collect();
            let intent = Intent { version: self.version, rest };
            let notes = intent::notes(self.number, &intent).len();
            if notes > INTENT_NOTES_MAX {
                let why = format!("a change of several shards is larger than {INTENT_NOTES_MAX} notes hold");
                self.stopped = Some((lowest, StoreError::Row(why)));
                return;
            }
            self.intent = Some((intent, notes));
        }
    }

    /// What one shard writes.
    fn noted(&self, shard: usize, last: bool) -> Noted {
        if self.stopped.is_some() || self.wider.is_some() {
            return Noted::default();
        }
        let changes = self.parts.get(&shard).cloned().unwrap_or_default();
        let notes = match &self.intent {
            Some((intent, _)) if last => {
                intent::notes(self.number, intent).into_iter().chain(self.old.iter().cloned()).collect()
            }
            Some(_) if !changes.is_empty() => vec![intent::applied(self.split.lowest(), self.number)],
            _ => Vec::new(),
        };
        Noted { changes, notes, version: self.version }
    }

    /// One shard's transaction has ended.
    fn end(&mut self, shard: usize, last: bool, done: Result<Committed, StoreError>) {
        let has_part = self.parts.contains_key(&shard);
        // With an intent all is done with the lowest; without one there is one part at most.
        let decides = if self.intent.is_some() { last } else { has_part };
        match done {
            Ok(_) if self.stopped.is_some() || self.wider.is_some() => {}
            Ok(committed) => {
                self.version = self.version.max(committed.version);
                self.done |= decides;
            }
            Err(error) if self.done => {
                if has_part {
                    self.left.insert(shard, error);
                }
            }
            Err(error) => {
                self.stopped.get_or_insert((shard, error));
            }
        }
    }

    /// What is left to do on those shards that are behind.
    fn rest(&self, behind: impl Fn(usize) -> bool) -> BTreeMap<usize, Left> {
        let Some((intent, _)) = &self.intent else { return BTreeMap::new() };
        let left = intent.rest.iter().filter(|(shard, _)| behind(**shard));
        let doubt = |shard| match self.left.get(shard) {
            Some(StoreError::LostAtCommit { batch, .. }) => Some(*batch),
            _ => None,
        };
        left.map(|(shard, changes)| (*shard, Left { changes: changes.clone(), doubt: doubt(shard) }))
            .collect()
    }
}
