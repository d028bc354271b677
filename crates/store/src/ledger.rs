//! Money in a store: what a transaction reads and writes of it, and reads without a transaction.
//!
//! Rows are the values of `tally_rules::ledger`. Transfers and entries are only added, and move into files (`archive`). A transaction adds to the totals of
//! accounts but never reads them: every transfer changes them, and a row that all transactions lock would serialize them.
//! Not here: rules, and rows of scores.

use crate::archive::{ArchivedMonth, Archives};
use crate::contest_reads::ContestReads;
use crate::contests::{ContestLoaded, ContestReadSet, ContestWriteSet};
use crate::events::{EventReads, Topic};
use crate::webhooks::{WebhookKey, WebhookReads, WebhookRow};
use crate::{Listing, Snapshot, StoreError};
use std::ops::Range;
use tally_rules::Micros;
use tally_rules::event::Event;
use tally_rules::ledger::account::{AccountKey, Total};
use tally_rules::ledger::entry::EntryKey;
use tally_rules::ledger::limits::Spent;
use tally_rules::ledger::member::{Handle, HandleKind};
use tally_rules::ledger::{
    Currency, Entry, Hold, HoldId, Member, MemberId, MintKey, Month, ReversalLink, Transfer, TransferId,
    Wallet, WalletKey,
};

/// What a transaction reads of the ledger. Each list is sorted and has no key twice.
#[derive(Clone, Debug, Default)]
pub struct LedgerReadSet {
    /// The handles to look up: names, logins, phone numbers and players.
    pub handles: Vec<Handle>,
    /// Members.
    pub members: Vec<MemberId>,
    /// Wallets.
    pub wallets: Vec<WalletKey>,
    /// Holds.
    pub holds: Vec<HoldId>,
    /// Links between transfers and their reversals, by transfer.
    pub reversals: Vec<TransferId>,
    /// What API keys have made.
    pub minted: Vec<MintKey>,
    /// Webhooks and their positions.
    pub webhooks: Vec<WebhookKey>,
    /// Archived months.
    pub archives: Vec<Month>,
    /// Contests, which receive and pay money.
    pub contests: ContestReadSet,
}

/// The rows that were read. Each list has the length and the order of its list in the plan.
#[derive(Clone, Debug, Default)]
pub struct LedgerLoaded {
    /// The member of the handle.
    pub handles: Vec<Option<MemberId>>,
    /// The member.
    pub members: Vec<Option<Member>>,
    /// The wallet.
    pub wallets: Vec<Option<Wallet>>,
    /// The hold.
    pub holds: Vec<Option<Hold>>,
    /// The link of the transfer.
    pub reversals: Vec<Option<ReversalLink>>,
    /// What the key has made on its last day.
    pub minted: Vec<Option<Spent>>,
    /// The webhook, or the position.
    pub webhooks: Vec<Option<WebhookRow>>,
    /// The archived month.
    pub archives: Vec<Option<ArchivedMonth>>,
    /// The rows of contests.
    pub contests: ContestLoaded,
}

/// What a transaction writes of the ledger. Each list is sorted by key and has no key twice.
#[derive(Clone, Debug, Default)]
pub struct LedgerWriteSet {
    /// The member of each handle; `None` frees the handle.
    pub handles: Vec<(Handle, Option<MemberId>)>,
    /// Members.
    pub members: Vec<(MemberId, Member)>,
    /// Wallets.
    pub wallets: Vec<(WalletKey, Wallet)>,
    /// Holds.
    pub holds: Vec<(HoldId, Hold)>,
    /// Links between transfers and their reversals.
    pub reversals: Vec<(TransferId, ReversalLink)>,
    /// What API keys have made.
    pub minted: Vec<(MintKey, Spent)>,
    /// Webhooks and their positions; `None` removes one.
    pub webhooks: Vec<(WebhookKey, Option<WebhookRow>)>,
    /// Archived months.
    pub archives: Vec<(Month, ArchivedMonth)>,
    /// Rows that are in files.
    pub archived: Archived,
    /// New transfers.
    pub transfers: Vec<(TransferId, Transfer)>,
    /// New entries.
    pub entries: Vec<(EntryKey, Entry)>,
    /// What is added to the totals of accounts.
    pub totals: Vec<(AccountKey, Total)>,
    /// Contests.
    pub contests: ContestWriteSet,
    /// Events in order, each under the next number of its topic.
    pub events: Vec<(Topic, Event)>,
}

