//! Reads of members and money, inside and outside of a transaction.

use super::SqliteStore;
use super::archives;
use super::contest_reads;
use super::holds::{self, Holds};
use super::members::{self, Handles, Members};
use super::memtable::Memtables;
use super::minted::{self, Minted};
use super::newest;
use super::reads::{MemtableStates, fill, one};
use super::reversals::{self, Reversals};
use super::run::states;
use super::snapshot::SqliteSnapshot;
use super::transfers::{self, Entries, Transfers};
use super::wallets::{self, Totals, Wallets};
use super::webhooks::{self, Webhooks};
use crate::archive::{ArchivedMonth, Archives, reads, snapshot};
use crate::ledger::{Ledger, LedgerLoaded, LedgerReadSet, after_prefix};
use crate::webhooks::WebhookRow;
use crate::{Listing, Snapshot, StoreError};
use rusqlite::{Connection, params};
use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use tally_rules::Micros;
use tally_rules::ledger::account::{AccountKey, Total};
use tally_rules::ledger::entry::EntryKey;
use tally_rules::ledger::limits::Spent;
use tally_rules::ledger::member::{Handle, HandleKind};
use tally_rules::ledger::{
    Currency, Entry, Hold, HoldId, Member, MemberId, Month, ReversalLink, Transfer, TransferId, Wallet,
    WalletKey,
};

/// The rows of a plan in the memtable.
pub(super) struct MemtableRows {
    handles: MemtableStates<MemberId>,
    members: MemtableStates<Member>,
    wallets: MemtableStates<Wallet>,
    holds: MemtableStates<Hold>,
    reversals: MemtableStates<ReversalLink>,
    minted: MemtableStates<Spent>,
    webhooks: MemtableStates<WebhookRow>,
    archives: MemtableStates<ArchivedMonth>,
    contests: contest_reads::MemtableContests,
}

/// Reads the memtable.
pub(super) fn in_memory(memtables: &Memtables, plan: &LedgerReadSet) -> MemtableRows {
    MemtableRows {
        handles: states::<Handles>(memtables, plan.handles.iter().cloned()),
        members: states::<Members>(memtables, plan.members.iter().copied()),
        wallets: states::<Wallets>(memtables, plan.wallets.iter().copied()),
        holds: states::<Holds>(memtables, plan.holds.iter().copied()),
        reversals: states::<Reversals>(memtables, plan.reversals.iter().copied()),
        minted: states::<Minted>(memtables, plan.minted.iter().copied()),
        webhooks: states::<Webhooks>(memtables, plan.webhooks.iter().copied()),
        archives: states::<archives::Archives>(memtables, plan.archives.iter().copied()),
        contests: contest_reads::in_memory(memtables, &plan.contests),
    }
}

/// Reads the rest from the tables.
pub(super) fn load(
    newer: MemtableRows,
    plan: &LedgerReadSet,
    tables: &Connection,
) -> Result<LedgerLoaded, StoreError> {
    Ok(LedgerLoaded {
        handles: fill("handles", newer.handles, &plan.handles, |handle| members::of_handle(tables, handle))?,
        members: fill("members", newer.members, &plan.members, |id| members::get(tables, id))?,
        wallets: fill("wallets", newer.wallets, &plan.wallets, |key| wallets::get(tables, key))?,
        holds: fill("holds", newer.holds, &plan.holds, |id| holds::get(tables, id))?,
        reversals: fill("reversals", newer.reversals, &plan.reversals, |id| reversals::get(tables, id))?,
        minted: fill("minted", newer.minted, &plan.minted, |key| minted::get(tables, key))?,
        webhooks: fill("webhooks", newer.webhooks, &plan.webhooks, |key| webhooks::get(tables, key))?,
        archives: fill("archives", newer.archives, &plan.archives, |key| archives::get(tables, key))?,
        contests: contest_reads::load(newer.contests, &plan.contests, tables)?,
    })
}

/// Stored rows with newer states merged over them, in order of keys.
pub(super) fn merged_over<K: Ord, V>(
    stored: Listing<(K, V)>,
    newer: impl Iterator<Item = (K, Option<V>)>,
) -> Listing<(K, V)> {
    let mut all: BTreeMap<K, Option<V>> =
        stored.rows.into_iter().map(|(key, row)| (key, Some(row))).collect();
    all.extend(newer);
    let rows = all.into_iter().filter_map(|(key, row)| Some((key, row?))).collect();
    Listing { rows, damaged: stored.damaged }
}

