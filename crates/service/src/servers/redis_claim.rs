//! Which Redis has the rankings of this store: servers agree on one, and keep other stores and copies of this one out of it.
//!
//! A row of the store names the process of the Redis that the servers of this generation use. Each of them prolongs a claim in
//! Redis and checks the row, five times in a lease.
//!
//! - **The row names its Redis**: it serves ranks, and shows by a new sign in the row that a server is there.
//! - **Its Redis has restarted**: the row named the process before, so it names the new one.
//! - **The row names another Redis**: it refuses ranks and connects anew, because the name of the address may lead elsewhere. If no
//!   sign comes any more, the servers of the other Redis are gone: it takes over, and the term rises, so that everything is
//!   loaded.
//! - **Others have the claim**, such as servers of a restored copy: it refuses ranks. A start waits.
//!
//! Not here: how ranks are loaded (`periods::catch_up`), and the stamp of loaded ranks (`tally_ranking`).

use crate::background::Next;
use crate::backoff::Backoff;
use crate::failure::{Failure, Fault};
use crate::periods::catch_up::RANKING_UNAVAILABLE;
use crate::progress::Progress;
use crate::tally::Tally;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tally_ranking::RankingBackend;
use tally_ranking::redis::{Claim, Owner, RedisBackend};
use tally_store::Store;

/// The name of the row.
pub(crate) const ROW: &str = "ranking_redis";
/// Checks during a lease.
const CHECKS: u32 = 5;
/// Checks without a new sign after which the servers of another Redis are gone.
const SILENT_CHECKS: u32 = 3;
/// The longest pause between two checks.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Attempts to replace the row within one check: other servers replace it, too.
const ATTEMPTS: usize = 4;

const OTHER_REDIS: &str = "other servers of this store keep its ranks in another Redis, or in this one before it restarted; \
     give all of them the same `ranking.url`";
const OTHER_OWNER: &str = "other servers use this Redis under this prefix: those of another store, or of the store of which this one \
     is a copy; stop them, or set another `?prefix=` in `ranking.url`";

/// The row.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    generation: u64,
    /// The process of the Redis.
    process: String,
    term: u16,
    /// Changes while servers are there.
    sign: u64,
}

impl Place {
    fn parse(text: &[u8]) -> Option<Self> {
        let mut parts = std::str::from_utf8(text).ok()?.split(' ');
        let mut next = || parts.next();
        let generation = next()?.parse().ok()?;
        let process = next()?.to_owned();
        Some(Self { generation, process, term: next()?.parse().ok()?, sign: next()?.parse().ok()? })
    }

    fn text(&self) -> Vec<u8> {
        format!("{} {} {} {}", self.generation, self.process, self.term, self.sign).into_bytes()
    }
}

/// What a server knows from its last check.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The process that the row named, and that was its own.
    agreed: String,
    /// The row at the last check, and since when it is so.
    row: Option<(Vec<u8>, Instant)>,
    /// Whether another server has changed it: one is there.
    has_others: bool,
}

/// The row that follows, or why there is none. A pure rule: `is_silent` says that the row is as it was for some time.
fn next(
    row: Option<&Place>,
    (generation, process, used): (u64, &str, bool),
    agreed: &str,
    is_silent: bool,
) -> Option<Place> {
    let process = process.to_owned();
    let Some(row) = row.filter(|row| row.generation == generation) else {
        return Some(Place { generation, process, term: 0, sign: 0 });
    };
    let sign = row.sign.wrapping_add(1);
    if row.process == process {
        return Some(Place { sign, ..row.clone() });
    }
    let moves = row.process == agreed;
    // What it has may be older than what the other one got.
    let term = if used || !moves { row.term.wrapping_add(1) } else { row.term };
    (moves || is_silent).then(|| Place { process, term, sign, ..row.clone() })
}

fn pause(store: &dyn Store) -> Duration {
    (store.lease_time() / CHECKS).min(PAUSE_MAX)
}

/// Prolongs the claim and checks the row once; returns why ranks must not be served.
fn check(
    store: &dyn Store,
    redis: &RedisBackend,
    known: &mut Known,
) -> Result<Option<&'static str>, Failure> {
    let Some(id) = store.id()? else { return Ok(None) };
    let generation = store.generation();
    for _ in 0..ATTEMPTS {
        let stored = store.meta(ROW)?;
        let row = stored.as_deref().and_then(Place::parse);
        let of_generation = row.as_ref().filter(|row| row.generation == generation);
        redis.set_owner(Owner { store: id, generation, term: of_generation.map_or(0, |row| row.term) });
        let Claim::Ours { process, used } = redis.claim(store.lease_time(), false)? else {
            return Ok(Some(OTHER_OWNER));
        };
        let before = known.row.take();
        let since =
            before.as_ref().filter(|(before, _)| Some(before) == stored.as_ref()).map(|(_, since)| *since);
        let is_signed = before.is_some() && since.is_none();
        known.has_others |= is_signed;
        let since = since.unwrap_or_else(Instant::now);
        known.row = stored.clone().map(|stored| (stored, since));
        if is_signed && of_generation.is_some_and(|row| row.process == process) {
            // Another server has just shown that one is there.
            known.agreed = process;
            return Ok(None);
        }
        let is_silent = since.elapsed() >= pause(store) * SILENT_CHECKS;
        let Some(next) = next(row.as_ref(), (generation, &process, used), &known.agreed, is_silent) else {
            return Ok(Some(OTHER_REDIS));
        };
        if store.swap_meta(ROW, stored.as_deref(), &next.text())? {
            redis.set_owner(Owner { store: id, generation, term: next.term });
            if !used {
                redis.claim(store.lease_time(), true)?;
            }
            known.row = Some((next.text(), Instant::now()));
            known.agreed = next.process;
            return Ok(None);
        }
    }
    // Others were faster each time, so the row has its signs.
    Ok(None)
}

