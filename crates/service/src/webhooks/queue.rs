//! The topics with events that a webhook has not got yet.
//!
//! Events are found by their times, which are not the order of commits: an event may appear late. So each look begins a minute
//! before the last one, and a look at all kept events follows now and then. What is found is only a hint: a topic is read on from
//! its stored position, so a late hint delays an event and skips none. Each webhook has a bounded part of the queue. A receiver
//! that is behind delays no other one. Blocks on the store.

use crate::failure::Failure;
use crate::tally::Tally;
use std::collections::{BTreeMap, HashMap};
use tally_rules::Micros;
use tally_rules::instant::SECOND;
use tally_rules::ledger::Uuid;
use tally_rules::webhook::{EventType, Position, Webhook};
use tally_store::{BoardNo, EventKey, Topic, WebhookKey};

/// Topics of one webhook in the queue.
const TOPICS_MAX: usize = 1_000;
/// Topics whose last number is remembered.
const KNOWN_MAX: usize = 20_000;
/// Events of one read, and reads of one look.
const PAGE: usize = 500;
const PAGES: usize = 20;
/// How late an event may appear and be found at once.
const LATE_MICROS: i64 = 60 * SECOND;
/// Between two looks at all kept events.
const ALL_PAUSE_MICROS: i64 = 600 * SECOND;

/// Before all events.
const START: (Micros, EventKey) = (Micros(i64::MIN), EventKey { topic: Topic::Board(BoardNo(0)), number: 0 });

/// A topic that waits.
#[derive(Debug)]
pub(super) struct Entry {
    /// The stored position, if there is one.
    pub(super) row: Option<Position>,
    /// The number after which the topic begins without it.
    pub(super) start: u64,
    /// Whether an event is being sent.
    pub(super) is_busy: bool,
}

/// New events of a topic on a page.
struct News {
    /// The last number.
    number: u64,
    first: (Micros, EventKey),
    /// The time of the newest.
    last_at: Micros,
}

impl Entry {
    pub(super) fn delivered(&self) -> u64 {
        self.row.as_ref().map_or(self.start, |row| row.delivered)
    }
}

/// The queue of the server that delivers.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) entries: BTreeMap<(Uuid, Topic), Entry>,
    after: (Micros, EventKey),
    /// The last number that was looked at, by topic.
    known: HashMap<Topic, u64>,
    /// The first event that did not fit into the part of its webhook.
    overflowed: BTreeMap<Uuid, (Micros, EventKey)>,
    /// When the last look at all kept events began.
    all_at: Micros,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            after: START,
            known: HashMap::new(),
            overflowed: BTreeMap::new(),
            all_at: Micros(0),
        }
    }
}

/// The type of the events of a topic.
pub(super) fn type_of(topic: Topic) -> EventType {
    match topic {
        Topic::Board(_) => EventType::PeriodClosed,
        Topic::Contest(_) => EventType::Contest,
        Topic::Member(_) => EventType::MemberClosed,
    }
}

impl Queue {
    /// Begins to look at all kept events again.
    pub(super) fn look_at_all(&mut self, now: Micros) {
        (self.after, self.all_at) = (START, now);
        self.known.clear();
        self.overflowed.clear();
    }

    /// Whether a look at all kept events is due. A clock that was set back makes it due.
    pub(super) fn all_is_due(&self, now: Micros) -> bool {
        !(0..ALL_PAUSE_MICROS).contains(&now.since(self.all_at))
    }

    /// The topics of a webhook.
    pub(super) fn topics(&self, id: Uuid) -> usize {
        let first = (id, Topic::Board(BoardNo(0)));
        self.entries.range(first..).take_while(|((of, _), _)| *of == id).count()
    }

    /// Finds topics with new events. Returns whether there may be more.
    pub(super) fn look(
        &mut self,
        tally: &Tally,
        webhooks: &BTreeMap<Uuid, Webhook>,
    ) -> Result<bool, Failure> {
        self.look_back();
        for _ in 0..PAGES {
            let page = tally.store.ledger().recent_events(self.after, PAGE)?;
            self.take(tally, webhooks, &page)?;
            if let Some(last) = page.last() {
                self.after = *last;
            }
            if page.len() < PAGE {
                let newest = self.after.0.min(tally.now());
                self.after = (newest.plus(-LATE_MICROS), START.1);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Goes back to what did not fit, when there is room again.
    fn look_back(&mut self) {
        let room = |(id, at): (&Uuid, &(Micros, EventKey))| {
            (self.topics(*id) < TOPICS_MAX / 2).then_some((*id, *at))
        };
        let rooms: Vec<_> = self.overflowed.iter().filter_map(room).collect();
        for (id, at) in rooms {
            self.overflowed.remove(&id);
            self.after = self.after.min((at.0, START.1));
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
                let news = newest.entry(topic).or_insert(News { number, first: *event, last_at: event.0 });
                (news.number, news.last_at) = (news.number.max(number), event.0);
            }
        }
        let mut keys = Vec::new();
        for topic in newest.keys() {
            let wants = webhooks.iter().filter(|(_, webhook)| webhook.wants(type_of(*topic)));
            let new = wants.filter(|(id, _)| !self.entries.contains_key(&(**id, *topic)));
            keys.extend(new.map(|(id, _)| WebhookKey { topic: Some(*topic), id: *id }));
        }
        let rows = tally.store.ledger().webhook_rows(&keys)?;
        for (key, row) in keys.into_iter().zip(rows) {
            let Some(topic) = key.topic else { continue };
            let row = row.and_then(|row| row.position().cloned());
            let (news, created_at) = (&newest[&topic], webhooks[&key.id].created_at);
            let start = match &row {
                Some(row) => Some(row.delivered),
                None if news.last_at < created_at => None,
                None => start(tally, topic, created_at)?,
            };
            let Some(start) = start.filter(|start| *start < news.number) else { continue };
            if self.topics(key.id) >= TOPICS_MAX {
                self.overflowed.entry(key.id).or_insert(news.first);
                continue;
            }
            self.entries.insert((key.id, topic), Entry { row, start, is_busy: false });
        }
        self.known.extend(newest.into_iter().map(|(topic, news)| (topic, news.number)));
        Ok(())
    }
}

/// The number after which a topic begins for a webhook without a position: it gets what was stored since it was made. `None` if
/// there is nothing.
pub(super) fn start(tally: &Tally, topic: Topic, created_at: Micros) -> Result<Option<u64>, Failure> {
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
