//! API keys: list, create, revoke.

use super::audit::Detail;
use super::call::{Call, bad_parameter};
use super::problem;
use super::response::{self, Response};
use hyper::StatusCode;
use serde_json::json;
use std::sync::Arc;
use tally_service::Failure;
use tally_wire::Problem;
use tally_wire::api::keys;
use tally_wire::cursor::{self, Names};

/// `GET /v1/keys`: a page of the keys by time of creation, without their secrets.
pub(super) async fn list(mut call: Call) -> Result<Response, Problem> {
    let limit = call.query.limit();
    let after = call.query.text("cursor");
    call.finish_query()?;
    let tally = call.tally()?;
    // A cursor is the creation time and the id of the last key of a page. The list has this order.
    let after = match after {
        None => None,
        Some(text) => Some(
            cursor::decode_name(Names::Keys, &text)
                .filter(|place| place.contains('/'))
                .ok_or_else(invalid_cursor)?,
        ),
    };
    let all = tally.keys.list();
    let place = |row: &tally_service::keys::KeyRow| format!("{:020}/{}", row.created_at.0, row.id);
    let mut rest = all.iter().filter(|row| after.as_ref().is_none_or(|after| place(row) > *after));
    let items: Vec<_> = rest.by_ref().take(limit).collect();
    let mut body = json!({
        "items": items.iter().map(|row| keys::write(&row.id, &row.grant, &row.name, row.created_at, None)).collect::<Vec<_>>(),
    });
    if let (Some(last), Some(_)) = (items.last(), rest.next()) {
        body["next_cursor"] = json!(cursor::encode_name(Names::Keys, &place(last)));
    }
    response::name_damaged(&mut body, &tally.keys.damaged_rows());
    Ok(response::ok(&body))
}

/// `POST /v1/keys`: makes a key. Only this response, and that to a retry, has the token.
pub(super) async fn create(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let tally = call.tally()?;
    let (body, idempotency, origin) = call.act(&tally).await?;
    let (grant, name) = keys::read_create(body).map_err(Problem::fields)?;
    // A cap of a currency that is spelled wrong would cap nothing.
    let currencies = &tally.settings.ledger.currencies;
    let unknown = grant.mint_caps.keys().find_map(|currency| currencies.check(*currency).err());
    if let Some(rejection) = unknown {
        return Err(Problem::field("/mint_caps", rejection.detail()));
    }
    let keys = Arc::clone(&tally.keys);
    let created = blocking(move || keys.create(grant, &name, &origin, idempotency.as_ref())).await?;
    let row = &created.row;
    let body = keys::write(&row.id, &row.grant, &row.name, row.created_at, Some(&created.token));
    let mut response = response::replayed(response::json(StatusCode::CREATED, &body), created.replayed);
    // For the security event of this request.
    response.extensions_mut().insert(Detail(format!("key {} ({})", row.id, row.grant)));
    Ok(response)
}

/// `DELETE /v1/keys/{key}`: revokes a key.
pub(super) async fn revoke(mut call: Call) -> Result<Response, Problem> {
    let (force, origin) = (call.query.flag("force"), call.origin_of_query());
    call.finish_query()?;
    call.no_body().await?;
    let tally = call.tally()?;
    let id = call.param("key")?;
    if id.is_empty() || id.len() > 64 || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(bad_parameter("key", "must be the id of a key: letters and digits"));
    }
    let idempotency = call.idempotency_of(&tally, &origin)?;
    let keys = Arc::clone(&tally.keys);
    let replayed = blocking(move || keys.revoke(&id, force, &origin, idempotency.as_ref())).await?;
    Ok(response::replayed(response::none(), replayed))
}

/// 400 for a cursor that this list did not give.
pub(super) fn invalid_cursor() -> Problem {
    Problem::new(400, "invalid_cursor", "the cursor is not one of this list; begin without one")
}

/// Runs blocking work outside the threads that serve connections.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Problem> {
    tally_service::blocking(work).await.map_err(|failure| problem::of_failure(&failure))
}
