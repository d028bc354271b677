//! Members and money in a transaction: asked for, guarded and written table by table; and reads without one.

use super::MySqlStore;
use super::books::Snapshot;
use super::connect::Flavour;
use super::lists::listing;
use super::load::absent_of;
use super::row::Answers;
use super::text::Script;
use super::{contests, events, holds, members, transfers, wallets};
use crate::ledger::{Ledger, LedgerChanges, LedgerLoaded, LedgerPlan};
use crate::{Books, Listing, StoreError};
use std::ops::Range;
use tally_rules::Micros;
use tally_rules::ledger::account::{AccountKey, Total};
use tally_rules::ledger::entry::EntryKey;
use tally_rules::ledger::member::Handle;
use tally_rules::ledger::{
    Currency, Entry, Hold, HoldId, Member, MemberId, Transfer, TransferId, Wallet, WalletKey,
};

/// How many statements ask for each list of a plan.
#[derive(Debug, Default)]
pub(super) struct Asked {
    handles: usize,
    members: usize,
    wallets: usize,
    holds: usize,
    contests: contests::Asked,
}

/// Keys that had no row, each list in order.
#[derive(Debug, Default)]
pub(super) struct Absent {
    handles: Vec<Handle>,
    members: Vec<MemberId>,
    wallets: Vec<WalletKey>,
    holds: Vec<HoldId>,
    contests: contests::Absent,
}

impl Absent {
    pub(super) fn is_empty(&self) -> bool {
        self.handles.is_empty()
            && self.members.is_empty()
            && self.wallets.is_empty()
            && self.holds.is_empty()
            && self.contests.is_empty()
    }
}

/// Asks for everything of a plan, and locks it.
pub(super) fn ask(script: &mut Script, plan: &LedgerPlan) -> Asked {
    Asked {
        // First: whoever changes anything of a contest waits here, before it holds what others need.
        contests: contests::ask(script, &plan.contests),
        handles: members::select_handles(script, &plan.handles, true),
        members: members::select(script, &plan.members, true),
        wallets: wallets::select(script, &plan.wallets),
        holds: holds::select(script, &plan.holds, true),
    }
}

impl Asked {
    pub(super) fn statements(&self) -> usize {
        self.contests.statements() + self.handles + self.members + self.wallets + self.holds
    }

    /// Reads the answer.
    pub(super) fn read(
        &self,
        answers: &mut Answers,
        plan: &LedgerPlan,
    ) -> Result<(LedgerLoaded, Absent), StoreError> {
        let (of_contests, absent_contests) = self.contests.read(answers, &plan.contests)?;
        let loaded = LedgerLoaded {
            contests: of_contests,
            handles: members::read_handles(answers, self.handles, &plan.handles)?,
            members: members::read(answers, self.members, &plan.members)?,
            wallets: wallets::read(answers, self.wallets, &plan.wallets)?,
            holds: holds::read(answers, self.holds, &plan.holds)?,
        };
        let absent = Absent {
            contests: absent_contests,
            handles: absent_of(&plan.handles, &loaded.handles),
            members: absent_of(&plan.members, &loaded.members),
            wallets: absent_of(&plan.wallets, &loaded.wallets),
            holds: absent_of(&plan.holds, &loaded.holds),
        };
        Ok((loaded, absent))
    }
}

/// Fails where a key that had no row, and is not given one by the changes, has one by now.
pub(super) fn guard(script: &mut Script, changes: &LedgerChanges, absent: &Absent) {
    fn is_new<K: Ord, V>(rows: &[(K, V)], key: &K) -> bool {
        rows.binary_search_by(|(other, _)| other.cmp(key)).is_ok()
    }
    let is_given = |handle: &Handle| {
        let at = changes.handles.binary_search_by(|(other, _)| other.cmp(handle));
        at.is_ok_and(|at| changes.handles[at].1.is_some())
    };
    members::guard_handles(script, absent.handles.iter().filter(|handle| !is_given(handle)));
    members::guard(script, absent.members.iter().filter(|id| !is_new(&changes.members, id)));
    wallets::guard(script, absent.wallets.iter().filter(|key| !is_new(&changes.wallets, key)));
    contests::guard(script, &changes.contests, &absent.contests);
    holds::guard(script, absent.holds.iter().filter(|id| !is_new(&changes.holds, id)));
}

