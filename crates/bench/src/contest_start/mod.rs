//! Scenario `contest-start`: accepted applicants become members, on SQLite and on MariaDB. It compares tally's start with
//! the two usual ways: a commit for each member, and a loop of saves in one transaction.
//!
//! Every way has its own contests with the same applications. At each size the ways alternate, so that drift affects all. A
//! check of each start shows that all are members and no application is left. Not here: fees, which only tally supports, and
//! finding applications among others (`contest-clear`).

mod baseline;
mod largest;
mod ours;
mod peak;
mod show;

use crate::database::Database;
use crate::error::{During, Error, prove};
use crate::options::Options;
use baseline::{OnMySql, OnSqlite};
use largest::Large;
use ours::Ours;
use std::time::Instant;
use tally_load::report::Report;
use tokio::runtime::Runtime;

/// A start of so many members is measured once: a commit for each takes long.
const LARGE: u32 = 1_000;

/// How members are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// A commit for each member.
    Each,
    /// One after the other in one transaction.
    Loop,
    /// By tally.
    Tally,
}

impl Way {
    const ALL: [Self; 3] = [Self::Each, Self::Loop, Self::Tally];

    fn name(self) -> &'static str {
        match self {
            Self::Each => "a commit for each member",
            Self::Loop => "a loop in one transaction",
            Self::Tally => "tally",
        }
    }
}

/// The state of a contest: members, applications, and whether it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stands {
    pub(crate) members: u32,
    pub(crate) applications: u32,
    pub(crate) runs: bool,
}

/// A store with one way to start a contest.
pub(crate) trait Place {
    /// Makes a contest that takes applications, with so many accepted ones.
    fn prepare(&mut self, contest: u32, members: u32) -> Result<(), Error>;

    /// Starts it.
    fn start(&mut self, contest: u32) -> Result<(), Error>;

    /// Its stored state.
    fn stands(&mut self, contest: u32) -> Result<Stands, Error>;
}

/// The starts of one way at one size.
#[derive(Debug)]
pub(crate) struct Cell {
    way: Way,
    members: u32,
    /// Milliseconds of each start, sorted at the end.
    took: Vec<f64>,
    /// The largest growth of the process' peak of resident memory, in KiB.
    grew_kib: Option<u64>,
}

impl Cell {
    /// The median.
    fn ms(&self) -> f64 {
        self.took[self.took.len() / 2]
    }
}

pub(crate) fn measure(options: &Options) -> Result<Report, Error> {
    let sizes: &[u32] = options.pick(&[10, 50], &[10, 50, 100, 200, 10_000]);
    let rounds = options.pick(2, 15);
    let mut report =
        Report::new("contest-start", "the start of a contest: accepted, members, running", options);
    let sync = crate::disk::sync_ms().during("try the disk")?;
    let folder = tempfile::tempdir().during("make a folder")?;
    options.say("on SQLite");
    let (each, looped) = (folder.path().join("each.db"), folder.path().join("loop.db"));
    let mut places: [Box<dyn Place>; 3] = [
        Box::new(OnSqlite::open(&each, Way::Each)?),
        Box::new(OnSqlite::open(&looped, Way::Loop)?),
        Box::new(Ours::on_sqlite(&folder.path().join("tally.db"))?),
    ];
    let on_sqlite = cells(options, &mut places, sizes, rounds)?;
    drop(places);
    let mut database = Database::open(options)?;
    let mut large = vec![(
        "SQLite",
        largest(options, &database.runtime, || Ours::on_sqlite(&folder.path().join("large.db")))?,
    )];
    let urls = (database.create("each")?, database.create("loop")?, database.create("tally")?);
    options.say("on a database");
    let mut places: [Box<dyn Place + '_>; 3] = [
        Box::new(OnMySql::open(&database.runtime, &urls.0, Way::Each)?),
        Box::new(OnMySql::open(&database.runtime, &urls.1, Way::Loop)?),
        Box::new(Ours::on_mysql(&urls.2)?),
    ];
    let on_database = cells(options, &mut places, sizes, rounds)?;
    drop(places);
    let url = database.create("large")?;
    large.push(("the database", largest(options, &database.runtime, || Ours::on_mysql(&url))?));
    show::show(&mut report, "SQLite", &on_sqlite);
    show::show(&mut report, "the database", &on_database);
    show::largest(&mut report, &large);
    report.note(database.says()?);
    report.note(crate::disk::sentence(sync));
    show::notes(&mut report);
    Ok(report)
}

/// The largest contests, without a fee and with one, each in its own store.
fn largest(
    options: &Options,
    runtime: &Runtime,
    open: impl FnOnce() -> Result<Ours, Error>,
) -> Result<Vec<Large>, Error> {
    let ours = open()?;
    let sizes = options.pick([(300, false), (100, true)], [(100_000, false), (10_000, true)]);
    let measure = |(members, fee)| {
        options.say(&format!("a contest of {members} members"));
        largest::measure(&ours, runtime, members, fee)
    };
    sizes.into_iter().map(measure).collect()
}

/// Every way at every size.
fn cells(
    options: &Options,
    places: &mut [Box<dyn Place + '_>; 3],
    sizes: &[u32],
    rounds: usize,
) -> Result<Vec<Cell>, Error> {
    let (mut all, mut contest) = (Vec::new(), 0);
    for &members in sizes {
        // The first start warms what is prepared once, and does not count; a large one is measured once.
        let (warm, rounds) = if members < LARGE { (1, rounds) } else { (0, 1) };
        let mut of_size = Way::ALL.map(|way| Cell { way, members, took: Vec::new(), grew_kib: None });
        for round in 0..warm + rounds {
            options.progress(&format!("{members} members"), round as u64, rounds as u64);
            for (place, cell) in places.iter_mut().zip(&mut of_size) {
                contest += 1;
                place.prepare(contest, members)?;
                let before = peak::begin();
                let began = Instant::now();
                place.start(contest)?;
                let took = began.elapsed().as_secs_f64() * 1_000.0;
                let grew = before.and_then(peak::grown_kib);
                let (stands, way) = (place.stands(contest)?, cell.way.name());
                let wanted = Stands { members, applications: 0, runs: true };
                prove(stands == wanted, || format!("{way}: {stands:?}, not {wanted:?}"))?;
                if round >= warm {
                    cell.took.push(took);
                    cell.grew_kib = cell.grew_kib.max(grew);
                }
            }
        }
        of_size.iter_mut().for_each(|cell| cell.took.sort_by(f64::total_cmp));
        all.extend(of_size);
    }
    Ok(all)
}
