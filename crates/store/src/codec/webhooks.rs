//! A webhook, and its position in a topic.

use super::events::{read_topic, topic_bytes};
use super::{Input, put_bytes, put_number, put_option, put_signed};
use crate::events::Topic;
use crate::webhooks::{WebhookKey, WebhookRow};
use std::collections::BTreeMap;
use tally_rules::Micros;
use tally_rules::ledger::{Currency, Uuid};
use tally_rules::webhook::{Disabled, EventRef, EventType, Failing, Position, Webhook};

/// The formats of the bytes below. A released one is never changed; a new one gets a new number.
const WEBHOOK: u8 = 1;
const POSITION: u8 = 2;
/// A webhook that has marks.
const MARKED_WEBHOOK: u8 = 3;

/// The topic of a key as a column: empty for the webhook itself. The order of the bytes is that of keys.
pub(crate) fn topic_column(topic: Option<Topic>) -> Vec<u8> {
    topic.map(topic_bytes).unwrap_or_default()
}

/// Reads the columns of a key.
pub(crate) fn read_key(topic: &[u8], id: [u8; 16]) -> Option<WebhookKey> {
    let topic = if topic.is_empty() { None } else { Some(read_topic(topic)?) };
    Some(WebhookKey { topic, id: Uuid(id) })
}

/// Encodes a row.
pub(crate) fn encode(row: &WebhookRow) -> Vec<u8> {
    let mut bytes = Vec::new();
    match row {
        WebhookRow::Webhook(webhook) => put_webhook(webhook, &mut bytes),
        WebhookRow::Position(position) => put_position(position, &mut bytes),
    }
    bytes
}

fn put_webhook(webhook: &Webhook, out: &mut Vec<u8>) {
    let Webhook { url, events, marks, created_at, enabled_at, disabled, previous_until, .. } = webhook;
    out.push(if marks.is_empty() { WEBHOOK } else { MARKED_WEBHOOK });
    put_bytes(url.as_bytes(), out);
    put_number(events.len() as u64, out);
    events.iter().for_each(|event| put_bytes(event.as_str().as_bytes(), out));
    put_signed(created_at.0, out);
    put_signed(enabled_at.0, out);
    put_option(disabled.as_ref(), out, |Disabled { at, why }, out| {
        put_signed(at.0, out);
        put_bytes(why.as_bytes(), out);
    });
    put_number(secret_number(webhook), out);
    put_option(*previous_until, out, |at, out| put_signed(at.0, out));
    if !marks.is_empty() {
        put_number(marks.len() as u64, out);
        for (currency, mark) in marks {
            put_bytes(currency.as_str().as_bytes(), out);
            put_signed(*mark, out);
        }
    }
}

/// The number of the secret, with those of the secrets of the store above it. These are 0 in rows of earlier versions.
fn secret_number(webhook: &Webhook) -> u64 {
    let above = u64::from(webhook.made_by) | u64::from(webhook.previous_made_by) << 4;
    u64::from(webhook.secret) | above << 32
}

fn put_position(position: &Position, out: &mut Vec<u8>) {
    let Position { name, delivered, tried, at, status, failing } = position;
    out.push(POSITION);
    put_bytes(name.as_bytes(), out);
    put_number(*delivered, out);
    put_number(tried.number, out);
    put_signed(tried.at.0, out);
    put_signed(at.0, out);
    put_option(*status, out, |status, out| put_number(status.into(), out));
    put_option(failing.as_ref(), out, |Failing { since, attempts, next, why }, out| {
        put_signed(since.0, out);
        put_number((*attempts).into(), out);
        put_signed(next.0, out);
        put_bytes(why.as_bytes(), out);
    });
}

/// Reads what [`encode`] wrote.
pub(crate) fn decode(bytes: &[u8]) -> Option<WebhookRow> {
    let mut input = Input::new(bytes);
    let row = match input.byte()? {
        form @ (WEBHOOK | MARKED_WEBHOOK) => {
            let mut webhook = take_webhook(&mut input)?;
            if form == MARKED_WEBHOOK {
                webhook.marks = take_marks(&mut input)?;
            }
            WebhookRow::Webhook(webhook)
        }
        POSITION => WebhookRow::Position(take_position(&mut input)?),
        _ => return None,
    };
    input.is_empty().then_some(row)
}

fn at(input: &mut Input<'_>) -> Option<Micros> {
    input.signed().map(Micros)
}

