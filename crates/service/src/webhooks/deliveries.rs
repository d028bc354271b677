//! The deliveries of a webhook: the last attempt of each topic, and sending an event again.
//!
//! A position says what was delivered, so nothing is stored for each delivery. The id of a delivery has the topic, the number and
//! the time of its event: it names the event as long as that is kept. Not here: the form on the wire.

use super::deliver::{Delivery, ReceiverResponse, delivery, finished_of};
use super::get;
use super::happening::{EventOf, NextEvent, next_event, types_of, wallet_name};
use super::queue::{WaitingTopic, start};
use super::results::{Finished, apply};
use crate::failure::{Failure, Fault, blocking};
use crate::servers;
use crate::tally::Tally;
use std::sync::Arc;
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::ledger::{Currency, MemberId, Uuid, WalletKey};
use tally_rules::outcome::Outcome;
use tally_rules::webhook::{EventRef, EventType, Failing, Position, Webhook};
use tally_rules::{Micros, Rejection};
use tally_store::{BoardNo, CorruptRow, ReadSet, ShardSet, Topic, WebhookKey};
use tokio::sync::oneshot;

/// Rows that one request reads at most: positions of other webhooks are among them.
const READ_MAX: usize = 20_000;
const PAGE: usize = 1_000;
/// Letters of an id as text.
const ID_LETTERS: usize = 36;

/// A topic as text, for ids and cursors.
pub fn topic_text(topic: Topic) -> String {
    match topic {
        Topic::Board(BoardNo(no)) => format!("b{no}"),
        Topic::Contest(no) => format!("c{no}"),
        Topic::Member(MemberId(id)) => format!("m{id}"),
        Topic::Wallet(WalletKey { member, currency }) => format!("w{}{currency}", member.0),
        Topic::Transfers => "t".to_owned(),
    }
}

/// Reads what [`topic_text`] wrote.
pub fn read_topic(text: &str) -> Option<Topic> {
    let topic = match text.split_at_checked(1)? {
        ("b", no) => Topic::Board(BoardNo(no.parse().ok()?)),
        ("c", no) => Topic::Contest(Uuid::parse(no)?),
        ("m", id) => Topic::Member(MemberId(Uuid::parse(id)?)),
        ("w", key) => {
            let (id, currency) = key.split_at_checked(ID_LETTERS)?;
            let member = MemberId(Uuid::parse(id)?);
            Topic::Wallet(WalletKey { member, currency: Currency::parse(currency)? })
        }
        _ => return None,
    };
    (topic_text(topic) == text).then_some(topic)
}

/// The id of a delivery.
pub fn delivery_id(topic: Topic, event: EventRef) -> String {
    format!("{}.{}.{}", topic_text(topic), event.number, event.at.0)
}

fn read_delivery(text: &str) -> Option<(Topic, EventRef)> {
    let mut parts = text.split('.');
    let topic = read_topic(parts.next()?)?;
    let (number, at) = (parts.next()?.parse().ok()?, Micros(parts.next()?.parse().ok()?));
    let event = EventRef { number, at };
    (delivery_id(topic, event) == text).then_some((topic, event))
}

/// The last attempt of a topic.
#[derive(Debug)]
pub struct DeliveryRow {
    /// The id of the delivery.
    pub id: String,
    /// The topic.
    pub topic: Topic,
    /// The type of its events.
    pub kind: EventType,
    /// Its leaderboard or contest; empty if that was deleted.
    pub subject: Arc<str>,
    /// The position.
    pub position: Position,
}

/// A page of the topics of a webhook.
#[derive(Debug, Default)]
pub struct DeliveriesPage {
    /// The topics, in their order.
    pub rows: Vec<DeliveryRow>,
    /// Corrupt rows that were left out.
    pub damaged: Vec<CorruptRow>,
    /// Where the next page begins, if there is one.
    pub next: Option<Topic>,
}

/// The topics of a webhook after one, all or those that fail. Blocks on the store.
pub fn list(
    tally: &Tally,
    id: Uuid,
    failing: Option<bool>,
    after: Option<Topic>,
    limit: usize,
) -> Result<DeliveriesPage, Failure> {
    get(tally, id)?;
    let mut page = DeliveriesPage::default();
    let mut after = match after {
        Some(topic) => WebhookKey { topic: Some(topic), id },
        None => WebhookKey { topic: None, id: Uuid([0xff; 16]) },
    };
    let mut seen = 0;
    while seen < READ_MAX {
        let list = tally.store.ledger().list_webhook_rows(Some(after), PAGE)?;
        page.damaged.extend(list.damaged);
        let count = list.rows.len();
        for (key, row) in list.rows {
            let (Some(topic), Some(row)) = (key.topic, row.position()) else { continue };
            let is_shown = topic != Topic::Transfers && key.id == id;
            if is_shown && failing.is_none_or(|failing| row.failing.is_some() == failing) {
                if page.rows.len() == limit {
                    page.next = page.rows.last().map(|row| row.topic);
                    return Ok(page);
                }
                page.rows.push(shown(tally, topic, row));
            }
            after = key;
        }
        seen += count;
        if count < PAGE {
            return Ok(page);
        }
    }
    page.next = after.topic;
    Ok(page)
}

