//! Runs operations through one driver for MySQL and MariaDB and prints what it measured, as one line of JSON.
//!
//! An operation is a submit as a game server without tally does it: read a player's record, write the new one. It is
//! done as plain statements, as a transaction driven by the client, by a stored procedure, or by one with a transaction
//! inside. Callers have a connection each and do one operation after the other. `cargo xtask bench drivers` makes tables,
//! procedures and operations, runs this program for each way, and compares what it leaves behind.
//!
//! Not here: tally. A driver that is compared is used as its own documentation shows, on connections that are held, with
//! statements that are prepared once.

mod asynchronous;
mod blocking;
mod orm;
mod threads;

use std::time::{Duration, Instant};

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// How an operation is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Plain,
    Transaction,
    Procedure,
    TransactionInProcedure,
}

const SELECT: &str = "SELECT score FROM records WHERE player = ?";
const SELECT_LOCKING: &str = "SELECT score FROM records WHERE player = ? FOR UPDATE";
const UPSERT: &str = "INSERT INTO records (player, score, changed_at) VALUES (?, ?, ?) \
    ON DUPLICATE KEY UPDATE score = VALUES(score), changed_at = VALUES(changed_at)";
/// Both give the score before.
const CALL: &str = "CALL submit(?, ?, ?)";
const CALL_TRANSACTION: &str = "CALL submit_transaction(?, ?, ?)";

impl Mode {
    /// The statement that calls, where a procedure is called.
    fn call(self) -> Option<&'static str> {
        match self {
            Self::Plain | Self::Transaction => None,
            Self::Procedure => Some(CALL),
            Self::TransactionInProcedure => Some(CALL_TRANSACTION),
        }
    }
}

/// One submit.
struct Operation {
    player: String,
    score: i64,
    changed_at: i64,
}

/// What one caller saw.
struct Seen {
    took: Vec<Duration>,
    /// Scores before, added up: whoever does not read cannot know it.
    previous: i64,
}

impl Seen {
    fn new(operations: usize) -> Self {
        Self { took: Vec::with_capacity(operations), previous: 0 }
    }

    fn add(&mut self, asked: Instant, previous: i64) {
        self.took.push(asked.elapsed());
        self.previous = self.previous.wrapping_add(previous);
    }
}

fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [way, mode, url, file] = arguments.as_slice() else {
        return Err(
            "usage: drivers blocking|orm|async plain|transaction|procedure|procedure-transaction URL FILE"
                .into(),
        );
    };
    let mode = match mode.as_str() {
        "plain" => Mode::Plain,
        "transaction" => Mode::Transaction,
        "procedure" => Mode::Procedure,
        "procedure-transaction" => Mode::TransactionInProcedure,
        other => return Err(format!("there is no mode `{other}`").into()),
    };
    let callers = read(&std::fs::read_to_string(file)?)?;
    let (began, seen) = match way.as_str() {
        "blocking" => blocking::run(url, mode, callers)?,
        "orm" => orm::run(url, mode, callers)?,
        "async" => asynchronous::run(url, mode, callers)?,
        other => return Err(format!("there is no driver `{other}`").into()),
    };
    println!("{}", line(began.elapsed(), seen));
    Ok(())
}

/// The operations of each caller: lines of caller, player, score, instant.
fn read(text: &str) -> Result<Vec<Vec<Operation>>, Failed> {
    let mut callers: Vec<Vec<Operation>> = Vec::new();
    for line in text.lines() {
        let mut fields = line.split('\t');
        let mut next = || fields.next().ok_or_else(|| format!("`{line}` is no operation"));
        let (caller, player) = (next()?.parse::<usize>()?, next()?.to_owned());
        let (score, changed_at) = (next()?.parse()?, next()?.parse()?);
        if callers.len() <= caller {
            callers.resize_with(caller + 1, Vec::new);
        }
        callers[caller].push(Operation { player, score, changed_at });
    }
    Ok(callers)
}

fn line(seconds: Duration, seen: Vec<Seen>) -> String {
    let previous = seen.iter().fold(0_i64, |sum, one| sum.wrapping_add(one.previous));
    let mut took: Vec<Duration> = seen.into_iter().flat_map(|one| one.took).collect();
    took.sort_unstable();
    let nanos = |duration: &Duration| duration.as_nanos().to_string();
    let percentile =
        |percent: usize| took.get((took.len() * percent / 100).min(took.len().saturating_sub(1)));
    let percentile = |percent| percentile(percent).map_or_else(|| "0".to_owned(), nanos);
    format!(
        r#"{{"operations":{},"nanos":{},"p50_nanos":{},"p95_nanos":{},"p99_nanos":{},"previous":{previous}}}"#,
        took.len(),
        nanos(&seconds),
        percentile(50),
        percentile(95),
        percentile(99),
    )
}