fn take_webhook(input: &mut Input<'_>) -> Option<Webhook> {
    let url = input.text()?.into();
    let count = input.number()?;
    let mut events = Vec::new();
    for _ in 0..count {
        events.push(EventType::parse(input.text()?)?);
    }
    let (created_at, enabled_at) = (at(input)?, at(input)?);
    let disabled = input.option(|input| Some(Disabled { at: at(input)?, why: input.text()?.into() }))?;
    let number = input.number()?;
    let secret = u32::try_from(number & u64::from(u32::MAX)).ok().filter(|number| *number > 0)?;
    let above = u8::try_from(number >> 32).ok()?;
    Some(Webhook {
        url,
        events,
        marks: BTreeMap::new(),
        created_at,
        enabled_at,
        disabled,
        secret,
        made_by: above & 15,
        previous_made_by: above >> 4,
        previous_until: input.option(at)?,
    })
}

fn take_marks(input: &mut Input<'_>) -> Option<BTreeMap<Currency, i64>> {
    let count = input.number()?;
    let mut marks = BTreeMap::new();
    for _ in 0..count {
        marks.insert(Currency::parse(input.text()?)?, input.signed()?);
    }
    Some(marks)
}

fn take_position(input: &mut Input<'_>) -> Option<Position> {
    Some(Position {
        name: input.text()?.into(),
        delivered: input.number()?,
        tried: EventRef { number: input.number()?, at: at(input)? },
        at: at(input)?,
        status: input.option(|input| u16::try_from(input.number()?).ok())?,
        failing: input.option(|input| {
            let (since, attempts) = (at(input)?, input.small()?);
            Some(Failing { since, attempts, next: at(input)?, why: input.text()?.into() })
        })?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BoardNo;

    fn webhook(disabled: bool) -> WebhookRow {
        WebhookRow::Webhook(Webhook {
            url: "https://a/".into(),
            events: vec![EventType::PeriodClosed, EventType::Contest],
            marks: if disabled { [(Currency::parse("KRW").unwrap(), 100)].into() } else { BTreeMap::new() },
            created_at: Micros(1),
            enabled_at: Micros(-1),
            disabled: disabled.then(|| Disabled { at: Micros(2), why: "ä".into() }),
            secret: 3,
            made_by: if disabled { 15 } else { 0 },
            previous_made_by: if disabled { 14 } else { 0 },
            previous_until: disabled.then_some(Micros(4)),
        })
    }

    fn position(is_failing: bool) -> WebhookRow {
        let failing = Failing { since: Micros(5), attempts: 6, next: Micros(7), why: "x".into() };
        WebhookRow::Position(Position {
            name: "cup".into(),
            delivered: u64::MAX,
            tried: EventRef { number: 9, at: Micros(8) },
            at: Micros(i64::MIN),
            status: is_failing.then_some(500),
            failing: is_failing.then_some(failing),
        })
    }

    #[test]
    fn rows_and_keys_read_back_and_cut_ones_are_none() {
        for row in [webhook(false), webhook(true), position(false), position(true)] {
            let bytes = encode(&row);
            assert_eq!(decode(&bytes), Some(row));
            assert!((0..bytes.len()).all(|end| decode(&bytes[..end]).is_none()));
        }
        let topics = [None, Some(Topic::Board(BoardNo(1))), Some(Topic::Contest(Uuid([0; 16])))];
        let columns = topics.map(topic_column);
        assert!(topics.is_sorted() && columns.is_sorted());
        for (topic, column) in topics.into_iter().zip(&columns) {
            assert_eq!(read_key(column, [7; 16]), Some(WebhookKey { topic, id: Uuid([7; 16]) }));
        }
        assert_eq!(read_key(&[9], [7; 16]), None);
    }

    #[test]
    fn the_stored_bytes_are_pinned() {
        let head = [&[1, 10][..], b"https://a/", &[2, 13], b"period_closed", &[7], b"contest"].concat();
        assert_eq!(encode(&webhook(false)), [&head[..], &[2, 1, 0, 3, 0]].concat());
        let head = [&[2, 3][..], b"cup", &[255; 9], &[1, 9, 16], &[255; 9], &[1]].concat();
        assert_eq!(encode(&position(false)), [&head[..], &[0, 0]].concat());
        assert_eq!(encode(&position(true))[head.len()..], [1, 244, 3, 1, 10, 6, 14, 1, b'x']);
    }
}
