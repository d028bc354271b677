//! Members and money in a transaction: read, guarded and written table by table; and reads outside of transactions.

use super::MySqlStore;
use super::archives::{self, Archives as Months};
use super::connect::Flavour;
use super::holds::{self, Holds};
use super::lists::{all, listing, newest};
use super::load::absent_of;
use super::members::{self, Handles, Members};
use super::minted::Minted;
use super::reversals::Reversals;
use super::row::ResultSets;
use super::snapshot::MySqlSnapshot;
use super::table::{self, Table, changed, pairs, written};
use super::text::Script;
use super::transfers::{self, Entries, Transfers};
use super::wallets::{self, Wallets};
use super::webhooks::Webhooks;
use super::{contests, events};
use crate::archive::{ArchivedMonth, Archives, reads, snapshot};
use crate::codec::reversals::is_sound;
use crate::ledger::{Ledger, LedgerLoaded, LedgerReadSet, LedgerWriteSet};
use crate::webhooks::WebhookKey;
use crate::{Listing, Snapshot, StoreError};
use std::ops::Range;
use tally_rules::Micros;
use tally_rules::ledger::account::{AccountKey, Total};
use tally_rules::ledger::entry::EntryKey;
use tally_rules::ledger::member::{Handle, HandleKind};
use tally_rules::ledger::{
    Currency, Entry, Hold, HoldId, Member, MemberId, MintKey, Month, ReversalLink, Transfer, TransferId,
    Wallet, WalletKey,
};

/// The number of statements for each list of a plan.
#[derive(Debug, Default)]
pub(super) struct LedgerStatements {
    handles: usize,
    members: usize,
    wallets: usize,
    holds: usize,
    reversals: usize,
    minted: usize,
    webhooks: usize,
    archives: usize,
    contests: contests::ContestStatements,
}

/// Keys that had no row, each list in order.
#[derive(Debug, Default)]
pub(super) struct Absent {
    handles: Vec<Handle>,
    members: Vec<MemberId>,
    wallets: Vec<WalletKey>,
    holds: Vec<HoldId>,
    reversals: Vec<TransferId>,
    minted: Vec<MintKey>,
    webhooks: Vec<WebhookKey>,
    archives: Vec<Month>,
    contests: contests::Absent,
}

impl Absent {
    pub(super) fn is_empty(&self) -> bool {
        self.handles.is_empty()
            && self.members.is_empty()
            && self.wallets.is_empty()
            && self.holds.is_empty()
            && self.reversals.is_empty()
            && self.minted.is_empty()
            && self.webhooks.is_empty()
            && self.archives.is_empty()
            && self.contests.is_empty()
    }
}

/// Queries all rows of a plan, and locks them.
pub(super) fn select(script: &mut Script, plan: &LedgerReadSet) -> LedgerStatements {
    LedgerStatements {
        // Contests come first: a transaction that changes a contest waits here, before it holds rows that others need.
        contests: contests::select(script, &plan.contests),
        handles: table::select::<Handles>(script, &plan.handles, true),
        members: table::select::<Members>(script, &plan.members, true),
        wallets: table::select::<Wallets>(script, &plan.wallets, true),
        holds: table::select::<Holds>(script, &plan.holds, true),
        reversals: table::select::<Reversals>(script, &plan.reversals, true),
        minted: table::select::<Minted>(script, &plan.minted, true),
        webhooks: table::select::<Webhooks>(script, &plan.webhooks, true),
        archives: table::select::<Months>(script, &plan.archives, true),
    }
}

impl LedgerStatements {
    pub(super) fn statements(&self) -> usize {
        let of_members = self.handles + self.members + self.wallets;
        let of_rows = self.holds + self.reversals + self.minted + self.webhooks + self.archives;
        self.contests.statements() + of_members + of_rows
    }

