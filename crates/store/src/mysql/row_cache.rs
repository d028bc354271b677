//! Rows of the ledger as the only writer last read or wrote them, so that it need not ask for them again.
//!
//! While a process is the only one that writes, what it committed is what is there: as with records, which it reads from
//! its orders. A transaction that knows all its rows is one message instead of two. The rows are held for the length of a
//! transaction of the ledger, so that one follows another; whatever ends otherwise than in a commit that was answered
//! forgets them all. Only rows that are there are kept, the least recently used go first, and the database says in the
//! transaction whether this is still the only writer (`leases`). A wallet that is written must still be as it is here
//! (`wallets`): one that an operator changed by hand makes a conflict, and is read.
//!
//! Not here: holds and contests, which are asked for always, and when a transaction may go without asking (`run`).

use crate::ledger::{LedgerLoaded, LedgerReadSet, LedgerWriteSet};
use lru::LruCache;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard};
use tally_rules::ledger::member::Handle;
use tally_rules::ledger::{Member, MemberId, Wallet, WalletKey};

/// Wallets: some 150 bytes each.
const WALLETS_MAX: usize = 200_000;

/// Members, and what finds one: some 500 bytes and 150 bytes each.
const MEMBERS_MAX: usize = 100_000;

/// The rows; one transaction of the ledger at a time.
#[derive(Debug, Default)]
pub(super) struct RowCache(Mutex<Rows>);

impl RowCache {
    /// For one transaction.
    pub(super) fn take(&self) -> MutexGuard<'_, Rows> {
        self.0.lock().unwrap_or_else(|poisoned| {
            self.0.clear_poison();
            let mut rows = poisoned.into_inner();
            // Whoever had them has not said how it ended.
            rows.forget();
            rows
        })
    }
}

/// What is known.
#[derive(Debug)]
pub(super) struct Rows {
    handles: LruCache<Handle, MemberId>,
    members: LruCache<MemberId, Member>,
    wallets: LruCache<WalletKey, Wallet>,
}

impl Default for Rows {
    fn default() -> Self {
        // With a bound it would take the memory of a full one at once.
        Self {
            handles: LruCache::unbounded(),
            members: LruCache::unbounded(),
            wallets: LruCache::unbounded(),
        }
    }
}

/// What a plan asks for, as far as it is known, and what is left of it to ask.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// As long as the plan's lists, with nothing for what must be asked; holds and contests are not in it.
    rows: LedgerLoaded,
    pub(super) left: LedgerReadSet,
}

impl Rows {
    /// Looks up what a plan asks for.
    pub(super) fn known(&mut self, plan: &LedgerReadSet) -> Known {
        let (handles, left_handles) = look(&mut self.handles, &plan.handles);
        let (members, left_members) = look(&mut self.members, &plan.members);
        let (wallets, left_wallets) = look(&mut self.wallets, &plan.wallets);
        Known {
            rows: LedgerLoaded { handles, members, wallets, ..LedgerLoaded::default() },
            left: LedgerReadSet {
                handles: left_handles,
                members: left_members,
                wallets: left_wallets,
                holds: plan.holds.clone(),
                contests: plan.contests.clone(),
            },
        }
    }

    /// After a commit: what was there, and what it wrote over that.
    pub(super) fn learn(&mut self, plan: &LedgerReadSet, loaded: &LedgerLoaded, changes: &LedgerWriteSet) {
        put(&mut self.handles, &plan.handles, &loaded.handles);
        put(&mut self.members, &plan.members, &loaded.members);
        put(&mut self.wallets, &plan.wallets, &loaded.wallets);
        for (handle, member) in &changes.handles {
            match member {
                Some(member) => drop(self.handles.put(handle.clone(), *member)),
                None => drop(self.handles.pop(handle)),
            }
        }
        for (id, member) in &changes.members {
            self.members.put(*id, member.clone());
        }
        for (key, wallet) in &changes.wallets {
            self.wallets.put(*key, *wallet);
        }
        bound(&mut self.handles, MEMBERS_MAX);
        bound(&mut self.members, MEMBERS_MAX);
        bound(&mut self.wallets, WALLETS_MAX);
    }

    /// Everything must be asked for again.
    pub(super) fn forget(&mut self) {
        self.handles.clear();
        self.members.clear();
        self.wallets.clear();
    }
}

impl Known {
    /// The wallets of a plan that are known, in its order.
    pub(super) fn cached_wallets(&self, plan: &LedgerReadSet) -> Vec<(WalletKey, Wallet)> {
        let rows = plan.wallets.iter().zip(&self.rows.wallets);
        rows.filter_map(|(key, wallet)| Some((*key, (*wallet)?))).collect()
    }

    /// All that a plan asks for: what is known, and what was asked for besides.
    pub(super) fn with(self, asked: LedgerLoaded) -> LedgerLoaded {
        LedgerLoaded {
            handles: merge(self.rows.handles, asked.handles),
            members: merge(self.rows.members, asked.members),
            wallets: merge(self.rows.wallets, asked.wallets),
            ..asked
        }
    }
}

fn look<K: Hash + Eq + Clone, V: Clone>(rows: &mut LruCache<K, V>, keys: &[K]) -> (Vec<Option<V>>, Vec<K>) {
    let known: Vec<Option<V>> = keys.iter().map(|key| rows.get(key).cloned()).collect();
    let left = keys.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(key, _)| key.clone());
    let left = left.collect();
    (known, left)
}

fn put<K: Hash + Eq + Clone, V: Clone>(rows: &mut LruCache<K, V>, keys: &[K], found: &[Option<V>]) {
    for (key, found) in keys.iter().zip(found) {
        if let Some(found) = found {
            rows.put(key.clone(), found.clone());
        }
    }
}

fn bound<K: Hash + Eq, V>(rows: &mut LruCache<K, V>, max: usize) {
    while rows.len() > max {
        rows.pop_lru();
    }
}

/// Both are in the order of the plan: each gap of the one is the next of the other.
fn merge<V>(known: Vec<Option<V>>, asked: Vec<Option<V>>) -> Vec<Option<V>> {
    let mut asked = asked.into_iter();
    known.into_iter().map(|known| known.or_else(|| asked.next().expect("it was asked for"))).collect()
}
