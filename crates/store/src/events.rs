//! Events in a store: changes of a contest, of the periods of a board or of a member, numbered for each topic.
//!
//! The events of a topic have the numbers 1, 2, 3 … without a gap. The store gives the numbers as it writes, under the lock
//! of the topic's last number. So an event is visible only after all before it, whatever transactions run side by side.
//! Events expire by age; the last number does not. So no number is given twice, and a subscriber that reconnects sees
//! exactly the events it missed, or that some have expired. Not here: events of a member's money. Entries of a wallet are
//! numbered the same way and never deleted, so they are the events of their member.

use crate::{BoardNo, Listing, StoreError};
use tally_rules::Micros;
use tally_rules::event::Event;
use tally_rules::ledger::{MemberId, Uuid, WalletKey};

/// The subject of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// A board.
    Board(BoardNo),
    /// A contest, by its number.
    Contest(Uuid),
    /// A member.
    Member(MemberId),
    /// A wallet: its entries are its events. No row of events has this topic.
    Wallet(WalletKey),
    /// All transfers, in order of their ids. Only how far they were searched is stored.
    Transfers,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventKey {
    /// The topic.
    pub topic: Topic,
    /// The number in the topic, from 1.
    pub number: u64,
}

/// Reads of events without a transaction.
pub trait EventReads {
    /// At most `limit` events of a topic with their numbers, from the first kept one after the number `after`.
    fn list_events(
        &self,
        topic: Topic,
        after: u64,
        limit: usize,
    ) -> Result<Listing<(u64, Event)>, StoreError>;

    /// Like [`list_events`](Self::list_events), for work that may leave none out: fails if a row is corrupt.
    fn events(&self, topic: Topic, after: u64, limit: usize) -> Result<Vec<(u64, Event)>, StoreError> {
        self.list_events(topic, after, limit)?.whole()
    }

    /// The number of the last event of each topic, expired or not; 0 if there was none. The topics ascend.
    fn last_events(&self, topics: &[Topic]) -> Result<Vec<u64>, StoreError>;

    /// The number of the last entry in each wallet of these members, in order of wallets. The members ascend.
    fn last_entries(&self, members: &[MemberId]) -> Result<Vec<(WalletKey, u64)>, StoreError>;

    /// Deletes at most `limit` events older than `before`. Returns their number.
    fn expire_events(&self, before: Micros, limit: usize) -> Result<usize, StoreError>;
}
