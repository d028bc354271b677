//! Notes that a store of several shards keeps in each: values under names of the store, written in transactions.
//!
//! They are rows of `meta` whose names callers cannot write. Not here: their meaning (`shards`).

use super::connect::Address;
use super::{MySqlStore, check, meta, run};
use crate::StoreError;
use crate::plan::{Committed, Loaded, ReadSet, WriteSet};

/// A value under a name of the store; `None` deletes it.
pub(crate) type Note = (String, Option<Vec<u8>>);

/// What a transaction writes, and the notes that it writes with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Noted {
    pub(crate) changes: WriteSet,
    pub(crate) notes: Vec<Note>,
    /// The minimum version of its rows.
    pub(crate) version: u64,
}

/// Decides on the loaded rows and on the version of the transaction.
pub(super) type Decide<'a> = &'a mut dyn FnMut(&Loaded, u64) -> Noted;

impl MySqlStore {
    /// Runs a transaction that also writes notes. The rows that it reads stay locked while `decide` runs.
    pub(crate) fn run_noting(&self, plan: &ReadSet, decide: Decide<'_>) -> Result<Committed, StoreError> {
        run::run((&self.pool, self.lease.as_ref(), None), plan, decide)
    }

    /// Notes whose names begin with `prefix`, in order of names.
    pub(crate) fn notes(&self, prefix: &str) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        meta::read_all(self.pool.query(&meta::select_beginning(prefix))?)
    }

    /// Whether a URL names this database.
    pub(crate) fn is_at(&self, url: &str) -> bool {
        Address::parse(url).is_ok_and(|address| address.shown == self.url())
    }

    /// Whether nothing was ever stored in the database.
    pub(crate) fn is_new(&self) -> Result<bool, StoreError> {
        Ok(self.pool.query(&meta::count_all())?.one_number("meta")? == 0)
    }

    /// Refuses changes that cannot be stored on any attempt, as far as it is known without the database.
    pub(crate) fn check(changes: &WriteSet) -> Result<(), StoreError> {
        check::changes(changes)
    }
}
