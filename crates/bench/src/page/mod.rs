//! Scenario `page`: a hundred look-ups for one page, one after the other, in one command, and in a pipeline.
//!
//! The shape of R4, whose API asked a Redis Cluster once for each item: plain values by `GET` and `MGET`, and what tally
//! asks, the ranks of a page, by its own client of Redis. Servers are this run's own, a single one and a cluster of three.
//! On the loopback interface a question costs little more than the work for it, which hides what a loop costs elsewhere; so
//! everything is measured once more behind a stated round trip. Every answer is compared with what is known, outside the
//! measurement. Not here: other clients, and reads beside writes.

mod gets;
mod ranks;
mod show;

use crate::delay::Delay;
use crate::error::{During, Error, prove};
use crate::options::Options;
use crate::redis::cluster::Cluster;
use crate::redis::{self, Redis, client::Client};
use gets::Gets;
use ranks::Ranks;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tally_load::Latencies;
use tally_load::report::Report;

/// Look-ups of a page.
const LOOK_UPS: usize = 100;
/// What is added to a round trip: nothing, and what a data centre has.
const ROUND_TRIPS: [Duration; 2] = [Duration::ZERO, Duration::from_millis(1)];
/// Pages of a size at least, however long they take.
const PAGES_MIN: usize = 5;
/// Questions that tell the round trip.
const PINGS: usize = 50;

/// How a page is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// One question after the other.
    Loop,
    /// One for all.
    Command,
    /// All of them at once.
    Pipeline,
}

const WAYS: [Way; 3] = [Way::Loop, Way::Command, Way::Pipeline];

/// What can be asked for a page.
trait Pages {
    /// Asks for so many: how long the answer took, which was as it must be.
    fn ask(&mut self, way: Way, look_ups: usize) -> Result<Duration, Error>;

    /// Proves that a look-up that fails among others fails alone.
    fn prove_alone(&mut self) -> Result<(), Error>;
}

/// What was measured of one kind of page at one place.
struct Cell {
    name: &'static str,
    /// Whether the target is of it.
    ours: bool,
    clustered: bool,
    /// Of each size, the times of each way.
    sizes: Vec<(usize, [Latencies; 3])>,
}

/// Everything at one distance.
struct Distance {
    added: Duration,
    /// Of a question to a single server, in milliseconds.
    round_trip_ms: f64,
    cells: Vec<Cell>,
}

/// Measures it.
pub(crate) fn measure(options: &Options) -> Result<Report, Error> {
    let title = format!("a page of {LOOK_UPS} look-ups: loop, one command, pipeline");
    let mut report = Report::new("page", &title, options);
    let release = crate::process::release(&options.redis, &["--version"]).unwrap_or_default();
    // What follows is of its build.
    let release = release.split(" sha=").next().unwrap_or_default();
    let distances: Vec<Distance> =
        ROUND_TRIPS.into_iter().map(|added| measure_at(added, options)).collect::<Result<_, _>>()?;
    show::show(&mut report, &distances, release.trim());
    Ok(report)
}

/// Refuses where there is no Redis.
pub(crate) fn needs(options: &Options) -> Result<(), Error> {
    redis::needs(&options.redis)
}

fn measure_at(added: Duration, options: &Options) -> Result<Distance, Error> {
    options.say(&format!("starting a Redis and a cluster, {} ms away", added.as_millis()));
    let single = Redis::start(&options.redis)?;
    let delay = (!added.is_zero()).then(|| Delay::listen(added)).transpose();
    let delay = delay.during("listen in front of Redis")?;
    let at = delay.as_ref().map_or_else(|| single.address(), |delay| delay.address);
    if let Some(delay) = &delay {
        delay.lead_to(single.address());
    }
    let cluster = Cluster::start(&options.redis, added)?;
    let players = options.pick(100, 1_000);
    let nodes = cluster.addresses();
    let seeds: Vec<String> = nodes.iter().map(SocketAddr::to_string).collect();
    let urls = [format!("redis://{at}"), format!("redis-cluster://{}", seeds.join(","))];
    let round_trip_ms = round_trip_ms(at).during("ask Redis")?;
    let mut cells = Vec::new();
    let mut add = |(name, ours, clustered), pages: &mut dyn Pages| {
        options.say(&format!("{name}, {} ms away", added.as_millis()));
        pages.prove_alone()?;
        cells.push(Cell { name, ours, clustered, sizes: measure_pages(pages, options)? });
        Ok::<_, Error>(())
    };
    add(("values, one Redis", false, false), &mut Gets::fill(&[at])?)?;
    add(("values, cluster", false, true), &mut Gets::fill(&nodes)?)?;
    add(("tally's ranks, one Redis", true, false), &mut Ranks::fill(&urls[0], players)?)?;
    add(("tally's ranks, cluster", true, true), &mut Ranks::fill(&urls[1], players)?)?;
    Ok(Distance { added, round_trip_ms, cells })
}

/// The median of single questions.
fn round_trip_ms(at: SocketAddr) -> std::io::Result<f64> {
    let (mut client, mut latencies) = (Client::open(at)?, Latencies::default());
    for _ in 0..PINGS {
        let asked = Instant::now();
        client.call(&["PING"])?;
        latencies.record(asked.elapsed());
    }
    Ok(latencies.percentile_ms(50.0))
}

/// Pages of every size; the three ways take turns, so that what drifts drifts for all.
fn measure_pages(pages: &mut dyn Pages, options: &Options) -> Result<Vec<(usize, [Latencies; 3])>, Error> {
    let sizes: &[usize] = options.pick(&[1, LOOK_UPS], &[1, 10, 30, LOOK_UPS]);
    let mut all = Vec::with_capacity(sizes.len());
    for &look_ups in sizes {
        let mut times: [Latencies; 3] = Default::default();
        let (until, mut done) = (Instant::now() + options.duration().mul_f64(0.1), 0);
        while done < PAGES_MIN || Instant::now() < until {
            for (way, times) in WAYS.into_iter().zip(&mut times) {
                times.record(pages.ask(way, look_ups)?);
            }
            done += 1;
        }
        all.push((look_ups, times));
    }
    Ok(all)
}

/// That a page was answered as it must be.
fn prove_page<T: PartialEq>(answered: &[T], known: &[T], way: Way) -> Result<(), Error> {
    prove(answered == known, || format!("{way:?}: a page of {} was answered otherwise", known.len()))
}
