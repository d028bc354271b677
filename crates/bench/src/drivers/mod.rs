//! Scenario `drivers`: durable submits at equal connections, through third-party drivers and through the service's
//! lanes.
//!
//! A submit reads a player's record and writes the new one, as the game server of field report R2 (`docs/bench.md`)
//! would. The drivers are a blocking one, an ORM, and an asynchronous one. They use plain statements, a transaction
//! driven by the client, a stored procedure, and one with a transaction inside. Each caller has a connection; the lanes
//! have as many callers. Each way begins with the same rows, must end with the same rows, and must have read the same
//! previous scores. The drivers are in a separate program. Without it only the lanes are measured, and the report names
//! the command that builds it.

mod program;
mod show;
mod work;

use crate::database::table::{self, Lines};
use crate::database::{self, Database};
use crate::error::{During, Error, prove};
use crate::options::Options;
use crate::submit::{BEGIN_MICROS, Contents};
use crate::upsert::lanes::Lanes;
use crate::upsert::shares::{divide, streams};
use mysql_async::prelude::Queryable;
use program::Figures;
use std::path::Path;
use tally_load::player;
use tally_load::report::{Report, number};
use work::{Expected, Work};

/// Drivers, by their names in the program and in the report.
const DRIVERS: [(&str, &str); 3] = [
    ("blocking", "blocking (mysql)"),
    ("orm", "blocking ORM (diesel)"),
    ("async", "asynchronous (mysql_async)"),
];
/// Ways to submit, likewise.
const MODES: [(&str, &str); 4] = [
    ("plain", "plain statements"),
    ("transaction", "transaction of the client"),
    ("procedure", "stored procedure"),
    ("procedure-transaction", "transaction in a procedure"),
];

/// The ORM cannot call procedures: it gets no rows from a statement that is prepared without columns.
fn can(driver: &str, mode: &str) -> bool {
    driver != "orm" || !mode.starts_with("procedure")
}

/// Each returns the previous score as a result set, followed by the status of the call.
const PROCEDURES: [&str; 2] = [
    "CREATE PROCEDURE submit(IN new_player VARCHAR(64) CHARACTER SET ascii, IN new_score BIGINT, IN new_at BIGINT) BEGIN \
     SELECT score FROM records WHERE player = new_player; \
     INSERT INTO records (player, score, changed_at) VALUES (new_player, new_score, new_at) \
     ON DUPLICATE KEY UPDATE score = VALUES(score), changed_at = VALUES(changed_at); END",
    "CREATE PROCEDURE submit_transaction(IN new_player VARCHAR(64) CHARACTER SET ascii, IN new_score BIGINT, IN new_at BIGINT) \
     BEGIN START TRANSACTION; SELECT score FROM records WHERE player = new_player FOR UPDATE; \
     INSERT INTO records (player, score, changed_at) VALUES (new_player, new_score, new_at) \
     ON DUPLICATE KEY UPDATE score = VALUES(score), changed_at = VALUES(changed_at); COMMIT; END",
];

/// The lanes do more submits in a round, which would otherwise be too short.
const LANES_TIMES: u64 = 8;

/// Figures of one way, by round.
struct Cell {
    name: &'static str,
    mode: &'static str,
    rounds: Vec<Figures>,
}

