//! `/v1/ledger/archives`: past months of the ledger that are, or are to be, in files.

use crate::http::call::Call;
use crate::http::keys::blocking;
use crate::http::problem;
use crate::http::response::{self, Response};
use hyper::StatusCode;
use serde_json::{Value, json};
use tally_rules::ledger::Month;
use tally_service::ledger::archive::{self, ArchiveFailure, ArchivedMonth};
use tally_wire::Problem;
use tally_wire::api::archives::{read_request, write_digest};

/// `GET /v1/ledger/archives`: every month, oldest first.
pub(in crate::http) async fn list(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let tally = call.tally()?;
    let failure = archive::failure(&tally);
    let months = blocking(move || archive::list(&tally)).await?;
    let items: Vec<Value> = months.iter().map(|(month, row)| shown(*month, row)).collect();
    let mut body = json!({"items": items});
    if let Some(ArchiveFailure { month, reason, .. }) = failure {
        body["failure"] = json!({"month": month.to_string(), "reason": reason});
    }
    Ok(response::ok(&body))
}

/// `POST /v1/ledger/archives`: archives the months before one. The work is done after the response.
pub(in crate::http) async fn create(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let tally = call.tally()?;
    let (body, idempotency, origin) = call.act(&tally).await?;
    let before = read_request(body).map_err(Problem::fields)?;
    let open = archive::first_open(&tally).map_err(|failure| problem::of_failure(&failure))?;
    if before > open {
        return Err(Problem::field("/before", format!("must be at most {open}: that month is not over")));
    }
    if !archive::has_folder(&tally) {
        let detail = "the setting `archive.dir` names no folder: all servers of a store in a database must have the same one";
        return Err(Problem::new(409, "no_archive_dir", detail));
    }
    let replayed =
        blocking(move || archive::request(&tally, before, (&origin, idempotency.as_ref()))).await?;
    let body = json!({"before": before.to_string()});
    Ok(response::replayed(response::json(StatusCode::ACCEPTED, &body), replayed))
}

fn shown(month: Month, row: &ArchivedMonth) -> Value {
    let files = row.files.as_ref();
    json!({
        "month": month.to_string(),
        "state": row.state.as_str(),
        "transfers": files.map(|files| files.transfers.rows),
        "entries": files.map(|files| files.entries.rows),
        "bytes": files.map(|files| files.transfers.bytes + files.entries.bytes),
        "deleted": row.deleted,
        "digest": files.map(|files| write_digest(&files.digest)),
    })
}
