//! The whole store as it was at one moment, read page by page: what replays it sees every row once, and none half done.
//!
//! Pages are in order of keys, so memory is that of one page however many rows there are. Not here: what the rows must
//! agree in, and reading of the present, which is [`Ledger`](crate::Ledger).

use crate::score_snapshot::ScoreSnapshot;
use crate::{CorruptRow, StoreError, WindowKey};
use tally_rules::PlayerId;
use tally_rules::contest::{ContestId, ContestMember, Payout, Record};
use tally_rules::ledger::account::{AccountKey, Total};
use tally_rules::ledger::entry::EntryKey;
use tally_rules::ledger::member::Handle;
use tally_rules::ledger::{
    Entry, Hold, HoldId, Member, MemberId, Transfer, TransferId, Uuid, Wallet, WalletKey,
};
use tally_rules::period::Payment;

/// Some rows of a table, in order of keys.
pub type Page<K, V> = Result<Vec<(K, V)>, StoreError>;

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

/// The ledger at one moment. A page has at most `limit` rows, from the first one after `after`; fewer mean the end. A row
/// that cannot be read is left out, see [`damaged`](Self::damaged).
pub trait Snapshot: ScoreSnapshot {
    /// Members.
    fn members(&mut self, after: Option<MemberId>, limit: usize) -> Page<MemberId, Member>;

    /// What members are found by, and whom each finds: logins, then phone numbers, then players.
    fn handles(&mut self, after: Option<&Handle>, limit: usize) -> Page<Handle, MemberId>;

    /// Wallets.
    fn wallets(&mut self, after: Option<WalletKey>, limit: usize) -> Page<WalletKey, Wallet>;

    /// Entries: wallet by wallet, each in its order.
    fn entries(&mut self, after: Option<EntryKey>, limit: usize) -> Page<EntryKey, Entry>;

    /// Movements, the oldest first.
    fn transfers(&mut self, after: Option<TransferId>, limit: usize) -> Page<TransferId, Transfer>;

    /// Holds, the oldest first.
    fn holds(&mut self, after: Option<HoldId>, limit: usize) -> Page<HoldId, Hold>;

    /// Contests.
    fn contests(&mut self, after: Option<&ContestId>, limit: usize) -> Page<ContestId, Record>;

    /// Members of a contest.
    fn contest_members(
        &mut self,
        contest: Uuid,
        after: Option<&PlayerId>,
        limit: usize,
    ) -> Page<PlayerId, ContestMember>;

    /// Prizes of a contest, or fees that it paid back, from that number on.
    fn payouts(&mut self, contest: Uuid, from: u32, limit: usize) -> Page<u32, Payout>;

    /// Whose rows there are in a table: each number once.
    fn owners(&mut self, of: ContestSnapshot, after: Option<&Uuid>, limit: usize) -> Page<Uuid, ()>;

    /// What is paid for closed periods.
    fn payments(&mut self, after: Option<&WindowKey>, limit: usize) -> Page<WindowKey, Payment>;

    /// The member of each id, which ascend.
    fn members_of(&mut self, ids: &[MemberId]) -> Result<Vec<Option<Member>>, StoreError>;

    /// Whom each handle finds; they ascend.
    fn handles_of(&mut self, handles: &[Handle]) -> Result<Vec<Option<MemberId>>, StoreError>;

    /// The entry of each key, which ascend.
    fn entries_of(&mut self, keys: &[EntryKey]) -> Result<Vec<Option<Entry>>, StoreError>;

    /// The movement of each id, which ascend.
    fn transfers_of(&mut self, ids: &[TransferId]) -> Result<Vec<Option<Transfer>>, StoreError>;

    /// All that was ever debited and credited, in order of account and currency.
    fn totals(&mut self) -> Page<AccountKey, Total>;

    /// Rows that cannot be read and were left out of pages since this was last asked. One may come several times.
    fn corrupt_rows(&mut self) -> Vec<CorruptRow>;

    /// About how many rows a walk of all six tables gives; for progress only.
    fn rows(&mut self) -> Result<u64, StoreError>;
}