    /// Reads the answer.
    pub(super) fn read(
        &self,
        results: &mut ResultSets,
        plan: &LedgerReadSet,
    ) -> Result<(LedgerLoaded, Absent), StoreError> {
        let (of_contests, absent_contests) = self.contests.read(results, &plan.contests)?;
        let loaded = LedgerLoaded {
            contests: of_contests,
            handles: table::read::<Handles>(results, self.handles, &plan.handles)?,
            members: table::read::<Members>(results, self.members, &plan.members)?,
            wallets: table::read::<Wallets>(results, self.wallets, &plan.wallets)?,
            holds: table::read::<Holds>(results, self.holds, &plan.holds)?,
            reversals: table::read::<Reversals>(results, self.reversals, &plan.reversals)?,
            minted: table::read::<Minted>(results, self.minted, &plan.minted)?,
            webhooks: table::read::<Webhooks>(results, self.webhooks, &plan.webhooks)?,
            archives: table::read::<Months>(results, self.archives, &plan.archives)?,
        };
        let absent = Absent {
            contests: absent_contests,
            handles: absent_of(&plan.handles, &loaded.handles),
            members: absent_of(&plan.members, &loaded.members),
            wallets: absent_of(&plan.wallets, &loaded.wallets),
            holds: absent_of(&plan.holds, &loaded.holds),
            reversals: absent_of(&plan.reversals, &loaded.reversals),
            minted: absent_of(&plan.minted, &loaded.minted),
            webhooks: absent_of(&plan.webhooks, &loaded.webhooks),
            archives: absent_of(&plan.archives, &loaded.archives),
        };
        Ok((loaded, absent))
    }
}

/// Fails if a key that had no row, and gets none by the changes, has a row now.
pub(super) fn guard(script: &mut Script, changes: &LedgerWriteSet, absent: &Absent) {
    table::guard::<Handles>(script, &absent.handles, changed(&changes.handles));
    table::guard::<Members>(script, &absent.members, written(&changes.members));
    table::guard::<Wallets>(script, &absent.wallets, written(&changes.wallets));
    contests::guard(script, &changes.contests, &absent.contests);
    table::guard::<Holds>(script, &absent.holds, written(&changes.holds));
    table::guard::<Reversals>(script, &absent.reversals, written(&changes.reversals));
    table::guard::<Minted>(script, &absent.minted, written(&changes.minted));
    table::guard::<Webhooks>(script, &absent.webhooks, changed(&changes.webhooks));
    table::guard::<Months>(script, &absent.archives, written(&changes.archives));
}

/// Writes changes. The rows that every transaction adds to come last, so that their locks are held only for the commit.
pub(super) fn write(
    script: &mut Script,
    changes: &LedgerWriteSet,
    (absent, cached): (&Absent, &[(WalletKey, Wallet)]),
    (flavour, slot): (Flavour, u8),
) {
    table::write::<Handles>(script, changed(&changes.handles), &absent.handles, flavour);
    table::write::<Members>(script, written(&changes.members), &absent.members, flavour);
    wallets::write(script, &changes.wallets, &absent.wallets, cached, flavour);
    // A new hold need not be read before: its id is new.
    table::write::<Holds>(script, written(&changes.holds), &absent.holds, flavour);
    table::write::<Reversals>(script, written(&changes.reversals), &absent.reversals, flavour);
    table::write::<Minted>(script, written(&changes.minted), &absent.minted, flavour);
    table::write::<Webhooks>(script, changed(&changes.webhooks), &absent.webhooks, flavour);
    table::write::<Months>(script, written(&changes.archives), &absent.archives, flavour);
    table::delete::<Transfers>(script, &changes.archived.transfers);
    table::delete::<Entries>(script, &changes.archived.entries);
    contests::write(script, &changes.contests, &absent.contests, flavour);
    events::write(script, &changes.events);
    table::insert::<Transfers>(script, pairs(&changes.transfers));
    table::insert::<Entries>(script, pairs(&changes.entries));
    wallets::add(script, &changes.totals, flavour, slot);
}

/// Refuses what the tables of the embedded store would refuse.
pub(super) fn check(changes: &LedgerWriteSet) -> Result<(), StoreError> {
    let refuse = |why: &str| Err(StoreError::Row(why.to_owned()));
    for (_, wallet) in &changes.wallets {
        if wallet.held < 0 || wallet.held > wallet.balance {
            return refuse("wallets: what is held is not within the balance");
        }
    }
    if changes.entries.iter().any(|(key, entry)| key.sequence == 0 || entry.amount <= 0 || entry.after < 0) {
        return refuse("entries: an amount that is not positive, or a balance below zero");
    }
    if changes.transfers.iter().any(|(_, transfer)| transfer.amount <= 0) {
        return refuse("transfers: an amount that is not positive");
    }
    if changes.reversals.iter().any(|(_, link)| !is_sound(link)) {
        return refuse("reversals: an amount that is not positive");
    }
    if changes.holds.iter().any(|(_, hold)| hold.amount <= 0) {
        return refuse("holds: an amount that is not positive");
    }
    Ok(())
}

