//! Webhooks as JSON: what admins send and see, and what receivers get.

use super::events::{contest_data, period_closed_data, period_paid_data};
use super::wallets::{TransactionJson, read_amount};
use crate::fields::{FieldError, Fields, boolean, text};
use crate::time;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tally_rules::Micros;
use tally_rules::event::EventKind;
use tally_rules::ledger::{Currency, MemberId};
use tally_rules::webhook::{EventType, Failing, MARKS_MAX, Position, URL_BYTES_MAX, Webhook};

/// The fields that an admin sends.
#[derive(Debug, Default)]
pub struct WebhookBody {
    /// The address.
    pub url: Option<String>,
    /// The types of events, ascending.
    pub events: Option<Vec<EventType>>,
    /// The mark of each currency.
    pub marks: Option<BTreeMap<Currency, i64>>,
    /// Whether it gets any.
    pub enabled: Option<bool>,
}

/// Reads the body of `POST /v1/webhooks`.
pub fn read_create(body: Value) -> Result<WebhookBody, Vec<FieldError>> {
    let mut fields = Fields::new("", body)?;
    let (url, events) = (fields.required("url", read_url), fields.required("events", read_events));
    let marks = fields.optional("balance_below", read_marks);
    fields.finish()?;
    Ok(WebhookBody { url, events, marks, enabled: None })
}

/// Reads the body of `PATCH /v1/webhooks/{webhook}`.
pub fn read_patch(body: Value) -> Result<WebhookBody, Vec<FieldError>> {
    let mut fields = Fields::new("", body)?;
    let (url, events) = (fields.optional("url", read_url), fields.optional("events", read_events));
    let marks = fields.optional("balance_below", read_marks);
    let enabled = fields.optional("enabled", boolean);
    fields.finish()?;
    Ok(WebhookBody { url, events, marks, enabled })
}

fn read_url(value: &Value) -> Result<String, String> {
    let url = text(value)?;
    if url.len() > URL_BYTES_MAX {
        return Err(format!("must have at most {URL_BYTES_MAX} bytes"));
    }
    Ok(url)
}

fn read_events(value: &Value) -> Result<Vec<EventType>, String> {
    let read = || {
        let list = value.as_array().filter(|list| !list.is_empty())?;
        let mut events: Vec<_> =
            list.iter().map(|name| EventType::parse(name.as_str()?)).collect::<Option<_>>()?;
        events.sort_unstable();
        events.dedup();
        Some(events)
    };
    read().ok_or_else(|| format!("must be an array of one or more of: {}", EventType::choices()))
}

fn read_marks(value: &Value) -> Result<BTreeMap<Currency, i64>, String> {
    let read = |(code, mark): (&String, &Value)| {
        let currency = Currency::parse(code)?;
        Some((currency, read_amount(mark).ok()?.ok()?.units()))
    };
    let marks = value.as_object().filter(|marks| marks.len() <= MARKS_MAX);
    let marks = marks.and_then(|marks| marks.iter().map(read).collect::<Option<_>>());
    marks.ok_or_else(|| format!("must be an object of at most {MARKS_MAX} currencies, each with an amount"))
}

/// A webhook; with its secret only for one that has just got it.
pub fn write(id: &str, webhook: &Webhook, secret: Option<&str>) -> Value {
    let disabled = webhook.disabled.as_ref();
    let mark = |(currency, mark): (&Currency, &i64)| (currency.to_string(), json!(mark.to_string()));
    // `why` is the older name of `reason`.
    let mut body = json!({
        "id": id,
        "url": &*webhook.url,
        "events": webhook.events.iter().map(|event| event.as_str()).collect::<Vec<_>>(),
        "balance_below": webhook.marks.iter().map(mark).collect::<Map<_, _>>(),
        "enabled": disabled.is_none(),
        "disabled": disabled.map(|disabled| {
            json!({"at": time::format(disabled.at), "reason": &*disabled.why, "why": &*disabled.why})
        }),
        "created_at": time::format(webhook.created_at),
    });
    if let Some(secret) = secret {
        body["secret"] = json!(secret);
    }
    body
}

/// The last attempt of a topic: `topic` is its name, `id` the delivery.
pub fn write_position(topic: &str, id: &str, position: &Position) -> Value {
    let failing = position.failing.as_ref();
    json!({
        "id": id,
        "topic": topic,
        "number": position.tried.number,
        "state": if failing.is_some() { "failing" } else { "delivered" },
        "at": time::format(position.at),
        "status": position.status,
        "attempts": failing.map(|failing| failing.attempts),
        "failing_since": failing.map(|failing| time::format(failing.since)),
        "next_attempt_at": failing.map(|failing| time::format(failing.next)),
        "error": failing.map(|failing| &*failing.why),
    })
}

