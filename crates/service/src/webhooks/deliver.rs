//! The background task that delivers: one server of the store at a time, one event of a topic and a webhook at a time.
//!
//! The next event of a topic is sent when the one before was taken, so each receiver gets the events of a topic in order. Others
//! go on while one fails. The lease of the task saves work and guarantees nothing: two servers that both think they have it send
//! events twice, and positions never go back (`results`). A delivery has the same id whenever it is sent. Not here: HTTP.

use super::happening::{EventOf, NextEvent, next_event, types_of};
use super::queue::{Queue, WaitingTopic};
use super::results::{Finished, apply};
use super::{Webhooks, rows};
use crate::background::{Job, Next};
use crate::events::KEEP_MICROS;
use crate::failure::{Failure, Fault};
use crate::tally::Tally;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tally_rules::Micros;
use tally_rules::instant::SECOND;
use tally_rules::ledger::Uuid;
use tally_rules::webhook::{EventRef, Webhook};
use tally_store::{LedgerReadSet, Loaded, ReadSet, ShardSet, Task, Topic, WebhookKey, WebhookRow, WriteSet};

/// How long the lease lasts, and how often it is renewed. A sender may take as long as the lease lasts.
const LEASE: Duration = Duration::from_secs(20);
const RENEW: Duration = Duration::from_secs(1);
/// Between two searches for new events.
const PAUSE: Duration = Duration::from_millis(500);
/// The same while another server delivers, and while there is no webhook.
const IDLE_PAUSE: Duration = Duration::from_secs(1);
const NONE_PAUSE: Duration = Duration::from_secs(5);
/// Events that are on the way to one receiver.
const SENT_MAX: usize = 8;
/// Positions of one read while old ones are deleted.
const SWEEP_ROWS: usize = 500;
/// How long a position without failures stays: longer than the events that it stands for.
const POSITION_KEEP_MICROS: i64 = KEEP_MICROS + 24 * 3600 * SECOND;

/// What a receiver answered.
#[derive(Clone, Debug)]
pub struct ReceiverResponse {
    /// The status.
    pub status: Option<u16>,
    /// Why the event does not count as taken.
    pub failure: Option<Arc<str>>,
}

/// An event for a receiver.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The webhook.
    pub webhook: Uuid,
    /// Where it is sent.
    pub url: Arc<str>,
    /// The secrets that sign, the present one first.
    pub secrets: Vec<String>,
    /// The time of the signature.
    pub at: Micros,
    /// The event.
    pub event: EventOf,
}

/// Called once with what became of a delivery.
pub type DeliveryCallback = Box<dyn FnOnce(ReceiverResponse) + Send>;

/// Sends deliveries. It does not block, and always calls back within the time of the lease.
pub trait Sender: Send + Sync + 'static {
    /// Sends one.
    fn send(&self, delivery: Delivery, done: DeliveryCallback);
}

impl Tally {
    /// Starts to deliver events to webhooks. Called once.
    pub fn start_webhooks(self: &Arc<Self>, sender: Arc<dyn Sender>) -> Result<(), Failure> {
        drop(self.webhooks.sender.set(Arc::clone(&sender)));
        let mut job = Job::new("deliver events to webhooks", Duration::ZERO);
        let mut deliverer = Deliverer::new(sender);
        let weak = Arc::downgrade(self);
        self.webhooks.task.start("webhooks", self, Next::After(Duration::ZERO), move |tally| {
            let wake = || {
                let weak = weak.clone();
                Box::new(move || weak.upgrade().map_or((), |tally| tally.webhooks.task.wake()))
            };
            let pause = job.run(|| deliverer.round(tally, wake));
            if pause.is_none() {
                // What was read may be stale by the next attempt.
                deliverer.forget();
            }
            Next::After(pause.unwrap_or(PAUSE))
        })
    }
}

impl Webhooks {
    /// Ends after the present round.
    pub(crate) fn stop(&self) {
        self.task.stop();
    }

    /// The sender, if this process has one.
    pub(super) fn sender(&self) -> Result<&Arc<dyn Sender>, Failure> {
        let sender = self.sender.get();
        Ok(sender.ok_or_else(|| Fault::Broken("webhooks have no sender in this process".into()))?)
    }
}

struct Deliverer {
    sender: Arc<dyn Sender>,
    /// When the lease was renewed last, while this server has it.
    leased: Option<Instant>,
    /// When webhooks were read and events searched last.
    searched_at: Option<Instant>,
    webhooks: BTreeMap<Uuid, Webhook>,
    queue: Queue,
}

