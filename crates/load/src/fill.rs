//! Filling a board over the wire: every player gets a score, in requests of a thousand.
//!
//! One connection is enough: a large batch costs the server far more than the client. Not here: importing files, as a
//! client with millions of scores would.

use crate::acknowledged::Acknowledged;
use crate::connection::{Connection, Response};
use crate::random::Random;
use crate::run::runtime;
use crate::workload::LoadTarget;
use serde_json::Value;
use std::io::{self, Write};

/// Rows of one request: the server's limit.
const ROWS: u64 = 1_000;
/// As in the load run that follows.
const SCORE_END: u64 = 1_000_000_000;

/// Creates the board, which keeps the latest score of a player, and gives every player a score. `on_progress` gets the number
/// of players with a score.
///
/// # Errors
///
/// If a request fails.
pub fn fill(target: &LoadTarget, seed: u64, on_progress: &mut dyn FnMut(u64)) -> io::Result<Acknowledged> {
    runtime()?.block_on(fill_board(target, seed, on_progress))
}

async fn fill_board(
    target: &LoadTarget,
    seed: u64,
    on_progress: &mut dyn FnMut(u64),
) -> io::Result<Acknowledged> {
    let mut connection = Connection::open(target.address).await?;
    let mut acknowledged = Acknowledged::new(target.players);
    let (common, mut random) = (target.common(), Random::new(seed));
    let (mut request, mut body) = (Vec::new(), Vec::new());
    let path = format_args!("/v1/leaderboards/{}", target.board);
    common.send(&mut request, "PUT", path, br#"{"update":"latest"}"#);
    expect(&connection.call(&request).await?, "creating the board")?;
    let mut next = 0;
    while next < target.players {
        let end = target.players.min(next + ROWS);
        body.clear();
        body.extend_from_slice(b"{\"scores\":[");
        let mut rows = Vec::with_capacity(ROWS as usize);
        for player in next..end {
            let score = random.below(SCORE_END) as i64;
            let comma = if player == next { "" } else { "," };
            let board = &target.board;
            write!(body, r#"{comma}{{"board":"{board}","player":"player{player:010}","score":{score}}}"#)?;
            rows.push((player, score));
        }
        body.extend_from_slice(b"]}");
        common.send(&mut request, "POST", format_args!("/v1/scores/batch"), &body);
        let answer = connection.call(&request).await?;
        expect(&answer, "filling the board")?;
        check_rows(answer.body, rows.len())?;
        for (player, score) in rows {
            acknowledged.promise(player, score);
        }
        next = end;
        on_progress(next);
    }
    Ok(acknowledged)
}

/// A batch succeeds as a whole even if rows fail.
fn check_rows(body: &[u8], rows: usize) -> io::Result<()> {
    let answer: Value = serde_json::from_slice(body)?;
    let results = answer["results"].as_array().map_or(&[][..], Vec::as_slice);
    if results.len() == rows && results.iter().all(|row| row.get("error").is_none()) {
        return Ok(());
    }
    let first = results.iter().find_map(|row| row.get("error"));
    Err(io::Error::other(format!("filling the board: rows failed, first {first:?}")))
}

/// An error for a response other than success; it names the operation and the response.
pub(crate) fn expect(answer: &Response<'_>, what: &str) -> io::Result<()> {
    if (200..300).contains(&answer.status) {
        return Ok(());
    }
    let body = String::from_utf8_lossy(answer.body);
    Err(io::Error::other(format!("{what}: status {}, {body}", answer.status)))
}
