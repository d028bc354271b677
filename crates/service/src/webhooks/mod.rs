//! Webhooks: receivers of stored events over HTTP. Here: making, changing and deleting them.
//!
//! A webhook is a row of the store, so each change is a transaction that has read it. Its secret is not stored: it is derived
//! from the secret of the store, so a copy of the store does not tell it. Blocks on the store. Not here: delivery (`deliver`),
//! the list of deliveries (`deliveries`), and HTTP, which is a [`Sender`] of the listeners.

mod deliver;
pub mod deliveries;
mod happening;
mod queue;
mod results;
mod scans;
mod sign;

pub use deliver::{Delivery, DeliveryCallback, ReceiverResponse, Sender};
pub use happening::{EventOf, Happening, WalletEntry};
pub use sign::signature;
pub use tally_store::Topic;

use crate::audit;
use crate::background::BackgroundTask;
use crate::failure::{Failure, Fault};
use crate::keyring::Keyring;
use crate::secret::{Use, hex};
use crate::servers;
use crate::tally::Tally;
use results::Finished;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};
use tally_rules::audit::AuditAction;
use tally_rules::idempotency::{Fingerprint, IdempotencyKey};
use tally_rules::ledger::{Currency, Uuid};
use tally_rules::outcome::Outcome;
use tally_rules::webhook::{EventType, WEBHOOKS_MAX, Webhook};
use tally_rules::{Micros, Origin, Rejection};
use tally_store::{CorruptRow, LedgerReadSet, Loaded, ReadSet, ShardSet, WebhookKey, WebhookRow, WriteSet};

/// What the service needs for webhooks.
pub struct Webhooks {
    ring: Arc<Keyring>,
    sender: OnceLock<Arc<dyn Sender>>,
    task: BackgroundTask,
    finished: Arc<Mutex<Vec<Finished>>>,
    /// Events that were delivered, and attempts that failed, since the start.
    pub counts: DeliveryCounts,
}

/// Counters of deliveries.
#[derive(Debug, Default)]
pub struct DeliveryCounts {
    /// Delivered events.
    pub delivered: AtomicU64,
    /// Failed attempts.
    pub failed: AtomicU64,
    /// Webhooks that are disabled, at the last search.
    pub disabled: AtomicU64,
}

/// A webhook with its id.
#[derive(Clone, Debug)]
pub struct Named {
    /// The id.
    pub id: Uuid,
    /// The webhook.
    pub webhook: Webhook,
}

/// The reply to a request that makes a webhook or a secret. Only this reply, and that to a retry, has the secret.
#[derive(Clone, Debug)]
pub struct WithSecret {
    /// The webhook.
    pub named: Named,
    /// Its present secret.
    pub secret: String,
    /// Whether this repeats an earlier reply.
    pub replayed: bool,
}

/// Changed fields of a webhook; `None` stays.
#[derive(Clone, Debug, Default)]
pub struct Patch {
    /// Where events are sent.
    pub url: Option<Arc<str>>,
    /// The types that it gets, ascending.
    pub events: Option<Vec<EventType>>,
    /// The mark of each currency.
    pub marks: Option<BTreeMap<Currency, i64>>,
    /// Whether it gets any.
    pub enabled: Option<bool>,
}

/// The origin of a change, and its idempotency key.
pub type By<'a> = (&'a Origin, Option<&'a IdempotencyKey>);

impl Webhooks {
    pub(crate) fn new(ring: Arc<Keyring>) -> Self {
        Self {
            ring,
            sender: OnceLock::new(),
            task: BackgroundTask::default(),
            finished: Arc::default(),
            counts: DeliveryCounts::default(),
        }
    }

    /// A secret of a webhook: the same on every server of the store. `None` if the secret of the store that made it was dropped.
    fn secret(&self, id: Uuid, (number, made_by): (u32, u8)) -> Option<String> {
        let key = self.ring.of(made_by)?;
        let digest = blake3::keyed_hash(key.key(Use::Webhook), &[&id.0[..], &number.to_le_bytes()].concat());
        Some(format!("whsec_{}", hex(digest.as_bytes())))
    }

