//! Money in a store: what a transaction reads and writes of it, and what is read without one.
//!
//! Rows are the values of `tally_rules::ledger`. Transfers and entries are only ever added. Totals of accounts are added
//! to, never read by a transaction: every movement changes them, and a row that all transactions lock would be the end of
//! doing several at once. Not here: rules, and rows of scores.

use crate::contest_reads::Contests;
use crate::contests::{ContestLoaded, ContestReadSet, ContestWriteSet};
use crate::events::{EventReads, Topic};
use crate::{Listing, Snapshot, StoreError};
use std::ops::Range;
use tally_rules::Micros;
use tally_rules::event::Event;
use tally_rules::ledger::account::{AccountKey, Total};
use tally_rules::ledger::entry::EntryKey;
use tally_rules::ledger::member::Handle;
use tally_rules::ledger::{
    Currency, Entry, Hold, HoldId, Member, MemberId, Transfer, TransferId, Wallet, WalletKey,
};

/// What a transaction reads of the ledger. Each list is sorted and has no key twice.
#[derive(Clone, Debug, Default)]
pub struct LedgerReadSet {
    /// Whose a login, a phone number or a player is.
    pub handles: Vec<Handle>,
    /// Members.
    pub members: Vec<MemberId>,
    /// Wallets.
    pub wallets: Vec<WalletKey>,
    /// Holds.
    pub holds: Vec<HoldId>,
    /// Contests, which money goes into and comes out of.
    pub contests: ContestReadSet,
}

/// What was read, each list as long as its list in the plan and in the same order.
#[derive(Clone, Debug, Default)]
pub struct LedgerLoaded {
    /// The member.
    pub handles: Vec<Option<MemberId>>,
    /// The member.
    pub members: Vec<Option<Member>>,
    /// The wallet.
    pub wallets: Vec<Option<Wallet>>,
    /// The hold.
    pub holds: Vec<Option<Hold>>,
    /// Of contests.
    pub contests: ContestLoaded,
}

/// What a transaction writes of the ledger. Each list is sorted by key and has no key twice.
#[derive(Clone, Debug, Default)]
pub struct LedgerWriteSet {
    /// Whose a login, a phone number or a player is; nobody's any more.
    pub handles: Vec<(Handle, Option<MemberId>)>,
    /// Members.
    pub members: Vec<(MemberId, Member)>,
    /// Wallets.
    pub wallets: Vec<(WalletKey, Wallet)>,
    /// Holds.
    pub holds: Vec<(HoldId, Hold)>,
    /// New movements.
    pub transfers: Vec<(TransferId, Transfer)>,
    /// New entries.
    pub entries: Vec<(EntryKey, Entry)>,
    /// What is added to accounts.
    pub totals: Vec<(AccountKey, Total)>,
    /// Contests.
    pub contests: ContestWriteSet,
    /// What happened, each under the next number of its topic: in order.
    pub events: Vec<(Topic, Event)>,
}

impl LedgerReadSet {
    /// Whether nothing is read.
    pub fn is_empty(&self) -> bool {
        self.handles.is_empty()
            && self.members.is_empty()
            && self.wallets.is_empty()
            && self.holds.is_empty()
            && self.contests.is_empty()
    }

    pub(crate) fn assert_sorted(&self) {
        assert!(self.handles.is_sorted_by(|a, b| a < b), "handles of a plan ascend");
        assert!(self.members.is_sorted_by(|a, b| a < b), "members of a plan ascend");
        assert!(self.wallets.is_sorted_by(|a, b| a < b), "wallets of a plan ascend");
        assert!(self.holds.is_sorted_by(|a, b| a < b), "holds of a plan ascend");
        self.contests.assert_sorted();
    }
}

impl LedgerLoaded {
    pub(crate) fn assert_answers(&self, plan: &LedgerReadSet) {
        assert_eq!(self.handles.len(), plan.handles.len());
        assert_eq!(self.members.len(), plan.members.len());
        assert_eq!(self.wallets.len(), plan.wallets.len());
        assert_eq!(self.holds.len(), plan.holds.len());
        self.contests.assert_answers(&plan.contests);
    }
}

impl LedgerWriteSet {
    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        let Self { handles, members, wallets, holds, transfers, entries, totals, contests, events } = self;
        handles.is_empty()
            && members.is_empty()
            && wallets.is_empty()
            && holds.is_empty()
            && transfers.is_empty()
            && entries.is_empty()
            && totals.is_empty()
            && contests.is_empty()
            && events.is_empty()
    }

    pub(crate) fn assert_sorted(&self) {
        assert!(self.handles.is_sorted_by(|a, b| a.0 < b.0), "changed handles ascend");
        assert!(self.members.is_sorted_by(|a, b| a.0 < b.0), "changed members ascend");
        assert!(self.wallets.is_sorted_by(|a, b| a.0 < b.0), "changed wallets ascend");
        assert!(self.holds.is_sorted_by(|a, b| a.0 < b.0), "changed holds ascend");
        assert!(self.transfers.is_sorted_by(|a, b| a.0 < b.0), "new transfers ascend");
        assert!(self.entries.is_sorted_by(|a, b| a.0 < b.0), "new entries ascend");
        assert!(self.totals.is_sorted_by(|a, b| a.0 < b.0), "totals ascend");
        self.contests.assert_sorted();
    }
}

/// What can be read of the ledger without a transaction.
pub trait Ledger: Contests + EventReads {
    /// Every wallet of a member, in order of currency.
    fn list_wallets(&self, member: MemberId) -> Result<Listing<(Currency, Wallet)>, StoreError>;

    /// The same for work: an error where one of them is damaged.
    fn wallets_of(&self, member: MemberId) -> Result<Vec<(Currency, Wallet)>, StoreError> {
        self.list_wallets(member)?.whole()
    }

    /// The entry of each key.
    fn entries(&self, keys: &[EntryKey]) -> Result<Vec<Option<Entry>>, StoreError>;

    /// The entries of a wallet whose numbers are in the range, each with its number, newest first.
    fn list_entries(
        &self,
        wallet: WalletKey,
        numbers: Range<u64>,
    ) -> Result<Listing<(u64, Entry)>, StoreError>;

    /// The same for work: an error where one of them is damaged.
    fn history(&self, wallet: WalletKey, numbers: Range<u64>) -> Result<Vec<(u64, Entry)>, StoreError> {
        self.list_entries(wallet, numbers)?.whole()
    }

    /// A movement.
    fn transfer(&self, id: TransferId) -> Result<Option<Transfer>, StoreError>;

    /// A hold.
    fn hold(&self, id: HoldId) -> Result<Option<Hold>, StoreError>;

    /// At most `limit` open holds whose time has run out at `now`, each with its wallet.
    fn due_holds(&self, now: Micros, limit: usize) -> Result<Vec<(HoldId, WalletKey)>, StoreError>;

    /// A member.
    fn member(&self, id: MemberId) -> Result<Option<Member>, StoreError>;

    /// Whose a login, a phone number or a player is.
    fn member_of(&self, handle: &Handle) -> Result<Option<MemberId>, StoreError>;

    /// The member that each handle finds, in one question; they ascend.
    fn members_of(&self, handles: &[Handle]) -> Result<Vec<Option<MemberId>>, StoreError>;

    /// All that was ever debited and credited, in order of account and currency.
    fn totals(&self) -> Result<Vec<(AccountKey, Total)>, StoreError>;

    /// All of it as it is at this moment, for reading it whole. Whoever writes meanwhile is not kept from it.
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, StoreError>;
}
