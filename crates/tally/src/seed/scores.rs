//! Scores of one leaderboard: many small ones, few large ones.

use super::bar;
use crate::chunks::{CHUNK_ROWS, Chunks, read_done};
use crate::cli::SeedScoresArgs;
use crate::client::{Client, explain, segment};
use anyhow::{Result, bail};
use serde_json::json;
use std::fmt::Write;
use std::time::Instant;
use tally_load::bits_of;
use tally_load::people::player;
use tally_service::secret::hex;
use ureq::http::Method;

/// Makes the leaderboard if there is none.
pub(super) fn board(client: &Client, args: &SeedScoresArgs) -> Result<()> {
    let path = format!("/v1/leaderboards/{}", segment(&args.board));
    let found = client.send(&Method::GET, &path, None)?;
    match found.status {
        200 => {}
        404 => drop(client.ask(&Method::PUT, &path, Some(("application/json", b"{}")))?),
        _ => bail!(explain(&found)),
    }
    Ok(())
}

/// Makes the missing scores through a server.
pub(super) fn seed(client: &Client, args: &SeedScoresArgs) -> Result<()> {
    board(client, args)?;
    let started = Instant::now();
    let head = json!({"board": args.board});
    let mut chunks = Chunks::find(client, "/v1/imports", head, digest())?;
    let before = chunks.done;
    let bar = bar("players", before.lines, args.players)?;
    while chunks.done.lines < args.players {
        let first = chunks.done.lines + 1;
        let last = args.players.min(chunks.done.lines + CHUNK_ROWS as u64);
        let mut rows = String::with_capacity(CHUNK_ROWS * 80);
        for line in first..=last {
            // Names of letters and digits need no escaping.
            let (player, score) = (player(line), score(line));
            write!(rows, "\n{{\"line\":{line},\"player\":\"{player}\",\"score\":{score}}}")?;
        }
        chunks.send(&rows, last, false)?;
        bar.set_position(last);
    }
    bar.finish_and_clear();
    show(args, chunks.done.taken - before.taken, chunks.done.refused - before.refused, started);
    Ok(())
}

/// The number of players that were made on a leaderboard; `None` if there are none, or the key may not ask.
pub(crate) fn made_on(client: &Client, board: &str) -> Result<Option<u64>> {
    let path = format!("/v1/imports/{}/{}", segment(board), hex(&digest()));
    let found = client.send(&Method::GET, &path, None)?;
    let done = (found.status == 200).then(|| read_done(&found.body)).transpose()?;
    Ok(done.map(|done| done.lines).filter(|lines| *lines > 0))
}

/// The digest of the endless file.
pub(super) fn digest() -> [u8; 32] {
    blake3::derive_key("tally 2026 seed", b"scores")
}

/// Prints what was made.
pub(super) fn show(args: &SeedScoresArgs, made: u64, refused: u64, started: Instant) {
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{made} scores on `{}` in {seconds:.1} s ({:.0} a second); players are {} and so on",
        args.board,
        made as f64 / seconds.max(1e-6),
        player(1)
    );
    if refused > 0 {
        println!("refused: {refused}, because the leaderboard takes no such scores");
    }
}

/// Halves with every thousand.
pub(super) fn score(line: u64) -> u64 {
    let bits = bits_of(line, 8);
    u64::from(bits.leading_zeros()) * 1000 + bits_of(line, 9) % 1000
}