    /// The id of a new webhook: random, or for a request that may be retried, equal for all retries.
    fn new_id(&self, first: Option<(&IdempotencyKey, Fingerprint)>, at: Micros) -> Result<Uuid, Failure> {
        let mut node = [0; 8];
        match first {
            None => getrandom::fill(&mut node)
                .map_err(|error| Fault::Broken(format!("no random numbers: {error}")))?,
            Some((idempotency, print)) => {
                let by = idempotency.fingerprint.maker_of(print).and_then(|by| self.ring.of(by));
                let by = by.unwrap_or_else(|| self.ring.active());
                let mut hasher = blake3::Hasher::new_keyed(by.key(Use::Webhook));
                hasher.update(&print.0);
                hasher.update(idempotency.key.scope.as_bytes());
                hasher.update(&[0]);
                hasher.update(idempotency.key.key.as_bytes());
                node.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
            }
        }
        Ok(Uuid::new(at, u64::from_le_bytes(node)))
    }
}

/// Every webhook, by time of creation, and the corrupt rows that were left out.
pub fn list(tally: &Tally) -> Result<(Vec<Named>, Vec<CorruptRow>), Failure> {
    let (rows, damaged, _) = rows(tally)?;
    Ok((rows, damaged))
}

/// The same, and whether there is a position.
fn rows(tally: &Tally) -> Result<(Vec<Named>, Vec<CorruptRow>, bool), Failure> {
    let rows = tally.store.ledger().list_webhook_rows(None, WEBHOOKS_MAX + 1)?;
    let has_positions = rows.rows.iter().any(|(key, _)| key.topic.is_some());
    let named = |(key, row): (WebhookKey, WebhookRow)| match (key.topic, row) {
        (None, WebhookRow::Webhook(webhook)) => Some(Named { id: key.id, webhook }),
        _ => None,
    };
    Ok((rows.rows.into_iter().filter_map(named).collect(), rows.damaged, has_positions))
}

/// A webhook.
pub fn get(tally: &Tally, id: Uuid) -> Result<Named, Failure> {
    let row = tally.store.ledger().webhook_rows(&[WebhookKey::of(id)])?.pop().flatten();
    let webhook = row.and_then(|row| row.webhook().cloned()).ok_or(Rejection::WebhookNotFound)?;
    Ok(Named { id, webhook })
}

/// Makes a webhook.
pub fn create(
    tally: &Tally,
    url: &Arc<str>,
    (events, marks): (&[EventType], &BTreeMap<Currency, i64>),
    (origin, idempotency): By<'_>,
) -> Result<WithSecret, Failure> {
    let time = tally.clock.read();
    let now = time.later();
    let id = tally.webhooks.new_id(idempotency.map(|one| (one, one.fingerprint.made)), now)?;
    // Several servers may each make one at the same time, so there may be a few more.
    let full = list(tally)?.0.len() >= WEBHOOKS_MAX;
    let webhook = Webhook {
        url: Arc::clone(url),
        events: events.to_vec(),
        marks: marks.clone(),
        created_at: now,
        enabled_at: now,
        disabled: None,
        secret: 1,
        made_by: tally.webhooks.ring.active().number,
        previous_made_by: 0,
        previous_until: None,
    };
    let audited = audit::begin(origin.clone(), now)?;
    let plan = plan(id, idempotency);
    let make = |_: &Loaded, changes: &mut WriteSet| {
        if full {
            return Err(Rejection::TooManyWebhooks);
        }
        let row = (WebhookKey::of(id), Some(WebhookRow::Webhook(webhook.clone())));
        changes.ledger.webhooks.push(row);
        let act = audited.row(AuditAction::WebhookCreated, id.to_string(), Some(Arc::clone(url)));
        changes.audit.push(act);
        Ok(Outcome::WebhookChanged)
    };
    let stored = servers::again(|| tally.once(&plan, idempotency, time, make))?;
    let named = match &stored {
        None => Named { id, webhook },
        Some(first) => {
            let of_first = idempotency.map(|one| (one, first.fingerprint));
            get(tally, tally.webhooks.new_id(of_first, first.at)?)?
        }
    };
    tally.webhooks.task.wake();
    with_secret(tally, named, stored.is_some())
}

