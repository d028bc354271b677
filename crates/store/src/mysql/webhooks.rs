//! The table `webhooks`: receivers of events, and their positions in topics. Also the events of all topics by their times.
//!
//! Not here: the bytes of a row (`codec::webhooks`).

use super::MySqlStore;
use super::fault::damaged;
use super::lists::{all, listing};
use super::row::Fields;
use super::table::{self, Table};
use super::text::{RowScript, Script};
use super::transfers::Transfers;
use crate::archive::reads;
use crate::codec::events::{read_topic, topic_bytes};
use crate::codec::webhooks::{self, read_key, topic_column};
use crate::events::EventKey;
use crate::webhooks::{WebhookKey, WebhookReads, WebhookRow};
use crate::{Listing, StoreError};
use tally_rules::Micros;
use tally_rules::ledger::{Transfer, TransferId};

pub(super) struct Webhooks;

impl Table for Webhooks {
    const NAME: &'static str = "webhooks";
    const KEY: &'static str = "(topic, id)";
    const READ: &'static str = "topic, id, body";
    const REPLACED: &'static [&'static str] = &["body"];
    const BLANK: &'static str = "''";
    type Key = WebhookKey;
    type Value = WebhookRow;

    fn put_key(row: &mut RowScript<'_>, key: &WebhookKey) {
        row.bytes(&topic_column(key.topic)).bytes(&key.id.0);
    }

    fn put(row: &mut RowScript<'_>, value: &WebhookRow) {
        row.bytes(&webhooks::encode(value));
    }

    fn decode(row: &mut Fields<'_>) -> Result<(WebhookKey, WebhookRow), StoreError> {
        let bad = || damaged("webhooks", "a webhook or a position that cannot be");
        let topic = row.bytes()?.to_vec();
        let key = read_key(&topic, row.fixed()?).ok_or_else(bad)?;
        let value = webhooks::decode(row.bytes()?).filter(|value| key.fits(value)).ok_or_else(bad)?;
        Ok((key, value))
    }
}

impl WebhookReads for MySqlStore {
    fn webhook_rows(&self, keys: &[WebhookKey]) -> Result<Vec<Option<WebhookRow>>, StoreError> {
        table::get::<Webhooks>(&self.pool, keys)
    }

    fn list_webhook_rows(
        &self,
        after: Option<WebhookKey>,
        limit: usize,
    ) -> Result<Listing<(WebhookKey, WebhookRow)>, StoreError> {
        let query = |limit: usize| {
            let mut script = Script::default();
            table::all::<Webhooks>(&mut script);
            if let Some(key) = after {
                let topic = topic_column(key.topic);
                script.sql(" WHERE topic > ").bytes(&topic).sql(" OR topic = ").bytes(&topic);
                script.sql(" AND id > ").bytes(&key.id.0);
            }
            script.sql(" ORDER BY topic, id LIMIT ").number(limit as u64).end();
            script
        };
        listing(self, "webhooks", limit, query, Webhooks::decode)
    }

    fn recent_events(
        &self,
        (at, key): (Micros, EventKey),
        limit: usize,
    ) -> Result<Vec<(Micros, EventKey)>, StoreError> {
        let (mut script, topic) = (Script::default(), topic_bytes(key.topic));
        script.sql("SELECT `at`, topic, number FROM events FORCE INDEX (events_at) WHERE `at` >= ");
        script.signed(at.0).sql(" AND (`at` > ").signed(at.0).sql(" OR topic > ").bytes(&topic);
        script.sql(" OR topic = ").bytes(&topic).sql(" AND number > ").number(key.number);
        script.sql(") ORDER BY `at`, topic, number LIMIT ").number(limit as u64).end();
        all(self, &script, "events", |row| {
            let at = Micros(row.signed()?);
            let topic =
                read_topic(row.bytes()?).ok_or_else(|| damaged("events", "a topic that cannot be"))?;
            Ok((at, EventKey { topic, number: row.number()? }))
        })
    }

    fn recent_transfers(
        &self,
        after: TransferId,
        limit: usize,
    ) -> Result<Listing<(TransferId, Transfer)>, StoreError> {
        let query = |limit: usize| {
            let mut script = Script::default();
            table::all::<Transfers>(&mut script).sql(" WHERE id > ").bytes(&after.0.0);
            script.sql(" ORDER BY id LIMIT ").number(limit as u64).end();
            script
        };
        let list = listing(self, "transfers", limit, query, Transfers::decode)?;
        reads::recent_transfers(self, after, limit, list)
    }
}
