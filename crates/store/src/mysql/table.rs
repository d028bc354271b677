//! A table, described once: its columns, and how a row becomes text and a type. All statements are built from that.
//!
//! A statement is built from the parts of the description, so it has the same text wherever it is sent. Tables that are
//! tuned further (`scores`, cached `wallets`) write their own statements with the same parts. Not here: which tables a
//! transaction concerns (`load`, `write`, `ledger`), and scans.

use super::connect::Flavour;
use super::found;
use super::pool::Pool;
use super::row::{Fields, ResultSets};
use super::text::{RowScript, Script, keys_end};
use crate::StoreError;

pub(super) trait Table {
    const NAME: &'static str;
    /// The key, as a `WHERE` compares it: `id`, or `(member, currency)`.
    const KEY: &'static str;
    /// The columns that are read, those of the key first.
    const READ: &'static str;
    /// The columns that are written, those of the key first.
    const WRITTEN: &'static str = Self::READ;
    /// The columns that a new state of a row replaces.
    const REPLACED: &'static [&'static str];
    /// The values after the key in a row that a guard inserts and deletes again.
    const BLANK: &'static str;
    type Key: Ord + Clone;
    type Value;

    fn put_key(row: &mut RowScript<'_>, key: &Self::Key);

    /// Writes the columns after the key.
    fn put(row: &mut RowScript<'_>, value: &Self::Value);

    /// Reads the columns of [`READ`](Self::READ).
    fn decode(row: &mut Fields<'_>) -> Result<(Self::Key, Self::Value), StoreError>;
}

/// `SELECT … FROM …`, by the primary key.
pub(super) fn all<T: Table>(script: &mut Script) -> &mut Script {
    script.sql("SELECT ").sql(T::READ).sql(" FROM ").sql(T::NAME).sql(" FORCE INDEX (PRIMARY)")
}

/// Queries rows by key. Returns the number of statements. The keys ascend.
pub(super) fn select<T: Table>(script: &mut Script, keys: &[T::Key], locking: bool) -> usize {
    let head = |script: &mut Script| {
        all::<T>(script).sql(" WHERE ").sql(T::KEY).sql(" IN (");
    };
    script.keys_headed(head, keys, keys_end(locking), T::put_key)
}

/// Reads the answer of [`select`]: `None` for a key without a row.
pub(super) fn read<T: Table>(
    results: &mut ResultSets,
    statements: usize,
    keys: &[T::Key],
) -> Result<Vec<Option<T::Value>>, StoreError> {
    found(results, statements, T::NAME, keys, T::decode)
}

/// Reads rows by key, without a lock. The keys ascend.
pub(super) fn get<T: Table>(pool: &Pool, keys: &[T::Key]) -> Result<Vec<Option<T::Value>>, StoreError> {
    get_by::<T>(keys, |script| pool.query(script))
}

/// Like [`get`], where `query` sends the statements.
pub(super) fn get_by<T: Table>(
    keys: &[T::Key],
    query: impl FnOnce(&Script) -> Result<ResultSets, StoreError>,
) -> Result<Vec<Option<T::Value>>, StoreError> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let mut script = Script::default();
    let statements = select::<T>(&mut script, keys, false);
    read::<T>(&mut query(&script)?, statements, keys)
}

/// Reads one row, without a lock.
pub(super) fn get_one<T: Table>(pool: &Pool, key: &T::Key) -> Result<Option<T::Value>, StoreError> {
    Ok(get::<T>(pool, std::slice::from_ref(key))?.pop().flatten())
}

/// Inserts rows that must not exist.
pub(super) fn insert<'a, T: Table + 'a>(
    script: &mut Script,
    rows: impl IntoIterator<Item = (&'a T::Key, &'a T::Value)>,
) {
    script.insert(insert_head::<T>, rows, |_| (), put::<T>);
}

/// Inserts rows, or replaces their state.
pub(super) fn upsert<'a, T: Table + 'a>(
    script: &mut Script,
    rows: impl IntoIterator<Item = (&'a T::Key, &'a T::Value)>,
    flavour: Flavour,
) {
    script.insert(insert_head::<T>, rows, |script| flavour.replace(script, T::REPLACED), put::<T>);
}

fn insert_head<T: Table>(script: &mut Script) {
    script.sql("INSERT INTO ").sql(T::NAME).sql(" (").sql(T::WRITTEN).sql(") VALUES ");
}

fn put<T: Table>(row: &mut RowScript<'_>, (key, value): (&T::Key, &T::Value)) {
    T::put_key(row, key);
    T::put(row, value);
}

pub(super) fn delete<'a, T: Table + 'a>(script: &mut Script, keys: impl IntoIterator<Item = &'a T::Key>) {
    let head = |script: &mut Script| {
        script.sql("DELETE FROM ").sql(T::NAME).sql(" WHERE ").sql(T::KEY).sql(" IN (");
    };
    script.keys_headed(head, keys, ")", T::put_key);
}

/// Writes changes; `None` deletes. A key of `absent` had no row when it was read, so it must have none now.
pub(super) fn write<'a, T: Table + 'a>(
    script: &mut Script,
    rows: impl Iterator<Item = (&'a T::Key, Option<&'a T::Value>)> + Clone,
    absent: &[T::Key],
    flavour: Flavour,
) {
    let gone = put_states::<T>(script, rows, absent, flavour);
    delete::<T>(script, gone);
}

/// Like [`write()`], but returns the keys to delete instead of deleting them.
pub(super) fn put_states<'a, T: Table + 'a>(
    script: &mut Script,
    rows: impl Iterator<Item = (&'a T::Key, Option<&'a T::Value>)> + Clone,
    absent: &[T::Key],
    flavour: Flavour,
) -> Vec<&'a T::Key> {
    let is_new = |key: &T::Key| absent.binary_search(key).is_ok();
    let states = || rows.clone().filter_map(|(key, value)| Some((key, value?)));
    insert::<T>(script, states().filter(|(key, _)| is_new(key)));
    upsert::<T>(script, states().filter(|(key, _)| !is_new(key)), flavour);
    rows.filter(|(key, value)| value.is_none() && !is_new(key)).map(|(key, _)| key).collect()
}

