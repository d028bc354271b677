//! The real server over HTTP, on one store with its ranking.

use super::{BOARD, Cores, Memory, READ_BACK, Run, SKEWS, Way, Work, redis_memory};
use crate::database::Database;
use crate::error::{During, Error, prove};
use crate::options::Options;
use crate::redis::Redis;
use crate::server::Server;
use std::path::Path;
use std::time::Instant;
use tally_load::{Acknowledged, LoadPlan, LoadTarget, RequestKind, Skew, fill, run, verify};

/// Loading many players keeps Redis busy, and all share its processors here.
const RANKING_TIMEOUT: (&str, &str) = ("TALLY_RANKING_TIMEOUT", "20s");

/// The store and the ranking.
#[derive(Clone, Copy)]
pub(super) struct Place<'p> {
    pub(super) name: &'static str,
    /// An address in a database; `None` for SQLite.
    pub(super) store: Option<(&'p str, &'p Database)>,
    /// `None` for memory.
    pub(super) ranking: Option<&'p Redis>,
}

impl Place<'_> {
    fn start(&self, binary: &Path, folder: &Path) -> Result<Server, Error> {
        let mut args = Vec::new();
        if let Some((url, _)) = self.store {
            args.extend(["--store".to_owned(), url.to_owned()]);
        }
        if let Some(redis) = self.ranking {
            args.extend(["--ranking".to_owned(), format!("redis://{}", redis.address())]);
        }
        Server::start_with(binary, folder, &args, &[RANKING_TIMEOUT])
    }

    /// Seconds of processor time so far, of the server, its database and its Redis.
    fn cpu_s(&self, server: &Server) -> [Option<f64>; 3] {
        let database = self.store.and_then(|(_, database)| database.cpu_s());
        [server.process.cpu_s(), database, self.ranking.and_then(|redis| redis.process().cpu_s())]
    }

    fn memory(&self, server: &Server) -> Result<Memory, Error> {
        Ok(Memory {
            server: server.process.resident_bytes(),
            redis: self.ranking.map(redis_memory::used).transpose()?,
            database: self.store.and_then(|(_, database)| database.resident_bytes()),
        })
    }
}

/// Fills the store, unless an earlier run did and passes what was acknowledged. Then it restarts the server,
/// sends the load, and reads back.
pub(super) fn measure(
    binary: &Path,
    place: &Place<'_>,
    folder: &Path,
    (work, promised): (Work, Option<Acknowledged>),
    options: &Options,
) -> Result<(Way, Acknowledged), Error> {
    let target = |server: &Server| LoadTarget {
        address: server.listens.http,
        token: None,
        board: BOARD.to_owned(),
        players: work.players,
    };
    let (mut acknowledged, filled) = match promised {
        Some(promised) => (promised, None),
        None => {
            let server = place.start(binary, folder)?;
            let began = Instant::now();
            let what = format!("{}: filling", place.name);
            let mut on_progress = |done| options.progress(&what, done, work.players);
            let filled = fill(&target(&server), work.seed, &mut on_progress).during("fill the board")?;
            server.stop()?;
            (filled, Some(work.players as f64 / began.elapsed().as_secs_f64()))
        }
    };
    options.say(&format!("{}: starting", place.name));
    let began = Instant::now();
    let server = place.start(binary, folder)?;
    let started_s = Some(began.elapsed().as_secs_f64());
    let target = target(&server);
    let mut runs = Vec::with_capacity(SKEWS.len());
    for skew in SKEWS {
        options.say(&format!("{}: {}", place.name, skew.name()));
        runs.push(measure_one(place, &server, &target, (work, skew), &mut acknowledged)?);
    }
    let memory = place.memory(&server)?;
    options.say(&format!("{}: reading back", place.name));
    let samples = READ_BACK.min(work.players);
    let proof = verify(&target, &acknowledged, samples, !work.seed).during("read scores back")?;
    prove(proof.wrong.is_empty() && proof.right == samples, || {
        format!("{}: {} of {samples} right; {}", place.name, proof.right, proof.wrong.join("; "))
    })?;
    server.stop()?;
    Ok((Way { name: place.name, filled, started_s, runs, memory }, acknowledged))
}

fn measure_one(
    place: &Place<'_>,
    server: &Server,
    target: &LoadTarget,
    (work, skew): (Work, Skew),
    acknowledged: &mut Acknowledged,
) -> Result<Run, Error> {
    let Work { connections, warm_up, duration, seed, .. } = work;
    let plan = LoadPlan { kind: RequestKind::Half, skew, connections, warm_up, duration, seed };
    let (before, began) = (place.cpu_s(server), Instant::now());
    let outcome = run(target, &plan, acknowledged).during("load the server")?;
    let cores = Cores::between(before, place.cpu_s(server), began.elapsed().as_secs_f64());
    prove(outcome.failed() == 0, || {
        format!("{}, {}: requests failed, by status {:?}", place.name, skew.name(), outcome.errors)
    })?;
    prove(outcome.submits.count() > 0 && outcome.reads.count() > 0, || "nothing was answered".to_owned())?;
    let (submits, reads) = (outcome.submits, outcome.reads);
    Ok(Run { skew, seconds: outcome.seconds, submits, reads, cores })
}