pub(crate) fn measure(options: &Options) -> Result<Report, Error> {
    let work = Work {
        players: options.rows.unwrap_or(options.pick(1_000, 100_000)),
        callers: options.pick(16, 64),
        of_each: options.pick(10, 400),
        seed: options.seed,
    };
    let rounds = options.pick(1, 3);
    let title = format!("submits at {} connections, {} players", work.callers, number(work.players as f64));
    let mut report = Report::new("drivers", &title, options);
    let sync = crate::disk::sync_ms().during("try the disk")?;
    let folder = tempfile::tempdir().during("make a folder")?;
    let mut database = Database::open(options)?;
    let urls = (database.create("drivers")?, database.create("tally")?);
    options.say("filling");
    fill(&database, &urls.0, &work, folder.path())?;
    let lanes_work = Work { of_each: work.of_each * LANES_TIMES, ..work };
    let lanes = Lanes::start(&urls.1, rounds, work.players)?;
    let (expected, lanes_expected) = (work.expected(), lanes_work.expected());
    let operations = folder.path().join("operations");
    work.write(&operations).during("write the operations")?;
    let built = options.drivers.is_file();
    let mut cells: Vec<Cell> = Vec::new();
    if built {
        let ways = DRIVERS.iter().flat_map(|driver| MODES.iter().map(move |mode| (driver, mode)));
        cells.extend(ways.map(|(driver, mode)| Cell { name: driver.1, mode: mode.1, rounds: Vec::new() }));
    }
    let mut ours = Cell { name: "tally's lanes", mode: "one message a batch", rounds: Vec::new() };
    for round in 0..rounds {
        for (at, cell) in cells.iter_mut().enumerate() {
            let way = (DRIVERS[at / MODES.len()].0, MODES[at % MODES.len()].0);
            if !can(way.0, way.1) {
                continue;
            }
            options.say(&format!("round {}: {}, {}", round + 1, cell.name, cell.mode));
            reset(&database, &urls.0)?;
            let figures = program::run(&options.drivers, way, &urls.0, &operations)?;
            let contents = database.runtime.block_on(table::contents(&urls.0, "records"));
            let contents = contents.during("read a table")?;
            proven(cell, &figures, &work, &expected, &contents)?;
            cell.rounds.push(figures);
        }
        options.say(&format!("round {}: lanes", round + 1));
        let figures = submit(&database, &lanes, round, &lanes_work)?;
        proven(&ours, &figures, &lanes_work, &lanes_expected, &lanes.contents(round)?)?;
        ours.rounds.push(figures);
    }
    lanes.stop();
    cells.push(ours);
    show::show(&mut report, &cells);
    report.note(database.says()?);
    report.note(crate::disk::sentence(sync));
    show::notes(&mut report, rounds, built);
    Ok(report)
}

/// The initial rows of every way, and the procedures.
fn fill(database: &Database, url: &str, work: &Work, folder: &Path) -> Result<(), Error> {
    let file = folder.join("players");
    let mut lines = Lines::create(&file).during("write the players")?;
    for number in 0..work.players {
        lines.add(&(player(number), 0, BEGIN_MICROS)).during("write the players")?;
    }
    lines.end().during("write the players")?;
    let filled = database.runtime.block_on(async {
        table::load(url, "begin", &file).await?;
        let mut conn = database::connect(url).await?;
        for procedure in PROCEDURES {
            conn.query_drop(procedure).await?;
        }
        conn.disconnect().await
    });
    filled.during("fill the table")
}

/// Restores the initial table.
fn reset(database: &Database, url: &str) -> Result<(), Error> {
    let done = database.runtime.block_on(async {
        let mut conn = database::connect(url).await?;
        table::copy(&mut conn, "begin", "records").await?;
        conn.disconnect().await
    });
    done.during("make the table anew")
}

/// A round of the lanes, with the figures of the program.
fn submit(database: &Database, lanes: &Lanes, board: usize, work: &Work) -> Result<Figures, Error> {
    let shares = divide(streams(work.callers, work.players, work.seed), work.callers, work.of_each);
    let done = database.runtime.block_on(lanes.round(board, shares)).during("submit")?;
    let nanos = |percent| (done.round.latencies.percentile_ms(percent) * 1e6) as u64;
    Ok(Figures {
        operations: done.round.latencies.count(),
        nanos: (done.round.seconds * 1e9) as u64,
        p50_nanos: nanos(50.0),
        p95_nanos: nanos(95.0),
        p99_nanos: nanos(99.0),
        previous: done.previous,
    })
}

/// Checks that all submits were done, read and written.
fn proven(
    cell: &Cell,
    figures: &Figures,
    work: &Work,
    expected: &Expected,
    contents: &Contents,
) -> Result<(), Error> {
    let name = format!("{}, {}", cell.name, cell.mode);
    prove(figures.operations == work.operations(), || format!("{name}: not every submit was done"))?;
    prove(figures.previous == expected.previous, || format!("{name}: it saw other scores before"))?;
    let same = contents.rows == work.players && contents.hash() == expected.contents.hash();
    prove(same, || format!("{name}: the same submits led to another table"))
}