/// Claims the Redis of a start. One that `waits` tries until it may have it.
pub(crate) fn take(
    store: &dyn Store,
    redis: &RedisBackend,
    waits: bool,
    progress: &Progress,
) -> Result<Known, Failure> {
    let (mut known, mut logged, mut backoff) = (Known::default(), None, Backoff::new("load ranks"));
    loop {
        let why = match check(store, redis, &mut known) {
            Ok(None) => {
                progress.wait(None);
                redis.refuse(None);
                backoff.note(None);
                return Ok(known);
            }
            Ok(Some(why)) if waits => why,
            Ok(Some(why)) => return Err(Fault::RanksUnavailable(why.into()).into()),
            Err(failure @ Failure::Fault(Fault::RanksUnavailable(_))) if waits => {
                progress.wait(Some(RANKING_UNAVAILABLE));
                std::thread::sleep(backoff.note(Some(&failure)));
                continue;
            }
            Err(failure) => return Err(failure),
        };
        progress.wait(Some(why));
        // Without others it is this Redis, which has restarted, and the wait is short.
        if logged != Some(why) && (why != OTHER_REDIS || known.has_others) {
            tracing::warn!("load ranks: {why}; the start waits");
            logged = Some(why);
        }
        if why == OTHER_REDIS {
            redis.reconnect();
        }
        std::thread::sleep(pause(store));
    }
}

/// Starts the background task.
pub(crate) fn start(tally: &Arc<Tally>, known: Option<Known>) -> Result<(), Failure> {
    let (RankingBackend::Redis(redis), Some(mut known)) = (&tally.settings.ranking, known) else {
        return Ok(());
    };
    let (redis, mut refused) = (redis.clone(), None);
    let pause = pause(&*tally.store);
    tally.tasks.redis_claim.start("redis claim", tally, Next::After(pause), move |tally| {
        // A store or a Redis that does not answer says nothing about others.
        if let Ok(now) = check(&*tally.store, &redis, &mut known) {
            redis.refuse(now);
            match (refused, now) {
                (before, Some(why)) if before != now => tracing::error!("ranks are refused: {why}"),
                (Some(_), None) => {
                    tracing::info!("the servers of this store agree on their Redis: ranks are served again")
                }
                _ => {}
            }
            refused = now;
            if now == Some(OTHER_REDIS) {
                redis.reconnect();
            }
        }
        Next::After(pause)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(generation: u64, process: &str, term: u16, sign: u64) -> Place {
        Place { generation, process: process.into(), term, sign }
    }

    #[test]
    fn the_row_is_stored_as_text() {
        let row = place(7, "a", 2, 9);
        assert_eq!(row.text(), b"7 a 2 9");
        assert_eq!(Place::parse(&row.text()), Some(row));
        assert_eq!(Place::parse(b"7 a"), None);
    }

    #[test]
    fn servers_agree_on_one_redis() {
        let row = place(7, "a", 2, 9);
        let of = |process: &str, used, agreed: &str, is_silent| {
            next(Some(&row), (7, process, used), agreed, is_silent)
        };
        assert_eq!(of("a", true, "", false), Some(place(7, "a", 2, 10)), "the same one");
        assert_eq!(of("b", false, "a", false), Some(place(7, "b", 2, 10)), "it has restarted");
        assert_eq!(of("b", true, "a", false), Some(place(7, "b", 3, 10)), "one from before: all is loaded");
        assert_eq!(of("b", false, "", false), None, "another one");
        assert_eq!(of("b", false, "c", false), None);
        assert_eq!(
            of("b", false, "", true),
            Some(place(7, "b", 3, 10)),
            "no server is there any more: all is loaded"
        );
        let begins = |row: Option<&Place>| next(row, (8, "b", true), "", false);
        assert_eq!(begins(Some(&row)), Some(place(8, "b", 0, 0)), "a new generation loads everything");
        assert_eq!(begins(None), Some(place(8, "b", 0, 0)));
    }
}
