//! Scenario `expiry`: old outcomes of idempotency keys are deleted while 30,000 new ones a second are stored, on SQLite and on
//! MariaDB.
//!
//! Three ways: the service's own task, steps of a fixed size as a task of a studio's own has them, and one statement for all. The
//! new outcomes come in a batch every 10 ms, as a lane writes them, and their latency counts from the time that they are due. A
//! check shows that every old outcome is gone and every new one is still there.
//!
//! Not here: outcomes that expire with the clock (`endurance`), and the requests that store them.

mod writer;

use crate::database::{self, Database};
use crate::error::{During, Error, prove};
use crate::options::Options;
use crate::ours;
use crate::targets::EXPIRED_PER_SECOND;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tally_load::Latencies;
use tally_load::report::{Ratio, Report, Table, number};
use tally_rules::Micros;
use tally_service::clock;
use tally_store::{ReadSet, Store, StoreError, WriteSet, mysql, sqlite};
use writer::Writer;

/// Outcomes of one transaction while filling, and of one step of the check.
const ROWS: u64 = 10_000;
/// The steps of the second way.
const FIXED_ROWS: usize = 500;
/// Between two steps, and between two looks whether the last old outcome is there.
const PAUSE: Duration = Duration::from_millis(10);

/// How old outcomes are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Task,
    Fixed,
    AtOnce,
}

impl Way {
    const ALL: [Self; 3] = [Self::Task, Self::Fixed, Self::AtOnce];

    fn name(self) -> &'static str {
        match self {
            Self::Task => "tally's task",
            Self::Fixed => "steps of 500",
            Self::AtOnce => "one statement",
        }
    }
}

/// Old outcomes, and new ones a second.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    old: u64,
    rate: u64,
}

/// The figures of one way on one store.
struct Measured {
    way: Way,
    seconds: f64,
    stored: u64,
    latencies: Latencies,
}

pub(crate) fn measure(options: &Options) -> Result<Report, Error> {
    let old = options.rows.unwrap_or(options.pick(2_000, 200_000));
    let sizes = Sizes { old, rate: options.pick(3_000, 30_000) };
    let title = format!(
        "{} outcomes of requests expire while {} a second are stored",
        number(old as f64),
        number(sizes.rate as f64)
    );
    let mut report = Report::new("expiry", &title, options);
    let sync = crate::disk::sync_ms().during("try the disk")?;
    let folder = options.folder()?;
    let mut database = Database::open(options)?;
    for backend in ["SQLite", "the database"] {
        let mut all = Vec::with_capacity(Way::ALL.len());
        for (place, way) in Way::ALL.into_iter().enumerate() {
            options.say(&format!("{backend}: {}", way.name()));
            let store: Arc<dyn Store> = if backend == "SQLite" {
                let path = folder.path().join(format!("{place}.db"));
                let opened = sqlite::SqliteStore::open(&path, &sqlite::Options::default());
                Arc::new(opened.during("open the store")?)
            } else {
                let url = database.create(&format!("expiry{place}"))?;
                let writer = Some("the bench".to_owned());
                let options = mysql::Options { writer, ..mysql::Options::default() };
                Arc::new(mysql::MySqlStore::open(&url, &options).during("open the store")?)
            };
            all.push(one(&store, way, sizes)?);
        }
        show(&mut report, backend, sizes, &all);
    }
    report.note(database.says()?);
    report.note(crate::disk::sentence(sync));
    report.note("every way: no old outcome is left, and every new one is there");
    report.note("the task deletes 500, and twice as many after each step that was not enough, up to 8,000");
    report.note("latencies of the batches of new outcomes, from the time that they are due");
    Ok(report)
}

/// Fails without a database.
pub(crate) fn needs(options: &Options) -> Result<(), Error> {
    database::needs(options)
}

fn one(store: &Arc<dyn Store>, way: Way, sizes: Sizes) -> Result<Measured, Error> {
    fill(&**store, sizes.old).during("store old outcomes")?;
    let writer = Writer::start(Arc::clone(store), sizes.old, sizes.rate);
    let began = Instant::now();
    delete(store, way, sizes.old)?;
    let seconds = began.elapsed().as_secs_f64();
    let (stored, latencies) = writer.stop().during("store new outcomes")?;
    let left = count_off(&**store, clock::system().now()).during("count what is left")?;
    prove(left == stored, || format!("{}: {left} outcomes are left, and {stored} are new", way.name()))?;
    Ok(Measured { way, seconds, stored, latencies })
}

/// Deletes the old outcomes; returns when the last one is gone.
fn delete(store: &Arc<dyn Store>, way: Way, old: u64) -> Result<(), Error> {
    match way {
        Way::Task => {
            let tally = ours::serve(store, 1).during("start the service")?;
            let last = ReadSet { requests: vec![writer::key(old - 1)], ..ReadSet::default() };
            let mut is_there = true;
            while is_there {
                std::thread::sleep(PAUSE);
                let look = store.run(&last, &mut |loaded| {
                    is_there = loaded.requests[0].is_some();
                    WriteSet::default()
                });
                look.during("look for the last outcome")?;
            }
            tally.drain();
        }
        Way::Fixed => {
            while store.expire_requests(writer::old_at(old), FIXED_ROWS).during("delete a step")?
                == FIXED_ROWS
            {
                std::thread::sleep(PAUSE);
            }
        }
        Way::AtOnce => {
            store.expire_requests(writer::old_at(old), usize::MAX).during("delete all")?;
        }
    }
    Ok(())
}

fn fill(store: &dyn Store, old: u64) -> Result<(), StoreError> {
    let mut next = 0;
    while next < old {
        let end = old.min(next + ROWS);
        writer::put(store, next..end, writer::old_at)?;
        next = end;
    }
    store.checkpoint()
}

/// Deletes every outcome up to now; returns their number.
fn count_off(store: &dyn Store, now: Micros) -> Result<u64, StoreError> {
    let mut count = 0;
    loop {
        let gone = store.expire_requests(now.plus(1), ROWS as usize)? as u64;
        count += gone;
        if gone < ROWS {
            return Ok(count);
        }
    }
}

fn show(report: &mut Report, backend: &str, sizes: Sizes, all: &[Measured]) {
    let columns = ["way", "expired/s", "until all are", "stored/s", "p50 ms", "p99", "max"];
    let mut table = Table::new(&format!("Expiry and what it costs others, {backend}"), &columns);
    let rate = |one: &Measured| sizes.old as f64 / one.seconds;
    for one in all {
        let latency = |percent| number(one.latencies.percentile_ms(percent));
        table.row(vec![
            one.way.name().to_owned(),
            number(rate(one)),
            format!("{} s", number(one.seconds)),
            number(one.stored as f64 / one.seconds),
            latency(50.0),
            latency(99.0),
            number(one.latencies.max_ms()),
        ]);
    }
    report.tables.push(table);
    let [task, fixed, at_once] = all else { return };
    let name = format!("expired/s, task / {} stored a second, {backend}", number(sizes.rate as f64));
    report.ratios.push(Ratio::at_least(&name, rate(task) / sizes.rate as f64, EXPIRED_PER_SECOND));
    let name = format!("expired/s, task / steps of 500, {backend}");
    report.ratios.push(Ratio::times(&name, rate(task) / rate(fixed)));
    let longest = |one: &Measured| one.latencies.max_ms().max(1e-3);
    let name = format!("longest wait of a batch, one statement / task, {backend}");
    report.ratios.push(Ratio::times(&name, longest(at_once) / longest(task)));
}
