//! A sorted set of Redis with the same members, if a redis-server is installed.
//!
//! It is started for the run, without persistence. Not here: a fair race, since only Redis is a process away (the
//! scenario `resp` has one); the bytes are what compares.

use super::players::{Id, all, some};
use crate::error::{During, Error, prove};
use crate::redis::client::Client;
use crate::redis::{Redis, is_there};
use std::path::Path;
use std::time::Instant;
use tally_load::Random;

/// Commands sent before replies are read, while filling.
const FILL_PIPELINE: usize = 500;

/// Figures of one sorted set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    pub(super) bytes: f64,
    /// Ranks per second, one at a time.
    pub(super) ranks_single: f64,
    /// Ranks per second, 16 at a time.
    pub(super) ranks_pipelined: f64,
}

/// Fills a set and reads ranks; `None` without a redis-server.
pub(super) fn measure(
    program: &Path,
    members: u64,
    ranks: usize,
    seed: u64,
) -> Result<Option<Figures>, Error> {
    if !is_there(program) {
        return Ok(None);
    }
    let redis = Redis::start(program)?;
    let mut client = Client::open(redis.address()).during("connect to redis-server")?;
    let figures = measure_figures(&mut client, members, ranks, seed).during("measure Redis")?;
    prove(figures.bytes > 0.0, || "Redis stored nothing".to_owned())?;
    Ok(Some(figures))
}

fn measure_figures(client: &mut Client, members: u64, ranks: usize, seed: u64) -> std::io::Result<Figures> {
    let before = used_memory(client)?;
    let mut waiting = 0;
    for (id, entry) in all(members, seed) {
        client.add(&[&b"ZADD"[..], b"board", entry.score.to_string().as_bytes(), &id]);
        waiting += 1;
        if waiting == FILL_PIPELINE {
            client.exchange(waiting)?;
            waiting = 0;
        }
    }
    client.exchange(waiting)?;
    let bytes = (used_memory(client)? - before) / members as f64;
    let ids = some(members, ranks, &mut Random::new(!seed));
    let ranks_single = rate_of_ranks(client, &ids, 1)?;
    let ranks_pipelined = rate_of_ranks(client, &ids, 16)?;
    Ok(Figures { bytes, ranks_single, ranks_pipelined })
}

fn used_memory(client: &mut Client) -> std::io::Result<f64> {
    client.info("memory")?.field("used_memory").parse().map_err(std::io::Error::other)
}

fn rate_of_ranks(client: &mut Client, ids: &[Id], pipeline: usize) -> std::io::Result<f64> {
    let start = Instant::now();
    for some in ids.chunks(pipeline) {
        for id in some {
            client.add(&[&b"ZREVRANK"[..], b"board", id]);
        }
        client.exchange(some.len())?;
    }
    Ok(ids.len() as f64 / start.elapsed().as_secs_f64())
}
