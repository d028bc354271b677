//! What a follower costs: processor time of submits and reads, memory, and bytes between it and its leader.
//!
//! The same server is alone, then leads without a follower, then with one. The lag is measured with the servers that the last of
//! these needs.

use super::lag::{self, Lag};
use super::load;
use super::place::{NAMES, Place};
use super::proxy::{Counted, Proxy};
use crate::error::{During, Error, prove};
use crate::server::Server;
use std::time::Duration;
use tally_load::{Acknowledged, LoadPlan, RequestKind, Skew};

/// Reads whose processor time is measured.
const READS: [RequestKind; 2] = [RequestKind::Top, RequestKind::Around];

/// Processor time of a server.
pub(super) struct Cost {
    pub(super) what: String,
    pub(super) server: &'static str,
    /// How often it was done.
    pub(super) count: u64,
    /// Microseconds of a processor for each.
    pub(super) micros: f64,
}

/// All figures.
pub(super) struct Costs {
    /// A submit: alone, leading without a follower, leading with one, and its change at the follower.
    pub(super) submits: [Cost; 4],
    /// Reads at the leader and the follower, and what both take without work.
    pub(super) others: Vec<Cost>,
    /// Bytes between the two during the submits.
    pub(super) counted: Counted,
    /// Resident bytes: alone, leading with a follower, the follower.
    pub(super) resident: [f64; 3],
}

/// Measures costs, then the lag at each rate.
pub(super) fn measure(place: &Place<'_>) -> Result<(Costs, Vec<Lag>), Error> {
    let rate = place.sizes.cost_rate;
    let say = |what: &str| place.options.say(what);
    let submits = |server: &Server| load(place, server, rate).map(|outcome| outcome.iterations.count());
    say("one server alone");
    let alone = place.start(NAMES[0], None)?;
    // Once before anything counts: pages of the database and of the server are cold.
    submits(&alone)?;
    let [submit_alone] = spent("a submit", [("alone", &alone)], || submits(&alone))?;
    let resident_alone = resident(&alone);
    alone.stop()?;
    say("a leader without a follower");
    let proxy = Proxy::start()?;
    let leader = place.start(NAMES[0], Some(&proxy.url()))?;
    proxy.set_target(leader.listens.http);
    let [submit_leader] = spent("a submit", [("leader without a follower", &leader)], || submits(&leader))?;
    say("a leader with a follower");
    let follower = place.start(NAMES[1], Some("auto"))?;
    let both = [("leader", &leader), ("follower", &follower)];
    let before = proxy.counted();
    let [submit_followed, change] = spent("a submit", both, || submits(&leader))?;
    let counted = proxy.counted().since(before);
    prove(counted.to_follower > 0, || "the follower asked the leader for nothing".to_owned())?;
    let resident = [resident_alone, resident(&leader), resident(&follower)];
    let mut others = Vec::new();
    for kind in READS {
        say(&format!("{} at each", kind.name()));
        for (name, server) in both {
            others.extend(spent(kind.name(), [(name, server)], || read(place, server, kind))?);
        }
    }
    let idle = Duration::from_secs_f64(place.options.duration().as_secs_f64().ceil());
    others.extend(spent("a second without work", both, || {
        std::thread::sleep(idle);
        Ok(idle.as_secs())
    })?);
    let lags = place.sizes.rates.iter().map(|rate| lag::measure(place, (&leader, &follower), *rate));
    let lags = lags.collect::<Result<_, _>>()?;
    // The follower first: this leader has no successor to wait for.
    follower.stop()?;
    leader.stop()?;
    let change = Cost { what: "a change of a submit".to_owned(), ..change };
    let submits = [submit_alone, submit_leader, submit_followed, change];
    Ok((Costs { submits, others, counted, resident }, lags))
}

/// What some work takes at each of these servers; the work says how often it did something.
fn spent<const N: usize>(
    what: &str,
    servers: [(&'static str, &Server); N],
    work: impl FnOnce() -> Result<u64, Error>,
) -> Result<[Cost; N], Error> {
    let used = || servers.map(|(_, server)| server.process.cpu_s().unwrap_or_default());
    let before = used();
    let count = work()?;
    prove(count > 0, || format!("{what}: nothing was done"))?;
    let after = used();
    Ok(std::array::from_fn(|nth| {
        let micros = (after[nth] - before[nth]) * 1e6 / count as f64;
        Cost { what: what.to_owned(), server: servers[nth].0, count, micros }
    }))
}

fn resident(server: &Server) -> f64 {
    server.process.resident_bytes().unwrap_or_default() as f64
}

/// A closed loop of reads.
fn read(place: &Place<'_>, server: &Server, kind: RequestKind) -> Result<u64, Error> {
    let plan = LoadPlan {
        kind,
        skew: Skew::Uniform,
        connections: place.options.pick(2, 8),
        warm_up: Duration::ZERO,
        duration: place.options.duration(),
        seed: place.options.seed,
    };
    let target = place.known(server);
    let outcome = tally_load::run(&target, &plan, &mut Acknowledged::new(0)).during("read")?;
    prove(outcome.failed() == 0, || format!("{} failed: {:?}", kind.name(), outcome.errors))?;
    Ok(outcome.succeeded)
}