/// The keys of rows that are deleted because they are in files. Each list is sorted and has no key twice.
#[derive(Clone, Debug, Default)]
pub struct Archived {
    /// Transfers.
    pub transfers: Vec<TransferId>,
    /// Entries.
    pub entries: Vec<EntryKey>,
}

impl LedgerReadSet {
    /// Whether nothing is read.
    pub fn is_empty(&self) -> bool {
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

    pub(crate) fn assert_sorted(&self) {
        assert!(self.handles.is_sorted_by(|a, b| a < b), "handles of a plan ascend");
        assert!(self.members.is_sorted_by(|a, b| a < b), "members of a plan ascend");
        assert!(self.wallets.is_sorted_by(|a, b| a < b), "wallets of a plan ascend");
        assert!(self.holds.is_sorted_by(|a, b| a < b), "holds of a plan ascend");
        assert!(self.reversals.is_sorted_by(|a, b| a < b), "reversals of a plan ascend");
        assert!(self.minted.is_sorted_by(|a, b| a < b), "keys of a plan ascend");
        assert!(self.webhooks.is_sorted_by(|a, b| a < b), "webhooks of a plan ascend");
        assert!(self.archives.is_sorted_by(|a, b| a < b), "months of a plan ascend");
        self.contests.assert_sorted();
    }
}

impl LedgerLoaded {
    pub(crate) fn assert_answers(&self, plan: &LedgerReadSet) {
        assert_eq!(self.handles.len(), plan.handles.len());
        assert_eq!(self.members.len(), plan.members.len());
        assert_eq!(self.wallets.len(), plan.wallets.len());
        assert_eq!(self.holds.len(), plan.holds.len());
        assert_eq!(self.reversals.len(), plan.reversals.len());
        assert_eq!(self.minted.len(), plan.minted.len());
        assert_eq!(self.webhooks.len(), plan.webhooks.len());
        assert_eq!(self.archives.len(), plan.archives.len());
        self.contests.assert_answers(&plan.contests);
    }
}

impl LedgerWriteSet {
    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        let Self {
            handles,
            members,
            wallets,
            holds,
            reversals,
            minted,
            webhooks,
            archives,
            archived,
            transfers,
            entries,
            totals,
            contests,
            events,
        } = self;
        handles.is_empty()
            && members.is_empty()
            && wallets.is_empty()
            && holds.is_empty()
            && reversals.is_empty()
            && minted.is_empty()
            && webhooks.is_empty()
            && archives.is_empty()
            && archived.transfers.is_empty()
            && archived.entries.is_empty()
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
        assert!(self.reversals.is_sorted_by(|a, b| a.0 < b.0), "changed reversals ascend");
        assert!(self.minted.is_sorted_by(|a, b| a.0 < b.0), "changed keys ascend");
        assert!(self.webhooks.is_sorted_by(|a, b| a.0 < b.0), "changed webhooks ascend");
        assert!(self.archives.is_sorted_by(|a, b| a.0 < b.0), "changed months ascend");
        assert!(self.archived.transfers.is_sorted_by(|a, b| a < b), "archived transfers ascend");
        assert!(self.archived.entries.is_sorted_by(|a, b| a < b), "archived entries ascend");
        assert!(self.transfers.is_sorted_by(|a, b| a.0 < b.0), "new transfers ascend");
        assert!(self.entries.is_sorted_by(|a, b| a.0 < b.0), "new entries ascend");
        assert!(self.totals.is_sorted_by(|a, b| a.0 < b.0), "totals ascend");
        self.contests.assert_sorted();
    }
}

/// Reads of the ledger without a transaction.
pub trait Ledger: ContestReads + EventReads + WebhookReads {
    /// Every wallet of a member, in order of currency.
    fn list_wallets(&self, member: MemberId) -> Result<Listing<(Currency, Wallet)>, StoreError>;

    /// Like [`list_wallets`](Self::list_wallets), for work that may leave none out: fails if a row is corrupt.
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

    /// Like [`list_entries`](Self::list_entries), for work that may leave none out: fails if a row is corrupt.
    fn history(&self, wallet: WalletKey, numbers: Range<u64>) -> Result<Vec<(u64, Entry)>, StoreError> {
        self.list_entries(wallet, numbers)?.whole()
    }

