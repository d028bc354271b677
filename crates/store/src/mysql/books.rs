//! The ledger at one moment: a transaction that only reads, on a connection of its own.
//!
//! InnoDB keeps what is changed meanwhile for it, so it costs the writers nothing at once; one that is lost ends the
//! reading, because another would be of another moment.

use super::connect::Flavour;
use super::contests;
use super::fault::Fault;
use super::found;
use super::holds;
use super::link::Link;
use super::members;
use super::payments;
use super::pool::Pool;
use super::prizes;
use super::row::{Answers, Fields, key};
use super::text::{Row, Script};
use super::transfers;
use super::wallets;
use crate::books::{Books, OfContests, Page};
use crate::{DamagedRow, PartKey, StoreError};
use tally_rules::PlayerId;
use tally_rules::contest::{ContestId, ContestMember, Payout, Record};
use tally_rules::ledger::account::{AccountKey, Total};
use tally_rules::ledger::entry::EntryKey;
use tally_rules::ledger::member::Handle;
use tally_rules::ledger::{
    Entry, Hold, HoldId, Member, MemberId, Transfer, TransferId, Uuid, Wallet, WalletKey,
};
use tally_rules::period::Payment;

const MEMBERS: &str = "SELECT id, login, phone, player, name, password, pin, pin_digits, pin_wrong, pin_locked_until, \
     tokens_from, closed_at FROM members FORCE INDEX (PRIMARY)";
const HANDLES: &str = "SELECT kind, `text`, member FROM handles FORCE INDEX (PRIMARY)";
const WALLETS: &str = "SELECT member, currency, balance, held, sequence, closed, spent_day, spent FROM wallets \
     FORCE INDEX (PRIMARY)";
const ENTRIES: &str = "SELECT member, currency, sequence, transfer, kind, amount, `after`, counterparty, reference \
     FROM entries FORCE INDEX (PRIMARY)";
const TRANSFERS: &str = "SELECT id, kind, currency, amount, debit_member, debit_sequence, credit_member, \
     credit_sequence FROM transfers FORCE INDEX (PRIMARY)";
const HOLDS: &str = "SELECT id, member, currency, amount, expires_at, state, captured, captured_to, transfer, \
     ended_at FROM holds FORCE INDEX (PRIMARY)";

/// Says that a connection only reads, by a lock that is named by it.
const SNAPSHOT_LOCK: &str = "SELECT GET_LOCK(CONCAT('tally.snapshot.', CONNECTION_ID()), 0)";

/// See the head of the file.
pub(crate) struct Snapshot {
    link: Link,
    pub(super) damaged: Vec<DamagedRow>,
}