/// Changes it.
pub fn patch(tally: &Tally, id: Uuid, patch: &Patch, by: By<'_>) -> Result<(Named, bool), Failure> {
    let names = [
        ("url", patch.url.is_some()),
        ("events", patch.events.is_some()),
        ("balance_below", patch.marks.is_some()),
    ];
    let mut detail: Vec<&str> = names.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
    detail.extend(patch.enabled.map(|enabled| if enabled { "enabled" } else { "disabled" }));
    let replayed = change(tally, id, &detail.join(", "), by, |webhook, now| {
        if let Some(url) = &patch.url {
            webhook.url = Arc::clone(url);
        }
        if let Some(events) = &patch.events {
            webhook.events.clone_from(events);
        }
        if let Some(marks) = &patch.marks {
            webhook.marks.clone_from(marks);
        }
        if let Some(enabled) = patch.enabled {
            webhook.set_disabled((!enabled).then_some("by a request"), now);
        }
    })?;
    Ok((get(tally, id)?, replayed))
}

/// Gives it another secret. The one before signs, too, for a day.
pub fn rotate(tally: &Tally, id: Uuid, by: By<'_>) -> Result<WithSecret, Failure> {
    let made_by = tally.webhooks.ring.active().number;
    let replayed = change(tally, id, "secret", by, |webhook, now| webhook.rotate(made_by, now))?;
    with_secret(tally, get(tally, id)?, replayed)
}

/// Deletes it; its positions go later. Returns whether it was a replay.
pub fn delete(tally: &Tally, id: Uuid, (origin, idempotency): By<'_>) -> Result<bool, Failure> {
    let time = tally.clock.read();
    let audited = audit::begin(origin.clone(), time.later())?;
    let plan = plan(id, idempotency);
    let stored = servers::again(|| {
        tally.once(&plan, idempotency, time, |loaded, changes| {
            loaded.ledger.webhooks[0].as_ref().ok_or(Rejection::WebhookNotFound)?;
            changes.ledger.webhooks.push((WebhookKey::of(id), None));
            changes.audit.push(audited.row(AuditAction::WebhookDeleted, id.to_string(), None));
            Ok(Outcome::Removed)
        })
    })?;
    tally.webhooks.task.wake();
    Ok(stored.is_some())
}

/// Reads the webhook, and its request.
fn plan(id: Uuid, idempotency: Option<&IdempotencyKey>) -> ReadSet {
    let ledger = LedgerReadSet { webhooks: vec![WebhookKey::of(id)], ..LedgerReadSet::default() };
    let requests = idempotency.iter().map(|one| one.key.clone()).collect();
    ReadSet { requests, shards: ShardSet::of(0), ledger, ..ReadSet::default() }
}

/// Changes it in a transaction that has read it. Returns whether it was a replay.
fn change(
    tally: &Tally,
    id: Uuid,
    detail: &str,
    (origin, idempotency): By<'_>,
    change: impl Fn(&mut Webhook, Micros),
) -> Result<bool, Failure> {
    let time = tally.clock.read();
    let now = time.later();
    let audited = audit::begin(origin.clone(), now)?;
    let plan = plan(id, idempotency);
    let stored = servers::again(|| {
        tally.once(&plan, idempotency, time, |loaded, changes| {
            let present = loaded.ledger.webhooks[0].as_ref().and_then(WebhookRow::webhook);
            let mut webhook = present.cloned().ok_or(Rejection::WebhookNotFound)?;
            change(&mut webhook, now);
            changes.ledger.webhooks.push((WebhookKey::of(id), Some(WebhookRow::Webhook(webhook))));
            let detail = Some(detail.into());
            changes.audit.push(audited.row(AuditAction::WebhookChanged, id.to_string(), detail));
            Ok(Outcome::WebhookChanged)
        })
    })?;
    tally.webhooks.task.wake();
    Ok(stored.is_some())
}

fn with_secret(tally: &Tally, named: Named, replayed: bool) -> Result<WithSecret, Failure> {
    let secret = tally.webhooks.secret(named.id, (named.webhook.secret, named.webhook.made_by));
    let secret = secret.ok_or_else(|| Fault::Broken("the secret of the store changed meanwhile".into()))?;
    Ok(WithSecret { named, secret, replayed })
}
