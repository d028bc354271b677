//! The ledger at one moment: a held snapshot of the tables, and a copy of the rows that were not in them yet.
//!
//! The journal is flushed first, so the copy has only the rows since then. A held snapshot keeps the log of the tables from
//! starting over. So a long reader beside a busy server uses a copy of the file instead (see `backup`).

use super::archives::{self, Archives};
use super::connect::Lent;
use super::contest_reads::{LIST, MEMBERS as MEMBERS_OF, PRIZES, entrant, merged};
use super::contests::{self, Applications, Contests, Enrollments, Payouts};
use super::fault::{column_text, damaged};
use super::holds::{self, Holds};
use super::members::{self, Handles, Members};
use super::memtable::Memtables;
use super::merge::merge;
use super::payments::{self, Payments};
use super::reversals::{self, Reversals};
use super::score_snapshot::Scored;
use super::state::Shared;
use super::table::Table;
use super::transfers::{self, Entries, Transfers};
use super::wallets::{self, Totals, Wallets};
use crate::archive::ArchivedMonth;
use crate::contests::PayoutKey;
use crate::damage::KeyText;
use crate::snapshot::{ContestSnapshot, RowPage, Snapshot};
use crate::{BoardNo, CorruptRow, StoreError, Window, WindowKey};
use rusqlite::{Params, Row, params};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use tally_rules::PlayerId;
use tally_rules::contest::{ContestId, ContestPlayer, ContestRecord, Payout};
use tally_rules::ledger::account::{AccountKey, Total};
use tally_rules::ledger::entry::EntryKey;
use tally_rules::ledger::member::Handle;
use tally_rules::ledger::{
    Entry, Hold, HoldId, Member, MemberId, Month, ReversalLink, Transfer, TransferId, Uuid, Wallet, WalletKey,
};
use tally_rules::period::PeriodPayment;

const MEMBERS: &str = "SELECT login, phone, player, name, password, pin, pin_digits, pin_wrong, \
     pin_locked_until, tokens_from, closed_at, id FROM members WHERE id > ?1 ORDER BY id";
const HANDLES: &str =
    "SELECT member, kind, text FROM handles WHERE (kind, text) > (?1, ?2) ORDER BY kind, text";
const WALLETS: &str = "SELECT balance, held, sequence, closed, spent_day, spent, credits, member, currency FROM wallets \
     WHERE (member, currency) > (?1, ?2) ORDER BY member, currency";
const ENTRIES: &str = "SELECT transfer, kind, amount, after, counterparty, reference, member, currency, sequence \
     FROM entries WHERE (member, currency, sequence) > (?1, ?2, ?3) ORDER BY member, currency, sequence";
const TRANSFERS: &str = "SELECT kind, currency, amount, debit_member, debit_sequence, credit_member, \
     credit_sequence, actor, reason, metadata, id FROM transfers WHERE id > ?1 ORDER BY id";
const HOLDS: &str = "SELECT member, currency, amount, expires_at, state, captured, captured_to, transfer, ended_at, \
     actor, reason, ended_by, end_reason, metadata, id FROM holds WHERE id > ?1 ORDER BY id";
const REVERSALS: &str = "SELECT body, id FROM reversals WHERE id > ?1 ORDER BY id";
const PAYMENTS: &str = "SELECT body, board, part FROM period_payments WHERE (board, part) > (?1, ?2) \
     ORDER BY board, part";
const OWNERS_OF_APPLICATIONS: &str =
    "SELECT DISTINCT contest FROM contest_applications WHERE contest > ?1 ORDER BY contest";
const OWNERS_OF_MEMBERS: &str =
    "SELECT DISTINCT contest FROM contest_members WHERE contest > ?1 ORDER BY contest";
const OWNERS_OF_PRIZES: &str =
    "SELECT DISTINCT contest FROM contest_prizes WHERE contest > ?1 ORDER BY contest";
/// As many members as wallets, four handles of each, and two entries of a transfer: near enough for a progress bar.
const ROWS: &str = "SELECT CAST(6 * count(*) + 1.5 * total(sequence) AS INTEGER) FROM wallets";

