//! Events as webhooks get them: stored ones, and entries of wallets, which are numbered and never deleted.
//!
//! Blocks on the store. Not here: what was delivered (`queue`), and the form on the wire.

use super::deliveries::delivery_id;
use crate::failure::Failure;
use crate::ledger::read::names;
use crate::tally::Tally;
use std::sync::Arc;
use tally_rules::event::{Event, EventKind};
use tally_rules::ledger::{Entry, WalletKey};
use tally_rules::webhook::{EventRef, EventType, Webhook};
use tally_rules::{Micros, Origin};
use tally_store::Topic;

/// Events of one read.
const PAGE: usize = 100;

/// An event of a topic.
#[derive(Clone, Debug)]
pub struct EventOf {
    /// The id of the delivery: the same whenever and by whichever server it is sent.
    pub id: String,
    /// The type.
    pub kind: EventType,
    /// The leaderboard, the contest, the member or the wallet.
    pub subject: Arc<str>,
    /// The number in the topic.
    pub number: u64,
    /// How many events before it expired before they were delivered.
    pub missed: u64,
    /// When it was stored.
    pub at: Micros,
    /// What happened.
    pub what: Happening,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum Happening {
    /// A stored event.
    Stored(EventKind),
    /// An entry of a wallet.
    Entry(Box<WalletEntry>),
}

/// An entry of a wallet.
#[derive(Clone, Debug)]
pub struct WalletEntry {
    /// The wallet.
    pub wallet: WalletKey,
    /// The entry itself.
    pub entry: Entry,
    /// The name of the counterparty.
    pub counterparty: Option<Arc<str>>,
    /// Who moved the money, and why.
    pub origin: Origin,
    /// The mark that the balance is below from here on.
    pub mark: Option<i64>,
}

/// The next event of a topic for a webhook.
pub(super) enum NextEvent {
    /// This one.
    Found(EventOf),
    /// None up to this number, and there are more.
    NotUpTo(u64),
    /// None.
    Nothing,
}

/// The types of entries of wallets.
pub(super) const OF_WALLETS: [EventType; 3] =
    [EventType::Transfer, EventType::Reversal, EventType::BalanceBelow];

/// The types of the events of a topic.
pub(super) fn types_of(topic: Topic) -> &'static [EventType] {
    match topic {
        Topic::Board(_) => &[EventType::PeriodClosed, EventType::PeriodPaid],
        Topic::Contest(_) => &[EventType::Contest],
        Topic::Member(_) => &[EventType::MemberClosed],
        Topic::Wallet(_) => &OF_WALLETS,
        Topic::Transfers => &[],
    }
}

/// The name of a wallet.
pub(super) fn wallet_name(key: WalletKey) -> Arc<str> {
    format!("{}:{}", key.member.0, key.currency).into()
}

/// The first event after a number that a webhook wants; `delivered` is the last number that counts as delivered.
pub(super) fn next_event(
    tally: &Tally,
    webhook: &Webhook,
    topic: Topic,
    (after, delivered): (u64, u64),
) -> Result<NextEvent, Failure> {
    let ledger = tally.store.ledger();
    let last = |count: usize, last: Option<u64>| match last.filter(|_| count == PAGE) {
        Some(last) => NextEvent::NotUpTo(last),
        None => NextEvent::Nothing,
    };
    if let Topic::Wallet(key) = topic {
        let mut entries = ledger.history(key, after + 1..after + 1 + PAGE as u64)?;
        entries.reverse();
        let (count, end) = (entries.len(), entries.last().map(|(number, _)| *number));
        let wanted = |(number, entry): (u64, Entry)| {
            let kind = webhook.type_of_entry(key.currency, &entry)?;
            Some((number, entry, kind))
        };
        let Some((number, entry, kind)) = entries.into_iter().find_map(wanted) else {
            return Ok(last(count, end));
        };
        return Ok(NextEvent::Found(entry_event(tally, webhook, key, (number, entry, kind))?));
    }
    let events = ledger.list_events(topic, after, PAGE)?.rows;
    let (count, end) = (events.len(), events.last().map(|(number, _)| *number));
    // Only events that expired count as missed, not those that the webhook does not want.
    let missed = match events.first() {
        Some((first, _)) if after == delivered => first - after - 1,
        _ => 0,
    };
    let wanted = |(_, event): &(u64, Event)| webhook.events.contains(&type_of(&event.what));
    let Some((number, event)) = events.into_iter().find(wanted) else { return Ok(last(count, end)) };
    let found = subject(tally, topic, &event.what).map(|subject| {
        let id = delivery_id(topic, EventRef { number, at: event.at });
        let kind = type_of(&event.what);
        EventOf { id, kind, subject, number, missed, at: event.at, what: Happening::Stored(event.what) }
    });
    // An event of a leaderboard that was deleted is not sent.
    Ok(found.map_or(NextEvent::Nothing, NextEvent::Found))
}

fn type_of(event: &EventKind) -> EventType {
    match event {
        EventKind::Contest(_) => EventType::Contest,
        EventKind::PeriodClosed(_) => EventType::PeriodClosed,
        EventKind::PeriodPaid(_) => EventType::PeriodPaid,
        EventKind::MemberClosed => EventType::MemberClosed,
    }
}

fn subject(tally: &Tally, topic: Topic, event: &EventKind) -> Option<Arc<str>> {
    match (topic, event) {
        (Topic::Board(no), _) => tally.boards.by_no(no).map(|board| board.id.as_str().into()),
        // An event of a release before webhooks has no name.
        (Topic::Contest(_), EventKind::Contest(changed)) => {
            Some(changed.contest.as_ref().map_or("", |id| id.as_str()).into())
        }
        (Topic::Member(id), _) => Some(id.0.to_string().into()),
        (Topic::Contest(_) | Topic::Wallet(_) | Topic::Transfers, _) => None,
    }
}

fn entry_event(
    tally: &Tally,
    webhook: &Webhook,
    wallet: WalletKey,
    (number, entry, kind): (u64, Entry, EventType),
) -> Result<EventOf, Failure> {
    let origin = tally.store.ledger().transfer(entry.transfer)?.map(|transfer| transfer.origin);
    let counterparty = names(&*tally.store, entry.counterparty)?.into_values().next();
    let mark = webhook.marks.get(&wallet.currency).copied().filter(|_| kind == EventType::BalanceBelow);
    let (at, subject) = (entry.at(), wallet_name(wallet));
    let id = delivery_id(Topic::Wallet(wallet), EventRef { number, at });
    let entry = WalletEntry { wallet, entry, counterparty, origin: origin.unwrap_or_default(), mark };
    Ok(EventOf { id, kind, subject, number, missed: 0, at, what: Happening::Entry(Box::new(entry)) })
}
