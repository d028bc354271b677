//! Events in a store: what happened to a contest or to the periods of a board, numbered for each of them.
//!
//! A topic's events have the numbers 1, 2, 3 … without a gap. The store gives them as it writes, under the lock of the topic's
//! last number, so an event can be seen only after all before it, whatever transactions there are side by side. They are
//! forgotten by age; the last number is not, so no number is given twice and whoever comes back sees exactly what it has missed,
//! or that something of it is gone. Not here: what a member's money does. Entries of a wallet are numbered the same way and
//! never forgotten, so they are the events of their member.

use crate::{BoardNo, Listing, StoreError};
use tally_rules::Micros;
use tally_rules::event::Event;
use tally_rules::ledger::{MemberId, Uuid, WalletKey};

/// What events are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// A board.
    Board(BoardNo),
    /// A contest, by the number that it was given once.
    Contest(Uuid),
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventKey {
    /// Of what.
    pub topic: Topic,
    /// From 1.
    pub number: u64,
}

/// What can be read of events without a transaction.
pub trait EventReads {
    /// At most `limit` events of a topic with their numbers, from the first one that is kept after the number `after`.
    fn list_events(
        &self,
        topic: Topic,
        after: u64,
        limit: usize,
    ) -> Result<Listing<(u64, Event)>, StoreError>;

    /// The same for work: an error where one of them is damaged.
    fn events(&self, topic: Topic, after: u64, limit: usize) -> Result<Vec<(u64, Event)>, StoreError> {
        self.list_events(topic, after, limit)?.whole()
    }

    /// The number of the last event of each topic, kept or not; 0 where there was none. The topics ascend.
    fn last_events(&self, topics: &[Topic]) -> Result<Vec<u64>, StoreError>;

    /// The number of the last entry in each wallet of these members, who ascend; in order of wallets.
    fn last_entries(&self, members: &[MemberId]) -> Result<Vec<(WalletKey, u64)>, StoreError>;

    /// Forgets at most `limit` events older than `before`; returns how many.
    fn expire_events(&self, before: Micros, limit: usize) -> Result<usize, StoreError>;
}
