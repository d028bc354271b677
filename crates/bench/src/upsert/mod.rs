//! Scenario `upsert`: durable submits on MariaDB or MySQL, the service's lanes beside upserts of a client without a service.
//!
//! Every way has its own table with the same players and does the same submits. The ways alternate in rounds, so that drift
//! affects all. At the end all tables must be equal. Their rows are then loaded into an empty table in order of keys by the
//! database's own bulk load, which must give the same table. Its rate is the limit of anything that writes rows there. Not
//! here: the wire, and drivers (`drivers`).

mod baseline;
pub(crate) mod lanes;
mod measured;
pub(crate) mod shares;
mod show;

use crate::database::table::{self, Lines};
use crate::database::{self, Database};
use crate::error::{During, Error, prove};
use crate::options::Options;
use crate::spent;
use crate::submit::{BEGIN_MICROS, Contents, Operations};
use lanes::Lanes;
use measured::Measured;
use std::path::Path;
use tally_load::player;
use tally_load::report::{Report, number};

/// Connections of single upserts.
const SINGLES: usize = 64;
/// Bulk upserts: rows of a statement, and connections.
const BULKS: [(usize, usize); 4] = [(64, 1), (64, 4), (500, 1), (500, 4)];

/// How submits reach a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// With so many rows in a statement.
    Upsert { rows: usize },
    /// By the service, on this board.
    Lanes { board: usize },
}

struct Way {
    kind: Kind,
    callers: usize,
    streams: Vec<Operations>,
    measured: Measured,
    rows_per_commit: f64,
}

/// The size of the work.
struct Amount {
    players: u64,
    streams: usize,
    rounds: usize,
    of_each: u64,
}

pub(crate) fn measure(options: &Options) -> Result<Report, Error> {
    let callers: &[usize] = options.pick(&[16, 128], &[64, 256, 1024, 4096]);
    let amount = Amount {
        players: options.rows.unwrap_or(options.pick(2_000, 1_000_000)),
        streams: options.pick(128, 4096),
        rounds: options.pick(1, 3),
        of_each: options.pick(8, 50),
    };
    let title = format!("durable submits on a database, tables of {} players", number(amount.players as f64));
    let mut report = Report::new("upsert", &title, options);
    let sync = crate::disk::sync_ms().during("try the disk")?;
    let folder = tempfile::tempdir().during("make a folder")?;
    let mut database = Database::open(options)?;
    let urls = (database.create("baseline")?, database.create("tally")?);
    let mut ways = ways(callers, &amount, options.seed);
    options.say("filling");
    fill(&database, &urls.0, &ways, &amount, folder.path())?;
    let lanes = Lanes::start(&urls.1, callers.len(), amount.players)?;
    for round in 1..=amount.rounds {
        for way in &mut ways {
            options.say(&format!("round {round}: {}", way.name()));
            way.round(&database, &urls.0, &lanes, amount.of_each)?;
        }
    }
    options.say("comparing");
    let contents = alike(&database, &urls.0, &lanes, &ways, amount.players)?;
    lanes.stop();
    let load_rate = load(&database, &urls.0, &contents, folder.path(), amount.rounds)?;
    show::show(&mut report, &ways, (amount.players, load_rate));
    report.note(database.says()?);
    report.note(crate::disk::sentence(sync));
    show::notes(&mut report, &amount);
    Ok(report)
}

fn ways(callers: &[usize], amount: &Amount, seed: u64) -> Vec<Way> {
    let way = |kind, callers| Way {
        kind,
        callers,
        streams: shares::streams(amount.streams, amount.players, seed),
        measured: Measured::default(),
        rows_per_commit: 0.0,
    };
    let bulks = BULKS.iter().map(|&(rows, connections)| way(Kind::Upsert { rows }, connections));
    let lanes = callers.iter().enumerate().map(|(board, &callers)| way(Kind::Lanes { board }, callers));
    [way(Kind::Upsert { rows: 1 }, SINGLES)].into_iter().chain(bulks).chain(lanes).collect()
}

impl Way {
    fn name(&self) -> String {
        match self.kind {
            Kind::Upsert { rows: 1 } => format!("single upserts, {} connections", self.callers),
            Kind::Upsert { rows } if self.callers == 1 => format!("upserts of {rows}, 1 connection"),
            Kind::Upsert { rows } => format!("upserts of {rows}, {} connections", self.callers),
            Kind::Lanes { .. } => format!("tally's lanes, {} callers", self.callers),
        }
    }