impl Ledger for MySqlStore {
    fn list_wallets(&self, member: MemberId) -> Result<Listing<(Currency, Wallet)>, StoreError> {
        let all = listing(self, "wallets", usize::MAX, |_| wallets::of_member(member), Wallets::decode)?;
        Ok(all.map(|(key, wallet)| (key.currency, wallet)))
    }

    fn entries(&self, keys: &[EntryKey]) -> Result<Vec<Option<Entry>>, StoreError> {
        let mut sorted = keys.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let found = table::get::<Entries>(&self.pool, &sorted)?;
        let entry = |key| found[sorted.binary_search(key).expect("it is one of them")].clone();
        reads::entries(self, keys, keys.iter().map(entry).collect())
    }

    fn list_entries(
        &self,
        wallet: WalletKey,
        numbers: Range<u64>,
    ) -> Result<Listing<(u64, Entry)>, StoreError> {
        if numbers.is_empty() {
            return Ok(Listing::default());
        }
        let query = |_| transfers::select_history(wallet, &numbers);
        let all = listing(self, "entries", usize::MAX, query, Entries::decode)?;
        reads::history(self, wallet, numbers.clone(), all.map(|(key, entry)| (key.sequence, entry)))
    }

    fn transfer(&self, id: TransferId) -> Result<Option<Transfer>, StoreError> {
        reads::transfer(self, id, table::get_one::<Transfers>(&self.pool, &id)?)
    }

    fn transfers(&self, ids: &[TransferId]) -> Result<Vec<Option<Transfer>>, StoreError> {
        reads::transfers(self, ids, table::get::<Transfers>(&self.pool, ids)?)
    }

    fn list_transfers(
        &self,
        before: TransferId,
        limit: usize,
    ) -> Result<Listing<(TransferId, Transfer)>, StoreError> {
        reads::list_transfers(self, before, limit, newest::<Transfers>(self, before.0, limit)?)
    }

    fn list_holds(&self, before: HoldId, limit: usize) -> Result<Listing<(HoldId, Hold)>, StoreError> {
        newest::<Holds>(self, before.0, limit)
    }

    fn reversal(&self, id: TransferId) -> Result<Option<ReversalLink>, StoreError> {
        table::get_one::<Reversals>(&self.pool, &id)
    }

    fn hold(&self, id: HoldId) -> Result<Option<Hold>, StoreError> {
        table::get_one::<Holds>(&self.pool, &id)
    }

    fn due_holds(&self, now: Micros, limit: usize) -> Result<Vec<(HoldId, WalletKey)>, StoreError> {
        holds::due(self, now, limit)
    }

    fn due_credits(&self, now: Micros, limit: usize) -> Result<Vec<WalletKey>, StoreError> {
        wallets::due_credits(self, now, limit)
    }

    fn member(&self, id: MemberId) -> Result<Option<Member>, StoreError> {
        table::get_one::<Members>(&self.pool, &id)
    }

    fn members(&self, ids: &[MemberId]) -> Result<Vec<Option<Member>>, StoreError> {
        table::get::<Members>(&self.pool, ids)
    }

    fn newest_members(
        &self,
        before: MemberId,
        limit: usize,
    ) -> Result<Listing<(MemberId, Member)>, StoreError> {
        newest::<Members>(self, before.0, limit)
    }

    fn member_of(&self, handle: &Handle) -> Result<Option<MemberId>, StoreError> {
        table::get_one::<Handles>(&self.pool, handle)
    }

    fn members_of(&self, handles: &[Handle]) -> Result<Vec<Option<MemberId>>, StoreError> {
        table::get::<Handles>(&self.pool, handles)
    }

    fn list_handles(
        &self,
        kind: HandleKind,
        prefix: &str,
        limit: usize,
    ) -> Result<Listing<(Handle, MemberId)>, StoreError> {
        if kind.first(prefix).is_none() {
            return Ok(Listing::default());
        }
        let query = |limit| members::select_handles(kind, prefix, limit);
        listing(self, "handles", limit, query, Handles::decode)
    }

    fn totals(&self) -> Result<Vec<(AccountKey, Total)>, StoreError> {
        all(self, &wallets::select_totals(), "totals", wallets::decode_total)
    }

    fn archived_months(&self) -> Result<Vec<(Month, ArchivedMonth)>, StoreError> {
        archives::list(self)
    }

    fn archives(&self) -> &Archives {
        &self.archives
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, StoreError> {
        snapshot::with_archives(self, Box::new(MySqlSnapshot::begin(&self.pool)?))
    }
}
