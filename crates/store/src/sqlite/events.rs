//! The tables `events` and `event_topics`: events, numbered for each topic.
//!
//! The single writer gives the numbers. Not here: the bytes of an event (`events`).

use super::SqliteStore;
use super::contest_reads::merged;
use super::fault::{column_text, damaged};
use super::memtable::Memtables;
use super::reads::fill;
use super::run::states;
use super::state::Shared;
use super::table::{List, Rows, Table};
use super::wallets::Wallets;
use super::{bound, wallets};
use crate::codec::events::{self, read_topic, topic_bytes};
use crate::codec::{Input, put_bytes, put_number, put_signed};
use crate::damage::KeyText;
use crate::events::{EventKey, EventReads, Topic};
use crate::{Listing, StoreError};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::collections::BTreeMap;
use std::ops::Bound;
use tally_rules::Micros;
use tally_rules::event::Event;
use tally_rules::ledger::{Currency, MemberId, WalletKey};

pub(super) const LAST: &str = "SELECT last FROM event_topics WHERE topic = ?1";
pub(super) const PUT_LAST: &str = "REPLACE INTO event_topics (topic, last) VALUES (?1, ?2)";
pub(super) const REMOVE_LAST: &str = "DELETE FROM event_topics WHERE topic = ?1";
pub(super) const LIST: &str =
    "SELECT number, at, body FROM events WHERE topic = ?1 AND number > ?2 ORDER BY number";
pub(super) const PUT: &str = "REPLACE INTO events (topic, number, at, body) VALUES (?1, ?2, ?3, ?4)";
pub(super) const REMOVE: &str = "DELETE FROM events WHERE topic = ?1 AND number = ?2";
pub(super) const EXPIRE: &str = "DELETE FROM events WHERE (topic, number) IN \
     (SELECT topic, number FROM events INDEXED BY events_at WHERE at < ?1 ORDER BY at LIMIT ?2)";

fn last(connection: &Connection, topic: Topic) -> Result<Option<u64>, StoreError> {
    let read = |row: &Row<'_>| row.get::<_, i64>(0);
    let last = connection.prepare_cached(LAST)?.query_row(params![topic_bytes(topic)], read).optional()?;
    Ok(last.map(i64::cast_unsigned))
}

pub(super) fn decode(row: &Row<'_>) -> Result<(u64, Event), StoreError> {
    let (number, at) = (row.get::<_, i64>(0)?.cast_unsigned(), Micros(row.get(1)?));
    let what = events::decode(&row.get::<_, Vec<u8>>(2)?);
    Ok((number, Event { at, what: what.ok_or_else(|| damaged("events", "an event that cannot be"))? }))
}

/// Turns events into rows, each under the next number of its topic; also returns the new last numbers.
pub(super) fn numbered(
    shared: &Shared,
    reader: &Connection,
    events: &[(Topic, Event)],
) -> Result<(List<Events>, List<Topics>), StoreError> {
    if events.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let mut topics: Vec<Topic> = events.iter().map(|(topic, _)| *topic).collect();
    topics.sort_unstable();
    topics.dedup();
    let in_memory = |memtables: &Memtables| states::<Topics>(memtables, topics.iter().copied());
    let (found, snapshot) = shared.moment(reader, in_memory)?;
    let known = fill("event_topics", found, &topics, |topic| last(&snapshot, *topic))?;
    let mut lasts: BTreeMap<Topic, u64> =
        topics.into_iter().zip(known).map(|(topic, last)| (topic, last.unwrap_or(0))).collect();
    let mut rows: List<Events> = Vec::with_capacity(events.len());
    for (topic, event) in events {
        let last = lasts.get_mut(topic).expect("it is one of them");
        *last += 1;
        rows.push((EventKey { topic: *topic, number: *last }, Some(event.clone())));
    }
    rows.sort_unstable_by_key(|(key, _)| *key);
    Ok((rows, lasts.into_iter().map(|(topic, last)| (topic, Some(last))).collect()))
}

/// The table `event_topics` for the journal.
pub(super) struct Topics;

impl Table for Topics {
    const TAG: u8 = 23;
    type Key = Topic;
    type Value = u64;

    fn check(_key: &Topic, _value: Option<&u64>) -> Result<(), StoreError> {
        Ok(())
    }

    fn put_key(key: &Topic, out: &mut Vec<u8>) {
        put_bytes(&topic_bytes(*key), out);
    }

    fn take_key(input: &mut Input<'_>) -> Option<Topic> {
        read_topic(input.bytes()?)
    }

    fn put_value(value: &u64, out: &mut Vec<u8>) {
        put_number(*value, out);
    }

    fn take_value(input: &mut Input<'_>) -> Option<u64> {
        input.number()
    }

    fn heap_bytes(_key: &Topic, _value: Option<&u64>) -> usize {
        0
    }

    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        for (topic, last) in rows {
            let topic = topic_bytes(*topic);
            match last {
                Some(last) => {
                    connection.prepare_cached(PUT_LAST)?.execute(params![topic, last.cast_signed()])?
                }
                None => connection.prepare_cached(REMOVE_LAST)?.execute(params![topic])?,
            };
        }
        Ok(())
    }
}