    /// Its table, if it has one.
    fn table(&self) -> Option<String> {
        match self.kind {
            Kind::Upsert { rows } => Some(format!("upserts_{rows}_{}", self.callers)),
            Kind::Lanes { .. } => None,
        }
    }

    fn round(&mut self, database: &Database, url: &str, lanes: &Lanes, of_each: u64) -> Result<(), Error> {
        let streams = std::mem::take(&mut self.streams);
        let rows = streams.len() as u64 * of_each;
        let shares = shares::divide(streams, self.callers, of_each);
        let before = (spent::spent(), database.cpu_s());
        let (round, streams) = match (self.kind, self.table()) {
            (Kind::Upsert { rows }, Some(table)) => {
                self.rows_per_commit = rows as f64;
                database.runtime.block_on(baseline::round(url, &table, shares, rows)).during("upsert")?
            }
            (Kind::Lanes { board }, _) => {
                let done = database.runtime.block_on(lanes.round(board, shares)).during("submit")?;
                self.rows_per_commit = done.rows_per_commit;
                (done.round, done.streams)
            }
            (Kind::Upsert { .. }, None) => unreachable!("upserts have a table"),
        };
        let here = spent::since(before.0).map(|spent| spent.cpu_seconds);
        let there = database.cpu_s().zip(before.1).map(|(now, before)| now - before);
        self.measured.cpu.push((here, there));
        self.streams = streams;
        self.measured.add(rows, &round);
        Ok(())
    }
}

/// A table with a row for each player, for each way but the service.
fn fill(database: &Database, url: &str, ways: &[Way], amount: &Amount, folder: &Path) -> Result<(), Error> {
    let file = folder.join("players");
    let mut lines = Lines::create(&file).during("write the players")?;
    for number in 0..amount.players {
        lines.add(&(player(number), 0, BEGIN_MICROS)).during("write the players")?;
    }
    lines.end().during("write the players")?;
    database
        .runtime
        .block_on(async {
            table::load(url, "begin", &file).await?;
            let mut conn = database::connect(url).await?;
            for name in ways.iter().filter_map(Way::table) {
                table::copy(&mut conn, "begin", &name).await?;
            }
            conn.disconnect().await
        })
        .during("fill the tables")
}

/// Checks that every way ended with the same rows; returns them.
fn alike(
    database: &Database,
    url: &str,
    lanes: &Lanes,
    ways: &[Way],
    players: u64,
) -> Result<Contents, Error> {
    let mut first: Option<Contents> = None;
    for way in ways {
        let contents = match (way.kind, way.table()) {
            (Kind::Lanes { board }, _) => lanes.contents(board)?,
            (_, Some(table)) => {
                database.runtime.block_on(table::contents(url, &table)).during("read a table")?
            }
            (_, None) => unreachable!("upserts have a table"),
        };
        let (rows, name) = (contents.rows, way.name());
        prove(rows == players, || format!("{name}: {rows} rows for {players} players"))?;
        let first = first.get_or_insert_with(|| contents.clone());
        prove(contents.hash() == first.hash(), || format!("{name}: the same submits led to another table"))?;
    }
    let begin = database.runtime.block_on(table::contents(url, "begin")).during("read a table")?;
    let end = first.expect("there are ways");
    prove(begin.hash() != end.hash(), || "nothing was written".to_owned())?;
    Ok(end)
}

/// Loads the final rows into empty tables; returns rows per second.
fn load(database: &Database, url: &str, end: &Contents, folder: &Path, rounds: usize) -> Result<f64, Error> {
    let file = folder.join("end");
    let mut lines = Lines::create(&file).during("write what all ended with")?;
    let mut written = Ok(());
    let table = format!("upserts_1_{SINGLES}");
    let scanned = table::read_rows(url, &table, |row| {
        if written.is_ok() {
            written = lines.add(row);
        }
    });
    database.runtime.block_on(scanned).during("read a table")?;
    written.and_then(|()| lines.end()).during("write what all ended with")?;
    let mut seconds = 0.0;
    for _ in 0..rounds {
        let took = database.runtime.block_on(table::load(url, "loaded", &file)).during("load")?;
        seconds += took.as_secs_f64();
        let loaded = database.runtime.block_on(table::contents(url, "loaded")).during("read a table")?;
        prove(loaded.hash() == end.hash(), || "the bulk load led to another table".to_owned())?;
    }
    Ok((end.rows * rounds as u64) as f64 / seconds)
}
