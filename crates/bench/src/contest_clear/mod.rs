//! Scenario `contest-clear`: reading and clearing the applications of one contest, beside other keys in Redis.
//!
//! Two ways are those of field report R1 (`docs/bench.md`): `SCAN` over all keys, and an index of each contest. The third is
//! tally's own Redis client, which does it when a contest starts. There is one server for each number of other keys,
//! and the servers alternate, so that drift affects all. The applications are written anew each time, outside the
//! measurement. A check shows that exactly these are read, none is left, and every other key is. Not here: the
//! transaction that makes members of them (`contest-start`).

mod plain;
mod show;

use crate::error::{During, Error, prove};
use crate::options::Options;
use crate::redis::{self, Redis, client::Client};
use plain::Plain;
use std::time::{Duration, Instant};
use tally_load::Latencies;
use tally_load::report::Report;
use tally_ranking::redis::Options as RedisOptions;
use tally_ranking::redis::applications::{
    ApplicationRow, ApplicationsChange, ApplicationsKey, RedisApplications,
};
use tally_rules::contest::Status;
use tally_rules::ledger::Uuid;
use tally_rules::{Micros, PlayerId};

/// Applications of the contest.
const SIZES: [usize; 2] = [50, 100];
/// The fewest rounds of the index, however long they take, and the rounds of `SCAN`.
const TURNS_MIN: usize = 20;
const SCANS: usize = 5;
/// Rounds that are not measured: connections and scripts are new.
const WARM_UP: usize = 5;
/// Keys of one command while filling.
const AT_ONCE: u64 = 1_000;
/// The size of a value.
const BYTES: usize = 64;
/// Applications of one page, as in a start.
const PAGE: usize = 1_000;

/// How applications are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// `SCAN` over all keys.
    Scan,
    /// By the index of the contest.
    Index,
    /// By tally's client.
    Tally,
}

const WAYS: [Way; 3] = [Way::Scan, Way::Index, Way::Tally];

/// A server with its number of other keys.
struct Place {
    others: u64,
    client: Client,
    plain: Plain,
    applications: RedisApplications,
    /// For each size the times of each way.
    times: [[Latencies; 3]; 2],
    _server: Redis,
}

pub(crate) fn measure(options: &Options) -> Result<Report, Error> {
    let title = "reading and clearing a contest's applications in Redis: SCAN, an index, tally";
    let mut report = Report::new("contest-clear", title, options);
    let others: &[u64] = options.pick(&[0, 2_000], &[0, 10_000, 100_000, 1_000_000]);
    let mut places = Vec::with_capacity(others.len());
    for others in others {
        options.say(&format!("a Redis with {others} other keys"));
        places.push(Place::start(*others, options)?);
    }
    for (at, size) in SIZES.into_iter().enumerate() {
        options.say(&format!("{size} applications"));
        let (until, mut turn) = (Instant::now() + options.duration(), 0);
        while turn < WARM_UP + TURNS_MIN || Instant::now() < until {
            for place in &mut places {
                for way in [Way::Index, Way::Tally] {
                    place.turn(way, (at, size), turn >= WARM_UP)?;
                }
            }
            turn += 1;
        }
        for _ in 0..SCANS {
            for place in &mut places {
                place.turn(Way::Scan, (at, size), true)?;
            }
        }
    }
    let release = crate::process::release(&options.redis, &["--version"]).unwrap_or_default();
    show::show(&mut report, &places, release.split(" sha=").next().unwrap_or_default().trim());
    Ok(report)
}

/// Fails without a Redis.
pub(crate) fn needs(options: &Options) -> Result<(), Error> {
    redis::needs(&options.redis)
}

impl Place {
    fn start(others: u64, options: &Options) -> Result<Self, Error> {
        let server = Redis::start(&options.redis)?;
        let address = server.address();
        let mut client = Client::open(address).during("connect to Redis")?;
        fill(&mut client, others).during("set other keys")?;
        let applications = RedisApplications::open(&format!("redis://{address}"), &RedisOptions::default());
        let plain = Plain::open(address).during("connect to Redis")?;
        let times = Default::default();
        Ok(Self {
            others,
            client,
            plain,
            applications: applications.during("connect to Redis")?,
            times,
            _server: server,
        })
    }

    /// Writes applications, and reads and clears them in one way.
    fn turn(&mut self, way: Way, (at, size): (usize, usize), counts: bool) -> Result<(), Error> {
        let (mut read, took) = match way {
            Way::Scan | Way::Index => self.plain.turn(way == Way::Scan, size).during("clear applications")?,
            Way::Tally => by_tally(&self.applications, size)?,
        };
        read.sort_unstable();
        let wanted: Vec<String> = (0..size).map(player).collect();
        prove(read == wanted, || format!("{way:?}: {} applications were read, not {size}", read.len()))?;
        let left = self.client.integer(&["DBSIZE"]).during("count keys")?;
        prove(u64::try_from(left) == Ok(self.others), || {
            format!("{way:?}: {left} keys are left where {} are others'", self.others)
        })?;
        if counts {
            self.times[at][way as usize].record(took);
        }
        Ok(())
    }

    /// Median milliseconds.
    fn median(&self, at: usize, way: Way) -> f64 {
        self.times[at][way as usize].percentile_ms(50.0)
    }
}

/// Other keys, as other features of a game would have.
fn fill(client: &mut Client, others: u64) -> std::io::Result<()> {
    let value = vec![b'x'; BYTES];
    for first in (0..others).step_by(usize::try_from(AT_ONCE).unwrap_or(1)) {
        let last = others.min(first + AT_ONCE);
        for number in first..last {
            client.add(&[b"SET", format!("session:{number}").as_bytes(), &value]);
        }
        client.exchange(usize::try_from(last - first).unwrap_or(0))?;
    }
    Ok(())
}

fn player(number: usize) -> String {
    format!("player-{number:08}")
}

/// The Redis part of a start, by the client of the server.
fn by_tally(applications: &RedisApplications, size: usize) -> Result<(Vec<String>, Duration), Error> {
    let key = ApplicationsKey { contest: Uuid([7; 16]), number: Uuid([8; 16]) };
    applications.begin(key).during("begin to take applications")?;
    let row = |number| {
        let player = PlayerId::new(&player(number)).map_err(|error| Error::Proof(format!("{error:?}")))?;
        Ok(ApplicationRow {
            player,
            seen: None,
            to: Some(Status::Accepted),
            applied_at: Micros(number as i64),
        })
    };
    let rows = (0..size).map(row).collect::<Result<_, Error>>()?;
    let change = ApplicationsChange { mark: "bench".into(), rows, ..ApplicationsChange::default() };
    applications.change(key, &change).during("write applications")?;
    let began = Instant::now();
    let page = applications.page(key, Status::Accepted, 0, PAGE).during("read applications")?;
    applications.clear(key).during("clear applications")?;
    let took = began.elapsed();
    Ok((page.into_iter().map(|(player, _)| player.as_str().to_owned()).collect(), took))
}
