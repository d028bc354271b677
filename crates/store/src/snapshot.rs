//! The whole store as of one moment, read page by page: a reader sees every row once, and no half of a transaction.
//!
//! Pages are in order of keys, so memory holds one page, for any number of rows. Not here: the consistency rules of the
//! rows, and reads of the present, which is [`Ledger`](crate::Ledger).

use crate::archive::ArchivedMonth;
use crate::score_snapshot::ScoreSnapshot;
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

/// Some rows of a table, in order of keys.
pub type RowPage<K, V> = Result<Vec<(K, V)>, StoreError>;

/// A table whose rows belong to contests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContestSnapshot {
    /// Applications.
    Applications,
    /// Members.
    Members,
    /// Prizes, which may also be those of a period.
    Prizes,
}

impl ContestSnapshot {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Applications, Self::Members, Self::Prizes];

    /// Its name.
    pub fn table(self) -> &'static str {
        match self {
            Self::Applications => "contest_applications",
            Self::Members => "contest_members",
            Self::Prizes => "contest_prizes",
        }
    }
}

/// The ledger at one moment. A page has at most `limit` rows, from the first one after `after`; fewer mean the end. Corrupt
/// rows are left out, see [`corrupt_rows`](Self::corrupt_rows).
pub trait Snapshot: ScoreSnapshot {
    /// Members.
    fn members(&mut self, after: Option<MemberId>, limit: usize) -> RowPage<MemberId, Member>;

    /// Handles and their members: logins, then phone numbers, then players.
    fn handles(&mut self, after: Option<&Handle>, limit: usize) -> RowPage<Handle, MemberId>;

    /// Wallets.
    fn wallets(&mut self, after: Option<WalletKey>, limit: usize) -> RowPage<WalletKey, Wallet>;

    /// Entries: wallet by wallet, each in its order.
    fn entries(&mut self, after: Option<EntryKey>, limit: usize) -> RowPage<EntryKey, Entry>;

    /// Transfers, the oldest first.
    fn transfers(&mut self, after: Option<TransferId>, limit: usize) -> RowPage<TransferId, Transfer>;

    /// Holds, the oldest first.
    fn holds(&mut self, after: Option<HoldId>, limit: usize) -> RowPage<HoldId, Hold>;

    /// Links between transfers and their reversals, in the order of [`transfers`](Self::transfers).
    fn reversals(&mut self, after: Option<TransferId>, limit: usize) -> RowPage<TransferId, ReversalLink>;

    /// Every month of the catalog of archives, oldest first.
    fn archived_months(&mut self) -> RowPage<Month, ArchivedMonth>;

    /// Leaves the files of archived months up to this one out of the pages of transfers and entries. Reads by key still have them. Each file must
    /// be there with its length.
    fn leave_out(&mut self, _until: Month) -> Result<(), StoreError> {
        Ok(())
    }

    /// Contests.
    fn contests(&mut self, after: Option<&ContestId>, limit: usize) -> RowPage<ContestId, ContestRecord>;

    /// Members of a contest.
    fn contest_members(
        &mut self,
        contest: Uuid,
        after: Option<&PlayerId>,
        limit: usize,
    ) -> RowPage<PlayerId, ContestPlayer>;

    /// Prizes of a contest, or fees that it refunded, from the number `from` on.
    fn payouts(&mut self, contest: Uuid, from: u32, limit: usize) -> RowPage<u32, Payout>;

    /// The numbers of the contests and periods that have rows in a table, each once.
    fn owners(&mut self, of: ContestSnapshot, after: Option<&Uuid>, limit: usize) -> RowPage<Uuid, ()>;

    /// Payments of closed periods.
    fn payments(&mut self, after: Option<&WindowKey>, limit: usize) -> RowPage<WindowKey, PeriodPayment>;

    /// The member of each id. The ids ascend.
    fn members_of(&mut self, ids: &[MemberId]) -> Result<Vec<Option<Member>>, StoreError>;

    /// The member of each handle. The handles ascend.
    fn handles_of(&mut self, handles: &[Handle]) -> Result<Vec<Option<MemberId>>, StoreError>;

    /// The entry of each key. The keys ascend.
    fn entries_of(&mut self, keys: &[EntryKey]) -> Result<Vec<Option<Entry>>, StoreError>;

    /// The transfer of each id. The ids ascend.
    fn transfers_of(&mut self, ids: &[TransferId]) -> Result<Vec<Option<Transfer>>, StoreError>;

    /// The link of each transfer with its reversals. The ids ascend.
    fn reversals_of(&mut self, ids: &[TransferId]) -> Result<Vec<Option<ReversalLink>>, StoreError>;

    /// The sums of all debits and credits, in order of account and currency.
    fn totals(&mut self) -> RowPage<AccountKey, Total>;

    /// Corrupt rows that were left out of pages since the last call. A row may come several times.
    fn corrupt_rows(&mut self) -> Vec<CorruptRow>;

    /// The approximate number of rows in a scan of all six tables; for progress only.
    fn rows(&mut self) -> Result<u64, StoreError>;
}
