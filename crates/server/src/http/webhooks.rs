//! Webhooks: made, changed and deleted; their deliveries, and sending one again.

use super::call::Call;
use super::contests::after;
use super::keys::blocking;
use super::problem;
use super::response::{self, Response};
use super::span;
use crate::webhooks::WebhookTarget;
use hyper::StatusCode;
use serde_json::{Value, json};
use std::sync::Arc;
use tally_service::webhooks::deliveries::{self, DeliveryRow, SentEvent, read_topic, topic_text};
use tally_service::webhooks::{self, Named, Patch, WithSecret};
use tally_wire::Problem;
use tally_wire::api::webhooks as shapes;
use tally_wire::cursor::{self, Names};

/// `POST /v1/webhooks`: makes a webhook. Only this response, and that to a retry, has the secret.
pub(super) async fn create(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let tally = call.tally()?;
    let (body, idempotency, origin) = call.act(&tally).await?;
    let sent = shapes::read_create(body).map_err(Problem::fields)?;
    let (url, events) = (address(&call, sent.url)?.unwrap_or_default(), sent.events.unwrap_or_default());
    let marks = sent.marks.unwrap_or_default();
    let made =
        blocking(move || webhooks::create(&tally, &url, (&events, &marks), (&origin, idempotency.as_ref())));
    Ok(with_secret(StatusCode::CREATED, &made.await?))
}

/// `GET /v1/webhooks`: every webhook, by time of creation.
pub(super) async fn list(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let tally = call.tally()?;
    let (rows, damaged) = blocking(move || webhooks::list(&tally)).await?;
    let mut body = json!({"items": rows.iter().map(shown).collect::<Vec<_>>()});
    response::name_damaged(&mut body, &damaged);
    Ok(response::ok(&body))
}

/// `GET /v1/webhooks/{webhook}`
pub(super) async fn get(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let (tally, id) = (call.tally()?, call.id("webhook")?);
    Ok(response::ok(&shown(&blocking(move || webhooks::get(&tally, id)).await?)))
}

/// `PATCH /v1/webhooks/{webhook}`
pub(super) async fn patch(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let (tally, id) = (call.tally()?, call.id("webhook")?);
    let (body, idempotency, origin) = call.act(&tally).await?;
    let sent = shapes::read_patch(body).map_err(Problem::fields)?;
    let url = address(&call, sent.url)?;
    let patch = Patch { url, events: sent.events, marks: sent.marks, enabled: sent.enabled };
    let done = blocking(move || webhooks::patch(&tally, id, &patch, (&origin, idempotency.as_ref())));
    let (named, replayed) = done.await?;
    Ok(response::replayed(response::ok(&shown(&named)), replayed))
}

/// `POST /v1/webhooks/{webhook}/secret`: gives it another secret, which only this response has.
pub(super) async fn rotate(mut call: Call) -> Result<Response, Problem> {
    let origin = call.origin_of_query();
    call.finish_query()?;
    call.no_body().await?;
    let (tally, id) = (call.tally()?, call.id("webhook")?);
    let idempotency = call.idempotency_of(&tally, &origin)?;
    let done = blocking(move || webhooks::rotate(&tally, id, (&origin, idempotency.as_ref())));
    Ok(with_secret(StatusCode::OK, &done.await?))
}

/// `DELETE /v1/webhooks/{webhook}`
pub(super) async fn delete(mut call: Call) -> Result<Response, Problem> {
    let origin = call.origin_of_query();
    call.finish_query()?;
    call.no_body().await?;
    let (tally, id) = (call.tally()?, call.id("webhook")?);
    let idempotency = call.idempotency_of(&tally, &origin)?;
    let done = blocking(move || webhooks::delete(&tally, id, (&origin, idempotency.as_ref())));
    Ok(response::replayed(response::none(), done.await?))
}

/// `GET /v1/webhooks/{webhook}/deliveries?state=&limit=&cursor=`: the last attempt of each topic.
pub(super) async fn list_deliveries(mut call: Call) -> Result<Response, Problem> {
    let (limit, text) = (call.query.limit(), call.query.text("cursor"));
    let state = span::choice(&mut call.query, "state", &["delivered", "failing"]);
    call.finish_query()?;
    let (tally, id) = (call.tally()?, call.id("webhook")?);
    let of = id.to_string();
    let after = after(text.as_deref(), (Names::Deliveries, &of), read_topic)?;
    let failing = state.map(|state| state == "failing");
    let page = blocking(move || deliveries::list(&tally, id, failing, after, limit)).await?;
    let mut body = json!({"items": page.rows.iter().map(shown_row).collect::<Vec<_>>()});
    if let Some(next) = page.next {
        body["next_cursor"] = json!(cursor::encode_name_of(Names::Deliveries, &of, &topic_text(next)));
    }
    response::name_damaged(&mut body, &page.damaged);
    Ok(response::ok(&body))
}

/// `POST /v1/webhooks/{webhook}/deliveries/{delivery}/send`: sends an event again.
pub(super) async fn send(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    call.no_body().await?;
    let (tally, id, delivery) = (call.tally()?, call.id("webhook")?, call.param("delivery")?);
    let idempotency = call.idempotency(&tally, None)?;
    let sent = deliveries::send(&tally, id, &delivery, idempotency).await;
    let (sent, replayed) = sent.map_err(|failure| problem::of_failure(&failure))?;
    let SentEvent { kind, subject, event, at, answer, failing } = sent;
    let topic = shapes::topic(kind, &subject);
    let became = (answer.status, answer.failure.as_deref());
    let body = shapes::write_sent((&topic, &delivery), (event.number, at), became, failing.as_ref());
    Ok(response::replayed(response::ok(&body), replayed))
}

/// Checks an address as far as that is possible before it is resolved.
fn address(call: &Call, url: Option<String>) -> Result<Option<Arc<str>>, Problem> {
    let Some(url) = url else { return Ok(None) };
    WebhookTarget::parse(&url, call.readiness.limits.webhooks_private)
        .map_err(|why| Problem::field("/url", why))?;
    Ok(Some(url.into()))
}

fn shown(named: &Named) -> Value {
    shapes::write(&named.id.to_string(), &named.webhook, None)
}

fn with_secret(status: StatusCode, made: &WithSecret) -> Response {
    let Named { id, webhook } = &made.named;
    let body = shapes::write(&id.to_string(), webhook, Some(&made.secret));
    response::replayed(response::json(status, &body), made.replayed)
}

fn shown_row(row: &DeliveryRow) -> Value {
    shapes::write_position(&shapes::topic(row.kind, &row.subject), &row.id, &row.position)
}
