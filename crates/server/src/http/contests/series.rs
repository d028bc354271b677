//! Creates, reads, lists, changes and deletes series of contests.

use super::{actor, after, blocking, idempotency, idempotency_of, page};
use crate::http::call::Call;
use crate::http::guard::check_uncounted;
use crate::http::response::{self, Response};
use hyper::StatusCode;
use std::sync::Arc;
use tally_rules::contest::ContestId;
use tally_service::contests::{change, series};
use tally_wire::Problem;
use tally_wire::api::contests::{read_new_series, read_series_patch, write_series};
use tally_wire::api::currency;
use tally_wire::cursor::{self, Names};

/// `POST /v1/contest-series`
pub(in crate::http) async fn create(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let tally = call.tally()?;
    let mut body = call.json().await?;
    let idempotency = idempotency(&call, &tally, Some(&body))?;
    let actor = actor(&call, &tally).await?.with(call.origin_of(&mut body)?);
    currency::fill(&mut body, tally.settings.ledger.currencies.home());
    let (id, spec) = read_new_series(body).map_err(Problem::fields)?;
    check_uncounted(&call.caller, spec.template.has_prizes())?;
    let made = blocking(move || {
        let id = id.map_or_else(|| change::new_id(&tally, idempotency.as_ref()), Ok)?;
        let done = series::create(&tally, &id, &actor, &spec, idempotency.as_ref())?;
        Ok((id, done))
    });
    let (id, (record, replayed)) = made.await?;
    let body = write_series(&id, &record);
    Ok(response::replayed(response::json(StatusCode::CREATED, &body), replayed))
}

/// `GET /v1/contest-series?limit=&cursor=`
pub(in crate::http) async fn list(mut call: Call) -> Result<Response, Problem> {
    let (limit, text) = (call.query.limit(), call.query.text("cursor"));
    call.finish_query()?;
    let tally = Arc::clone(&call.tally()?);
    let after = after(text.as_deref(), (Names::Series, ""), |name| ContestId::new(name).ok())?;
    let rows = blocking(move || series::list(&tally, after.as_ref(), limit + 1)).await?;
    let next = |(id, _): &(ContestId, _)| cursor::encode_name_of(Names::Series, "", id.as_str());
    Ok(response::ok(&page(rows, limit, |(id, record)| write_series(id, record), next)))
}

/// `GET /v1/contest-series/{series}`
pub(in crate::http) async fn get(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let (tally, id) = (call.tally()?, call.series()?);
    let name = id.clone();
    let record = blocking(move || series::get(&tally, &name)).await?;
    Ok(response::ok(&write_series(&id, &record)))
}

/// `PATCH /v1/contest-series/{series}`
pub(in crate::http) async fn patch(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let (tally, id) = (call.tally()?, call.series()?);
    let mut body = call.json().await?;
    let idempotency = idempotency(&call, &tally, Some(&body))?;
    let actor = actor(&call, &tally).await?.with(call.origin_of(&mut body)?);
    currency::fill(&mut body, tally.settings.ledger.currencies.home());
    let spec = read_series_patch(body).map_err(Problem::fields)?;
    check_uncounted(&call.caller, spec.template.has_prizes())?;
    let name = id.clone();
    let done = blocking(move || series::patch(&tally, &name, &actor, &spec, idempotency.as_ref()));
    let (record, replayed) = done.await?;
    Ok(response::replayed(response::ok(&write_series(&id, &record)), replayed))
}

/// `DELETE /v1/contest-series/{series}`
pub(in crate::http) async fn delete(mut call: Call) -> Result<Response, Problem> {
    let origin = call.origin_of_query();
    call.finish_query()?;
    call.no_body().await?;
    let (tally, id) = (call.tally()?, call.series()?);
    let idempotency = idempotency_of(&call, &tally, &origin)?;
    let actor = actor(&call, &tally).await?.with(origin);
    let replayed = blocking(move || series::delete(&tally, &id, &actor, idempotency.as_ref())).await?;
    Ok(response::replayed(response::none(), replayed))
}