fn shown(tally: &Tally, topic: Topic, row: &Position) -> DeliveryRow {
    let (id, subject) = (delivery_id(topic, row.tried), subject(tally, topic, &row.name));
    DeliveryRow { id, topic, kind: types_of(topic)[0], subject, position: row.clone() }
}

/// The subject of a topic; `contest` is that of a contest.
fn subject(tally: &Tally, topic: Topic, contest: &Arc<str>) -> Arc<str> {
    match topic {
        Topic::Board(no) => tally.boards.by_no(no).map(|board| board.id.as_str().into()).unwrap_or_default(),
        Topic::Contest(_) => Arc::clone(contest),
        Topic::Member(id) => id.0.to_string().into(),
        Topic::Wallet(key) => wallet_name(key),
        Topic::Transfers => Arc::default(),
    }
}

/// An event that was sent again, and what became of it.
#[derive(Debug)]
pub struct SentEvent {
    /// A type of its topic.
    pub kind: EventType,
    /// Its leaderboard, contest, member or wallet; empty if that was deleted.
    pub subject: Arc<str>,
    /// The event.
    pub event: EventRef,
    /// When its last attempt ended, if that is known.
    pub at: Option<Micros>,
    /// What the receiver answered then.
    pub answer: ReceiverResponse,
    /// Its failed attempts, if its topic waits for it.
    pub failing: Option<Failing>,
}

/// Sends an event again, now and with its id. If it is the one that its topic waits for, the topic goes on. A retry under the same
/// idempotency key sends nothing and gets the present state. Returns whether it was one.
pub async fn send(
    tally: &Arc<Tally>,
    id: Uuid,
    text: &str,
    idempotency: Option<IdempotencyKey>,
) -> Result<(SentEvent, bool), Failure> {
    let wanted = read_delivery(text);
    let of = Arc::clone(tally);
    let begun = blocking(move || begin(&of, id, wanted, idempotency.as_ref())).await?;
    let (delivery, finished) = match begun {
        Ok(found) => found,
        Err(present) => return Ok((present, true)),
    };
    let event = &delivery.event;
    let (kind, subject) = (event.kind, Arc::clone(&event.subject));
    let event = EventRef { number: event.number, at: event.at };
    let (answer, answered) = oneshot::channel();
    let done = move |result| drop(answer.send(result));
    tally.webhooks.sender()?.send(delivery, Box::new(done));
    let answer = answered.await.map_err(|_| Fault::Broken("a delivery has no answer".into()))?;
    let mut stored = None;
    if let Some(finished) = finished {
        let (tally, finished) = (Arc::clone(tally), Finished { answer: answer.clone(), ..finished });
        let applied = blocking(move || {
            let applied = apply(&tally, &[finished])?;
            tally.webhooks.task.wake();
            Ok(applied)
        });
        stored = applied.await?.pop().flatten();
    }
    // A stored attempt has one time: here, in the list, and in the answer to a retry.
    let at = Some(stored.as_ref().map_or_else(|| tally.now(), |position| position.at));
    let failing = stored.and_then(|position| position.failing);
    Ok((SentEvent { kind, subject, event, at, answer, failing }, false))
}

/// What is sent, and its attempt if the topic waits for it.
type Found = (Delivery, Option<Finished>);

/// Finds what is sent and stores the request, or returns the present state for a retry.
fn begin(
    tally: &Tally,
    id: Uuid,
    wanted: Option<(Topic, EventRef)>,
    idempotency: Option<&IdempotencyKey>,
) -> Result<Result<Found, SentEvent>, Failure> {
    let found = match wanted.map_or(Err(Rejection::DeliveryNotFound.into()), |wanted| find(tally, id, wanted))
    {
        Ok(found) => Ok(found),
        Err(Failure::Rejected(rejection)) => Err(rejection),
        Err(fault) => return Err(fault),
    };
    if idempotency.is_some() {
        let requests = idempotency.iter().map(|one| one.key.clone()).collect();
        let plan = ReadSet { requests, shards: ShardSet::of(0), ..ReadSet::default() };
        let may = found.as_ref().map(|_| Outcome::WebhookChanged).map_err(Clone::clone);
        let time = tally.clock.read();
        // Before it is sent: a retry must not send it once more.
        let stored = servers::again(|| tally.once(&plan, idempotency, time, |_, _| may.clone()))?;
        if let (Some(_), Some((topic, event))) = (stored, wanted) {
            let contest = found.map(|(delivery, _)| delivery.event.subject).unwrap_or_default();
            return Ok(Err(present(tally, (id, topic), event, contest)?));
        }
    }
    Ok(Ok(found?))
}

