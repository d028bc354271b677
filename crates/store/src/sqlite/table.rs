//! The description of a table that is written through the journal; and the list of these tables.
//!
//! Journal, memtable and flush know no table: they use the rows of [`Table`]s through [`TABLES`]. A new table is its file
//! with this trait, its line in the list, and its line in `batch`. The rows in the journal are states ("this key now holds
//! this", "this key is deleted"), never steps, so that flushing them twice changes nothing.
//!
//! The bytes of a released version are never changed: the next version reads its journal. A row that gains a field gets a
//! table with a new tag. Not here: scans, which are in the files of the tables.

use super::batch::{Batch, take_list};
use super::memtable::{AnyLayer, Layer};
use super::{
    archives, audit, bans, boards, contests, events, holds, imports, keys, members, minted, payments,
    profiles, requests, reversals, scores, series, transfers, wallets, webhooks, windows,
};
use crate::StoreError;
use crate::codec::Input;
use rusqlite::Connection;
use std::fmt::Debug;
use std::marker::PhantomData;

/// A table as the journal, the memtable and the flush see it.
pub(super) trait Table: Send + Sync + 'static {
    /// Its number in the journal and its position in [`TABLES`]. It never changes.
    const TAG: u8;
    /// The key of a row. Its order is that of the table's primary key, so that a flush writes the pages in order.
    type Key: Ord + Clone + Debug + Send + Sync;
    /// The rest of a row.
    type Value: Clone + Debug + Send + Sync;

    /// Refuses a row that the table cannot hold: every row in the journal must be possible to flush.
    fn check(key: &Self::Key, value: Option<&Self::Value>) -> Result<(), StoreError>;

    /// Appends a key.
    fn put_key(key: &Self::Key, out: &mut Vec<u8>);

    /// Reads what [`put_key`](Self::put_key) wrote.
    fn take_key(input: &mut Input<'_>) -> Option<Self::Key>;

    /// Appends a value.
    fn put_value(value: &Self::Value, out: &mut Vec<u8>);

    /// Reads what [`put_value`](Self::put_value) wrote.
    fn take_value(input: &mut Input<'_>) -> Option<Self::Value>;

    /// The approximate number of bytes on the heap that a row holds.
    fn heap_bytes(key: &Self::Key, value: Option<&Self::Value>) -> usize;

    /// The age by which rows expire, if they do: a layer remembers its lowest.
    fn age(_value: &Self::Value) -> Option<i64> {
        None
    }

    /// Writes rows into the table, in order of their keys; `None` removes one. Writing them twice is harmless.
    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError>;
}

/// Rows on their way into a table.
pub(super) type Rows<'a, 'r, T> =
    dyn Iterator<Item = (&'a <T as Table>::Key, &'a Option<<T as Table>::Value>)> + 'r;

/// The rows of a table in a batch.
pub(super) type List<T> = Vec<(<T as Table>::Key, Option<<T as Table>::Value>)>;

/// A table without its types.
pub(super) trait AnyTable: Sync {
    #[cfg(test)]
    fn tag(&self) -> u8;
    /// An empty layer of its rows.
    fn layer(&self) -> Box<dyn AnyLayer>;
    /// Reads a list of its rows into a batch.
    fn take(&self, input: &mut Input<'_>, batch: &mut Batch) -> Option<()>;
}

struct Entry<T>(PhantomData<fn() -> T>);

impl<T: Table> AnyTable for Entry<T> {
    #[cfg(test)]
    fn tag(&self) -> u8 {
        T::TAG
    }

    fn layer(&self) -> Box<dyn AnyLayer> {
        Box::new(Layer::<T>::default())
    }

    fn take(&self, input: &mut Input<'_>, batch: &mut Batch) -> Option<()> {
        take_list::<T>(input, batch)
    }
}

const fn entry<T: Table>() -> Entry<T> {
    Entry(PhantomData)
}

/// Every table that is written through the journal, by tag: the order in which they are flushed. Boards and garbage come
/// after the rows that they concern, because they cause a purge.
pub(super) static TABLES: &[&dyn AnyTable] = &[
    &entry::<scores::Scores>(),
    &entry::<requests::Requests>(),
    &entry::<imports::Imports>(),
    &entry::<profiles::Profiles>(),
    &entry::<bans::Bans>(),
    &entry::<windows::Windows>(),
    &entry::<windows::Blocks>(),
    &entry::<windows::Deleted>(),
    &entry::<boards::Boards>(),
    &entry::<keys::Keys>(),
    &entry::<members::Members>(),
    &entry::<members::Handles>(),
    &entry::<wallets::Wallets>(),
    &entry::<wallets::Totals>(),
    &entry::<transfers::Transfers>(),
    &entry::<transfers::Entries>(),
    &entry::<holds::Holds>(),
    &entry::<contests::Contests>(),
    &entry::<contests::Applications>(),
    &entry::<contests::Enrollments>(),
    &entry::<contests::Payouts>(),
    &entry::<series::AllSeries>(),
    &entry::<payments::Payments>(),
    &entry::<events::Topics>(),
    &entry::<events::Events>(),
    &entry::<reversals::Reversals>(),
    &entry::<audit::Audit>(),
    &entry::<minted::Minted>(),
    &entry::<webhooks::Webhooks>(),
    &entry::<archives::Archives>(),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tables_tag_is_its_place() {
        for (place, table) in TABLES.iter().enumerate() {
            assert_eq!(usize::from(table.tag()), place);
        }
    }
}
