//! A batch: the rows that one transaction writes, encoded for the journal and the memtable, and decoded after a kill.
//!
//! A batch is a list of rows for each table it touches, in order of keys. In bytes: for each such table its tag, the number
//! of rows, and each row as its key and then 0, or 1 and its value. Changes become row states here, so that the journal has
//! no step that must not run twice. Not here: checking that the bytes are whole (`journal_rows`).

use super::boards::Boards;
use super::directory::{Changed, Directory};
use super::events::{Events, Topics};
use super::holds::Holds;
use super::keys::{KeyState, Keys};
use super::members::{Handles, Members};
use super::memtable::Memtable;
use super::minted::Minted;
use super::requests::Requests;
use super::reversals::Reversals;
use super::scores::Scores;
use super::table::{List, Table};
use super::transfers::{Entries, Transfers};
use super::wallets::{Totals, Wallets};
use super::windows::{Blocks, Deleted, Windows};
use super::{archives, audit, bans, contests, imports, payments, profiles, series, table, webhooks};
use crate::codec::{Input, put_number, put_option};
use crate::plan::WriteSet;
use crate::{KeyChange, LedgerWriteSet, StoreError};
use tally_rules::ledger::account::{AccountKey, Total};

/// Rows of several tables.
#[derive(Default)]
pub(super) struct Batch {
    lists: Vec<Box<dyn AnyList>>,
}

/// A list of rows without its types.
trait AnyList {
    fn rows(&self) -> usize;
    fn encode(&self, out: &mut Vec<u8>);
    fn put(self: Box<Self>, memtable: &mut Memtable);
}

struct ListOf<T: Table>(List<T>);

impl<T: Table> AnyList for ListOf<T> {
    fn rows(&self) -> usize {
        self.0.len()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(T::TAG);
        put_number(self.0.len() as u64, out);
        for (key, value) in &self.0 {
            T::put_key(key, out);
            put_option(value.as_ref(), out, T::put_value);
        }
    }

    fn put(self: Box<Self>, memtable: &mut Memtable) {
        memtable.layer_mut::<T>().put(self.0);
    }
}

impl Batch {
    /// Adds rows of a table, in order of keys. Refuses rows that the table cannot hold.
    pub(super) fn add<T: Table>(&mut self, rows: List<T>) -> Result<(), StoreError> {
        for (key, value) in &rows {
            T::check(key, value.as_ref())?;
        }
        if !rows.is_empty() {
            self.lists.push(Box::new(ListOf::<T>(rows)));
        }
        Ok(())
    }

    pub(super) fn rows(&self) -> usize {
        self.lists.iter().map(|list| list.rows()).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// Appends the bytes of the batch.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for list in &self.lists {
            list.encode(out);
        }
    }

    /// Reads bytes that [`encode`](Self::encode) wrote; `None` for any others.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Input::new(bytes);
        let mut batch = Self::default();
        while !input.is_empty() {
            let tag = input.byte()?;
            let table = table::TABLES.get(usize::from(tag))?;
            table.take(&mut input, &mut batch)?;
        }
        Some(batch)
    }

    /// Moves the rows into the memtable.
    pub(super) fn put_into(self, memtable: &mut Memtable) {
        for list in self.lists {
            list.put(memtable);
        }
    }
}

/// Reads the rows of one table.
pub(super) fn take_list<T: Table>(input: &mut Input<'_>, batch: &mut Batch) -> Option<()> {
    let count = input.number()?;
    let mut rows: List<T> = Vec::new();
    for _ in 0..count {
        let key = T::take_key(input)?;
        rows.push((key, input.option(T::take_value)?));
    }
    batch.add::<T>(rows).ok()
}

/// The stored rows that changes refer to.
pub(super) struct Present<'a> {
    pub(super) boards: &'a Directory,
    /// Finds a key by its id.
    pub(super) keys: &'a dyn Fn(&str) -> Option<KeyState>,
    /// The number of the next new key.
    pub(super) next_key: u32,
    /// The present totals of the accounts that are added to.
    pub(super) totals: &'a [Option<Total>],
    /// Events with their numbers.
    pub(super) events: (List<Events>, List<Topics>),
}

/// Turns changes into rows; also returns those of boards for the directory. One line for each table.
pub(super) fn of(changes: WriteSet, present: Present<'_>) -> Result<(Batch, Changed), StoreError> {
    let mut batch = Batch::default();
    let boards =
        if changes.boards.is_empty() { Vec::new() } else { present.boards.resolve(changes.boards)? };
    batch.add::<Scores>(changes.scores.into_iter().map(|(key, record)| (key.into(), record)).collect())?;
    batch.add::<Requests>(there(changes.requests))?;
    batch.add::<imports::Imports>(there(changes.imports))?;
    batch.add::<profiles::Profiles>(changes.profiles)?;
    let bans = changes.bans.into_iter().map(|(key, banned)| (key, banned.then_some(())));
    batch.add::<bans::Bans>(bans.collect())?;
    batch.add::<Windows>(changes.windows)?;
    batch.add::<Blocks>(there(changes.blocks))?;
    batch.add::<Deleted>(changes.garbage.into_iter().map(|gone| (gone.into(), Some(()))).collect())?;
    batch.add::<Boards>(boards.clone())?;
    batch.add::<Keys>(keys(changes.keys, &present)?)?;
    batch.add::<audit::Audit>(there(changes.audit))?;
    let redacted = changes.redacted;
    batch.add::<audit::Audit>(there(redacted.audit))?;
    batch.add::<Transfers>(there(redacted.transfers))?;
    batch.add::<contests::Enrollments>(redacted.entrants)?;
    add_ledger(&mut batch, changes.ledger, present.totals)?;
    let (events, topics) = present.events;
    batch.add::<Events>(events)?;
    batch.add::<Topics>(topics)?;
    Ok((batch, boards))
}

