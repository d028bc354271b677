//! Scenario `page`: a hundred look-ups for one page, one after the other, in one command, and in a pipeline.
//!
//! It follows field report R4 (`docs/bench.md`), whose API sent a Redis Cluster a command for each item. The look-ups
//! are plain values by `GET` and `MGET`, and the ranks of a page by tally's own Redis client. The run starts its
//! servers, a single one and a cluster of three. On the loopback interface a round trip costs little more than the work
//! for it, which hides the cost of a loop elsewhere. So everything is measured once more behind a stated round trip.
//! Every reply is checked outside the measurement. Not here: other clients, and reads beside writes.

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
const LOOKUPS: usize = 100;
/// The added round trip: none, and that of a data centre.
const ROUND_TRIPS: [Duration; 2] = [Duration::ZERO, Duration::from_millis(1)];
/// The fewest pages of a size, however long they take.
const PAGES_MIN: usize = 5;
/// Commands that measure the round trip.
const PINGS: usize = 50;

/// How a page is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// One command after the other.
    Loop,
    /// One command for all.
    Command,
    /// All commands at once.
    Pipeline,
}

const WAYS: [Way; 3] = [Way::Loop, Way::Command, Way::Pipeline];

/// Look-ups of one kind.
trait Pages {
    /// Reads so many and checks the reply; returns the time.
    fn read(&mut self, way: Way, lookups: usize) -> Result<Duration, Error>;

    /// Checks that a failed look-up among others fails alone.
    fn prove_alone(&mut self) -> Result<(), Error>;
}

/// Figures of one kind of page on one server or cluster.
struct Cell {
    name: &'static str,
    /// Whether the target applies to it.
    ours: bool,
    clustered: bool,
    /// For each size the times of each way.
    sizes: Vec<(usize, [Latencies; 3])>,
}

/// Everything with one added round trip.
struct Distance {
    added: Duration,
    /// Of a command to a single server, in milliseconds.
    round_trip_ms: f64,
    cells: Vec<Cell>,
}

pub(crate) fn measure(options: &Options) -> Result<Report, Error> {
    let title = format!("a page of {LOOKUPS} look-ups: loop, one command, pipeline");
    let mut report = Report::new("page", &title, options);
    let release = crate::process::release(&options.redis, &["--version"]).unwrap_or_default();
    // The rest describes its build.
    let release = release.split(" sha=").next().unwrap_or_default();
    let distances: Vec<Distance> =
        ROUND_TRIPS.into_iter().map(|added| measure_at(added, options)).collect::<Result<_, _>>()?;
    show::show(&mut report, &distances, release.trim());
    Ok(report)
}

/// Fails without a Redis.
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

/// The median time of single commands.
fn round_trip_ms(at: SocketAddr) -> std::io::Result<f64> {
    let (mut client, mut latencies) = (Client::open(at)?, Latencies::default());
    for _ in 0..PINGS {
        let sent_at = Instant::now();
        client.call(&["PING"])?;
        latencies.record(sent_at.elapsed());
    }
    Ok(latencies.percentile_ms(50.0))
}

/// Pages of every size; the three ways alternate, so that drift affects all.
fn measure_pages(pages: &mut dyn Pages, options: &Options) -> Result<Vec<(usize, [Latencies; 3])>, Error> {
    let sizes: &[usize] = options.pick(&[1, LOOKUPS], &[1, 10, 30, LOOKUPS]);
    let mut all = Vec::with_capacity(sizes.len());
    for &lookups in sizes {
        let mut times: [Latencies; 3] = Default::default();
        let (until, mut done) = (Instant::now() + options.duration().mul_f64(0.1), 0);
        while done < PAGES_MIN || Instant::now() < until {
            for (way, times) in WAYS.into_iter().zip(&mut times) {
                times.record(pages.read(way, lookups)?);
            }
            done += 1;
        }
        all.push((lookups, times));
    }
    Ok(all)
}

/// Checks the reply of a page.
fn prove_page<T: PartialEq>(answered: &[T], known: &[T], way: Way) -> Result<(), Error> {
    prove(answered == known, || format!("{way:?}: a page of {} was answered otherwise", known.len()))
}