pub(super) type Newer<T> = BTreeMap<<T as Table>::Key, Option<<T as Table>::Value>>;

/// The rows that were not in the tables at that moment.
pub(super) struct Merged {
    members: Newer<Members>,
    handles: Newer<Handles>,
    wallets: Newer<Wallets>,
    entries: Newer<Entries>,
    transfers: Newer<Transfers>,
    holds: Newer<Holds>,
    reversals: Newer<Reversals>,
    archives: Newer<Archives>,
    totals: Newer<Totals>,
    contests: Newer<Contests>,
    enrolled: Newer<Enrollments>,
    payouts: Newer<Payouts>,
    pub(super) applications: Newer<Applications>,
    payments: Newer<Payments>,
    pub(super) scored: Scored,
}

impl Merged {
    fn of(memtables: &Memtables) -> Self {
        fn all<T: Table>(memtables: &Memtables) -> Newer<T> {
            memtables.range::<T>(Bound::Unbounded, |_| true, usize::MAX).0
        }
        Self {
            members: all::<Members>(memtables),
            handles: all::<Handles>(memtables),
            wallets: all::<Wallets>(memtables),
            entries: all::<Entries>(memtables),
            transfers: all::<Transfers>(memtables),
            holds: all::<Holds>(memtables),
            reversals: all::<Reversals>(memtables),
            archives: all::<Archives>(memtables),
            totals: all::<Totals>(memtables),
            contests: all::<Contests>(memtables),
            enrolled: all::<Enrollments>(memtables),
            payouts: all::<Payouts>(memtables),
            applications: all::<Applications>(memtables),
            payments: all::<Payments>(memtables),
            scored: Scored::of(memtables),
        }
    }
}

/// A snapshot; see the head of the file.
pub(super) struct SqliteSnapshot<'a> {
    pub(super) reader: Lent<'a>,
    pub(super) newer: Merged,
    pub(super) damaged: RefCell<Vec<CorruptRow>>,
}

impl<'a> SqliteSnapshot<'a> {
    pub(super) fn begin(shared: &'a Shared) -> Result<Self, StoreError> {
        shared.flushing.flush_now(shared)?;
        let reader = shared.readers.lend();
        let (newer, snapshot) = shared.moment(&reader, Merged::of)?;
        // The transaction lasts as long as this value, whose `drop` rolls it back.
        std::mem::forget(snapshot);
        Ok(Self { reader, newer, damaged: RefCell::default() })
    }