/// Fails if a key that had no row has one now, by inserting a row and deleting it again. Keys that get a row from `rows`
/// need no guard.
pub(super) fn guard<'a, T: Table + 'a>(
    script: &mut Script,
    absent: &'a [T::Key],
    rows: impl Iterator<Item = (&'a T::Key, Option<&'a T::Value>)>,
) {
    let left = unwritten(absent, rows);
    guard_rows::<T>(script, &left);
    delete::<T>(script, left);
}

/// The keys of `absent` that get no row. Both ascend.
pub(super) fn unwritten<'a, K: Ord, V: 'a>(
    absent: &'a [K],
    rows: impl Iterator<Item = (&'a K, Option<&'a V>)>,
) -> Vec<&'a K> {
    let mut given = rows.filter(|(_, value)| value.is_some()).map(|(key, _)| key).peekable();
    let mut is_given = |key: &&K| {
        while given.next_if(|other| other < key).is_some() {}
        given.peek() == Some(key)
    };
    absent.iter().filter(|key| !is_given(key)).collect()
}

/// Inserts the rows of a guard, which the caller deletes.
pub(super) fn guard_rows<T: Table>(script: &mut Script, keys: &[&T::Key]) {
    script.insert(
        insert_head::<T>,
        keys,
        |_| (),
        |row, key| {
            T::put_key(row, key);
            row.sql(T::BLANK);
        },
    );
}

/// Changes that only write rows.
pub(super) fn written<K, V>(rows: &[(K, V)]) -> impl Iterator<Item = (&K, Option<&V>)> + Clone {
    rows.iter().map(|(key, value)| (key, Some(value)))
}

/// Changes that write and delete rows.
pub(super) fn changed<K, V>(rows: &[(K, Option<V>)]) -> impl Iterator<Item = (&K, Option<&V>)> + Clone {
    rows.iter().map(|(key, value)| (key, value.as_ref()))
}

/// References to keys and values instead of to tuples.
pub(super) fn pairs<K, V>(rows: &[(K, V)]) -> impl Iterator<Item = (&K, &V)> + Clone {
    rows.iter().map(|(key, value)| (key, value))
}