/// An event that was sent again, as a list has the last attempt of a topic: `at` is the end of its last attempt, `failing` its failed
/// ones if its topic waits for it.
pub fn write_sent(
    (topic, id): (&str, &str),
    (number, at): (u64, Option<Micros>),
    (status, error): (Option<u16>, Option<&str>),
    failing: Option<&Failing>,
) -> Value {
    // `delivered` is the older form of `state`.
    json!({
        "id": id,
        "topic": topic,
        "number": number,
        "state": if error.is_some() { "failing" } else { "delivered" },
        "at": at.map(time::format),
        "status": status,
        "attempts": failing.map(|failing| failing.attempts),
        "failing_since": failing.map(|failing| time::format(failing.since)),
        "next_attempt_at": failing.map(|failing| time::format(failing.next)),
        "error": error,
        "delivered": error.is_none(),
    })
}

/// An event as its receivers get it: `subject` is the leaderboard, the contest, the member or the wallet.
pub fn write_event(
    id: &str,
    (kind, subject): (EventType, &str),
    (number, missed): (u64, u64),
    at: Micros,
    data: &Value,
) -> String {
    let mut body = json!({
        "id": id,
        "type": kind.as_str(),
        "topic": topic(kind, subject),
        "number": number,
        "at": time::format(at),
        "data": data,
    });
    if missed > 0 {
        body["missed"] = json!(missed);
    }
    body.to_string()
}

/// The data of a stored event.
pub fn write_stored(subject: &str, event: &EventKind) -> Value {
    match event {
        EventKind::Contest(changed) => contest_data(subject, changed),
        EventKind::PeriodClosed(closed) => period_closed_data(subject, closed),
        EventKind::PeriodPaid(paid) => period_paid_data(subject, paid),
        EventKind::MemberClosed => json!({"member": subject}),
    }
}

/// The data of an entry of a wallet, with the mark that it crossed.
pub fn write_entry(member: MemberId, entry: &TransactionJson, mark: Option<i64>) -> Value {
    let mut data = json!(entry);
    data["member"] = json!(member.0.to_string());
    if let Some(mark) = mark {
        data["below"] = json!(mark.to_string());
    }
    data
}

/// The name of a topic.
pub fn topic(kind: EventType, subject: &str) -> String {
    match kind {
        EventType::PeriodClosed | EventType::PeriodPaid => format!("leaderboard:{subject}"),
        EventType::Contest => format!("contest:{subject}"),
        EventType::MemberClosed => format!("member:{subject}"),
        EventType::Transfer | EventType::Reversal | EventType::BalanceBelow => format!("wallet:{subject}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_rules::contest::ContestState;
    use tally_rules::event::ContestChanged;

    #[test]
    fn bodies_are_read_and_wrong_fields_are_named() {
        let sent =
            read_create(json!({"url": "https://a/", "events": ["contest", "period_closed", "contest"]}));
        assert_eq!(sent.unwrap().events.unwrap(), [EventType::PeriodClosed, EventType::Contest]);
        assert_eq!(read_patch(json!({"enabled": false})).unwrap().enabled, Some(false));
        let wrong = |read: Result<WebhookBody, Vec<FieldError>>| {
            read.unwrap_err().into_iter().map(|one| one.pointer).collect::<Vec<_>>()
        };
        let marks = read_patch(json!({"balance_below": {"KRW": "100", "USD": 5}})).unwrap().marks.unwrap();
        assert_eq!(marks.into_values().collect::<Vec<_>>(), [100, 5]);
        for marks in [json!([]), json!({"krw": 1}), json!({"KRW": 0}), json!({"KRW": "x"}), json!(null)] {
            assert_eq!(wrong(read_patch(json!({"balance_below": marks}))), ["/balance_below"]);
        }
        assert_eq!(wrong(read_create(json!({}))), ["/url", "/events"]);
        let long = format!("https://{}", "a".repeat(URL_BYTES_MAX));
        assert_eq!(wrong(read_create(json!({"url": long, "events": []}))), ["/url", "/events"]);
        assert_eq!(wrong(read_patch(json!({"events": ["score"], "enabled": 1}))), ["/events", "/enabled"]);
        assert_eq!(
            wrong(read_create(json!({"url": "x", "events": ["contest"], "enabled": true}))),
            ["/enabled"]
        );
    }

    #[test]
    fn an_event_says_what_is_missing_before_it() {
        let changed = ContestChanged {
            contest: None,
            before: None,
            state: ContestState::Draft,
            at: Micros(0),
            members: 0,
        };
        let data = write_stored("cup", &EventKind::Contest(changed));
        let read = |missed| -> Value {
            let topic = (EventType::Contest, "cup");
            serde_json::from_str(&write_event("c.3.1", topic, (3, missed), Micros(1), &data)).unwrap()
        };
        let whole = read(0);
        assert_eq!((&whole["topic"], &whole["number"]), (&json!("contest:cup"), &json!(3)));
        assert_eq!((&whole["data"]["contest"], &whole["missed"]), (&json!("cup"), &Value::Null));
        assert_eq!(read(2)["missed"], json!(2));
    }
}
