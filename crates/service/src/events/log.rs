//! Stored events, read in order: the offset of a stream, the next events, and whether it can continue from an offset.
//!
//! An offset is after the last event that was sent, and a stream continues by number. So it misses and repeats nothing,
//! whichever server it reads from and however often its connection breaks. A stream begins again if an event after its offset
//! is deleted, or if this store never had that offset. Blocks, but for waiting.

use super::KEEP_MICROS;
use super::hub::{Listener, Subject};
use crate::boards::Board;
use crate::failure::Failure;
use crate::tally::Tally;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tally_rules::Micros;
use tally_rules::event::Event;
use tally_rules::ledger::{Currency, Entry, EntryKey, MemberId, WalletKey};
use tally_store::{Listing, StoreError, Topic};
use tokio::sync::watch;

/// Events that are read at once; fewer are the last ones.
pub const PAGE: usize = 100;

/// The offset of a stream: after these events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offset {
    /// The number of an event.
    Event(u64),
    /// The number of an entry in each wallet of a member.
    Entries(BTreeMap<Currency, u64>),
}

/// An event as a stream sends it.
#[derive(Clone, Debug)]
pub enum StreamItem {
    /// An event.
    Event(Event),
    /// An entry of a wallet.
    Entry(Currency, Entry),
}

/// The rows that a reader reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Topic(Topic),
    Member(MemberId),
}

/// What wakes a reader.
#[derive(Debug)]
enum Wake {
    Board(watch::Receiver<()>),
    Hub(Listener),
}

/// A reader of events, woken when there may be more.
#[derive(Debug)]
pub struct EventLog {
    of: Of,
    wake: Wake,
    /// Its position.
    pub offset: Offset,
}

/// A reader without its wake, to be moved to another thread.
#[derive(Clone, Debug)]
pub struct Reader {
    of: Of,
    offset: Offset,
}

/// Where a reader begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamStart {
    /// At the requested offset.
    AtOffset,
    /// In the present, because it cannot begin at that position.
    Reset,
}

impl EventLog {
    /// Reads the closed periods of a board.
    pub fn of_board(
        tally: &Tally,
        board: &Arc<Board>,
        after: Option<Offset>,
    ) -> Result<(Self, StreamStart), Failure> {
        let wake = Wake::Board(board.live.listen());
        Self::begin(tally, (Of::Topic(Topic::Board(board.no)), wake), after)
    }

    /// Reads the events of a contest, or of a member's money.
    pub fn of_subject(
        tally: &Tally,
        subject: Subject,
        after: Option<Offset>,
    ) -> Result<(Self, StreamStart), Failure> {
        let of = match subject {
            Subject::Contest(no) => Of::Topic(Topic::Contest(no)),
            Subject::Member(member) => Of::Member(member),
        };
        Self::begin(tally, (of, Wake::Hub(tally.events.listen(subject))), after)
    }

    /// It is woken from before this on, so no event after the present offset is missed.
    fn begin(
        tally: &Tally,
        (of, wake): (Of, Wake),
        after: Option<Offset>,
    ) -> Result<(Self, StreamStart), Failure> {
        let present = of.present(tally)?;
        let (offset, begun) = match after {
            None => (present, StreamStart::AtOffset),
            Some(after) if of.has_all(tally, &after, &present)? => (after, StreamStart::AtOffset),
            Some(_) => (present, StreamStart::Reset),
        };
        Ok((Self { of, wake, offset }, begun))
    }

    /// Waits until there may be more.
    pub async fn woken(&mut self) {
        match &mut self.wake {
            Wake::Hub(listener) => listener.woken().await,
            Wake::Board(woken) => {
                if woken.changed().await.is_err() {
                    // The board is deleted, and the reader finds that out in another way.
                    std::future::pending::<()>().await;
                }
            }
        }
    }

    /// For reading on from its position.
    pub fn reader(&self) -> Reader {
        Reader { of: self.of, offset: self.offset.clone() }
    }
}

impl Reader {
    /// The next events, each with the offset after it; `None` if there are no more. Blocks.
    pub fn next(&self, tally: &Tally) -> Result<Vec<(Offset, StreamItem)>, Failure> {
        match (self.of, &self.offset) {
            (Of::Topic(topic), Offset::Event(after)) => {
                let found = unbroken(tally.store.ledger().list_events(topic, *after, PAGE)?, *after)?;
                let item = |(number, event)| (Offset::Event(number), StreamItem::Event(event));
                Ok(found.into_iter().map(item).collect())
            }
            (Of::Member(member), Offset::Entries(after)) => Ok(entries(tally, member, after)?),
            (Of::Topic(_), Offset::Entries(_)) | (Of::Member(_), Offset::Event(_)) => {
                unreachable!("an offset of another kind is none of this reader's")
            }
        }
    }
}

