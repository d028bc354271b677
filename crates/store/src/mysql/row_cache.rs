//! The row cache: ledger rows as the only writer last read or wrote them, so that it need not read them again.
//!
//! While one process is the only writer, the rows of its last commit are the present ones. Its rankings rely on the same. A
//! transaction whose rows are all cached is one message instead of two. A transaction of the ledger locks the cache, so they
//! run one after the other. Any end but an answered commit clears the cache. Only existing rows are cached, and the least
//! recently used are evicted first. The transaction itself checks that this is still the only writer (`leases`). A wallet
//! that is written must still equal its cached row (`wallets`): one that an operator changed by hand is a conflict, and is
//! read.
//!
//! Not here: holds, reversals, contests and what keys have made, which are always read, and when a transaction may skip reading (`run`).

use crate::ledger::{LedgerLoaded, LedgerReadSet, LedgerWriteSet};
use lru::LruCache;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard};
use tally_rules::ledger::member::Handle;
use tally_rules::ledger::{Member, MemberId, Wallet, WalletKey};

/// Wallets: some 150 bytes each.
const WALLETS_MAX: usize = 200_000;

/// Members and handles: some 500 bytes and 150 bytes each.
const MEMBERS_MAX: usize = 100_000;

/// The cached rows, locked by one transaction of the ledger at a time.
#[derive(Debug, Default)]
pub(super) struct RowCache(Mutex<Rows>);

impl RowCache {
    /// Locks the cache for one transaction.
    pub(super) fn take(&self) -> MutexGuard<'_, Rows> {
        self.0.lock().unwrap_or_else(|poisoned| {
            self.0.clear_poison();
            let mut rows = poisoned.into_inner();
            // The thread that panicked did not report how its transaction ended.
            rows.forget();
            rows
        })
    }
}

/// The row cache, as far as a transaction may use it.
pub(super) struct CacheAccess<'a> {
    /// Present if no other server writes; then usual answers are assumed.
    row_cache: Option<&'a RowCache>,
    /// Its locked rows, if the plan reads any of the ledger.
    pub(super) rows: Option<MutexGuard<'a, Rows>>,
}

impl<'a> CacheAccess<'a> {
    pub(super) fn new(row_cache: Option<&'a RowCache>, plan: &LedgerReadSet) -> Self {
        Self { row_cache, rows: row_cache.filter(|_| !plan.is_empty()).map(RowCache::take) }
    }

    /// Whether usual answers may be assumed.
    pub(super) fn may_assume(&self) -> bool {
        self.row_cache.is_some()
    }

    /// Caches the rows of a committed transaction.
    pub(super) fn learn(&mut self, plan: &LedgerReadSet, loaded: &LedgerLoaded, changes: &LedgerWriteSet) {
        let Some(row_cache) = self.row_cache else { return };
        match &mut self.rows {
            Some(rows) => rows.learn(plan, loaded, changes),
            None if changes.is_empty() => {}
            None => row_cache.take().learn(plan, loaded, changes),
        }
    }
}

/// The cached rows.
#[derive(Debug)]
pub(super) struct Rows {
    handles: LruCache<Handle, MemberId>,
    members: LruCache<MemberId, Member>,
    wallets: LruCache<WalletKey, Wallet>,
}

impl Default for Rows {
    fn default() -> Self {
        // A bound would allocate the memory of a full cache at once.
        Self {
            handles: LruCache::unbounded(),
            members: LruCache::unbounded(),
            wallets: LruCache::unbounded(),
        }
    }
}

/// The cached rows of a plan, and the rest of it to read.
#[derive(Debug, Default)]
pub(super) struct CachedRows {
    /// As long as the plan's lists, with `None` for rows to read; without what is always read.
    rows: LedgerLoaded,
    pub(super) left: LedgerReadSet,
}

impl Rows {
    /// Looks up the rows of a plan.
    pub(super) fn look_up(&mut self, plan: &LedgerReadSet) -> CachedRows {
        let (handles, left_handles) = cached(&mut self.handles, &plan.handles);
        let (members, left_members) = cached(&mut self.members, &plan.members);
        let (wallets, left_wallets) = cached(&mut self.wallets, &plan.wallets);
        CachedRows {
            rows: LedgerLoaded { handles, members, wallets, ..LedgerLoaded::default() },
            left: LedgerReadSet {
                handles: left_handles,
                members: left_members,
                wallets: left_wallets,
                holds: plan.holds.clone(),
                reversals: plan.reversals.clone(),
                minted: plan.minted.clone(),
                webhooks: plan.webhooks.clone(),
                archives: plan.archives.clone(),
                contests: plan.contests.clone(),
            },
        }
    }

    /// Caches what a committed transaction has read and written.
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
            self.wallets.put(*key, wallet.clone());
        }
        bound(&mut self.handles, MEMBERS_MAX);
        bound(&mut self.members, MEMBERS_MAX);
        bound(&mut self.wallets, WALLETS_MAX);
    }

    /// Clears the cache.
    pub(super) fn forget(&mut self) {
        self.handles.clear();
        self.members.clear();
        self.wallets.clear();
    }
}

impl CachedRows {
    /// The cached wallets of a plan, in its order.
    pub(super) fn cached_wallets(&self, plan: &LedgerReadSet) -> Vec<(WalletKey, Wallet)> {
        let rows = plan.wallets.iter().zip(&self.rows.wallets);
        rows.filter_map(|(key, wallet)| Some((*key, wallet.clone()?))).collect()
    }

    /// All rows of a plan: the cached ones, and those that were read.
    pub(super) fn with(self, read: LedgerLoaded) -> LedgerLoaded {
        LedgerLoaded {
            handles: merge(self.rows.handles, read.handles),
            members: merge(self.rows.members, read.members),
            wallets: merge(self.rows.wallets, read.wallets),
            ..read
        }
    }
}

fn cached<K: Hash + Eq + Clone, V: Clone>(rows: &mut LruCache<K, V>, keys: &[K]) -> (Vec<Option<V>>, Vec<K>) {
    let cached: Vec<Option<V>> = keys.iter().map(|key| rows.get(key).cloned()).collect();
    let left = keys.iter().zip(&cached).filter(|(_, cached)| cached.is_none()).map(|(key, _)| key.clone());
    let left = left.collect();
    (cached, left)
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

/// Both are in the order of the plan: each gap in `cached` is the next of `read`.
fn merge<V>(cached: Vec<Option<V>>, read: Vec<Option<V>>) -> Vec<Option<V>> {
    let mut read = read.into_iter();
    cached.into_iter().map(|cached| cached.or_else(|| read.next().expect("the database read it"))).collect()
}
