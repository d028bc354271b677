//! `GET /v1/audit`: administrative acts, newest first. Not here: security events (`audit`), which are lines of the log.

use super::call::Call;
use super::keys::{blocking, invalid_cursor};
use super::response::{self, Response};
use serde_json::{Value, json};
use tally_rules::audit::{AuditAction, AuditEntry, AuditId};
use tally_rules::ledger::Uuid;
use tally_rules::{Actor, Micros};
use tally_service::audit::{self, Filter};
use tally_wire::cursor::{self, Names};
use tally_wire::{Problem, Query, time};

/// `GET /v1/audit?actor=&action=&subject=&from=&until=&limit=&cursor=`
pub(super) async fn list(mut call: Call) -> Result<Response, Problem> {
    let (limit, text) = (call.query.limit(), call.query.text("cursor"));
    let filter = filter(&mut call.query);
    call.finish_query()?;
    let tally = call.tally()?;
    let before = text.map(|text| {
        let id = cursor::decode_name(Names::Audit, &text).and_then(|id| Uuid::parse(&id));
        id.map(AuditId).ok_or_else(invalid_cursor)
    });
    let before = before.transpose()?;
    let page = blocking(move || audit::list(&tally, &filter, before, limit)).await?;
    let mut body = json!({"items": page.rows.iter().map(shown).collect::<Vec<_>>()});
    if let Some(next) = page.next {
        body["next_cursor"] = json!(cursor::encode_name(Names::Audit, &next.0.to_string()));
    }
    response::name_damaged(&mut body, &page.damaged);
    Ok(response::ok(&body))
}

fn filter(query: &mut Query) -> Filter {
    let actor = query.text("actor").and_then(|text| {
        let actor = Actor::parse(&text);
        if actor.is_none() {
            let choices =
                "must be `key:{id}`, `member:{id}`, `command_line`, `local`, `background` or `unknown`";
            query.wrong("actor", choices);
        }
        actor
    });
    let action = query.text("action").and_then(|text| {
        let action = AuditAction::parse(&text);
        if action.is_none() {
            query.wrong("action", format!("must be one of: {}", AuditAction::choices()));
        }
        action
    });
    let subject = query.text("subject").map(Into::into);
    let mut instant = |name: &'static str| -> Option<Micros> {
        let at = query.text(name).map(|text| time::parse(&text))?;
        if at.is_none() {
            query.wrong(name, "must be an RFC 3339 instant such as 2026-11-21T08:20:00Z");
        }
        at
    };
    let (from, until) = (instant("from"), instant("until"));
    Filter { actor, action, subject, from, until }
}

fn shown((id, entry): &(AuditId, AuditEntry)) -> Value {
    json!({
        "id": id.0.to_string(),
        "at": time::format(id.0.at()),
        "actor": entry.origin.actor.to_string(),
        "action": entry.action.as_str(),
        "subject": &*entry.subject,
        "detail": entry.detail.as_deref(),
        "reason": entry.origin.reason.as_deref(),
    })
}
