//! Scenario `followers`: servers with ranks in memory that follow the one that writes, beside a server alone.
//!
//! A leader and a follower on a database of the run. Steady loads show how far the follower is behind (`lag`), and what it costs:
//! processor time, memory, bytes between the two (`costs`). Then the leader is stopped and killed again and again while clients
//! write with idempotency keys and retry at the other server (`takeovers`). The baseline is one server, which is started again.
//! The scores of that part are sums, so a lost change and a doubled one both show; one of either fails the scenario.
//!
//! Not here: more machines than this one, and the load of a database for each follower's start.

mod costs;
mod fleet;
mod lag;
mod place;
mod proxy;
mod show;
mod takeovers;
mod writers;

use crate::database;
use crate::error::{During, Error, prove};
use crate::options::Options;
use crate::server::Server;
use fleet::Fleet;
use place::Place;
use std::time::Duration;
use takeovers::How;
use tally_load::open::{self, Journey, OpenLimits, OpenOutcome, Protocol, Scene, Schedule};
use tally_load::report::{Report, number};
use tally_load::{People, Skew};

/// The leaderboard of the loads.
const BOARD: &str = "bench";
/// The leaderboard of the writers during takeovers: its scores are sums.
const SUMS: &str = "sums";
/// `follow.age_max`: so long that a follower on a busy machine fails no read.
const AGE_MAX: &str = "30s";
/// How long a server may take to lead or to follow, and a writer until its change is acknowledged.
const PATIENCE: Duration = Duration::from_secs(600);

/// The sizes of a run.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    players: u64,
    /// Submits a second while the lag is measured.
    rates: &'static [u32],
    /// Submits a second while costs are measured.
    cost_rate: u32,
    handovers: u32,
    kills: u32,
    /// `store.lease`, in seconds.
    lease_s: u32,
}

impl Sizes {
    fn of(options: &Options) -> Self {
        Self {
            players: options.members.unwrap_or(options.pick(2_000, 100_000)),
            rates: options.pick(&[200], &[1_000, 5_000, 20_000]),
            cost_rate: options.pick(200, 5_000),
            handovers: options.handovers.unwrap_or(options.pick(2, 20)),
            kills: options.kills.unwrap_or(options.pick(1, 5)),
            // A short run shares the machine with other tests, and a leader that is late for so long is replaced.
            lease_s: options.pick(4, 3),
        }
    }
}

pub(crate) fn measure(options: &Options) -> Result<Report, Error> {
    let sizes = Sizes::of(options);
    let title = format!(
        "a leader and a follower, {} players, handovers: {}, kills: {}",
        number(sizes.players as f64),
        sizes.handovers,
        sizes.kills
    );
    let mut report = Report::new("followers", &title, options);
    let sync = crate::disk::sync_ms().during("try the disk")?;
    let place = Place::open(options, sizes)?;
    place.fill()?;
    let (costs, lags) = costs::measure(&place)?;
    let mut all = Vec::new();
    for servers in [2, 1] {
        let mut fleet = Fleet::start(&place, servers)?;
        for how in [How::Handover, How::Kill] {
            all.push(takeovers::measure(&mut fleet, how)?);
        }
        fleet.stop()?;
    }
    show::show(&mut report, sizes, (&costs, &lags, &all));
    report.note(place.says()?);
    report.note(crate::disk::sentence(sync));
    report.note("both servers, the database and the load share the machine; so a takeover waits for its processors, too");
    report.note(format!(
        "`store.lease` is {} s, and `follow.age_max` {AGE_MAX}, so that a machine with other work fails no read",
        sizes.lease_s
    ));
    report.note("every acknowledged change of the takeovers is in the sums once, at both servers");
    Ok(report)
}

/// Fails without a server to measure, or a database.
pub(crate) fn needs(options: &Options) -> Result<(), Error> {
    options.binary("followers")?;
    database::needs(options)
}

/// Submits for random players of the filled leaderboard, due by the clock.
fn load(place: &Place<'_>, server: &Server, rate: u32) -> Result<OpenOutcome, Error> {
    let scene = Scene {
        protocol: Protocol::Http,
        address: server.listens.http,
        journey: Journey::Scores,
        people: People::seeded(place.sizes.players),
        members: 1,
        skew: Skew::Uniform,
        key: None,
        board: BOARD.to_owned(),
        reads: 0,
        run: String::new(),
        seed: place.options.seed,
    };
    let lasts = place.options.duration();
    let schedule = Schedule::parse(&rate.to_string(), &[lasts]).expect("a rate and a length of time");
    let bounds = OpenLimits { connections: 64, waiting: 100_000, answer: PATIENCE };
    let (_never, stop) = tokio::sync::mpsc::channel(1);
    let outcome = open::run(&scene, &schedule, bounds, stop, &mut |_| {}).during("load the server")?;
    prove(outcome.failed == 0, || format!("{} submits failed: {:?}", outcome.failed, outcome.errors()))?;
    Ok(outcome)
}
