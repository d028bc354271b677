//! Creates, reads, lists and changes contests.

use super::{actor, after, blocking, idempotency, page, shown};
use crate::http::call::Call;
use crate::http::guard::check_uncounted;
use crate::http::response::{self, Response};
use crate::http::span;
use hyper::StatusCode;
use serde_json::json;
use std::sync::Arc;
use tally_rules::contest::application::ApplicationCounts;
use tally_rules::contest::{ContestId, ContestRecord, ContestState};
use tally_rules::ids::ID_BYTES_MAX;
use tally_service::contests::change;
use tally_service::contests::read::{self, ContestFilter};
use tally_wire::Problem;
use tally_wire::api::{contests, currency};
use tally_wire::cursor::{self, Names};

/// `POST /v1/contests`
pub(in crate::http) async fn create(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let tally = call.tally()?;
    let mut body = call.json().await?;
    let idempotency = idempotency(&call, &tally, Some(&body))?;
    let actor = actor(&call, &tally).await?.with(call.origin_of(&mut body)?);
    currency::fill(&mut body, tally.settings.ledger.currencies.home());
    let (id, spec) = contests::read_new(body).map_err(Problem::fields)?;
    check_uncounted(&call.caller, spec.has_prizes())?;
    let made = blocking(move || {
        let id = id.map_or_else(|| change::new_id(&tally, idempotency.as_ref()), Ok)?;
        let done = change::create(&tally, &id, &actor, &spec, idempotency.as_ref())?;
        Ok((shown(&tally, &id, &done.record), done))
    });
    let (body, done) = made.await?;
    Ok(response::replayed(response::json(StatusCode::CREATED, &body), done.replayed))
}

/// `PATCH /v1/contests/{contest}`
pub(in crate::http) async fn patch(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let (tally, id) = (call.tally()?, call.contest()?);
    let mut body = call.json().await?;
    let idempotency = idempotency(&call, &tally, Some(&body))?;
    let actor = actor(&call, &tally).await?.with(call.origin_of(&mut body)?);
    currency::fill(&mut body, tally.settings.ledger.currencies.home());
    let spec = contests::read_patch(body).map_err(Problem::fields)?;
    check_uncounted(&call.caller, spec.has_prizes())?;
    let done = blocking(move || {
        let done = change::patch(&tally, &id, &actor, &spec, idempotency.as_ref())?;
        Ok((shown(&tally, &id, &done.record), done.replayed))
    });
    let (body, replayed) = done.await?;
    Ok(response::replayed(response::ok(&body), replayed))
}

/// `GET /v1/contests/{contest}`
pub(in crate::http) async fn get(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let (tally, id) = (call.tally()?, call.contest()?);
    let body = blocking(move || Ok(shown(&tally, &id, &read::get(&tally, &id)?))).await?;
    Ok(response::ok(&body))
}

/// `GET /v1/contests?state=&series=&prefix=&limit=&cursor=`
pub(in crate::http) async fn list(mut call: Call) -> Result<Response, Problem> {
    let limit = call.query.limit();
    let text = call.query.text("cursor");
    let series = call
        .query
        .text("series")
        .and_then(|text| ContestId::of_series(&text).map_err(|bad| call.query.wrong("series", bad.0)).ok());
    let prefix = call.query.text("prefix");
    if prefix.as_ref().is_some_and(|prefix| !(1..=ID_BYTES_MAX).contains(&prefix.trim().len())) {
        call.query.wrong("prefix", "must be 1 to 128 bytes: the beginning of an id or a title");
    }
    let state = span::choice(&mut call.query, "state", ContestState::ALL);
    call.finish_query()?;
    let tally = Arc::clone(&call.tally()?);
    let of = state.map_or("", ContestState::as_str);
    let mut of = series.as_ref().map_or_else(|| of.to_owned(), |series| format!("{of}:{}", series.as_str()));
    if let Some(prefix) = &prefix {
        of = format!("{of}?{prefix}");
    }
    let after = after(text.as_deref(), (Names::Contests, &of), |name| ContestId::new(name).ok())?;
    let filter = ContestFilter { series, prefix };
    let found = blocking(move || {
        let (rows, next) = if filter.is_empty() {
            (read::list(&tally, state, after.as_ref(), limit + 1)?, None)
        } else {
            read::list_filtered(&tally, &filter, state, after.as_ref(), limit + 1)?
        };
        let counts = read::counts(&tally, &rows.rows.iter().map(|(_, record)| record).collect::<Vec<_>>());
        let mut counts = counts.into_iter();
        Ok((rows.map(|row| (row, counts.next().flatten())), next))
    });
    let (rows, broken_off) = found.await?;
    let encode = |id: &ContestId| cursor::encode_name_of(Names::Contests, &of, id.as_str());
    let show = |((id, record), counts): &((ContestId, ContestRecord), Option<ApplicationCounts>)| {
        contests::write(id, record, *counts)
    };
    let mut body = page(rows, limit, show, |((id, _), _)| encode(id));
    if let Some(last) = broken_off {
        body["next_cursor"] = json!(encode(&last));
    }
    Ok(response::ok(&body))
}
