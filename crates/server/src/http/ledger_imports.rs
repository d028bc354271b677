//! Imports of members and of transfers: chunks of a file, as for scores; each line has its effect once.

use super::call::Call;
use super::guard;
use super::imports::{read_rows, split};
use super::problem;
use super::response::{self, Response};
use serde_json::Value;
use tally_service::Failure;
use tally_service::ledger::import::{self, Imported, NewChunk};
use tally_wire::Problem;
use tally_wire::api::imports;
use tally_wire::api::ledger_imports::{self, LedgerChunkHead};
use tally_wire::fields::FieldError;

/// `POST /v1/imports/members`: one chunk. The client digests passwords, so it has to know how short they may be.
pub(super) async fn members(mut call: Call) -> Result<Response, Problem> {
    let bytes = body(&mut call).await?;
    let tally = call.tally()?;
    let chunk = read(&bytes, ledger_imports::read_member)?;
    guard::check_uncounted(&call.caller, chunk.rows.iter().any(|(_, line)| line.balance.is_some()))?;
    render(
        import::members(&tally, call.caller.actor, chunk).await,
        Some(tally.members.settings().password_length_min),
    )
}

/// `POST /v1/imports/transfers`: one chunk.
pub(super) async fn transfers(mut call: Call) -> Result<Response, Problem> {
    let bytes = body(&mut call).await?;
    let tally = call.tally()?;
    let chunk = read(&bytes, ledger_imports::read_transfer)?;
    render(import::transfers(&tally, call.caller.actor, chunk).await, None)
}

async fn body(call: &mut Call) -> Result<hyper::body::Bytes, Problem> {
    call.finish_query()?;
    call.check_content_type("application/x-ndjson")?;
    // The digest of the file and the lines identify a chunk. An idempotency key has no effect, but must be valid.
    call.key()?;
    call.bytes().await
}

fn read<L>(
    bytes: &[u8],
    row: impl Fn(usize, Value) -> Result<(u64, L), Vec<FieldError>>,
) -> Result<NewChunk<L>, Problem> {
    let (head, lines) = split(bytes)?;
    let LedgerChunkHead { digest, lines_before, lines_after, last } =
        ledger_imports::read_head(head).map_err(Problem::fields)?;
    let rows = read_rows(lines, (lines_before, lines_after), row)?;
    Ok(NewChunk { digest, lines_before, lines_after, rows, last })
}

fn render(done: Result<Imported, Failure>, password_length_min: Option<usize>) -> Result<Response, Problem> {
    let done = done.map_err(|failure| problem::of_failure(&failure))?;
    let row = |row: &import::RefusedLine| (row.line, row.code, format!("{}: {}", row.field, row.detail));
    let rows: Vec<_> = done.refused.iter().map(row).collect();
    let progress = done.progress;
    let mut body = imports::write(progress.lines, progress.taken, progress.refused, progress.finished, &rows);
    if let Some(min) = password_length_min {
        body["password_length_min"] = min.into();
    }
    Ok(response::replayed(response::ok(&body), done.replayed))
}
