//! The table `webhooks`: receivers of events, and their positions in topics. Also the events of all topics by their times.
//!
//! Not here: the bytes of a row (`codec::webhooks`).

use super::SqliteStore;
use super::contest_reads::merged;
use super::events::Events;
use super::fault::{column_text, damaged};
use super::memtable::Memtables;
use super::reads::fill;
use super::run::states;
use super::table::{Rows, Table};
use super::transfers::{self, Transfers};
use crate::archive::reads;
use crate::codec::events::{read_topic, topic_bytes};
use crate::codec::webhooks::{self, read_key, topic_column};
use crate::codec::{Input, put_bytes};
use crate::events::{EventKey, Topic};
use crate::webhooks::{WebhookKey, WebhookReads, WebhookRow};
use crate::{Listing, StoreError};
use rusqlite::{Connection, Row, params};
use std::ops::Bound;
use tally_rules::Micros;
use tally_rules::event::Event;
use tally_rules::ledger::{Transfer, TransferId, Uuid};

pub(super) const GET: &str = "SELECT topic, id, body FROM webhooks WHERE topic = ?1 AND id = ?2";
pub(super) const PUT: &str = "REPLACE INTO webhooks (topic, id, body) VALUES (?1, ?2, ?3)";
pub(super) const REMOVE: &str = "DELETE FROM webhooks WHERE topic = ?1 AND id = ?2";
pub(super) const LIST: &str =
    "SELECT topic, id, body FROM webhooks WHERE (topic, id) > (?1, ?2) ORDER BY topic, id";
pub(super) const RECENT: &str = "SELECT at, topic, number FROM events INDEXED BY events_at \
     WHERE (at, topic, number) > (?1, ?2, ?3) ORDER BY at, topic, number";

pub(super) fn decode(row: &Row<'_>) -> Result<(WebhookKey, WebhookRow), StoreError> {
    let bad = || damaged("webhooks", "a webhook or a position that cannot be");
    let key = read_key(&row.get::<_, Vec<u8>>(0)?, row.get(1)?).ok_or_else(bad)?;
    let body = webhooks::decode(&row.get::<_, Vec<u8>>(2)?).filter(|body| key.fits(body)).ok_or_else(bad)?;
    Ok((key, body))
}

pub(super) fn get(connection: &Connection, key: &WebhookKey) -> Result<Option<WebhookRow>, StoreError> {
    let mut statement = connection.prepare_cached(GET)?;
    let mut rows = statement.query(params![topic_column(key.topic), key.id.0])?;
    Ok(rows.next()?.map(decode).transpose()?.map(|(_, row)| row))
}

/// The table `webhooks` for the journal.
pub(super) struct Webhooks;

impl Table for Webhooks {
    const TAG: u8 = 28;
    type Key = WebhookKey;
    type Value = WebhookRow;

    fn check(key: &WebhookKey, value: Option<&WebhookRow>) -> Result<(), StoreError> {
        let fits = value.is_none_or(|value| key.fits(value));
        if fits { Ok(()) } else { Err(StoreError::Row("webhooks: a row of another kind".into())) }
    }

    fn put_key(key: &WebhookKey, out: &mut Vec<u8>) {
        put_bytes(&topic_column(key.topic), out);
        out.extend_from_slice(&key.id.0);
    }

    fn take_key(input: &mut Input<'_>) -> Option<WebhookKey> {
        let topic = input.bytes()?;
        read_key(topic, input.fixed()?)
    }

    fn put_value(value: &WebhookRow, out: &mut Vec<u8>) {
        put_bytes(&webhooks::encode(value), out);
    }

    fn take_value(input: &mut Input<'_>) -> Option<WebhookRow> {
        webhooks::decode(input.bytes()?)
    }

    fn heap_bytes(_key: &WebhookKey, value: Option<&WebhookRow>) -> usize {
        match value {
            Some(WebhookRow::Webhook(webhook)) => 64 + webhook.url.len(),
            Some(WebhookRow::Position(position)) => {
                32 + position.name.len() + position.failing.as_ref().map_or(0, |failing| failing.why.len())
            }
            None => 0,
        }
    }

    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        for (key, row) in rows {
            let topic = topic_column(key.topic);
            match row {
                Some(row) => connection.prepare_cached(PUT)?.execute(params![
                    topic,
                    key.id.0,
                    webhooks::encode(row)
                ])?,
                None => connection.prepare_cached(REMOVE)?.execute(params![topic, key.id.0])?,
            };
        }
        Ok(())
    }
}