    /// A transfer.
    fn transfer(&self, id: TransferId) -> Result<Option<Transfer>, StoreError>;

    /// The transfer of each id. The ids ascend.
    fn transfers(&self, ids: &[TransferId]) -> Result<Vec<Option<Transfer>>, StoreError>;

    /// At most `limit` transfers before an id, newest first. A transfer may appear some time after its id: the id has the instant
    /// of its decision.
    fn list_transfers(
        &self,
        before: TransferId,
        limit: usize,
    ) -> Result<Listing<(TransferId, Transfer)>, StoreError>;

    /// At most `limit` holds before an id, newest first, with the reservation of [`list_transfers`](Self::list_transfers).
    fn list_holds(&self, before: HoldId, limit: usize) -> Result<Listing<(HoldId, Hold)>, StoreError>;

    /// The link between a transfer and its reversals, if it is a reversal or was reversed.
    fn reversal(&self, id: TransferId) -> Result<Option<ReversalLink>, StoreError>;

    /// A hold.
    fn hold(&self, id: HoldId) -> Result<Option<Hold>, StoreError>;

    /// At most `limit` open holds that have expired at `now`, each with its wallet.
    fn due_holds(&self, now: Micros, limit: usize) -> Result<Vec<(HoldId, WalletKey)>, StoreError>;

    /// At most `limit` wallets with credit that is to be taken out at `now`.
    fn due_credits(&self, now: Micros, limit: usize) -> Result<Vec<WalletKey>, StoreError>;

    /// A member.
    fn member(&self, id: MemberId) -> Result<Option<Member>, StoreError>;

    /// The member of each id, in one query. The ids ascend.
    fn members(&self, ids: &[MemberId]) -> Result<Vec<Option<Member>>, StoreError>;

    /// At most `limit` members before an id, newest first. An id has the instant of its member's creation.
    fn newest_members(
        &self,
        before: MemberId,
        limit: usize,
    ) -> Result<Listing<(MemberId, Member)>, StoreError>;

    /// The member of a handle.
    fn member_of(&self, handle: &Handle) -> Result<Option<MemberId>, StoreError>;

    /// The member of each handle, in one query. The handles ascend.
    fn members_of(&self, handles: &[Handle]) -> Result<Vec<Option<MemberId>>, StoreError>;

    /// At most `limit` handles of a kind that begin with `prefix`, in order of bytes, each with its member. None if no handle can
    /// begin so.
    fn list_handles(
        &self,
        kind: HandleKind,
        prefix: &str,
        limit: usize,
    ) -> Result<Listing<(Handle, MemberId)>, StoreError>;

    /// The sums of all debits and credits, in order of account and currency.
    fn totals(&self) -> Result<Vec<(AccountKey, Total)>, StoreError>;

    /// Every month of the catalog of archives, oldest first.
    fn archived_months(&self) -> Result<Vec<(Month, ArchivedMonth)>, StoreError>;

    /// The files of archives. All reads include their rows.
    fn archives(&self) -> &Archives;

    /// The whole ledger at this moment, to read it page by page. It does not block writers.
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, StoreError>;
}

/// The first text after all that begin with `prefix`, in order of bytes.
pub(crate) fn after_prefix(prefix: &str) -> String {
    let mut rest: Vec<char> = prefix.chars().collect();
    while let Some(last) = rest.pop() {
        // Between these two there are no characters.
        let next = if last == '\u{d7ff}' { Some('\u{e000}') } else { char::from_u32(u32::from(last) + 1) };
        if let Some(next) = next {
            rest.push(next);
            return rest.into_iter().collect();
        }
    }
    // Nothing is after them: a text that is longer than every handle.
    prefix.repeat(64)
}

#[cfg(test)]
mod tests {
    use super::after_prefix;

    #[test]
    fn a_prefix_ends_before_the_next_character() {
        for (prefix, next) in
            [("ab", "ac"), ("a\u{7f}", "a\u{80}"), ("\u{d7ff}", "\u{e000}"), ("b\u{10ffff}", "c")]
        {
            assert_eq!(after_prefix(prefix), next);
        }
        assert!(after_prefix("\u{10ffff}").len() > 128);
    }
}