    /// A page of the tables: at most `limit` sound rows.
    pub(super) fn page<K, V>(
        &self,
        (sql, limit): (&'static str, usize),
        after: impl Params,
        decode: impl Fn(&Row<'_>) -> Result<(K, V), StoreError>,
    ) -> RowPage<K, V> {
        let mut statement = self.reader.prepare_cached(sql)?;
        let mut rows = statement.query(after)?;
        let mut page = Vec::new();
        while page.len() < limit
            && let Some(row) = rows.next()?
        {
            page.extend(self.sound(decode(row))?);
        }
        Ok(page)
    }

    /// A sound row; a corrupt one is kept for [`Snapshot::corrupt_rows`].
    pub(super) fn sound<T>(&self, decoded: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
        match decoded {
            Ok(row) => Ok(Some(row)),
            Err(StoreError::CorruptRow(row)) => {
                self.damaged.borrow_mut().push(*row);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

impl SqliteSnapshot<'_> {
    /// The row of a key; a corrupt one is returned as `None`.
    pub(super) fn sound_at<T>(
        &self,
        table: &'static str,
        key: &impl KeyText,
        read: Result<Option<T>, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.sound(read.map_err(|error| error.of_row(table, || key.text())))?.flatten())
    }
}

impl Drop for SqliteSnapshot<'_> {
    fn drop(&mut self) {
        // A connection with an open transaction would read the past for its next user.
        let _closed_with_the_store = self.reader.execute_batch("ROLLBACK");
    }
}

/// How many rows were removed since: a page reads as many more.
fn removed<K, V>(newer: &BTreeMap<K, Option<V>>) -> usize {
    newer.values().filter(|row| row.is_none()).count()
}

/// The bytes of an id to continue after; no id is before all others.
fn bytes(id: Option<&Uuid>) -> &[u8] {
    id.map_or(&[], |id| &id.0)
}

fn wallet_key(row: &Row<'_>, table: &'static str, column: usize) -> Result<WalletKey, StoreError> {
    let member = MemberId(Uuid(row.get(column)?));
    Ok(WalletKey { member, currency: wallets::currency(table, &row.get::<_, String>(column + 1)?)? })
}

/// Adds the key of the row to an error.
fn within<K: KeyText, V>(
    table: &'static str,
    key: K,
    decoded: Result<V, StoreError>,
) -> Result<(K, V), StoreError> {
    match decoded {
        Ok(value) => Ok((key, value)),
        Err(error) => Err(error.of_row(table, || key.text())),
    }
}

impl Snapshot for SqliteSnapshot<'_> {
    fn members(&mut self, after: Option<MemberId>, limit: usize) -> RowPage<MemberId, Member> {
        let from = bytes(after.as_ref().map(|id| &id.0));
        let page = self.page((MEMBERS, limit), params![from], |row| {
            within("members", MemberId(Uuid(row.get(11)?)), members::decode(row))
        })?;
        Ok(merge(page, &self.newer.members, after.as_ref(), (limit, limit)))
    }

    fn handles(&mut self, after: Option<&Handle>, limit: usize) -> RowPage<Handle, MemberId> {
        // A phone number changes, and another member may get it.
        let page_limit = limit.saturating_add(removed(&self.newer.handles));
        let (kind, text) = after.map_or((0, ""), |handle| (handle.number(), handle.as_str()));
        let page = self.page((HANDLES, page_limit), params![kind, text], |row| {
            let handle = Handle::of_stored(row.get(1)?, &row.get::<_, String>(2)?);
            let handle = handle.ok_or_else(|| damaged("handles", "a handle that cannot be"))?;
            Ok((handle, MemberId(Uuid(row.get(0)?))))
        })?;
        Ok(merge(page, &self.newer.handles, after, (page_limit, limit)))
    }

    fn wallets(&mut self, after: Option<WalletKey>, limit: usize) -> RowPage<WalletKey, Wallet> {
        let from = bytes(after.as_ref().map(|key| &key.member.0));
        let currency = after.as_ref().map_or("", |key| key.currency.as_str());
        let page = self.page((WALLETS, limit), params![from, currency], |row| {
            within("wallets", wallet_key(row, "wallets", 7)?, wallets::decode(row))
        })?;
        Ok(merge(page, &self.newer.wallets, after.as_ref(), (limit, limit)))
    }

    fn entries(&mut self, after: Option<EntryKey>, limit: usize) -> RowPage<EntryKey, Entry> {
        let from = bytes(after.as_ref().map(|key| &key.wallet.member.0));
        let currency = after.as_ref().map_or("", |key| key.wallet.currency.as_str());
        let sequence = after.map_or(0, |key| key.sequence.cast_signed());
        let page_limit = limit.saturating_add(removed(&self.newer.entries));
        let page = self.page((ENTRIES, page_limit), params![from, currency, sequence], |row| {
            let sequence = wallets::counted("entries", row.get(8)?)?;
            let key = EntryKey { wallet: wallet_key(row, "entries", 6)?, sequence };
            within("entries", key, transfers::decode_entry(row))
        })?;
        Ok(merge(page, &self.newer.entries, after.as_ref(), (page_limit, limit)))
    }

    fn transfers(&mut self, after: Option<TransferId>, limit: usize) -> RowPage<TransferId, Transfer> {
        let from = bytes(after.as_ref().map(|id| &id.0));
        let page_limit = limit.saturating_add(removed(&self.newer.transfers));
        let page = self.page((TRANSFERS, page_limit), params![from], |row| {
            within("transfers", TransferId(Uuid(row.get(10)?)), transfers::decode(row))
        })?;
        Ok(merge(page, &self.newer.transfers, after.as_ref(), (page_limit, limit)))
    }

    fn holds(&mut self, after: Option<HoldId>, limit: usize) -> RowPage<HoldId, Hold> {
        let from = bytes(after.as_ref().map(|id| &id.0));
        let page = self.page((HOLDS, limit), params![from], |row| {
            within("holds", HoldId(Uuid(row.get(14)?)), holds::decode(row))
        })?;
        Ok(merge(page, &self.newer.holds, after.as_ref(), (limit, limit)))
    }

    fn reversals(&mut self, after: Option<TransferId>, limit: usize) -> RowPage<TransferId, ReversalLink> {
        let from = bytes(after.as_ref().map(|id| &id.0));
        let page = self.page((REVERSALS, limit), params![from], |row| {
            within("reversals", TransferId(Uuid(row.get(1)?)), reversals::decode(row))
        })?;
        Ok(merge(page, &self.newer.reversals, after.as_ref(), (limit, limit)))
    }

    fn archived_months(&mut self) -> RowPage<Month, ArchivedMonth> {
        let stored = archives::list(&self.reader)?;
        Ok(merge(stored, &self.newer.archives, None, (usize::MAX, usize::MAX)))
    }

    fn contests(&mut self, after: Option<&ContestId>, limit: usize) -> RowPage<ContestId, ContestRecord> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let newer = self.newer.contests.range((from, Bound::Unbounded));
        let newer: BTreeMap<_, _> = newer.map(|(id, record)| (id.clone(), record.clone())).collect();
        let mut statement = self.reader.prepare_cached(LIST)?;
        let mut rows = statement.query(params![after.map_or("", ContestId::as_str)])?;
        let order = |id: &ContestId, _: &ContestRecord| id.clone();
        Ok(merged(newer, order, &mut rows, |row| self.sound(contests::decode(row)), limit)?.rows)
    }

    fn contest_members(
        &mut self,
        contest: Uuid,
        after: Option<&PlayerId>,
        limit: usize,
    ) -> RowPage<PlayerId, ContestPlayer> {
        let is_after = |player: &PlayerId| after.is_none_or(|after| player > after);
        let newer = self.newer.enrolled.iter();
        let newer = newer.filter(|(key, _)| key.contest == contest && is_after(&key.player));
        let newer = newer.map(|(key, row)| (key.player.clone(), *row)).collect();
        let mut statement = self.reader.prepare_cached(MEMBERS_OF)?;
        let mut rows = statement.query(params![contest.0, after.map_or("", PlayerId::as_str)])?;
        let order = |player: &PlayerId, _: &ContestPlayer| player.clone();
        let decode =
            |row: &Row<'_>| Ok(self.sound(entrant(contest, row, 3, contests::decode_member))?.flatten());
        Ok(merged(newer, order, &mut rows, decode, limit)?.rows)
    }

    fn payouts(&mut self, contest: Uuid, from: u32, limit: usize) -> RowPage<u32, Payout> {
        let first = PayoutKey { contest, no: from };
        let newer = self.newer.payouts.range(first..).take_while(|(key, _)| key.contest == contest);
        let newer = newer.map(|(key, row)| (key.no, row.clone())).collect();
        let mut statement = self.reader.prepare_cached(PRIZES)?;
        let mut rows = statement.query(params![contest.0, from])?;
        let decode = |row: &Row<'_>| Ok((row.get(8)?, contests::decode_prize(row)?));
        let name = |row: &Row<'_>| format!("{contest}/{}", column_text(row, 8));
        let decode = |row: &Row<'_>| {
            self.sound(decode(row).map_err(|error: StoreError| error.of_row("contest_prizes", || name(row))))
        };
        Ok(merged(newer, |no: &u32, _: &Payout| *no, &mut rows, decode, limit)?.rows)
    }

