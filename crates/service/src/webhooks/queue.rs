//! The topics with events that a webhook has not got yet.
//!
//! Events are found by their times, which are not the order of commits: an event may appear late. So each search begins a minute
//! before the last one, and a search of all kept events follows now and then. What is found is only a hint: a topic is read on from
//! its stored position, so a late hint delays an event and skips none. Each webhook has a bounded part of the queue. A receiver
//! that is behind delays no other one. Blocks on the store.

use super::happening::types_of;
use super::scans::{self, LATE_MICROS, Scans};
use crate::failure::Failure;
use crate::tally::Tally;
use std::collections::{BTreeMap, HashMap};
use tally_rules::Micros;
use tally_rules::instant::SECOND;
use tally_rules::ledger::Uuid;
use tally_rules::webhook::{Position, Webhook};
use tally_store::{BoardNo, EventKey, Topic, WebhookKey};

/// Topics of one webhook in the queue.
const TOPICS_MAX: usize = 1_000;
/// Topics whose last number is remembered.
const KNOWN_MAX: usize = 20_000;
/// Events of one read, and reads of one search.
const PAGE: usize = 500;
const PAGES: usize = 20;
/// Between two searches of all kept events.
const ALL_PAUSE_MICROS: i64 = 600 * SECOND;

/// Before all events.
const START: (Micros, EventKey) = (Micros(i64::MIN), EventKey { topic: Topic::Board(BoardNo(0)), number: 0 });

/// A topic that waits.
#[derive(Debug)]
pub(super) struct WaitingTopic {
    /// The stored position, if there is one.
    pub(super) row: Option<Position>,
    /// The number after which the topic begins without it.
    pub(super) start: u64,
    /// Up to this number there is nothing that the webhook wants.
    pub(super) examined: u64,
    /// When the first event was stored that it may still get.
    pub(super) since: Micros,
    /// Whether an event is being sent.
    pub(super) is_busy: bool,
}

/// New events of a topic on a page.
struct News {
    /// The last number, and the least.
    number: u64,
    least: u64,
    first: (Micros, EventKey),
    /// The time of the newest.
    last_at: Micros,
}

impl WaitingTopic {
    pub(super) fn delivered(&self) -> u64 {
        self.row.as_ref().map_or(self.start, |row| row.delivered.max(self.start))
    }
}

/// The queue of the server that delivers.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) entries: BTreeMap<(Uuid, Topic), WaitingTopic>,
    after: (Micros, EventKey),
    /// The last number that was found, by topic.
    known: HashMap<Topic, u64>,
    /// The first event that did not fit into the part of its webhook, and the first entry of a wallet.
    overflowed: BTreeMap<Uuid, (Micros, EventKey)>,
    overflowed_wallets: BTreeMap<Uuid, Micros>,
    /// How far transfers were read, if a webhook wants entries of wallets.
    scans: Option<Scans>,
    /// When the last search of all kept events began.
    all_at: Micros,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            after: START,
            known: HashMap::new(),
            overflowed: BTreeMap::new(),
            overflowed_wallets: BTreeMap::new(),
            scans: None,
            all_at: Micros(0),
        }
    }
}

impl Queue {
    /// Begins to search all kept events again.
    pub(super) fn restart_search(
        &mut self,
        tally: &Tally,
        webhooks: &BTreeMap<Uuid, Webhook>,
    ) -> Result<(), Failure> {
        self.scans = Scans::begin(tally, webhooks)?;
        (self.after, self.all_at) = (START, tally.now());
        self.known.clear();
        self.overflowed.clear();
        self.overflowed_wallets.clear();
        Ok(())
    }

    /// Whether a search of all kept events is due. A clock that was set back makes it due.
    pub(super) fn all_is_due(&self, now: Micros) -> bool {
        !(0..ALL_PAUSE_MICROS).contains(&now.since(self.all_at))
    }

    /// The topics of a webhook.
    pub(super) fn topics(&self, id: Uuid) -> usize {
        self.of(id).count()
    }

    fn of(&self, id: Uuid) -> impl Iterator<Item = (&(Uuid, Topic), &WaitingTopic)> {
        let first = (id, Topic::Board(BoardNo(0)));
        self.entries.range(first..).take_while(move |((of, _), _)| *of == id)
    }

    /// Finds topics with new events. Returns whether there may be more.
    pub(super) fn search(
        &mut self,
        tally: &Tally,
        webhooks: &BTreeMap<Uuid, Webhook>,
    ) -> Result<bool, Failure> {
        self.return_to_overflowed();
        let mut has_more = false;
        if let Some(mut scans) = self.scans.take() {
            let read = scans.read(tally, (PAGE, PAGES));
            self.scans = Some(scans);
            let (new_entries, more) = read?;
            has_more = more;
            self.take(tally, webhooks, &new_entries)?;
            self.store_scans(tally)?;
        }
        for _ in 0..PAGES {
            let page = tally.store.ledger().recent_events(self.after, PAGE)?;
            self.take(tally, webhooks, &page)?;
            if let Some(last) = page.last() {
                self.after = *last;
            }
            if page.len() < PAGE {
                let newest = self.after.0.min(tally.now());
                self.after = (newest.plus(-LATE_MICROS), START.1);
                return Ok(has_more);
            }
        }
        Ok(true)
    }

