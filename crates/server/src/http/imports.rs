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
use tally_wire::api::imports::{self, CHUNK_ROWS_MAX, ScoreChunkHead};

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
    let mut lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).enumerate();
    let head = lines.next().ok_or_else(|| Problem::field("/0", "must be the head of the chunk"))?;
    let ScoreChunkHead { board, digest, lines_before, lines_after, last } =
        imports::read_head(json(head)?).map_err(Problem::fields)?;
    let mut rows: Vec<NewLine> = Vec::new();
    for (number, line) in lines {
        if rows.len() == CHUNK_ROWS_MAX {
            return Err(Problem::field(
                "",
                format!("must have at most {CHUNK_ROWS_MAX} rows after its head"),
            ));
        }
        let row = imports::read_row(number, json((number, line))?).map_err(Problem::fields)?;
        let previous = rows.last().map_or(lines_before, |row| row.line);
        if row.line <= previous || row.line > lines_after {
            let detail = "must ascend between lines_before (exclusive) and lines_after (inclusive)";
            return Err(Problem::field(format!("/{number}/line"), detail));
        }
        rows.push(NewLine { line: row.line, player: row.player, score: row.score, at: row.at });
    }
    Ok(NewChunk { board, digest, lines_before, lines_after, rows, last })
}

pub(super) fn json((number, line): (usize, &[u8])) -> Result<Value, Problem> {
    serde_json::from_slice(line).map_err(|error| {
        Problem::new(400, "malformed_json", format!("line {number} of the body is not JSON: {error}"))
    })
}