/// Writes changes. What every transaction adds to comes last, so that its lock is held for the commit alone.
pub(super) fn write(
    script: &mut Script,
    changes: &LedgerChanges,
    (absent, cached): (&Absent, &[(WalletKey, Wallet)]),
    (flavour, slot): (Flavour, u8),
) {
    let is_absent = |handle: &Handle| absent.handles.binary_search(handle).is_ok();
    members::write_handles(script, &changes.handles, is_absent, flavour);
    members::write(script, &changes.members, |id| absent.members.binary_search(id).is_ok(), flavour);
    let is_new = |key: &WalletKey| absent.wallets.binary_search(key).is_ok();
    wallets::write(script, &changes.wallets, is_new, cached, flavour);
    // A new hold need not have been asked for: its id is new.
    let is_new = |hold: &HoldId| absent.holds.binary_search(hold).is_ok();
    holds::write(script, &changes.holds, is_new, flavour);
    contests::write(script, &changes.contests, &absent.contests, flavour);
    events::write(script, &changes.events);
    transfers::write(script, &changes.transfers);
    transfers::write_entries(script, &changes.entries);
    wallets::add(script, &changes.totals, flavour, slot);
}

/// Refuses what the tables of the embedded store would.
pub(super) fn check(changes: &LedgerChanges) -> Result<(), StoreError> {
    let refuse = |why: &str| Err(StoreError::Row(why.to_owned()));
    for (_, wallet) in &changes.wallets {
        if wallet.held < 0 || wallet.held > wallet.balance {
            return refuse("wallets: what is held is not within the balance");
        }
    }
    if changes.entries.iter().any(|(key, entry)| key.sequence == 0 || entry.amount <= 0 || entry.after < 0) {
        return refuse("entries: an amount that is none, or a balance below zero");
    }
    if changes.transfers.iter().any(|(_, transfer)| transfer.amount <= 0) {
        return refuse("transfers: an amount that is none");
    }
    if changes.holds.iter().any(|(_, hold)| hold.amount <= 0) {
        return refuse("holds: an amount that is none");
    }
    Ok(())
}

impl Ledger for MySqlStore {
    fn list_wallets(&self, member: MemberId) -> Result<Listing<(Currency, Wallet)>, StoreError> {
        let all = listing(self, "wallets", usize::MAX, |_| wallets::of_member(member), wallets::decode)?;
        Ok(all.map(|(key, wallet)| (key.currency, wallet)))
    }

    fn entries(&self, keys: &[EntryKey]) -> Result<Vec<Option<Entry>>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut sorted = keys.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let mut script = Script::default();
        let statements = transfers::select_entries(&mut script, &sorted);
        let found = transfers::read_entries(self.pool.ask(&script)?, statements, &sorted)?;
        let entry = |key| found[sorted.binary_search(key).expect("it is one of them")].clone();
        Ok(keys.iter().map(entry).collect())
    }

    fn list_entries(
        &self,
        wallet: WalletKey,
        numbers: Range<u64>,
    ) -> Result<Listing<(u64, Entry)>, StoreError> {
        if numbers.is_empty() {
            return Ok(Listing::default());
        }
        let asked = |_| transfers::select_history(wallet, &numbers);
        let all = listing(self, "entries", usize::MAX, asked, transfers::decode_entry)?;
        Ok(all.map(|(key, entry)| (key.sequence, entry)))
    }

    fn transfer(&self, id: TransferId) -> Result<Option<Transfer>, StoreError> {
        transfers::read(self.pool.ask(&transfers::select(id))?)
    }

    fn hold(&self, id: HoldId) -> Result<Option<Hold>, StoreError> {
        let mut script = Script::default();
        let statements = holds::select(&mut script, &[id], false);
        Ok(holds::read(&mut self.pool.ask(&script)?, statements, &[id])?.pop().flatten())
    }

    fn due_holds(&self, now: Micros, limit: usize) -> Result<Vec<(HoldId, WalletKey)>, StoreError> {
        holds::read_due(self.pool.ask(&holds::select_due(now, limit))?)
    }

    fn member(&self, id: MemberId) -> Result<Option<Member>, StoreError> {
        let mut script = Script::default();
        let statements = members::select(&mut script, &[id], false);
        Ok(members::read(&mut self.pool.ask(&script)?, statements, &[id])?.pop().flatten())
    }

    fn member_of(&self, handle: &Handle) -> Result<Option<MemberId>, StoreError> {
        Ok(self.members_of(std::slice::from_ref(handle))?.pop().flatten())
    }

    fn members_of(&self, handles: &[Handle]) -> Result<Vec<Option<MemberId>>, StoreError> {
        if handles.is_empty() {
            return Ok(Vec::new());
        }
        let mut script = Script::default();
        let statements = members::select_handles(&mut script, handles, false);
        members::read_handles(&mut self.pool.ask(&script)?, statements, handles)
    }

    fn totals(&self) -> Result<Vec<(AccountKey, Total)>, StoreError> {
        wallets::read_totals(self.pool.ask(&wallets::select_totals())?)
    }

    fn books(&self) -> Result<Box<dyn Books + '_>, StoreError> {
        Ok(Box::new(Snapshot::begin(&self.pool)?))
    }
}