    fn owners(&mut self, of: ContestSnapshot, after: Option<&Uuid>, limit: usize) -> RowPage<Uuid, ()> {
        fn there<K, V>(newer: &BTreeMap<K, Option<V>>, no: impl Fn(&K) -> Uuid) -> BTreeSet<Uuid> {
            newer.iter().filter(|(_, row)| row.is_some()).map(|(key, _)| no(key)).collect()
        }
        // Rows that were deleted since are included: the contest or period they belonged to still exists.
        let (sql, newer) = match of {
            ContestSnapshot::Applications => {
                (OWNERS_OF_APPLICATIONS, there(&self.newer.applications, |key| key.contest))
            }
            ContestSnapshot::Members => (OWNERS_OF_MEMBERS, there(&self.newer.enrolled, |key| key.contest)),
            ContestSnapshot::Prizes => (OWNERS_OF_PRIZES, there(&self.newer.payouts, |key| key.contest)),
        };
        let decode = |row: &Row<'_>| Ok((Uuid(row.get(0)?), ()));
        let mut all: BTreeMap<Uuid, ()> =
            self.page((sql, limit), params![bytes(after)], decode)?.into_iter().collect();
        all.extend(newer.into_iter().filter(|no| after.is_none_or(|after| no > after)).map(|no| (no, ())));
        Ok(all.into_iter().take(limit).collect())
    }

