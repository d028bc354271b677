//! Scores written directly into the store, without a server: as fast as the store takes them.
//!
//! The lines are the same as through a server, so either way continues the other. Not here: what a
//! chunk is (`tally_service::scores::fill`).

use super::bar;
use super::scores::{board, digest, score, show};
use crate::cli::{Cli, SeedScoresArgs, TargetArgs};
use crate::config::Config;
use crate::store::{Opening, ranks_in_memory};
use crate::target::TargetServer;
use anyhow::{Context, Result, anyhow};
use std::sync::mpsc::sync_channel;
use std::time::Instant;
use tally_load::people::player;
use tally_rules::score::ScoreInput;
use tally_rules::{BoardId, PlayerId};
use tally_service::scores::fill::{Chunk, FillTarget, Filling};
use tally_service::{Store, clock};

/// Rows of one transaction: its sync is next to nothing beside them.
const CHUNK_ROWS: u64 = 10_000;

/// Makes the missing scores; `false` if only a server can.
pub(super) fn seed(config: &Config, cli: &Cli, target: &TargetArgs, args: &SeedScoresArgs) -> Result<bool> {
    // A ranking in Redis needs a server that publishes the scores.
    if !ranks_in_memory(config) {
        return Ok(false);
    }
    let Some(data) = TargetServer::unserved(config, target)? else { return Ok(false) };
    let name = BoardId::new(&args.board).map_err(|bad| anyhow!("the leaderboard's name must {}", bad.0))?;
    let attempt = || -> Result<Option<bool>> {
        let opened = data.place(config)?.open(config, data.path(), Opening::AsItIs)?;
        match Filling::open(&opened.store, &name, digest())? {
            FillTarget::Fillable(filling) => fill(*filling, &*opened.store, args).map(|()| Some(true)),
            FillTarget::Served => Ok(Some(false)),
            FillTarget::Missing => Ok(None),
        }
    };
    if let Some(done) = attempt()? {
        return Ok(done);
    }
    // A server makes the board, with everything else of a new store.
    let own = TargetServer::find_or_make(cli, target)?;
    let made = board(&own.client, args);
    own.finish();
    made?;
    Ok(attempt()?.unwrap_or(false))
}

fn fill(mut filling: Filling, store: &dyn Store, args: &SeedScoresArgs) -> Result<()> {
    let (started, before, clock) = (Instant::now(), filling.done(), clock::system());
    let bar = bar("players", before.lines, args.players)?;
    // One chunk is written while the next is made.
    let (ready, written) = sync_channel::<Chunk>(1);
    let wrote = std::thread::scope(|scope| {
        let bar = &bar;
        let writer = scope.spawn(move || {
            written.into_iter().try_for_each(|chunk| {
                let lines = chunk.done.lines;
                chunk.write(store).map(|()| bar.set_position(lines))
            })
        });
        while filling.done().lines < args.players {
            let first = filling.done().lines + 1;
            let last = args.players.min(filling.done().lines + CHUNK_ROWS);
            let rows = (first..=last).map(|line| (named(line), ScoreInput::Int(score(line).cast_signed())));
            let chunk = filling.chunk(rows.collect(), last, clock.now());
            if ready.send(chunk?).is_err() {
                // The writer has stopped, and returns the error.
                break;
            }
        }
        drop(ready);
        writer.join().expect("writing does not panic").map_err(anyhow::Error::from)
    });
    wrote.context("write scores; the same command continues from there")?;
    // Waits until everything is in the tables.
    store.checkpoint().context("write what is in the journal")?;
    bar.finish_and_clear();
    let done = filling.done();
    show(args, done.taken - before.taken, done.refused - before.refused, started);
    Ok(())
}

fn named(line: u64) -> PlayerId {
    PlayerId::new(&player(line)).expect("letters and digits")
}
