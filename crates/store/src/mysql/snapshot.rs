//! The ledger at one moment: a read-only transaction on its own connection.
//!
//! InnoDB keeps the old versions of changed rows for it, so it does not delay the writers. If the connection is lost, the
//! reading ends, because a new one would see another moment.

use super::archives::{self, Archives};
use super::connect::Flavour;
use super::contests;
use super::fault::Fault;
use super::holds::Holds;
use super::link::Link;
use super::members::{Handles, Members};
use super::payments::{self, Payments};
use super::pool::Pool;
use super::prizes;
use super::reversals::Reversals;
use super::row::{Fields, ResultSets, key};
use super::table::{self, Table};
use super::text::Script;
use super::transfers::{Entries, Transfers};
use super::wallets::{self, Wallets};
use crate::archive::ArchivedMonth;
use crate::snapshot::{ContestSnapshot, RowPage, Snapshot};
use crate::{CorruptRow, StoreError, WindowKey};
use tally_rules::PlayerId;
use tally_rules::contest::{ContestId, ContestPlayer, ContestRecord, Payout};
use tally_rules::ledger::account::{AccountKey, Total};
use tally_rules::ledger::entry::EntryKey;
use tally_rules::ledger::member::Handle;
use tally_rules::ledger::{
    Entry, Hold, HoldId, Member, MemberId, Month, ReversalLink, Transfer, TransferId, Uuid, Wallet, WalletKey,
};
use tally_rules::period::PeriodPayment;

/// Marks a connection as a snapshot, by a lock named after the connection.
const SNAPSHOT_LOCK: &str = "SELECT GET_LOCK(CONCAT('tally.snapshot.', CONNECTION_ID()), 0)";

/// A snapshot; see the head of the file.
pub(crate) struct MySqlSnapshot {
    link: Link,
    pub(super) damaged: Vec<CorruptRow>,
}