/// What became of an event so far; `contest` is that of its topic without a stored position.
fn present(
    tally: &Tally,
    (id, topic): (Uuid, Topic),
    event: EventRef,
    contest: Arc<str>,
) -> Result<SentEvent, Failure> {
    let key = WebhookKey { topic: Some(topic), id };
    let row = tally.store.ledger().webhook_rows(&[key])?.pop().flatten();
    let row = row.and_then(|row| row.position().cloned());
    let is_delivered = row.as_ref().is_some_and(|row| row.delivered >= event.number);
    let contest = row.as_ref().map_or(contest, |row| Arc::clone(&row.name));
    let (kind, subject) = (types_of(topic)[0], subject(tally, topic, &contest));
    let last = row.filter(|row| row.tried == event);
    let (at, status) = (last.as_ref().map(|row| row.at), last.as_ref().and_then(|row| row.status));
    let failing = last.filter(|_| !is_delivered).and_then(|row| row.failing);
    let why = failing.as_ref().map(|failing| Arc::clone(&failing.why));
    let failure = (!is_delivered).then(|| why.unwrap_or_else(|| "it was not delivered yet".into()));
    Ok(SentEvent { kind, subject, event, at, answer: ReceiverResponse { status, failure }, failing })
}

/// The event of a delivery, and its attempt if the topic waits for it.
fn find(tally: &Tally, id: Uuid, (topic, wanted): (Topic, EventRef)) -> Result<Found, Failure> {
    let webhook = get(tally, id)?.webhook;
    let key = WebhookKey { topic: Some(topic), id };
    let row = tally.store.ledger().webhook_rows(&[key])?.pop().flatten();
    let row = row.and_then(|row| row.position().cloned());
    let start = match &row {
        Some(row) => row.delivered,
        None => start(tally, topic, webhook.created_at)?.ok_or(Rejection::DeliveryNotFound)?,
    };
    let entry = WaitingTopic { row, start, examined: 0, since: wanted.at, is_busy: false };
    let is_wanted = |event: &EventOf| event.number == wanted.number && event.at == wanted.at;
    let before = wanted.number.checked_sub(1).ok_or(Rejection::DeliveryNotFound)?;
    let event = next(tally, &webhook, topic, before)?.filter(is_wanted).ok_or(Rejection::DeliveryNotFound)?;
    if wanted.number <= entry.delivered() {
        return Ok((delivery(tally, id, &webhook, event), None));
    }
    let next = next(tally, &webhook, topic, entry.delivered())?.ok_or(Rejection::DeliveryNotFound)?;
    if next.number != wanted.number {
        return Err(Rejection::DeliveryWaits.into());
    }
    let finished = finished_of((id, topic), &entry, &next);
    Ok((delivery(tally, id, &webhook, next), Some(finished)))
}

/// The next event after a number that a webhook wants.
fn next(tally: &Tally, webhook: &Webhook, topic: Topic, delivered: u64) -> Result<Option<EventOf>, Failure> {
    let mut after = delivered;
    loop {
        match next_event(tally, webhook, topic, (after, delivered))? {
            NextEvent::Found(event) => return Ok(Some(event)),
            NextEvent::NotUpTo(number) => after = number,
            NextEvent::Nothing => return Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_back_and_others_are_none() {
        let event = EventRef { number: u64::MAX, at: Micros(-7) };
        for topic in [
            Topic::Board(BoardNo(12)),
            Topic::Contest(Uuid([0xab; 16])),
            Topic::Member(MemberId(Uuid([1; 16]))),
            Topic::Wallet(WalletKey {
                member: MemberId(Uuid([2; 16])),
                currency: Currency::parse("KRW").unwrap(),
            }),
        ] {
            assert_eq!(read_delivery(&delivery_id(topic, event)), Some((topic, event)));
            assert_eq!(read_topic(&topic_text(topic)), Some(topic));
        }
        for text in [
            "",
            "b",
            "b01.1.1",
            "b1.1",
            "b1.1.1.1",
            "b1.01.1",
            "x1.1.1",
            "c1.1.1",
            "b1.-1.1",
            "b4294967296.1.1",
        ] {
            assert_eq!(read_delivery(text), None, "{text}");
        }
    }
}