impl Of {
    /// The offset after the last event.
    fn present(self, tally: &Tally) -> Result<Offset, StoreError> {
        let ledger = tally.store.ledger();
        Ok(match self {
            Self::Topic(topic) => Offset::Event(ledger.last_events(&[topic])?.pop().unwrap_or(0)),
            Self::Member(member) => {
                let last = ledger.last_entries(&[member])?.into_iter();
                Offset::Entries(last.map(|(key, number)| (key.currency, number)).collect())
            }
        })
    }

    /// Whether all events after an offset still exist, up to the present.
    fn has_all(self, tally: &Tally, after: &Offset, present: &Offset) -> Result<bool, StoreError> {
        let ledger = tally.store.ledger();
        match (self, after, present) {
            (Self::Topic(topic), Offset::Event(after), Offset::Event(last)) => {
                let is_next = |found: &(u64, Event)| found.0 == after + 1;
                Ok(after == last
                    || after < last
                        && ledger.list_events(topic, *after, 1)?.rows.first().is_some_and(is_next))
            }
            (Self::Member(member), Offset::Entries(after), Offset::Entries(last)) => {
                if after.iter().any(|(currency, number)| last.get(currency).is_none_or(|last| number > last))
                {
                    return Ok(false);
                }
                let missed = last.iter().filter_map(|(currency, last)| {
                    let number = after.get(currency).copied().unwrap_or(0);
                    let wallet = WalletKey { member, currency: *currency };
                    (number < *last).then_some(EntryKey { wallet, sequence: number + 1 })
                });
                let first = match ledger.entries(&missed.collect::<Vec<_>>()) {
                    // A corrupt row counts as forgotten here.
                    Err(StoreError::CorruptRow(_)) => return Ok(false),
                    first => first?,
                };
                let oldest = Micros(tally.now().0.saturating_sub(KEEP_MICROS));
                Ok(first.iter().all(|entry| entry.as_ref().is_some_and(|entry| entry.at() >= oldest)))
            }
            _ => Ok(false),
        }
    }
}

/// The rows that follow a number, up to the first corrupt one. If the first is corrupt the stream ends, and a stream that
/// continues there begins again.
fn unbroken<T>(list: Listing<(u64, T)>, after: u64) -> Result<Vec<(u64, T)>, StoreError> {
    if list.damaged.is_empty() {
        return Ok(list.rows);
    }
    let follows = |(place, (number, _)): &(u64, (u64, T))| *number == after + 1 + *place;
    let rows = (0..).zip(list.rows).take_while(follows).map(|(_, row)| row).collect::<Vec<_>>();
    if rows.is_empty() { Listing { rows, damaged: list.damaged }.whole() } else { Ok(rows) }
}

/// The next entries of a member's wallets: each wallet's by number, and those of several by time.
fn entries(
    tally: &Tally,
    member: MemberId,
    after: &BTreeMap<Currency, u64>,
) -> Result<Vec<(Offset, StreamItem)>, StoreError> {
    let ledger = tally.store.ledger();
    let mut next: Vec<(Currency, VecDeque<(u64, Entry)>)> = Vec::new();
    for (wallet, last) in ledger.last_entries(&[member])? {
        let number = after.get(&wallet.currency).copied().unwrap_or(0);
        let until = last.min(number + PAGE as u64);
        if number < until {
            // Newest first.
            let mut found = ledger.list_entries(wallet, number + 1..until + 1)?;
            found.rows.reverse();
            next.push((wallet.currency, unbroken(found, number)?.into()));
        }
    }
    let (mut at, mut items) = (after.clone(), Vec::new());
    while items.len() < PAGE {
        let of = |entries: &VecDeque<(u64, Entry)>| entries.front().map(|(_, entry)| entry.transfer);
        let first = next.iter_mut().filter(|(_, entries)| !entries.is_empty());
        let Some((currency, entries)) = first.min_by_key(|(_, entries)| of(entries)) else { break };
        let (number, entry) = entries.pop_front().expect("it has one");
        at.insert(*currency, number);
        items.push((Offset::Entries(at.clone()), StreamItem::Entry(*currency, entry)));
    }
    Ok(items)
}
