//! What became of attempts: the new positions, in a transaction that has read the old ones.
//!
//! A position that is not as it was when the event was sent is left alone: another server has gone on meanwhile. So a server that
//! was frozen repeats events at most, and sets nothing back. Blocks on the store.

use super::deliver::ReceiverResponse;
use crate::audit;
use crate::failure::Failure;
use crate::servers;
use crate::tally::Tally;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tally_rules::Origin;
use tally_rules::audit::AuditAction;
use tally_rules::ledger::Uuid;
use tally_rules::webhook::{EventRef, Position, Webhook};
use tally_store::{LedgerReadSet, Loaded, ReadSet, ShardSet, Topic, WebhookKey, WebhookRow, WriteSet};

/// An attempt that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Finished {
    pub(super) id: Uuid,
    pub(super) topic: Topic,
    /// The contest of the topic.
    pub(super) name: Arc<str>,
    /// The stored position when the event was sent, if there was one.
    pub(super) before: Option<Position>,
    /// The number after which the topic begins without a stored position.
    pub(super) start: u64,
    pub(super) tried: EventRef,
    pub(super) answer: ReceiverResponse,
}

impl Finished {
    pub(super) fn key(&self) -> WebhookKey {
        WebhookKey { topic: Some(self.topic), id: self.id }
    }

    /// The position after the attempt.
    fn position(&self, webhook: &Webhook, now: tally_rules::Micros) -> Position {
        let start = || Position::new(Arc::default(), self.start);
        let before = Position { name: Arc::clone(&self.name), ..self.before.clone().unwrap_or_else(start) };
        let ReceiverResponse { status, failure } = self.answer.clone();
        match (failure, status) {
            (None, Some(status)) => before.after_success(self.tried, status, now),
            (why, status) => {
                let why = why.unwrap_or_else(|| "no answer".into());
                before.after_failure(webhook, self.tried, (status, why), now)
            }
        }
    }
}

/// Stores the positions after these attempts, each of another topic or webhook. Returns those that were stored.
pub(super) fn apply(tally: &Tally, finished: &[Finished]) -> Result<Vec<Option<Position>>, Failure> {
    let now = tally.now();
    let mut audited = BTreeMap::new();
    for one in finished {
        audited.insert(one.id, audit::begin(Origin::BACKGROUND, now)?);
    }
    let ids = audited.keys().copied().map(WebhookKey::of);
    let keys: BTreeSet<WebhookKey> = ids.chain(finished.iter().map(Finished::key)).collect();
    let keys: Vec<WebhookKey> = keys.into_iter().collect();
    let ledger = LedgerReadSet { webhooks: keys.clone(), ..LedgerReadSet::default() };
    let plan = ReadSet { shards: ShardSet::of(0), ledger, ..ReadSet::default() };
    // A clock in doubt disables nothing.
    let trusted = tally.trusted_now();
    let (mut applied, mut ended) = (Vec::new(), Vec::new());
    let mut decide = |loaded: &Loaded| {
        (applied, ended) = (vec![None; finished.len()], Vec::new());
        let row = |key: WebhookKey| {
            let place = keys.binary_search(&key).expect("it was read");
            loaded.ledger.webhooks[place].as_ref()
        };
        let mut changes = WriteSet::default();
        let rows = &mut changes.ledger.webhooks;
        for (one, applied) in finished.iter().zip(&mut applied) {
            let Some(webhook) = row(WebhookKey::of(one.id)).and_then(WebhookRow::webhook) else { continue };
            // A server that has lost its lease for a moment may have sent one twice.
            let is_twice = rows.iter().any(|(key, _)| *key == one.key());
            if is_twice || row(one.key()).and_then(WebhookRow::position) != one.before.as_ref() {
                continue;
            }
            let position = one.position(webhook, now);
            let failing = position.failing.as_ref();
            let is_over =
                |since| trusted.is_some_and(|now| now.since(since) >= tally.settings.webhook_retry_micros);
            if let Some(failing) = failing.filter(|failing| is_over(failing.since))
                && webhook.disabled.is_none()
                && ended.iter().all(|(id, _)| *id != one.id)
            {
                let why =
                    format!("event {} of a topic was not taken in time: {}", one.tried.number, failing.why);
                let mut webhook = webhook.clone();
                webhook.set_disabled(Some(&why), now);
                rows.push((WebhookKey::of(one.id), Some(WebhookRow::Webhook(webhook))));
                let act = &audited[&one.id];
                let detail = Some(format!("disabled: {why}").into());
                changes.audit.push(act.row(AuditAction::WebhookChanged, one.id.to_string(), detail));
                ended.push((one.id, why));
            }
            rows.push((one.key(), Some(WebhookRow::Position(position.clone()))));
            *applied = Some(position);
        }
        rows.sort_unstable_by_key(|(key, _)| *key);
        changes.audit.sort_unstable_by_key(|(id, _)| *id);
        changes
    };
    servers::run(&*tally.store, &plan, &mut decide)?;
    for (id, why) in &ended {
        tracing::error!(webhook = %id, "a webhook was disabled: {why}; enable it again when its receiver works");
    }
    for position in applied.iter().flatten() {
        let counts = &tally.webhooks.counts;
        let count = if position.failing.is_some() { &counts.failed } else { &counts.delivered };
        count.fetch_add(1, Ordering::Relaxed);
    }
    Ok(applied)
}