impl Snapshot {
    pub(super) fn begin(pool: &Pool) -> Result<Self, StoreError> {
        let link = pool.connect(&pool.options)?;
        let mut snapshot = Self { link, damaged: Vec::new() };
        let mut script = Script::default();
        // It locks nothing, so it may take its time.
        match snapshot.link.server.flavour {
            Flavour::MariaDb => script.statement("SET SESSION idle_transaction_timeout = 0"),
            // Servers that end silent connections ask for this lock: see `Pool::end_silent_transactions`.
            Flavour::MySql { .. } => script.statement(SNAPSHOT_LOCK),
        };
        script.statement("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
        script.statement("START TRANSACTION WITH CONSISTENT SNAPSHOT");
        snapshot.ask(&script)?;
        Ok(snapshot)
    }

    pub(super) fn ask(&mut self, script: &Script) -> Result<Answers, StoreError> {
        self.link.send(script).map_err(|fault: Fault| fault.into())
    }

    /// A page of a table whose key is an id.
    fn by_id<K, V>(
        &mut self,
        (select, table): (&'static str, &'static str),
        after: Option<Uuid>,
        limit: usize,
        decode: impl Fn(&mut Fields<'_>) -> Result<(K, V), StoreError>,
    ) -> Page<K, V> {
        let asked = |limit: usize| {
            let mut script = Script::default();
            script.sql(select);
            if let Some(after) = after {
                script.sql(" WHERE id > ").bytes(&after.0);
            }
            script.sql(" ORDER BY id LIMIT ").number(limit as u64).end();
            script
        };
        self.page(table, limit, asked, decode)
    }

    /// A page of a table: at most so many rows that can be read. Where some cannot, so many more are asked for.
    pub(super) fn page<K, V>(
        &mut self,
        table: &'static str,
        limit: usize,
        script: impl Fn(usize) -> Script,
        decode: impl Fn(&mut Fields<'_>) -> Result<(K, V), StoreError>,
    ) -> Page<K, V> {
        let mut asked = limit;
        loop {
            let mut answers = self.ask(&script(asked))?;
            let mut page = Vec::new();
            let name = |row: &mysql_async::Row| key(table, row);
            let damaged = &mut self.damaged;
            let (rows, _) = answers.each_apart(table, name, &mut |row| damaged.push(row), |row| {
                page.push(decode(row)?);
                Ok(())
            })?;
            if rows < asked || page.len() >= limit {
                page.truncate(limit);
                return Ok(page);
            }
            asked += rows - page.len();
        }
    }
}

/// Reads the rows of some keys.
pub(super) type ReadKeys<'r, K, V> =
    dyn FnMut(&mut Snapshot, &[K]) -> Result<Vec<Option<V>>, StoreError> + 'r;

impl Snapshot {
    /// The row of each key; one that cannot be read is found by halves, and is as none.
    pub(super) fn each_sound<K, V>(
        &mut self,
        keys: &[K],
        read: &mut ReadKeys<'_, K, V>,
    ) -> Result<Vec<Option<V>>, StoreError> {
        match (read(self, keys), keys) {
            (Err(StoreError::Damaged(row)), [_]) => {
                self.damaged.push(*row);
                Ok(vec![None])
            }
            (Err(StoreError::Damaged(_)), _) => {
                let (front, rear) = keys.split_at(keys.len() / 2);
                let mut found = self.each_sound(front, read)?;
                found.extend(self.each_sound(rear, read)?);
                Ok(found)
            }
            (read, _) => read,
        }
    }
}

/// ` WHERE` what comes after the key of a wallet, and after `sequence` in it. Ranges of the index: a comparison of tuples
/// would read all of it.
fn after_key(script: &mut Script, wallet: &WalletKey, sequence: Option<u64>) {
    let (member, currency) = (&wallet.member.0.0, wallet.currency.as_str().as_bytes());
    script.sql(" WHERE member > ").bytes(member);
    script.sql(" OR (member = ").bytes(member).sql(" AND currency > ").bytes(currency).sql(")");
    if let Some(sequence) = sequence {
        script.sql(" OR (member = ").bytes(member).sql(" AND currency = ").bytes(currency);
        script.sql(" AND sequence > ").number(sequence).sql(")");
    }
}

impl Books for Snapshot {
    fn members(&mut self, after: Option<MemberId>, limit: usize) -> Page<MemberId, Member> {
        self.by_id((MEMBERS, "members"), after.map(|id| id.0), limit, members::decode)
    }

    fn handles(&mut self, after: Option<&Handle>, limit: usize) -> Page<Handle, MemberId> {
        let asked = |limit: usize| {
            let mut script = Script::default();
            script.sql(HANDLES);
            if let Some(handle) = after {
                let (kind, text) = (handle.number(), handle.as_str().as_bytes());
                script.sql(" WHERE kind > ").number(kind).sql(" OR (kind = ").number(kind);
                script.sql(" AND `text` > ").bytes(text).sql(")");
            }
            script.sql(" ORDER BY kind, `text` LIMIT ").number(limit as u64).end();
            script
        };
        self.page("handles", limit, asked, members::decode_handle)
    }

    fn wallets(&mut self, after: Option<WalletKey>, limit: usize) -> Page<WalletKey, Wallet> {
        let asked = |limit: usize| {
            let mut script = Script::default();
            script.sql(WALLETS);
            if let Some(key) = after {
                after_key(&mut script, &key, None);
            }
            script.sql(" ORDER BY member, currency LIMIT ").number(limit as u64).end();
            script
        };
        self.page("wallets", limit, asked, wallets::decode)
    }

    fn entries(&mut self, after: Option<EntryKey>, limit: usize) -> Page<EntryKey, Entry> {
        let asked = |limit: usize| {
            let mut script = Script::default();
            script.sql(ENTRIES);
            if let Some(key) = after {
                after_key(&mut script, &key.wallet, Some(key.sequence));
            }
            script.sql(" ORDER BY member, currency, sequence LIMIT ").number(limit as u64).end();
            script
        };
        self.page("entries", limit, asked, transfers::decode_entry)
    }

    fn transfers(&mut self, after: Option<TransferId>, limit: usize) -> Page<TransferId, Transfer> {
        self.by_id((TRANSFERS, "transfers"), after.map(|id| id.0), limit, transfer)
    }

    fn holds(&mut self, after: Option<HoldId>, limit: usize) -> Page<HoldId, Hold> {
        self.by_id((HOLDS, "holds"), after.map(|id| id.0), limit, holds::decode)
    }

    fn contests(&mut self, after: Option<&ContestId>, limit: usize) -> Page<ContestId, Record> {
        self.page("contests", limit, |limit| contests::list(None, after, limit), contests::decode)
    }

    fn contest_members(
        &mut self,
        contest: Uuid,
        after: Option<&PlayerId>,
        limit: usize,
    ) -> Page<PlayerId, ContestMember> {
        let asked = |limit| contests::members(contest, after, limit);
        Ok(contests::by_player(self.page("contest_members", limit, asked, contests::decode_member)?))
    }

    fn payouts(&mut self, contest: Uuid, from: u32, limit: usize) -> Page<u32, Payout> {
        self.page("contest_prizes", limit, |limit| prizes::select(contest, from, limit), prizes::decode)
    }

    fn owners(&mut self, of: OfContests, after: Option<&Uuid>, limit: usize) -> Page<Uuid, ()> {
        let asked = |limit: usize| {
            let mut script = Script::default();
            script.sql("SELECT DISTINCT contest FROM ").sql(of.table()).sql(" FORCE INDEX (PRIMARY)");
            script.sql(" WHERE contest > ").bytes(after.map_or(&[], |no| &no.0));
            script.sql(" ORDER BY contest LIMIT ").number(limit as u64).end();
            script
        };
        self.page(of.table(), limit, asked, |row| Ok((Uuid(row.fixed()?), ())))
    }

    fn payments(&mut self, after: Option<&PartKey>, limit: usize) -> Page<PartKey, Payment> {
        self.page("period_payments", limit, |limit| payments::list(after, limit), payments::decode)
    }

    fn members_of(&mut self, ids: &[MemberId]) -> Result<Vec<Option<Member>>, StoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        self.each_sound(ids, &mut |books, ids| {
            let mut script = Script::default();
            let statements = members::select(&mut script, ids, false);
            members::read(&mut books.ask(&script)?, statements, ids)
        })
    }

    fn handles_of(&mut self, handles: &[Handle]) -> Result<Vec<Option<MemberId>>, StoreError> {
        if handles.is_empty() {
            return Ok(Vec::new());
        }
        self.each_sound(handles, &mut |books, handles| {
            let mut script = Script::default();
            let statements = members::select_handles(&mut script, handles, false);
            members::read_handles(&mut books.ask(&script)?, statements, handles)
        })
    }

    fn entries_of(&mut self, keys: &[EntryKey]) -> Result<Vec<Option<Entry>>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.each_sound(keys, &mut |books, keys| {
            let mut script = Script::default();
            let statements = transfers::select_entries(&mut script, keys);
            transfers::read_entries(books.ask(&script)?, statements, keys)
        })
    }

    fn transfers_of(&mut self, ids: &[TransferId]) -> Result<Vec<Option<Transfer>>, StoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let head = "SELECT id, kind, currency, amount, debit_member, debit_sequence, credit_member, credit_sequence \
             FROM transfers FORCE INDEX (PRIMARY) WHERE id IN (";
        let put = |row: &mut Row<'_>, id: &TransferId| {
            row.bytes(&id.0.0);
        };
        self.each_sound(ids, &mut |books, ids| {
            let mut script = Script::default();
            let statements = script.keys(head, ids, ")", put);
            found(&mut books.ask(&script)?, statements, "transfers", ids, transfer)
        })
    }

    fn damaged(&mut self) -> Vec<DamagedRow> {
        std::mem::take(&mut self.damaged)
    }

    fn totals(&mut self) -> Page<AccountKey, Total> {
        wallets::read_totals(self.ask(&wallets::select_totals())?)
    }

    fn rows(&mut self) -> Result<u64, StoreError> {
        let mut script = Script::default();
        // As many members as wallets, three handles of each, and two entries of a movement: near enough for a bar.
        script.statement(
            "SELECT CAST(5 * COUNT(*) + 1.5 * COALESCE(SUM(sequence), 0) AS UNSIGNED) FROM wallets",
        );
        self.ask(&script)?.one_number("wallets")
    }
}

fn transfer(row: &mut Fields<'_>) -> Result<(TransferId, Transfer), StoreError> {
    Ok((TransferId(Uuid(row.fixed()?)), transfers::decode(row)?))
}
