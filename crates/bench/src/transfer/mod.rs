//! Scenario `transfer`: transfers of money on a filled MariaDB or MySQL, three flows beside the ledger's lane.
//!
//! Field report R5 (`docs/bench.md`) measured a flow of twelve statements, and one of eight (both wallets locked by one
//! ordered query, updates and inserts combined, a unique index). The third adds a cache from phone number to member.
//! Each is done here as described, through a pool of so many connections, with as many callers as the lane has. The sum
//! of all balances must stay the same, and every acknowledged transfer must be there. Not here: HTTP (`tally load
//! transfers`).

mod flows;
mod ours;
mod show;
mod tables;
mod traffic;

use crate::database::{self, Database};
use crate::error::{During, Error, prove};
use crate::options::Options;
use mysql_async::prelude::Queryable;
use tally_load::Latencies;
use tally_load::report::{Report, number};
use traffic::{TRAFFICS, Traffic};

/// Connections of the pools.
const CONNECTIONS: [usize; 2] = [5, 32];
/// Concurrent callers: far more than connections, as requests of a game are.
const CALLERS: usize = 256;

/// How a transfer is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// R5's first flow.
    Baseline,
    /// Its second.
    Tuned,
    /// The second with caches.
    Cached,
    /// The ledger's lane.
    Lane,
}

impl Way {
    const fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline: 12 statements, plain index",
            Self::Tuned => "tuned: 8 statements, ordered locks, unique index",
            Self::Cached => "cached: 6 statements",
            Self::Lane => "tally's lane",
        }
    }
}

/// Figures of one way with one traffic.
struct Cell {
    way: Way,
    traffic: Traffic,
    /// Of its pool; the lane has one.
    connections: usize,
    callers: usize,
    ran: Ran,
    /// Statements that the database counted, and messages that it received.
    statements: u64,
    messages: u64,
}

impl Cell {
    fn rate(&self) -> f64 {
        self.ran.latencies.count() as f64 / self.ran.seconds
    }

    fn per_transfer(&self, count: u64) -> f64 {
        count as f64 / self.ran.latencies.count().max(1) as f64
    }
}

/// The size of the data.
#[derive(Clone, Copy)]
struct Amount {
    members: u64,
    transactions: u64,
}

pub(crate) fn measure(options: &Options) -> Result<Report, Error> {
    let transactions = options.rows.unwrap_or(options.pick(2_000, 1_000_000));
    let amount = Amount { members: (transactions / 10).max(100), transactions };
    let title = format!(
        "transfers on a database of {} members and {} transactions",
        number(amount.members as f64),
        number(transactions as f64)
    );
    let mut report = Report::new("transfer", &title, options);
    let sync = crate::disk::sync_ms().during("try the disk")?;
    let mut database = Database::open(options)?;
    let (theirs, own) = (database.create("flows")?, database.create("tally")?);
    options.say("filling the tables of the flows");
    database.runtime.block_on(tables::fill(&theirs, amount)).during("fill the tables")?;
    options.say("filling the ledger");
    let lane = ours::Ours::start(&own, amount, &database.runtime)?;
    let time = std::time::Duration::from_secs_f64(options.pick(0.3, options.seconds / 2.0));
    let mut cells = Vec::new();
    let mut done = 0;
    for traffic in TRAFFICS {
        for connections in CONNECTIONS {
            for way in [Way::Baseline, Way::Tuned, Way::Cached] {
                options.say(&format!("{}, {}, {connections} connections", way.name(), traffic.name()));
                let run = flows::run(&theirs, (way, traffic, connections), amount.members, time);
                let before = questions(&database)?;
                let ran = database.runtime.block_on(run).during("transfer")?;
                let statements = questions(&database)? - before;
                done += ran.latencies.count();
                let callers = CALLERS;
                cells.push(Cell {
                    way,
                    traffic,
                    connections,
                    callers,
                    ran,
                    statements,
                    messages: statements,
                });
            }
        }
        for callers in [32, CALLERS, 4 * CALLERS] {
            options.say(&format!("{}, {}, {callers} callers", Way::Lane.name(), traffic.name()));
            let before = (questions(&database)?, lane.round_trips());
            let ran = database.runtime.block_on(lane.run(traffic, callers, time)).during("transfer")?;
            let statements = questions(&database)? - before.0;
            let messages = lane.round_trips() - before.1;
            cells.push(Cell { way: Way::Lane, traffic, connections: 1, callers, ran, statements, messages });
        }
    }
    options.say("adding up");
    let flows = database.runtime.block_on(tables::proof(&theirs)).during("add up")?;
    flows.check(amount, done)?;
    lane.stop(
        amount,
        cells.iter().filter(|cell| cell.way == Way::Lane).map(|cell| cell.ran.latencies.count()).sum(),
    )?;
    show::show(&mut report, &cells);
    report.note(database.says()?);
    report.note(crate::disk::sentence(sync));
    show::notes(&mut report, amount);
    Ok(report)
}

/// The figures of a run of one way.
struct Ran {
    seconds: f64,
    latencies: Latencies,
    /// Transfers that were retried after a deadlock.
    again: u64,
}

/// Statements that the database has counted.
fn questions(database: &Database) -> Result<u64, Error> {
    let answer = database.runtime.block_on(async {
        let mut conn = database.connect().await?;
        let row: Option<(String, u64)> = conn.query_first("SHOW GLOBAL STATUS LIKE 'Questions'").await?;
        conn.disconnect().await?;
        Ok::<_, mysql_async::Error>(row)
    });
    Ok(answer.during("ask the database for its counters")?.map_or(0, |row| row.1))
}

/// Sums that must hold.
struct Proof {
    balances: [i128; 2],
    transactions: u64,
    entries: (i128, i128),
}

impl Proof {
    fn check(&self, amount: Amount, done: u64) -> Result<(), Error> {
        let whole = i128::from(amount.members) * i128::from(tables::OPENING);
        prove(self.balances == [whole, whole], || {
            format!("wallets add up to {:?}, not {whole}", self.balances)
        })?;
        let sides = 2 * (amount.transactions + done);
        prove(self.transactions == sides, || format!("{} sides of {sides}", self.transactions))?;
        prove(self.entries.0 == self.entries.1, || format!("debits and credits: {:?}", self.entries))
    }
}

pub(crate) use database::needs;