impl Deliverer {
    fn new(sender: Arc<dyn Sender>) -> Self {
        Self { sender, leased: None, searched_at: None, webhooks: BTreeMap::new(), queue: Queue::default() }
    }

    /// Forgets all that was read. Attempts that still run are found to be outdated or are counted.
    fn forget(&mut self) {
        *self = Self::new(Arc::clone(&self.sender));
    }

    /// One round; returns the pause after it.
    fn round<W: FnOnce() + Send + 'static>(
        &mut self,
        tally: &Tally,
        wake: impl Fn() -> Box<W>,
    ) -> Result<Duration, Failure> {
        self.take_finished(tally)?;
        let is_due = self.searched_at.is_none_or(|at| at.elapsed() >= PAUSE);
        if is_due && !self.read_webhooks(tally)? {
            return Ok(NONE_PAUSE);
        }
        if !self.has_lease(tally)? {
            self.forget();
            return Ok(IDLE_PAUSE);
        }
        let mut has_more = false;
        if is_due {
            let now = tally.now();
            if self.queue.all_is_due(now) {
                sweep(tally, &self.webhooks, &self.queue)?;
                self.queue.restart_search(tally, &self.webhooks)?;
            }
            has_more = self.queue.search(tally, &self.webhooks)?;
            self.searched_at = (!has_more).then(Instant::now);
        }
        let searches = self.send_due(tally, wake)?;
        Ok(if has_more || searches { Duration::ZERO } else { PAUSE })
    }

    fn has_lease(&mut self, tally: &Tally) -> Result<bool, Failure> {
        if self.leased.is_none_or(|at| at.elapsed() >= RENEW) {
            let has = tally.store.lease_task(Task::Webhooks, LEASE)?;
            self.leased = has.then(Instant::now);
        }
        Ok(self.leased.is_some())
    }

    /// Stores the positions after attempts that have ended.
    fn take_finished(&mut self, tally: &Tally) -> Result<(), Failure> {
        let lock = || tally.webhooks.finished.lock().unwrap_or_else(PoisonError::into_inner);
        let finished = std::mem::take(&mut *lock());
        if finished.is_empty() {
            return Ok(());
        }
        let applied = apply(tally, &finished).inspect_err(|_| lock().extend(finished.iter().cloned()))?;
        for (one, position) in finished.iter().zip(applied) {
            let key = (one.id, one.topic);
            match (position, self.queue.entries.get_mut(&key)) {
                (Some(position), Some(entry)) => {
                    if position.failing.is_none() {
                        entry.since = one.tried.at;
                    }
                    (entry.row, entry.is_busy) = (Some(position), false);
                }
                // Another server, or a request, has gone on meanwhile: the topic is found again.
                (None, Some(_)) => {
                    self.queue.entries.remove(&key);
                    self.queue.restart_search(tally, &self.webhooks)?;
                }
                (_, None) => {}
            }
        }
        Ok(())
    }

    /// Reads the webhooks; returns whether there are any. A change of one makes all kept events new.
    fn read_webhooks(&mut self, tally: &Tally) -> Result<bool, Failure> {
        let (rows, has_positions) = match rows(tally) {
            Ok((rows, _, has_positions)) => (rows, has_positions),
            // Without a webhook nothing waits, so this is no failure of a delivery.
            Err(_) if self.webhooks.is_empty() => return Ok(false),
            Err(failure) => return Err(failure),
        };
        let webhooks: BTreeMap<Uuid, Webhook> = rows.into_iter().map(|row| (row.id, row.webhook)).collect();
        let disabled = webhooks.values().filter(|webhook| webhook.disabled.is_some()).count();
        tally.webhooks.counts.disabled.store(disabled as u64, Ordering::Relaxed);
        if webhooks != self.webhooks {
            let wanted =
                |id: &Uuid, topic: Topic| webhooks.get(id).is_some_and(|one| one.wants(types_of(topic)));
            self.queue.entries.retain(|(id, topic), _| wanted(id, *topic));
            // A changed webhook may want what it did not.
            self.queue.entries.values_mut().for_each(|entry| entry.examined = 0);
            self.queue.restart_search(tally, &webhooks)?;
            self.webhooks = webhooks;
        }
        // Positions of the last webhook are still to be deleted.
        Ok(!self.webhooks.is_empty() || has_positions)
    }

    /// Sends the next event of each topic that is due, as many as a receiver gets at once. Returns whether it still searches for one.
    fn send_due<W: FnOnce() + Send + 'static>(
        &mut self,
        tally: &Tally,
        wake: impl Fn() -> Box<W>,
    ) -> Result<bool, Failure> {
        let (now, mut searches) = (tally.now(), false);
        let mut sent: BTreeMap<Uuid, usize> = BTreeMap::new();
        for ((id, _), _) in self.queue.entries.iter().filter(|(_, entry)| entry.is_busy) {
            *sent.entry(*id).or_default() += 1;
        }
        let mut done = Vec::new();
        for (key @ (id, topic), entry) in &mut self.queue.entries {
            let webhook = &self.webhooks[id];
            let count = sent.entry(*id).or_default();
            let is_due = entry.row.as_ref().is_none_or(|row| row.is_due(webhook, now));
            if entry.is_busy || *count >= SENT_MAX || !is_due {
                continue;
            }
            let after = (entry.delivered().max(entry.examined), entry.delivered());
            let event = match next_event(tally, webhook, *topic, after)? {
                NextEvent::Found(event) => event,
                NextEvent::NotUpTo(number) => {
                    (entry.examined, searches) = (number, true);
                    continue;
                }
                NextEvent::Nothing => {
                    done.push(*key);
                    continue;
                }
            };
            *count += 1;
            entry.is_busy = true;
            let finished = finished_of((*id, *topic), entry, &event);
            let (results, wake) = (Arc::clone(&tally.webhooks.finished), wake());
            let done = move |answer| {
                let finished = Finished { answer, ..finished };
                results.lock().unwrap_or_else(PoisonError::into_inner).push(finished);
                wake();
            };
            self.sender.send(delivery(tally, *id, webhook, event), Box::new(done));
        }
        done.iter().for_each(|key| drop(self.queue.entries.remove(key)));
        Ok(searches)
    }
}