fn add_ledger(
    batch: &mut Batch,
    changes: LedgerWriteSet,
    totals: &[Option<Total>],
) -> Result<(), StoreError> {
    batch.add::<Members>(there(changes.members))?;
    batch.add::<Handles>(changes.handles)?;
    batch.add::<Wallets>(there(changes.wallets))?;
    let sum = |((key, more), old): ((AccountKey, Total), &Option<Total>)| {
        (key, Some(old.unwrap_or_default().plus(more)))
    };
    batch.add::<Totals>(changes.totals.into_iter().zip(totals).map(sum).collect())?;
    batch.add::<archives::Archives>(there(changes.archives))?;
    batch.add::<Transfers>(gone(changes.archived.transfers))?;
    batch.add::<Entries>(gone(changes.archived.entries))?;
    batch.add::<Transfers>(there(changes.transfers))?;
    batch.add::<Entries>(there(changes.entries))?;
    batch.add::<Holds>(there(changes.holds))?;
    batch.add::<Reversals>(there(changes.reversals))?;
    batch.add::<Minted>(there(changes.minted))?;
    batch.add::<webhooks::Webhooks>(changes.webhooks)?;
    let of_contests = changes.contests;
    batch.add::<contests::Contests>(there(of_contests.contests))?;
    batch.add::<contests::Applications>(of_contests.applications)?;
    batch.add::<contests::Enrollments>(there(of_contests.members))?;
    batch.add::<contests::Payouts>(there(of_contests.payouts))?;
    batch.add::<series::AllSeries>(of_contests.series)?;
    batch.add::<payments::Payments>(there(of_contests.payments))
}

fn gone<K, V>(keys: Vec<K>) -> Vec<(K, Option<V>)> {
    keys.into_iter().map(|key| (key, None)).collect()
}

fn there<K, V>(rows: Vec<(K, V)>) -> Vec<(K, Option<V>)> {
    rows.into_iter().map(|(key, value)| (key, Some(value))).collect()
}

/// Creates and revokes keys. Revoking a missing or a revoked key changes nothing: the key is not accepted already.
fn keys(changes: Vec<KeyChange>, present: &Present<'_>) -> Result<List<Keys>, StoreError> {
    let mut rows: List<Keys> = Vec::with_capacity(changes.len());
    let mut no = present.next_key;
    for change in changes {
        let old = (present.keys)(change.id());
        match change {
            KeyChange::Create(row) if old.is_none() => {
                rows.push((row.id.clone(), Some(KeyState { no, row, revoked_at: None })));
                no =
                    no.checked_add(1).ok_or_else(|| StoreError::Row("keys: all numbers are given".into()))?;
            }
            KeyChange::Create(row) => {
                return Err(StoreError::Row(format!("keys: the id `{}` is taken", row.id)));
            }
            KeyChange::Revoke(id, at) => {
                let state = old.filter(|state| state.revoked_at.is_none());
                rows.extend(state.map(|state| (id, Some(KeyState { revoked_at: Some(at), ..state }))));
            }
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{BanKey, BoardNo, Garbage, Window, WindowKey};
    use crate::{ImportKey, ImportRow, ScoreKey};
    use proptest::prelude::*;
    use tally_rules::profile::Profile;
    use tally_rules::{Micros, PlayerId, Record};

    fn changes(player: &str, number: i64) -> WriteSet {
        let player = PlayerId::new(player).unwrap();
        let window = WindowKey { board: BoardNo(1), window: Window(number.unsigned_abs() >> 1) };
        let record = Record { score: number, subscore: -1, at: Micros(number) };
        WriteSet {
            scores: vec![(
                ScoreKey { board: BoardNo(7), window: window.window, player: player.clone() },
                (number % 2 == 0).then_some(record),
            )],
            imports: vec![(ImportKey { board: BoardNo(3), digest: [5; 32] }, ImportRow::default())],
            profiles: vec![(
                player.clone(),
                Some(Profile { name: Some("Ann".into()), ..Profile::default() }),
            )],
            bans: vec![(BanKey { board: BoardNo(2), player }, number > 0)],
            windows: vec![(window, None)],
            garbage: vec![Garbage::Window(window)],
            ..WriteSet::default()
        }
    }

    fn encoded(changes: WriteSet) -> Vec<u8> {
        let boards = Directory::default();
        let events = Default::default();
        let present = Present { boards: &boards, keys: &|_| None, next_key: 1, totals: &[], events };
        let mut out = Vec::new();
        of(changes, present).unwrap().0.encode(&mut out);
        out
    }

    proptest! {
        #[test]
        fn what_is_encoded_reads_back(player in ".{1,30}", number in any::<i64>()) {
            prop_assume!(PlayerId::new(&player).is_ok());
            let bytes = encoded(changes(&player, number));
            let mut again = Vec::new();
            Batch::decode(&bytes).unwrap().encode(&mut again);
            prop_assert_eq!(&again, &bytes);
            // No prefix is a batch of the same rows, and no bytes cause a panic.
            for end in 0..bytes.len() {
                if let Some(batch) = Batch::decode(&bytes[..end]) {
                    prop_assert!(batch.rows() < 6);
                }
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(0u8..12, 0..60)) {
            if let Some(batch) = Batch::decode(&bytes) {
                prop_assert!(batch.rows() <= bytes.len());
            }
        }
    }

    #[test]
    fn the_bytes_of_a_score_are_pinned() {
        let bytes = encoded(WriteSet { scores: changes("ann", 2).scores, ..WriteSet::default() });
        assert_eq!(bytes, [0, 1, 7, 1, 3, b'a', b'n', b'n', 1, 4, 1, 4]);
    }
}