/// The table `events` for the journal.
pub(super) struct Events;

impl Table for Events {
    const TAG: u8 = 24;
    type Key = EventKey;
    type Value = Event;

    fn check(_key: &EventKey, _value: Option<&Event>) -> Result<(), StoreError> {
        Ok(())
    }

    fn put_key(key: &EventKey, out: &mut Vec<u8>) {
        put_bytes(&topic_bytes(key.topic), out);
        put_number(key.number, out);
    }

    fn take_key(input: &mut Input<'_>) -> Option<EventKey> {
        Some(EventKey { topic: read_topic(input.bytes()?)?, number: input.number()? })
    }

    fn put_value(value: &Event, out: &mut Vec<u8>) {
        put_signed(value.at.0, out);
        put_bytes(&events::encode(&value.what), out);
    }

    fn take_value(input: &mut Input<'_>) -> Option<Event> {
        Some(Event { at: Micros(input.signed()?), what: events::decode(input.bytes()?)? })
    }

    fn heap_bytes(_key: &EventKey, _value: Option<&Event>) -> usize {
        64
    }

    fn age(value: &Event) -> Option<i64> {
        Some(value.at.0)
    }

    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        for (key, event) in rows {
            let (topic, number) = (topic_bytes(key.topic), key.number.cast_signed());
            match event {
                Some(event) => connection.prepare_cached(PUT)?.execute(params![
                    topic,
                    number,
                    event.at.0,
                    events::encode(&event.what)
                ])?,
                None => connection.prepare_cached(REMOVE)?.execute(params![topic, number])?,
            };
        }
        Ok(())
    }
}

impl EventReads for SqliteStore {
    fn list_events(
        &self,
        topic: Topic,
        after: u64,
        limit: usize,
    ) -> Result<Listing<(u64, Event)>, StoreError> {
        let in_memory = |memtables: &Memtables| {
            let from = Bound::Excluded(EventKey { topic, number: after });
            let all = |event: &Event| Some(event.clone());
            memtables.first::<Events, _>(from, |key| key.topic == topic, all, limit)
        };
        self.shared.list(in_memory, |newer, tables| {
            let mut statement = tables.prepare_cached(LIST)?;
            let mut rows = statement.query(params![topic_bytes(topic), after.cast_signed()])?;
            let name = |row: &Row<'_>| format!("{}/{}", topic.text(), column_text(row, 0));
            let decode = |row: &Row<'_>| {
                let (number, event) = decode(row).map_err(|error| error.of_row("events", || name(row)))?;
                Ok(Some((EventKey { topic, number }, event)))
            };
            let list = merged(newer, |key, _| key.number, &mut rows, decode, limit)?;
            Ok(list.map(|(key, event)| (key.number, event)))
        })
    }

    fn last_events(&self, topics: &[Topic]) -> Result<Vec<u64>, StoreError> {
        let in_memory = |memtables: &Memtables| states::<Topics>(memtables, topics.iter().copied());
        self.shared.read(in_memory, |found, tables| {
            let found = fill("event_topics", found, topics, |topic| last(tables, *topic))?;
            Ok(found.into_iter().map(|last| last.unwrap_or(0)).collect())
        })
    }

    fn last_entries(&self, members: &[MemberId]) -> Result<Vec<(WalletKey, u64)>, StoreError> {
        let first = Currency::parse("0").expect("the first of all codes");
        let of = |memtables: &Memtables, member: MemberId| {
            let from = Bound::Included(WalletKey { member, currency: first });
            memtables.range::<Wallets>(from, |key| key.member == member, usize::MAX).0
        };
        let in_memory =
            |memtables: &Memtables| members.iter().map(|member| of(memtables, *member)).collect::<Vec<_>>();
        self.shared.read(in_memory, |newer, tables| {
            let mut all = BTreeMap::new();
            for (member, newer) in members.iter().zip(newer) {
                let key = |currency| WalletKey { member: *member, currency };
                let old = wallets::of_member(tables, *member)?.whole()?.into_iter();
                all.extend(old.map(|(currency, wallet)| (key(currency), wallet.sequence)));
                all.extend(newer.into_iter().filter_map(|(key, wallet)| Some((key, wallet?.sequence))));
            }
            Ok(all.into_iter().collect())
        })
    }

    fn expire_events(&self, before: Micros, limit: usize) -> Result<usize, StoreError> {
        let shared = &self.shared;
        // Rows that are not in the tables yet would be flushed into them afterwards.
        if shared.memtables().has_older::<Events>(before.0) {
            shared.flushing.flush_now(shared)?;
        }
        shared.write_tables(|tables| {
            Ok(tables.prepare_cached(EXPIRE)?.execute(params![before.0, bound(limit)])?)
        })
    }
}