    fn payments(&mut self, after: Option<&WindowKey>, limit: usize) -> RowPage<WindowKey, PeriodPayment> {
        let (board, window) = after.map_or((0, 0), |key| (key.board.0, key.window.0.cast_signed()));
        let page = self.page((PAYMENTS, limit), params![board, window], |row| {
            let key = WindowKey {
                board: BoardNo(row.get(1)?),
                window: Window(row.get::<_, i64>(2)?.cast_unsigned()),
            };
            within("period_payments", key, payments::decode(row))
        })?;
        Ok(merge(page, &self.newer.payments, after, (limit, limit)))
    }

    fn members_of(&mut self, ids: &[MemberId]) -> Result<Vec<Option<Member>>, StoreError> {
        let newer = |id: &MemberId| self.newer.members.get(id).cloned();
        let stored = |id: &MemberId| self.sound_at("members", id, members::get(&self.reader, id));
        ids.iter().map(|id| newer(id).map_or_else(|| stored(id), Ok)).collect()
    }

    fn handles_of(&mut self, handles: &[Handle]) -> Result<Vec<Option<MemberId>>, StoreError> {
        let newer = |handle: &Handle| self.newer.handles.get(handle).copied();
        let stored = |handle| self.sound_at("handles", handle, members::of_handle(&self.reader, handle));
        handles.iter().map(|handle| newer(handle).map_or_else(|| stored(handle), Ok)).collect()
    }

    fn entries_of(&mut self, keys: &[EntryKey]) -> Result<Vec<Option<Entry>>, StoreError> {
        let newer = |key: &EntryKey| self.newer.entries.get(key).cloned();
        let stored = |key: &EntryKey| self.sound_at("entries", key, transfers::entry(&self.reader, key));
        keys.iter().map(|key| newer(key).map_or_else(|| stored(key), Ok)).collect()
    }

    fn transfers_of(&mut self, ids: &[TransferId]) -> Result<Vec<Option<Transfer>>, StoreError> {
        let newer = |id: &TransferId| self.newer.transfers.get(id).cloned();
        let stored = |id: &TransferId| self.sound_at("transfers", id, transfers::get(&self.reader, id));
        ids.iter().map(|id| newer(id).map_or_else(|| stored(id), Ok)).collect()
    }

    fn reversals_of(&mut self, ids: &[TransferId]) -> Result<Vec<Option<ReversalLink>>, StoreError> {
        let newer = |id: &TransferId| self.newer.reversals.get(id).cloned();
        let stored = |id: &TransferId| self.sound_at("reversals", id, reversals::get(&self.reader, id));
        ids.iter().map(|id| newer(id).map_or_else(|| stored(id), Ok)).collect()
    }

    fn corrupt_rows(&mut self) -> Vec<CorruptRow> {
        std::mem::take(self.damaged.get_mut())
    }

    fn totals(&mut self) -> RowPage<AccountKey, Total> {
        Ok(merge(wallets::totals(&self.reader)?, &self.newer.totals, None, (usize::MAX, usize::MAX)))
    }

    fn rows(&mut self) -> Result<u64, StoreError> {
        let rows: i64 = self.reader.query_row(ROWS, [], |row| row.get(0))?;
        Ok(u64::try_from(rows).unwrap_or(0))
    }
}
