//! Imports: chunks of a file; each line has its effect once.

use super::call::{Call, bad_parameter};
use super::keys::blocking;
use super::problem;
use super::response::{self, Response};
use serde_json::Value;
use std::sync::Arc;
use tally_rules::BoardId;
use tally_service::scores::import::{NewChunk, NewLine, import as import_chunk, progress as import_progress};
use tally_wire::Problem;
use tally_wire::api::imports::{self, CHUNK_ROWS_MAX, ImportedScore, ScoreChunkHead};
use tally_wire::fields::FieldError;

/// `GET /v1/imports/{board}/{digest}`: the progress of an import.
pub(super) async fn progress(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let tally = call.tally()?;
    let board: BoardId = call.board()?;
    let digest = imports::read_digest(&call.param("digest")?)
        .ok_or_else(|| bad_parameter("digest", "must be 64 hexadecimal digits"))?;
    let tally = Arc::clone(&tally);
    let row = blocking(move || import_progress(&tally, &board, digest)).await?.unwrap_or_default();
    Ok(response::ok(&imports::write(row.lines, row.taken, row.refused, row.finished, &[])))
}

/// `POST /v1/imports`: one chunk.
pub(super) async fn import(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    call.check_content_type("application/x-ndjson")?;
    // The digest of the file and the lines identify a chunk. An idempotency key has no effect, but must be valid.
    call.key()?;
    let tally = call.tally()?;
    let bytes = call.bytes().await?;
    let chunk = read(&bytes)?;
    let done = import_chunk(&tally, chunk).await.map_err(|failure| problem::of_failure(&failure))?;
    let rows: Vec<_> =
        done.refused.iter().map(|(line, rejection)| (*line, rejection.code(), rejection.detail())).collect();
    let row = done.progress;
    let body = imports::write(row.lines, row.taken, row.refused, row.finished, &rows);
    Ok(response::replayed(response::ok(&body), done.replayed))
}

fn read(bytes: &[u8]) -> Result<NewChunk, Problem> {
    let (head, lines) = split(bytes)?;
    let ScoreChunkHead { board, digest, lines_before, lines_after, last } =
        imports::read_head(head).map_err(Problem::fields)?;
    let row = |number, value| {
        let ImportedScore { line, player, score, at } = imports::read_row(number, value)?;
        Ok((line, NewLine { line, player, score, at }))
    };
    let rows = read_rows(lines, (lines_before, lines_after), row)?;
    let rows = rows.into_iter().map(|(_, row)| row).collect();
    Ok(NewChunk { board, digest, lines_before, lines_after, rows, last })
}

/// The head of a chunk, and its other lines with their places in the body. Empty lines count for nothing.
pub(super) fn split(bytes: &[u8]) -> Result<(Value, impl Iterator<Item = (usize, &[u8])>), Problem> {
    let mut lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).enumerate();
    let head = lines.next().ok_or_else(|| Problem::field("/0", "must be the head of the chunk"))?;
    Ok((json(head)?, lines))
}

/// The rows of a chunk with the numbers of their lines, which ascend after `before`, and up to `after`.
pub(super) fn read_rows<'b, R>(
    lines: impl Iterator<Item = (usize, &'b [u8])>,
    (before, after): (u64, u64),
    row: impl Fn(usize, Value) -> Result<(u64, R), Vec<FieldError>>,
) -> Result<Vec<(u64, R)>, Problem> {
    let mut rows: Vec<(u64, R)> = Vec::new();
    for (number, text) in lines {
        if rows.len() == CHUNK_ROWS_MAX {
            return Err(Problem::field(
                "",
                format!("must have at most {CHUNK_ROWS_MAX} rows after its head"),
            ));
        }
        let (line, row) = row(number, json((number, text))?).map_err(Problem::fields)?;
        let previous = rows.last().map_or(before, |(line, _)| *line);
        if line <= previous || line > after {
            let detail = "must ascend between lines_before (exclusive) and lines_after (inclusive)";
            return Err(Problem::field(format!("/{number}/line"), detail));
        }
        rows.push((line, row));
    }
    Ok(rows)
}

fn json((number, line): (usize, &[u8])) -> Result<Value, Problem> {
    serde_json::from_slice(line).map_err(|error| {
        Problem::new(400, "malformed_json", format!("line {number} of the body is not JSON: {error}"))
    })
}
