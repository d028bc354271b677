//! What a store of several databases keeps in each: values under names of the store's own, written in transactions.
//!
//! They stand in `meta`, where no caller can write such names. Not here: what they mean (`shards`).

use super::connect::Address;
use super::{MySqlStore, check, meta, run};
use crate::StoreError;
use crate::plan::{Committed, Loaded, ReadSet, WriteSet};

/// A value under a name of the store's own; `None` forgets it.
pub(crate) type Note = (String, Option<Vec<u8>>);

/// What a transaction writes, and what the store notes for itself with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Noted {
    pub(crate) changes: WriteSet,
    pub(crate) notes: Vec<Note>,
    /// Its rows have this version at least.
    pub(crate) version: u64,
}

/// Decides on what was loaded, and on the version that the transaction has by itself.
pub(super) type Decide<'a> = &'a mut dyn FnMut(&Loaded, u64) -> Noted;

impl MySqlStore {
    /// A transaction that also writes notes. What it reads stays locked while it is decided.
    pub(crate) fn run_noting(&self, plan: &ReadSet, decide: Decide<'_>) -> Result<Committed, StoreError> {
        run::run((&self.pool, self.lease.as_ref(), None), plan, decide)
    }

    /// Notes whose names begin so, in order of names.
    pub(crate) fn notes(&self, prefix: &str) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        meta::read_all(self.pool.ask(&meta::select_beginning(prefix))?)
    }

    /// Whether a URL names this database.
    pub(crate) fn is_at(&self, url: &str) -> bool {
        Address::parse(url).is_ok_and(|address| address.shown == self.url())
    }

    /// Whether nothing was ever stored in it.
    pub(crate) fn is_new(&self) -> Result<bool, StoreError> {
        Ok(self.pool.ask(&meta::count_all())?.one_number("meta")? == 0)
    }

    /// Refuses changes that cannot be stored whatever is tried, as far as that can be seen without asking.
    pub(crate) fn check(changes: &WriteSet) -> Result<(), StoreError> {
        check::changes(changes)
    }
}