impl Ledger for SqliteStore {
    fn list_wallets(&self, member: MemberId) -> Result<Listing<(Currency, Wallet)>, StoreError> {
        let first = Currency::parse("0").expect("the first of all codes");
        let in_memory = |memtables: &Memtables| {
            let from = Bound::Included(WalletKey { member, currency: first });
            memtables.range::<Wallets>(from, |key| key.member == member, usize::MAX).0
        };
        self.shared.list(in_memory, |newer, tables| {
            let newer = newer.into_iter().map(|(key, wallet)| (key.currency, wallet));
            Ok(merged_over(wallets::of_member(tables, member)?, newer))
        })
    }

    fn entries(&self, keys: &[EntryKey]) -> Result<Vec<Option<Entry>>, StoreError> {
        let in_memory = |memtables: &Memtables| states::<Entries>(memtables, keys.iter().copied());
        let found = self.shared.read(in_memory, |found, tables| {
            fill("entries", found, keys, |key| transfers::entry(tables, key))
        })?;
        reads::entries(self, keys, found)
    }

    fn list_entries(
        &self,
        wallet: WalletKey,
        numbers: Range<u64>,
    ) -> Result<Listing<(u64, Entry)>, StoreError> {
        let in_memory = |memtables: &Memtables| {
            let from = Bound::Included(EntryKey { wallet, sequence: numbers.start });
            let within = |key: &EntryKey| key.wallet == wallet && key.sequence < numbers.end;
            memtables.range::<Entries>(from, within, usize::MAX).0
        };
        let list = self.shared.list(in_memory, |newer, tables| {
            let newer = newer.into_iter().map(|(key, entry)| (key.sequence, entry));
            let mut list = merged_over(transfers::history(tables, wallet, &numbers)?, newer);
            list.rows.reverse();
            Ok(list)
        })?;
        reads::history(self, wallet, numbers, list)
    }

    fn transfer(&self, id: TransferId) -> Result<Option<Transfer>, StoreError> {
        let in_memory = |memtables: &Memtables| memtables.get::<Transfers>(&id).cloned();
        reads::transfer(self, id, one(&self.shared, "transfers", in_memory, &id, transfers::get)?)
    }

    fn transfers(&self, ids: &[TransferId]) -> Result<Vec<Option<Transfer>>, StoreError> {
        let in_memory = |memtables: &Memtables| states::<Transfers>(memtables, ids.iter().copied());
        let found = self.shared.read(in_memory, |found, tables| {
            fill("transfers", found, ids, |id| transfers::get(tables, id))
        })?;
        reads::transfers(self, ids, found)
    }

    fn list_transfers(
        &self,
        before: TransferId,
        limit: usize,
    ) -> Result<Listing<(TransferId, Transfer)>, StoreError> {
        let rows = ("transfers", transfers::LIST, 10);
        let of = (TransferId as fn(_) -> _, before.0);
        let list = newest::list::<Transfers>(&self.shared, rows, of, limit, transfers::decode)?;
        reads::list_transfers(self, before, limit, list)
    }

    fn list_holds(&self, before: HoldId, limit: usize) -> Result<Listing<(HoldId, Hold)>, StoreError> {
        newest::list::<Holds>(
            &self.shared,
            ("holds", holds::LIST, 14),
            (HoldId, before.0),
            limit,
            holds::decode,
        )
    }

    fn reversal(&self, id: TransferId) -> Result<Option<ReversalLink>, StoreError> {
        let in_memory = |memtables: &Memtables| memtables.get::<Reversals>(&id).cloned();
        one(&self.shared, "reversals", in_memory, &id, reversals::get)
    }

    fn hold(&self, id: HoldId) -> Result<Option<Hold>, StoreError> {
        one(&self.shared, "holds", |memtables| memtables.get::<Holds>(&id).cloned(), &id, holds::get)
    }

    fn due_holds(&self, now: Micros, limit: usize) -> Result<Vec<(HoldId, WalletKey)>, StoreError> {
        let in_memory =
            |memtables: &Memtables| memtables.range::<Holds>(Bound::Unbounded, |_| true, usize::MAX).0;
        self.shared.read(in_memory, |newer, tables| {
            let due = |(id, hold): (&HoldId, &Option<Hold>)| {
                hold.as_ref().filter(|hold| hold.is_due(now)).map(|hold| (*id, hold.wallet))
            };
            let mut found: Vec<_> = newer.iter().filter_map(due).take(limit).collect();
            holds::due(tables, now, &mut |id, wallet| {
                if found.len() < limit && !newer.contains_key(&id) {
                    found.push((id, wallet));
                }
                found.len() < limit
            })?;
            Ok(found)
        })
    }