impl MySqlSnapshot {
    pub(super) fn begin(pool: &Pool) -> Result<Self, StoreError> {
        let link = pool.connect(&pool.options)?;
        let mut snapshot = Self { link, damaged: Vec::new() };
        let mut script = Script::default();
        // The transaction locks nothing, so it may be silent for long.
        match snapshot.link.server.flavour {
            Flavour::MariaDb => script.statement("SET SESSION idle_transaction_timeout = 0"),
            // Servers that end silent connections check this lock: see `Pool::end_silent_transactions`.
            Flavour::MySql { .. } => script.statement(SNAPSHOT_LOCK),
        };
        script.statement("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
        script.statement("START TRANSACTION WITH CONSISTENT SNAPSHOT");
        snapshot.query(&script)?;
        Ok(snapshot)
    }

    pub(super) fn query(&mut self, script: &Script) -> Result<ResultSets, StoreError> {
        self.link.send(script).map_err(|fault: Fault| fault.into())
    }

    /// A page of a table in the order of its primary key; `after` writes the `WHERE`.
    pub(super) fn page_of<T: Table>(
        &mut self,
        order: &'static str,
        limit: usize,
        after: impl Fn(&mut Script),
    ) -> RowPage<T::Key, T::Value> {
        let query = |limit: usize| {
            let mut script = Script::default();
            table::all::<T>(&mut script);
            after(&mut script);
            script.sql(" ORDER BY ").sql(order).sql(" LIMIT ").number(limit as u64).end();
            script
        };
        self.page(T::NAME, limit, query, T::decode)
    }

    /// A page of a table whose key is an id.
    fn by_id<T: Table>(&mut self, after: Option<Uuid>, limit: usize) -> RowPage<T::Key, T::Value> {
        self.page_of::<T>("id", limit, |script| {
            if let Some(after) = after {
                script.sql(" WHERE id > ").bytes(&after.0);
            }
        })
    }

    /// Rows by their keys; corrupt ones are recorded and left out.
    fn rows_of<T: Table>(&mut self, keys: &[T::Key]) -> Result<Vec<Option<T::Value>>, StoreError> {
        self.each_sound(keys, &mut |snapshot, keys| table::get_by::<T>(keys, |script| snapshot.query(script)))
    }

    /// A page of a table: at most `limit` sound rows. For each corrupt row, one more is read.
    pub(super) fn page<K, V>(
        &mut self,
        table: &'static str,
        limit: usize,
        query: impl Fn(usize) -> Script,
        decode: impl Fn(&mut Fields<'_>) -> Result<(K, V), StoreError>,
    ) -> RowPage<K, V> {
        let mut wanted = limit;
        loop {
            let mut results = self.query(&query(wanted))?;
            let mut page = Vec::new();
            let name = |row: &mysql_async::Row| key(table, row);
            let damaged = &mut self.damaged;
            let (rows, _) = results.each_apart(table, name, &mut |row| damaged.push(row), |row| {
                page.push(decode(row)?);
                Ok(())
            })?;
            if rows < wanted || page.len() >= limit {
                page.truncate(limit);
                return Ok(page);
            }
            wanted += rows - page.len();
        }
    }
}

/// Reads the rows of some keys.
pub(super) type ReadKeys<'r, K, V> =
    dyn FnMut(&mut MySqlSnapshot, &[K]) -> Result<Vec<Option<V>>, StoreError> + 'r;

impl MySqlSnapshot {
    /// The row of each key. A corrupt row is found by bisection and returned as `None`.
    pub(super) fn each_sound<K, V>(
        &mut self,
        keys: &[K],
        read: &mut ReadKeys<'_, K, V>,
    ) -> Result<Vec<Option<V>>, StoreError> {
        match (read(self, keys), keys) {
            (Err(StoreError::CorruptRow(row)), [_]) => {
                self.damaged.push(*row);
                Ok(vec![None])
            }
            (Err(StoreError::CorruptRow(_)), _) => {
                let (front, rear) = keys.split_at(keys.len() / 2);
                let mut found = self.each_sound(front, read)?;
                found.extend(self.each_sound(rear, read)?);
                Ok(found)
            }
            (read, _) => read,
        }
    }
}

/// Writes the ` WHERE` for rows after a wallet's key, and after `sequence` in that wallet. Ranges of the index: a comparison
/// of tuples would scan all of it.
fn after_key(script: &mut Script, wallet: &WalletKey, sequence: Option<u64>) {
    let (member, currency) = (&wallet.member.0.0, wallet.currency.as_str().as_bytes());
    script.sql(" WHERE member > ").bytes(member);
    script.sql(" OR (member = ").bytes(member).sql(" AND currency > ").bytes(currency).sql(")");
    if let Some(sequence) = sequence {
        script.sql(" OR (member = ").bytes(member).sql(" AND currency = ").bytes(currency);
        script.sql(" AND sequence > ").number(sequence).sql(")");
    }
}

impl Snapshot for MySqlSnapshot {
    fn members(&mut self, after: Option<MemberId>, limit: usize) -> RowPage<MemberId, Member> {
        self.by_id::<Members>(after.map(|id| id.0), limit)
    }

    fn handles(&mut self, after: Option<&Handle>, limit: usize) -> RowPage<Handle, MemberId> {
        self.page_of::<Handles>("kind, `text`", limit, |script| {
            if let Some(handle) = after {
                let (kind, text) = (handle.number(), handle.as_str().as_bytes());
                script.sql(" WHERE kind > ").number(kind).sql(" OR (kind = ").number(kind);
                script.sql(" AND `text` > ").bytes(text).sql(")");
            }
        })
    }

    fn wallets(&mut self, after: Option<WalletKey>, limit: usize) -> RowPage<WalletKey, Wallet> {
        self.page_of::<Wallets>("member, currency", limit, |script| {
            if let Some(key) = &after {
                after_key(script, key, None);
            }
        })
    }

    fn entries(&mut self, after: Option<EntryKey>, limit: usize) -> RowPage<EntryKey, Entry> {
        self.page_of::<Entries>("member, currency, sequence", limit, |script| {
            if let Some(key) = &after {
                after_key(script, &key.wallet, Some(key.sequence));
            }
        })
    }

    fn transfers(&mut self, after: Option<TransferId>, limit: usize) -> RowPage<TransferId, Transfer> {
        self.by_id::<Transfers>(after.map(|id| id.0), limit)
    }

    fn holds(&mut self, after: Option<HoldId>, limit: usize) -> RowPage<HoldId, Hold> {
        self.by_id::<Holds>(after.map(|id| id.0), limit)
    }

    fn reversals(&mut self, after: Option<TransferId>, limit: usize) -> RowPage<TransferId, ReversalLink> {
        self.by_id::<Reversals>(after.map(|id| id.0), limit)
    }

    fn archived_months(&mut self) -> RowPage<Month, ArchivedMonth> {
        self.query(&archives::select_all())?.list(1, "archives", Archives::decode)
    }

    fn contests(&mut self, after: Option<&ContestId>, limit: usize) -> RowPage<ContestId, ContestRecord> {
        self.page("contests", limit, |limit| contests::list(None, after, limit), contests::Contests::decode)
    }

    fn contest_members(
        &mut self,
        contest: Uuid,
        after: Option<&PlayerId>,
        limit: usize,
    ) -> RowPage<PlayerId, ContestPlayer> {
        let query = |limit| contests::members(contest, after, limit);
        Ok(contests::by_player(self.page("contest_members", limit, query, contests::Members::decode)?))
    }

    fn payouts(&mut self, contest: Uuid, from: u32, limit: usize) -> RowPage<u32, Payout> {
        self.page("contest_prizes", limit, |limit| prizes::select(contest, from, limit), prizes::decode)
    }

    fn owners(&mut self, of: ContestSnapshot, after: Option<&Uuid>, limit: usize) -> RowPage<Uuid, ()> {
        let query = |limit: usize| {
            let mut script = Script::default();
            script.sql("SELECT DISTINCT contest FROM ").sql(of.table()).sql(" FORCE INDEX (PRIMARY)");
            script.sql(" WHERE contest > ").bytes(after.map_or(&[], |no| &no.0));
            script.sql(" ORDER BY contest LIMIT ").number(limit as u64).end();
            script
        };
        self.page(of.table(), limit, query, |row| Ok((Uuid(row.fixed()?), ())))
    }

    fn payments(&mut self, after: Option<&WindowKey>, limit: usize) -> RowPage<WindowKey, PeriodPayment> {
        self.page("period_payments", limit, |limit| payments::list(after, limit), Payments::decode)
    }

    fn members_of(&mut self, ids: &[MemberId]) -> Result<Vec<Option<Member>>, StoreError> {
        self.rows_of::<Members>(ids)
    }

    fn handles_of(&mut self, handles: &[Handle]) -> Result<Vec<Option<MemberId>>, StoreError> {
        self.rows_of::<Handles>(handles)
    }

    fn entries_of(&mut self, keys: &[EntryKey]) -> Result<Vec<Option<Entry>>, StoreError> {
        self.rows_of::<Entries>(keys)
    }

    fn transfers_of(&mut self, ids: &[TransferId]) -> Result<Vec<Option<Transfer>>, StoreError> {
        self.rows_of::<Transfers>(ids)
    }

    fn reversals_of(&mut self, ids: &[TransferId]) -> Result<Vec<Option<ReversalLink>>, StoreError> {
        self.rows_of::<Reversals>(ids)
    }

    fn corrupt_rows(&mut self) -> Vec<CorruptRow> {
        std::mem::take(&mut self.damaged)
    }

    fn totals(&mut self) -> RowPage<AccountKey, Total> {
        self.query(&wallets::select_totals())?.list(1, "totals", wallets::decode_total)
    }

    fn rows(&mut self) -> Result<u64, StoreError> {
        let mut script = Script::default();
        // As many members as wallets, four handles of each, and two entries of a transfer: near enough for a progress bar.
        script.statement(
            "SELECT CAST(6 * COUNT(*) + 1.5 * COALESCE(SUM(sequence), 0) AS UNSIGNED) FROM wallets",
        );
        self.query(&script)?.one_number("wallets")
    }
}