    /// Stores how far entries of wallets were delivered.
    fn store_scans(&mut self, tally: &Tally) -> Result<(), Failure> {
        let Some(mut scans) = self.scans.take() else { return Ok(()) };
        let waiting = |id: Uuid| {
            let of_wallets = self.of(id).filter(|((_, topic), _)| matches!(topic, Topic::Wallet(_)));
            let first = of_wallets.map(|(_, entry)| entry.since).min();
            first.into_iter().chain(self.overflowed_wallets.get(&id).copied()).min()
        };
        let stored = scans.store(tally, waiting);
        self.scans = Some(scans);
        stored
    }

    /// Goes back to what did not fit, when there is room again.
    fn return_to_overflowed(&mut self) {
        let room = |(id, at): (&Uuid, &(Micros, EventKey))| {
            (self.topics(*id) < TOPICS_MAX / 2).then_some((*id, *at))
        };
        let rooms: Vec<_> = self.overflowed.iter().filter_map(room).collect();
        for (id, at) in rooms {
            self.overflowed.remove(&id);
            self.after = self.after.min((at.0, START.1));
            self.known.clear();
        }
        let room = |(id, at): (&Uuid, &Micros)| (self.topics(*id) < TOPICS_MAX / 2).then_some((*id, *at));
        let rooms: Vec<_> = self.overflowed_wallets.iter().filter_map(room).collect();
        for (id, at) in rooms {
            self.overflowed_wallets.remove(&id);
            self.scans.iter_mut().for_each(|scans| scans.go_back(at));
            self.known.clear();
        }
        if self.known.len() > KNOWN_MAX {
            self.known.clear();
        }
    }

    fn take(
        &mut self,
        tally: &Tally,
        webhooks: &BTreeMap<Uuid, Webhook>,
        page: &[(Micros, EventKey)],
    ) -> Result<(), Failure> {
        let mut newest: BTreeMap<Topic, News> = BTreeMap::new();
        for event in page {
            let (topic, number) = (event.1.topic, event.1.number);
            if self.known.get(&topic).is_none_or(|known| *known < number) {
                let fresh = News { number, least: number, first: *event, last_at: event.0 };
                let news = newest.entry(topic).or_insert(fresh);
                (news.number, news.least) = (news.number.max(number), news.least.min(number));
                (news.first, news.last_at) = (news.first.min(*event), news.last_at.max(event.0));
            }
        }
        let mut keys = Vec::new();
        for topic in newest.keys() {
            let wants = webhooks.iter().filter(|(_, webhook)| webhook.wants(types_of(*topic)));
            let new = wants.filter(|(id, _)| !self.entries.contains_key(&(**id, *topic)));
            keys.extend(new.map(|(id, _)| WebhookKey { topic: Some(*topic), id: *id }));
        }
        let rows = tally.store.ledger().webhook_rows(&keys)?;
        for (key, row) in keys.into_iter().zip(rows) {
            let Some(topic) = key.topic else { continue };
            let row = row.and_then(|row| row.position().cloned());
            let (news, webhook) = (&newest[&topic], &webhooks[&key.id]);
            let created_at = webhook.created_at;
            let start = match (&row, topic, &self.scans) {
                (_, Topic::Wallet(wallet), Some(scans)) => {
                    Some(scans.start(tally, wallet, (key.id, webhook, row.as_ref()), news.least)?)
                }
                (Some(row), ..) => Some(row.delivered),
                (None, ..) if news.last_at < created_at => None,
                (None, ..) => start(tally, topic, created_at)?,
            };
            let Some(start) = start.filter(|start| *start < news.number) else { continue };
            if self.topics(key.id) >= TOPICS_MAX {
                match topic {
                    Topic::Wallet(_) => drop(self.overflowed_wallets.entry(key.id).or_insert(news.first.0)),
                    _ => drop(self.overflowed.entry(key.id).or_insert(news.first)),
                }
                continue;
            }
            let entry = WaitingTopic { row, start, examined: 0, since: news.first.0, is_busy: false };
            self.entries.insert((key.id, topic), entry);
        }
        self.known.extend(newest.into_iter().map(|(topic, news)| (topic, news.number)));
        Ok(())
    }
}

/// The number after which a topic begins for a webhook without a position: it gets what was stored since it was made. `None` if
/// there is nothing.
pub(super) fn start(tally: &Tally, topic: Topic, created_at: Micros) -> Result<Option<u64>, Failure> {
    if let Topic::Wallet(wallet) = topic {
        let last = tally.store.ledger().last_entries(&[wallet.member])?;
        let last = last.into_iter().find(|(key, _)| *key == wallet).map_or(0, |(_, last)| last);
        return Ok(Some(scans::before(tally, wallet, last + 1, created_at)?));
    }
    let mut after = 0;
    loop {
        let events = tally.store.ledger().list_events(topic, after, PAGE)?.rows;
        if let Some((number, _)) = events.iter().find(|(_, event)| event.at >= created_at) {
            return Ok(Some(number - 1));
        }
        match events.last() {
            Some((last, _)) if events.len() == PAGE => after = *last,
            _ => return Ok(None),
        }
    }
}
