//! Transactions of several shards that are done and not on every shard yet.
//!
//! One is done when its lowest shard has committed its part with the intent of the rest. From then on the shards of the
//! rest are behind: nobody reads or writes there before the intent is applied, whether that takes an instant or until a
//! database is back. A shard is behind by one intent at most, so each shard's intents are applied in order of their
//! numbers, and a note in the same transaction says which was the last. Notes of intents that are applied everywhere are
//! forgotten with the next one. Not here: who keeps others away meanwhile (`run`).

use super::intent::{self, APPLIED, INTENTS, Intent};
use crate::mysql::{MySqlStore, Note, Noted};
use crate::plan::{BatchId, Changes, Plan};
use crate::{Store, StoreError};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// See the head of the file.
#[derive(Debug, Default)]
pub(super) struct Pending {
    state: Mutex<State>,
    /// How many are open: asked before everything.
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    open: Vec<Open>,
    /// Intents whose notes can go, by shard: their numbers, and how many notes there are.
    applied: BTreeMap<usize, Vec<(u64, usize)>>,
    /// The last number, by shard.
    last: BTreeMap<usize, u64>,
}

/// One that is not applied everywhere.
#[derive(Debug)]
struct Open {
    /// The shard that has the intent, its number there, and the number of its notes.
    of: usize,
    number: u64,
    notes: usize,
    version: u64,
    /// The transaction that may have committed it.
    doubt: Option<BatchId>,
    left: BTreeMap<usize, Left>,
}

/// What is left to do on one shard.
#[derive(Clone, Debug)]
pub(super) struct Left {
    pub(super) changes: Changes,
    /// The transaction that may have done it.
    pub(super) doubt: Option<BatchId>,
}

impl Pending {
    /// What the shards say of themselves; nothing is applied yet.
    pub(super) fn read(all: &[Arc<MySqlStore>]) -> Result<Self, StoreError> {
        let bad =
            |shard: usize| StoreError::Corrupt(format!("{}: an intent does not decode", all[shard].url()));
        let mut done = Vec::new();
        for (shard, store) in all.iter().enumerate() {
            done.push(intent::read_applied(&store.notes(APPLIED)?).ok_or_else(|| bad(shard))?);
        }
        let mut state = State::default();
        for (of, store) in all.iter().enumerate() {
            let applied = |shard: usize| done.get(shard).and_then(|done| done.get(&of)).copied().unwrap_or(0);
            let mut last = (0..all.len()).map(applied).max().unwrap_or(0);
            for (number, (intent, notes)) in intent::read(&store.notes(INTENTS)?).ok_or_else(|| bad(of))? {
                last = last.max(number);
                let mut left = intent.rest;
                left.retain(|shard, _| applied(*shard) < number);
                if left.keys().any(|shard| *shard >= all.len()) {
                    return Err(bad(of));
                }
                if left.is_empty() {
                    state.applied.entry(of).or_default().push((number, notes));
                } else {
                    let left =
                        left.into_iter().map(|(shard, changes)| (shard, Left { changes, doubt: None }));
                    let (version, left) = (intent.version, left.collect());
                    state.open.push(Open { of, number, notes, version, doubt: None, left });
                }
            }
            state.last.insert(of, last);
        }
        let count = AtomicUsize::new(state.open.len());
        Ok(Self { state: Mutex::new(state), count })
    }

    /// Whether a shard is behind.
    pub(super) fn has(&self, shard: usize) -> bool {
        self.count.load(Ordering::Acquire) > 0
            && self.state().open.iter().any(|open| open.left.contains_key(&shard))
    }

    /// How many are open.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Brings a shard to the present. The caller has it to itself.
    pub(super) fn mend(&self, all: &[Arc<MySqlStore>], shard: usize) -> Result<(), StoreError> {
        while let Some((of, number, version, doubt, left)) = self.oldest(shard) {
            if let Some(batch) = doubt {
                if all[of].became(&batch)?.is_none() {
                    self.never_was(of, number);
                    continue;
                }
                self.of(of, number, |open| open.doubt = None);
            }
            if let Some(batch) = left.doubt
                && all[shard].became(&batch)?.is_some()
            {
                self.apply(of, number, shard);
                continue;
            }
            let noted = Noted { changes: left.changes, notes: vec![intent::applied(of, number)], version };
            let done = all[shard].run_noting(&Plan::default(), &mut |_, _| noted.clone());
            if let Err(error) = done {
                let doubt = match &error {
                    StoreError::LostAtCommit { batch, .. } => Some(*batch),
                    _ => None,
                };
                self.of(of, number, |open| open.left.get_mut(&shard).expect("it is left").doubt = doubt);
                return Err(error);
            }
            self.apply(of, number, shard);
        }
        Ok(())
    }

    /// The next number of a shard's intents, and the notes that can go with it.
    pub(super) fn next(&self, of: usize) -> (u64, Vec<Note>) {
        let mut state = self.state();
        let last = state.last.entry(of).or_default();
        *last += 1;
        let number = *last;
        let old = state.applied.get(&of).into_iter().flatten();
        (number, old.flat_map(|(number, notes)| intent::forgotten(*number, *notes)).collect())
    }

    /// An intent of that number was committed, or may have been: what is left of it. The notes that went with it are gone.
    pub(super) fn add(
        &self,
        (of, number, notes): (usize, u64, usize),
        intent: &Intent,
        doubt: Option<BatchId>,
        left: BTreeMap<usize, Left>,
    ) {
        let mut state = self.state();
        if doubt.is_none() {
            state.applied.insert(of, Vec::new());
        }
        if left.is_empty() {
            state.applied.entry(of).or_default().push((number, notes));
        } else {
            state.open.push(Open { of, number, notes, version: intent.version, doubt, left });
        }
        self.count.store(state.open.len(), Ordering::Release);
    }

    fn oldest(&self, shard: usize) -> Option<(usize, u64, u64, Option<BatchId>, Left)> {
        let state = self.state();
        let open = state.open.iter().find(|open| open.left.contains_key(&shard))?;
        Some((open.of, open.number, open.version, open.doubt, open.left[&shard].clone()))
    }

    fn of(&self, of: usize, number: u64, change: impl FnOnce(&mut Open)) {
        let mut state = self.state();
        if let Some(open) = state.open.iter_mut().find(|open| (open.of, open.number) == (of, number)) {
            change(open);
        }
    }

    fn apply(&self, of: usize, number: u64, shard: usize) {
        let mut state = self.state();
        let Some(at) = state.open.iter().position(|open| (open.of, open.number) == (of, number)) else {
            return;
        };
        state.open[at].left.remove(&shard);
        if state.open[at].left.is_empty() {
            let open = state.open.remove(at);
            state.applied.entry(of).or_default().push((number, open.notes));
        }
        self.count.store(state.open.len(), Ordering::Release);
    }

    fn never_was(&self, of: usize, number: u64) {
        let mut state = self.state();
        state.open.retain(|open| (open.of, open.number) != (of, number));
        self.count.store(state.open.len(), Ordering::Release);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
