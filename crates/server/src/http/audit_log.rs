//! `GET /v1/audit`: administrative acts, newest first. Not here: security events (`audit`), which are lines of the log.

use super::call::Call;
use super::keys::blocking;
use super::response::Response;
use super::span::{self, SpanQuery};
use serde_json::{Value, json};
use tally_rules::audit::{AuditAction, AuditEntry};
use tally_rules::ledger::Uuid;
use tally_service::audit::{self, Filter};
use tally_wire::cursor::Names;
use tally_wire::{Problem, Query, time};

/// `GET /v1/audit?actor=&action=&subject=&subject_prefix=&from=&until=&limit=&cursor=`
pub(super) async fn list(mut call: Call) -> Result<Response, Problem> {
    let (filter, span) = (filter(&mut call.query), SpanQuery::of(&mut call.query));
    call.finish_query()?;
    let (tally, span) = (call.tally()?, span.of_list(Names::Audit)?);
    let page = blocking(move || audit::list(&tally, &filter, &span)).await?;
    Ok(span::page(Names::Audit, &page, shown))
}

fn filter(query: &mut Query) -> Filter {
    let action = span::choice(query, "action", AuditAction::ALL);
    let [subject, subject_prefix] =
        ["subject", "subject_prefix"].map(|name| query.text(name).map(Into::into));
    Filter { actor: span::actor(query), action, subject, subject_prefix }
}

pub(super) fn shown(id: Uuid, entry: &AuditEntry) -> Value {
    json!({
        "id": id.to_string(),
        "at": time::format(id.at()),
        "actor": entry.origin.actor.to_string(),
        "action": entry.action.as_str(),
        "subject": &*entry.subject,
        "detail": entry.detail.as_deref(),
        "reason": entry.origin.reason.as_deref(),
    })
}
