//! Webhooks as JSON: what admins send and see, and what receivers get.

use super::events::{contest_data, period_closed_data};
use crate::fields::{FieldError, Fields, boolean, text};
use crate::time;
use serde_json::{Value, json};
use tally_rules::event::{Event, EventKind};
use tally_rules::webhook::{EventType, Position, URL_BYTES_MAX, Webhook};

/// The fields that an admin sends.
#[derive(Debug, Default)]
pub struct Sent {
    /// The address.
    pub url: Option<String>,
    /// The types of events, ascending.
    pub events: Option<Vec<EventType>>,
    /// Whether it gets any.
    pub enabled: Option<bool>,
}

/// Reads the body of `POST /v1/webhooks`.
pub fn read_create(body: Value) -> Result<Sent, Vec<FieldError>> {
    let mut fields = Fields::new("", body)?;
    let (url, events) = (fields.required("url", read_url), fields.required("events", read_events));
    fields.finish()?;
    Ok(Sent { url, events, enabled: None })
}

/// Reads the body of `PATCH /v1/webhooks/{webhook}`.
pub fn read_patch(body: Value) -> Result<Sent, Vec<FieldError>> {
    let mut fields = Fields::new("", body)?;
    let (url, events) = (fields.optional("url", read_url), fields.optional("events", read_events));
    let enabled = fields.optional("enabled", boolean);
    fields.finish()?;
    Ok(Sent { url, events, enabled })
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

/// A webhook; with its secret only for one that has just got it.
pub fn write(id: &str, webhook: &Webhook, secret: Option<&str>) -> Value {
    let disabled = webhook.disabled.as_ref();
    let mut body = json!({
        "id": id,
        "url": &*webhook.url,
        "events": webhook.events.iter().map(|event| event.as_str()).collect::<Vec<_>>(),
        "enabled": disabled.is_none(),
        "disabled": disabled.map(|disabled| json!({"at": time::format(disabled.at), "why": &*disabled.why})),
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

/// The result of sending an event again.
pub fn write_sent(id: &str, status: Option<u16>, error: Option<&str>) -> Value {
    json!({"id": id, "delivered": error.is_none(), "status": status, "error": error})
}

/// An event as its receivers get it: `subject` is the leaderboard, the contest or the member.
pub fn write_event(id: &str, (subject, number, missed): (&str, u64, u64), event: &Event) -> String {
    let (kind, data) = match &event.what {
        EventKind::Contest(changed) => (EventType::Contest, contest_data(subject, changed)),
        EventKind::PeriodClosed(closed) => (EventType::PeriodClosed, period_closed_data(subject, closed)),
        EventKind::MemberClosed => (EventType::MemberClosed, json!({"member": subject})),
    };
    let mut body = json!({
        "id": id,
        "type": kind.as_str(),
        "topic": topic(kind, subject),
        "number": number,
        "at": time::format(event.at),
        "data": data,
    });
    if missed > 0 {
        body["missed"] = json!(missed);
    }
    body.to_string()
}

/// The name of a topic.
pub fn topic(kind: EventType, subject: &str) -> String {
    match kind {
        EventType::PeriodClosed => format!("leaderboard:{subject}"),
        EventType::Contest => format!("contest:{subject}"),
        EventType::MemberClosed => format!("member:{subject}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_rules::Micros;
    use tally_rules::contest::State;
    use tally_rules::event::ContestChanged;

    #[test]
    fn bodies_are_read_and_wrong_fields_are_named() {
        let sent =
            read_create(json!({"url": "https://a/", "events": ["contest", "period_closed", "contest"]}));
        assert_eq!(sent.unwrap().events.unwrap(), [EventType::PeriodClosed, EventType::Contest]);
        assert_eq!(read_patch(json!({"enabled": false})).unwrap().enabled, Some(false));
        let wrong = |read: Result<Sent, Vec<FieldError>>| {
            read.unwrap_err().into_iter().map(|one| one.pointer).collect::<Vec<_>>()
        };
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
        let changed =
            ContestChanged { contest: None, before: None, state: State::Draft, at: Micros(0), members: 0 };
        let event = Event { at: Micros(1), what: EventKind::Contest(changed) };
        let read = |missed| -> Value {
            serde_json::from_str(&write_event("c.3.1", ("cup", 3, missed), &event)).unwrap()
        };
        let whole = read(0);
        assert_eq!((&whole["topic"], &whole["number"]), (&json!("contest:cup"), &json!(3)));
        assert_eq!((&whole["data"]["contest"], &whole["missed"]), (&json!("cup"), &Value::Null));
        assert_eq!(read(2)["missed"], json!(2));
    }
}