    fn due_credits(&self, now: Micros, limit: usize) -> Result<Vec<WalletKey>, StoreError> {
        let is_due = |wallet: &Wallet| wallets::credit_due(wallet).is_some_and(|at| at <= now.0);
        // Most wallets have no credit, so the memtable is searched only while it has some that is due.
        let in_memory = |memtables: &Memtables| match memtables.has_older::<Wallets>(now.0.saturating_add(1))
        {
            true => memtables.range::<Wallets>(Bound::Unbounded, |_| true, usize::MAX).0,
            false => BTreeMap::new(),
        };
        let (mut found, stored) = self.shared.read(in_memory, |newer, tables| {
            let due = newer.iter().filter(|(_, wallet)| wallet.as_ref().is_some_and(is_due));
            let found: Vec<WalletKey> = due.map(|(key, _)| *key).take(limit).collect();
            let mut stored = Vec::new();
            wallets::due_credits(tables, now, &mut |key| {
                stored.extend((!newer.contains_key(&key)).then_some(key));
                stored.len() < limit
            })?;
            Ok((found, stored))
        })?;
        // A newer state in the memtable without due credit counts. One that was flushed meanwhile is only read for nothing.
        let memtables = self.shared.memtables();
        found.extend(stored.into_iter().filter(|key| memtables.get::<Wallets>(key).is_none()));
        found.truncate(limit);
        Ok(found)
    }

    fn member(&self, id: MemberId) -> Result<Option<Member>, StoreError> {
        one(&self.shared, "members", |memtables| memtables.get::<Members>(&id).cloned(), &id, members::get)
    }

    fn members(&self, ids: &[MemberId]) -> Result<Vec<Option<Member>>, StoreError> {
        let in_memory = |memtables: &Memtables| states::<Members>(memtables, ids.iter().copied());
        self.shared
            .read(in_memory, |found, tables| fill("members", found, ids, |id| members::get(tables, id)))
    }

    fn newest_members(
        &self,
        before: MemberId,
        limit: usize,
    ) -> Result<Listing<(MemberId, Member)>, StoreError> {
        newest::list::<Members>(
            &self.shared,
            ("members", members::LIST, 11),
            (MemberId, before.0),
            limit,
            members::decode,
        )
    }

    fn member_of(&self, handle: &Handle) -> Result<Option<MemberId>, StoreError> {
        one(
            &self.shared,
            "handles",
            |memtables| memtables.get::<Handles>(handle).cloned(),
            handle,
            members::of_handle,
        )
    }

    fn members_of(&self, handles: &[Handle]) -> Result<Vec<Option<MemberId>>, StoreError> {
        let in_memory = |memtables: &Memtables| states::<Handles>(memtables, handles.iter().cloned());
        self.shared.read(in_memory, |found, tables| {
            fill("handles", found, handles, |key| members::of_handle(tables, key))
        })
    }

    fn list_handles(
        &self,
        kind: HandleKind,
        prefix: &str,
        limit: usize,
    ) -> Result<Listing<(Handle, MemberId)>, StoreError> {
        let Some(first) = kind.first(prefix) else { return Ok(Listing::default()) };
        let begins =
            |handle: &Handle| handle.number() == kind.number() && handle.as_str().starts_with(prefix);
        let in_memory = |memtables: &Memtables| {
            memtables.first::<Handles, _>(Bound::Included(first), begins, |member| Some(*member), limit)
        };
        self.shared.list(in_memory, |newer, tables| {
            let mut statement = tables.prepare_cached(members::LIST_HANDLES)?;
            let mut rows = statement.query(params![kind.number(), prefix, after_prefix(prefix)])?;
            let order = |handle: &Handle, _: &MemberId| handle.clone();
            contest_reads::merged(newer, order, &mut rows, |row| members::decode_handle(kind, row), limit)
        })
    }

    fn totals(&self) -> Result<Vec<(AccountKey, Total)>, StoreError> {
        let in_memory =
            |memtables: &Memtables| memtables.range::<Totals>(Bound::Unbounded, |_| true, usize::MAX).0;
        self.shared.read(in_memory, |newer, tables| {
            let stored =
                wallets::totals(tables).map_err(|error| error.of_row("totals", || "a total".into()))?;
            let mut all: BTreeMap<_, _> = stored.into_iter().map(|(key, total)| (key, Some(total))).collect();
            all.extend(newer);
            Ok(all.into_iter().filter_map(|(key, total)| Some((key, total?))).collect())
        })
    }

    fn archived_months(&self) -> Result<Vec<(Month, ArchivedMonth)>, StoreError> {
        archives::all(&self.shared)
    }

    fn archives(&self) -> &Archives {
        &self.archives
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, StoreError> {
        snapshot::with_archives(self, Box::new(SqliteSnapshot::begin(&self.shared)?))
    }
}