impl WebhookReads for SqliteStore {
    fn webhook_rows(&self, keys: &[WebhookKey]) -> Result<Vec<Option<WebhookRow>>, StoreError> {
        let in_memory = |memtables: &Memtables| states::<Webhooks>(memtables, keys.iter().copied());
        self.shared.read(in_memory, |found, tables| fill("webhooks", found, keys, |key| get(tables, key)))
    }

    fn list_webhook_rows(
        &self,
        after: Option<WebhookKey>,
        limit: usize,
    ) -> Result<Listing<(WebhookKey, WebhookRow)>, StoreError> {
        let in_memory = |memtables: &Memtables| {
            let from = after.map_or(Bound::Unbounded, Bound::Excluded);
            memtables.first::<Webhooks, _>(from, |_| true, |row: &WebhookRow| Some(row.clone()), limit)
        };
        self.shared.list(in_memory, |newer, tables| {
            let mut statement = tables.prepare_cached(LIST)?;
            // No id is empty, so this is before all rows.
            let (topic, id) =
                after.map_or((Vec::new(), Vec::new()), |key| (topic_column(key.topic), key.id.0.to_vec()));
            let mut rows = statement.query(params![topic, id])?;
            let decode = |row: &Row<'_>| {
                decode(row).map(Some).map_err(|error| error.of_row("webhooks", || column_text(row, 1)))
            };
            merged(newer, |key: &WebhookKey, _| *key, &mut rows, decode, limit)
        })
    }

    /// Rows of the memtable are few: the flush takes them within seconds.
    fn recent_events(
        &self,
        after: (Micros, EventKey),
        limit: usize,
    ) -> Result<Vec<(Micros, EventKey)>, StoreError> {
        let in_memory = |memtables: &Memtables| {
            let first = EventKey { topic: Topic::Board(crate::BoardNo(0)), number: 0 };
            let late = |event: &Event| (event.at >= after.0).then_some(event.at);
            memtables.first::<Events, _>(Bound::Included(first), |_| true, late, usize::MAX)
        };
        self.shared.read(in_memory, |newer, tables| {
            let newer =
                newer.into_iter().filter(|(key, at)| at.is_none_or(|at| (at, *key) > after)).collect();
            let mut statement = tables.prepare_cached(RECENT)?;
            let key = after.1;
            let mut rows =
                statement.query(params![after.0.0, topic_bytes(key.topic), key.number.cast_signed()])?;
            let decode = |row: &Row<'_>| {
                let topic = read_topic(&row.get::<_, Vec<u8>>(1)?);
                let topic = topic.ok_or_else(|| damaged("events", "a topic that cannot be"))?;
                let number = row.get::<_, i64>(2)?.cast_unsigned();
                Ok(Some((EventKey { topic, number }, Micros(row.get(0)?))))
            };
            let found = merged(newer, |key, at: &Micros| (*at, *key), &mut rows, decode, limit)?.whole()?;
            Ok(found.into_iter().map(|(key, at)| (at, key)).collect())
        })
    }

    fn recent_transfers(
        &self,
        after: TransferId,
        limit: usize,
    ) -> Result<Listing<(TransferId, Transfer)>, StoreError> {
        let in_memory = |memtables: &Memtables| {
            let all = |transfer: &Transfer| Some(transfer.clone());
            memtables.first::<Transfers, _>(Bound::Excluded(after), |_| true, all, limit)
        };
        let list = self.shared.list(in_memory, |newer, tables| {
            let mut statement = tables.prepare_cached(transfers::RECENT)?;
            let mut rows = statement.query(params![after.0.0])?;
            let decode = |row: &Row<'_>| {
                let read = || Ok(Some((TransferId(Uuid(row.get(10)?)), transfers::decode(row)?)));
                read().map_err(|error: StoreError| error.of_row("transfers", || column_text(row, 10)))
            };
            merged(newer, |id: &TransferId, _| *id, &mut rows, decode, limit)
        })?;
        reads::recent_transfers(self, after, limit, list)
    }
}
