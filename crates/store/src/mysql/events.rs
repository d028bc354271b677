//! The tables `events` and `event_topics`: events, numbered for each topic.
//!
//! A transaction takes the next number by adding to the row of the topic, and holds the row until its end. So numbers are
//! committed in order and without a gap. Not here: the bytes of an event (`events`).

use super::MySqlStore;
use super::fault::damaged;
use super::found;
use super::lists::listing;
use super::row::Fields;
use super::text::Script;
use super::wallets;
use crate::codec::events::{self, read_topic, topic_bytes};
use crate::damage::KeyText;
use crate::events::{EventReads, Topic};
use crate::{Listing, StoreError};
use tally_rules::Micros;
use tally_rules::event::Event;
use tally_rules::ledger::{MemberId, WalletKey};

/// Writes events, each under the next number of its topic.
pub(super) fn write(script: &mut Script, rows: &[(Topic, Event)]) {
    for (topic, event) in rows {
        let topic = topic_bytes(*topic);
        script.sql("INSERT INTO event_topics (topic, last) VALUES (").bytes(&topic);
        script.sql(", 1) ON DUPLICATE KEY UPDATE last = last + 1").end();
        script.sql("INSERT INTO events (topic, number, `at`, body) SELECT topic, last, ").signed(event.at.0);
        script.sql(", ").bytes(&events::encode(&event.what));
        script.sql(" FROM event_topics WHERE topic = ").bytes(&topic).end();
    }
}

/// The next column as a topic.
fn topic(row: &mut Fields<'_>) -> Result<Topic, StoreError> {
    read_topic(row.bytes()?).ok_or_else(|| damaged("events", "a topic that cannot be"))
}

pub(super) fn decode(row: &mut Fields<'_>) -> Result<(u64, Event), StoreError> {
    let (number, at) = (row.number()?, Micros(row.signed()?));
    let what = events::decode(row.bytes()?).ok_or_else(|| damaged("events", "an event that cannot be"))?;
    Ok((number, Event { at, what }))
}

impl EventReads for MySqlStore {
    /// Up to the last number that was there before; see `revisions::since`.
    fn list_events(
        &self,
        topic: Topic,
        after: u64,
        limit: usize,
    ) -> Result<Listing<(u64, Event)>, StoreError> {
        let name = topic.text();
        let topic = topic_bytes(topic);
        let query = |limit: usize| {
            let mut script = Script::default();
            script
                .sql("SET @seen = (SELECT last FROM event_topics WHERE topic = ")
                .bytes(&topic)
                .sql(")")
                .end();
            script.sql("SELECT number, `at`, body FROM events FORCE INDEX (PRIMARY) WHERE topic = ");
            script.bytes(&topic).sql(" AND number > ").number(after);
            script.sql(" AND number <= @seen ORDER BY number LIMIT ").number(limit as u64).end();
            script
        };
        listing(self, "events", limit, query, |row| {
            let number = row.first();
            decode(row).map_err(|error| error.of_row("events", || format!("{name}/{number}")))
        })
    }

    fn last_events(&self, topics: &[Topic]) -> Result<Vec<u64>, StoreError> {
        if topics.is_empty() {
            return Ok(Vec::new());
        }
        let mut script = Script::default();
        let head = "SELECT topic, last FROM event_topics FORCE INDEX (PRIMARY) WHERE topic IN (";
        let statements = script.keys(head, topics, ")", |row, topic| {
            row.bytes(&topic_bytes(*topic));
        });
        let decode = |row: &mut Fields<'_>| Ok((topic(row)?, row.number()?));
        let last = found(&mut self.pool.query(&script)?, statements, "event_topics", topics, decode)?;
        Ok(last.into_iter().map(|last| last.unwrap_or(0)).collect())
    }

    fn last_entries(&self, members: &[MemberId]) -> Result<Vec<(WalletKey, u64)>, StoreError> {
        let mut script = Script::default();
        let head = "SELECT member, currency, sequence FROM wallets FORCE INDEX (PRIMARY) WHERE member IN (";
        let statements = script.keys(head, members, ")", |row, member| {
            row.bytes(&member.0.0);
        });
        let mut last = Vec::new();
        self.pool.query(&script)?.each(statements, "wallets", |row| {
            last.push((wallets::key(row)?, row.number()?));
            Ok(())
        })?;
        last.sort_unstable();
        Ok(last)
    }

    fn expire_events(&self, before: Micros, limit: usize) -> Result<usize, StoreError> {
        let mut script = Script::default();
        script.sql("DELETE FROM events WHERE `at` < ").signed(before.0);
        script.sql(" ORDER BY `at` LIMIT ").number(limit as u64).end();
        Ok(usize::try_from(self.pool.query(&script)?.affected()).unwrap_or(usize::MAX))
    }
}
