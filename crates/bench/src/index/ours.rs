//! The index at one size: built at once, read, changed at random, read again.

use super::players::{Digest, all, changes, some};
use super::rounds::median_ns;
use crate::error::{During, Error, prove};
use crate::resident;
use std::hint::black_box;
use std::time::Instant;
use tally_index::{Builder, RankingIndex, Tie};
use tally_load::Random;

/// Operations in a round: a few milliseconds, so that the clock costs nothing.
const ROUND: usize = 50_000;
/// Players whose rank is compared with the rank of their score.
const CHECKED: usize = 1_000;

/// Figures at one size; times in nanoseconds of one operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    pub(super) members: u64,
    pub(super) build_s: f64,
    pub(super) built: State,
    pub(super) update_ns: f64,
    pub(super) updated: State,
    /// Resident bytes per member, if the system reports it.
    pub(super) resident: Option<f64>,
}

/// What is measured twice, after the build and after the changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    pub(super) bytes: f64,
    pub(super) rank_ns: f64,
    pub(super) around_ns: f64,
}

/// Builds, reads, changes half as many players as there are, reads again, and checks the ranking.
pub(super) fn measure(members: u64, rounds: usize, seed: u64) -> Result<(Figures, RankingIndex<i64>), Error> {
    let before = resident::bytes();
    let start = Instant::now();
    let mut builder = Builder::new(Tie::StampAscending, false);
    for (id, entry) in all(members, seed) {
        builder.push(&id, entry);
    }
    let mut order: RankingIndex<i64> = builder.finish().during("build the index")?;
    let build_s = start.elapsed().as_secs_f64();
    let resident = before.zip(resident::bytes());
    let mut random = Random::new(!seed);
    let built = measure_state(&order, rounds, &mut random);
    let update_ns = update(&mut order, &mut random);
    let updated = measure_state(&order, rounds, &mut random);
    check(&order, members, &mut random)?;
    let resident = resident.map(|(before, after)| after.saturating_sub(before) as f64 / members as f64);
    Ok((Figures { members, build_s, built, update_ns, updated, resident }, order))
}

fn measure_state(order: &RankingIndex<i64>, rounds: usize, random: &mut Random) -> State {
    let members = order.len();
    let mut ids = |count| some(members, count, random);
    let rank_ns = median_ns(rounds, ROUND, &mut ids, |id| {
        black_box(order.ordinal(&id));
    });
    let around_ns = median_ns(rounds, ROUND, &mut ids, |id| {
        let place = order.ordinal(&id).unwrap_or_default();
        for row in order.range(place.saturating_sub(5)).take(11) {
            black_box(row);
        }
    });
    State { bytes: order.bytes() as f64 / members as f64, rank_ns, around_ns }
}

fn update(order: &mut RankingIndex<i64>, random: &mut Random) -> f64 {
    let members = order.len();
    let rounds = (members as usize / 2).div_ceil(ROUND);
    let prepare = |count| changes(members, count, random);
    median_ns(rounds, ROUND, prepare, |(id, entry)| {
        black_box(order.set(&id, entry));
    })
}

/// Checks that no player was lost, that the ranking is sorted, and that ranks from leaves equal those from the
/// root.
fn check(order: &RankingIndex<i64>, members: u64, random: &mut Random) -> Result<(), Error> {
    let digest = digest(order);
    prove(digest.count == members, || format!("the index lists {} of {members} members", digest.count))?;
    prove(digest.ascends, || "the index does not list its members in order".to_owned())?;
    for id in some(members, CHECKED, random) {
        let found = order.find(&id);
        let place = found.map(|(entry, _)| order.lower_bound(entry.score, entry.stamp, &id));
        let agrees = place.is_some() && place == found.map(|(_, place)| place);
        prove(agrees, || format!("two ranks of {}: {found:?} and {place:?}", id.escape_ascii()))?;
    }
    Ok(())
}

/// The hash of a ranking.
pub(super) fn digest(order: &RankingIndex<i64>) -> Digest {
    let mut digest = Digest::new();
    for row in order.range(0) {
        digest.add(row.id, row.score, row.stamp);
    }
    digest
}