/// An attempt that begins now.
pub(super) fn finished_of((id, topic): (Uuid, Topic), entry: &WaitingTopic, event: &EventOf) -> Finished {
    let name = match topic {
        Topic::Contest(_) => Arc::clone(&event.subject),
        _ => Arc::default(),
    };
    let tried = EventRef { number: event.number, at: event.at };
    let answer = ReceiverResponse { status: None, failure: None };
    Finished { id, topic, name, before: entry.row.clone(), start: entry.start, tried, answer }
}

/// An event, signed by the present secrets.
pub(super) fn delivery(tally: &Tally, id: Uuid, webhook: &Webhook, event: EventOf) -> Delivery {
    let at = tally.now();
    // Without one it is sent unsigned, and the receiver refuses it: a new secret helps, and nothing is lost meanwhile.
    let secrets = webhook.secrets(at).filter_map(|number| tally.webhooks.secret(id, number)).collect();
    Delivery { webhook: id, url: Arc::clone(&webhook.url), secrets, at, event }
}

/// Deletes positions of deleted webhooks, and of topics whose events have all expired.
fn sweep(tally: &Tally, webhooks: &BTreeMap<Uuid, Webhook>, queue: &Queue) -> Result<(), Failure> {
    let Some(now) = tally.trusted_now() else { return Ok(()) };
    let mut after = None;
    loop {
        let rows = tally.store.ledger().list_webhook_rows(after, SWEEP_ROWS)?.rows;
        let is_old = |key: &WebhookKey, row: &WebhookRow| {
            let (Some(topic), Some(row)) = (key.topic, row.position()) else { return false };
            let is_idle = topic != Topic::Transfers
                && row.failing.is_none()
                && now.since(row.at) > POSITION_KEEP_MICROS;
            let waits = queue.entries.contains_key(&(key.id, topic));
            !webhooks.contains_key(&key.id) || is_idle && !waits
        };
        let old: Vec<_> = rows.iter().filter(|(key, row)| is_old(key, row)).cloned().collect();
        if !old.is_empty() {
            let keys: Vec<WebhookKey> = old.iter().map(|(key, _)| *key).collect();
            let ledger = LedgerReadSet { webhooks: keys, ..LedgerReadSet::default() };
            let plan = ReadSet { shards: ShardSet::of(0), ledger, ..ReadSet::default() };
            crate::servers::run(&*tally.store, &plan, &mut |loaded: &Loaded| {
                let mut changes = WriteSet::default();
                let same = old
                    .iter()
                    .zip(&loaded.ledger.webhooks)
                    .filter(|((_, row), now)| now.as_ref() == Some(row));
                changes.ledger.webhooks.extend(same.map(|((key, _), _)| (*key, None)));
                changes
            })?;
        }
        match rows.last() {
            Some((last, _)) if rows.len() == SWEEP_ROWS => after = Some(*last),
            _ => return Ok(()),
        }
    }
}
