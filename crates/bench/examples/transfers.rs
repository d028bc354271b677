//! Measures transfers through the ledger's lane beside a transaction of four statements for each, on the same rows.
//!
//! Run it with `--release`; arguments are the number of wallets, the seconds for each row of the table, and `sqlite` or
//! `mariadb`. The naive way reads and locks both wallets, updates both, and adds the transfer and its entries, on as many
//! connections as there are callers, 32 at most (one in SQLite, which has one writer). The lane does that and keeps the
//! request's key and the totals of accounts as well, both on the disk before the answer. Not here: HTTP.

use mysql_async::prelude::Queryable;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tally_load::Latencies;
use tally_rules::Micros;
use tally_rules::idempotency::{Fingerprint, Identity, RequestKey};
use tally_rules::ledger::{Amount, Currency, MemberId, Move, Order, Uuid, Wallet, WalletKey};
use tally_service::secret::Secret;
use tally_service::wallets::command::NewMove;
use tally_service::wallets::post::post;
use tally_service::{Keys, Progress, Settings, Tally, clock};
use tally_store::{Changes, LedgerChanges, Plan, Store, mysql, sqlite};
use tally_testkit::{DatabaseKind, Rng, ScratchDatabase};

type Failed = Box<dyn std::error::Error + Send + Sync>;

const LOCK: &str = "SELECT member, balance, sequence FROM wallets WHERE currency = 'KRW' AND member IN (?, ?) \
     ORDER BY member FOR UPDATE";
const MOVE: &str = "UPDATE wallets SET balance = balance + IF(member = ?, -?, ?), sequence = sequence + 1 \
     WHERE currency = 'KRW' AND member IN (?, ?)";
const NOTE: &str = "INSERT INTO transfers (id, kind, currency, amount, debit_member, debit_sequence, credit_member, \
     credit_sequence) VALUES (?, 3, 'KRW', ?, ?, ?, ?, ?)";
const SHOW: &str = "INSERT INTO entries (member, currency, sequence, transfer, kind, amount, `after`, counterparty) \
     VALUES (?, 'KRW', ?, ?, 3, ?, ?, ?), (?, 'KRW', ?, ?, 4, ?, ?, ?)";

fn main() -> Result<(), Failed> {
    let mut arguments = std::env::args().skip(1);
    let wallets: u64 = arguments.next().map_or(Ok(100_000), |text| text.parse())?;
    let seconds: u64 = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let time = Duration::from_secs(seconds);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if arguments.next().as_deref() == Some("sqlite") {
        let folder = tempfile::tempdir()?;
        let naive = folder.path().join("naive.db");
        let store = sqlite::SqliteStore::open(&naive, &sqlite::Options::default())?;
        fill(&store, wallets)?;
        drop(store);
        show("one transaction each, one connection", &in_file(&naive, wallets, time)?, seconds)?;
        let store = sqlite::SqliteStore::open(&folder.path().join("lane.db"), &sqlite::Options::default())?;
        return lanes(Arc::new(store), &runtime, wallets, time);
    }
    let log = "--innodb-log-file-size=1G";
    let options = ["--innodb-buffer-pool-size=1G", log, "--innodb-flush-log-at-trx-commit=1"];
    let server = ScratchDatabase::start_with(DatabaseKind::MariaDb10, &options);
    let url = server.create_database();
    fill(&mysql::MySqlStore::open(&url, &mysql::Options::default())?, wallets)?;
    for connections in [5, 32] {
        let done = runtime.block_on(on_server(&url, wallets, connections, time))?;
        show(&format!("one transaction each, {connections} connections"), &done, seconds)?;
    }
    let url = server.create_database();
    lanes(Arc::new(mysql::MySqlStore::open(&url, &mysql::Options::default())?), &runtime, wallets, time)
}

fn show(what: &str, latencies: &Latencies, seconds: u64) -> std::io::Result<()> {
    let rate = latencies.count() as f64 / seconds as f64;
    let [middle, most, last] = [50.0, 95.0, 99.0].map(|percent| latencies.percentile_ms(percent));
    writeln!(
        std::io::stdout(),
        "{rate:8.0} transfers/s, p50 {middle:6.2} ms, p95 {most:6.2} ms, p99 {last:6.2} ms: {what}"
    )
}

fn member(number: u64) -> MemberId {
    MemberId(Uuid::new(Micros(number.cast_signed()), 0))
}

/// Wallets with more than any run can spend.
fn fill(store: &dyn Store, wallets: u64) -> Result<(), Failed> {
    let currency = Currency::parse("KRW").ok_or("a currency")?;
    let numbers: Vec<u64> = (0..wallets).collect();
    for some in numbers.chunks(5000) {
        let row = |number: &u64| {
            let wallet = Wallet { balance: 1 << 50, ..Wallet::default() };
            (WalletKey { member: member(*number), currency }, wallet)
        };
        let ledger = LedgerChanges { wallets: some.iter().map(row).collect(), ..LedgerChanges::default() };
        store.run(&Plan::default(), &mut |_| Changes { ledger: ledger.clone(), ..Changes::default() })?;
    }
    Ok(store.settle()?)
}

/// Two different ones.
fn pair(rng: &mut Rng, wallets: u64) -> (MemberId, MemberId) {
    let (one, step) = (rng.below(wallets), 1 + rng.below(wallets - 1));
    (member(one), member((one + step) % wallets))
}

fn lanes(
    store: Arc<dyn Store>,
    runtime: &tokio::runtime::Runtime,
    wallets: u64,
    time: Duration,
) -> Result<(), Failed> {
    fill(&*store, wallets)?;
    let (secret, settings, clock) = (Secret::new([7; 32]), Settings::default(), clock::system());
    let keys = Keys::load(Arc::clone(&store), secret.clone(), Arc::clone(&clock), &settings)?;
    let tally = Tally::start(store, Arc::new(keys), &secret, clock, settings, &Progress::default())?;
    for (callers, hot) in [(1, false), (32, false), (64, false), (256, false), (1024, false), (256, true)] {
        let before = tally.ledger_stats();
        let call = |number: u64| caller(Arc::clone(&tally), wallets, (callers, number, hot), time);
        let tasks: Vec<_> = (0..callers).map(|number| runtime.spawn(call(number))).collect();
        let mut latencies = Latencies::default();
        for task in tasks {
            latencies.merge(&runtime.block_on(task)??);
        }
        let after = tally.ledger_stats();
        let batch = latencies.count() as f64 / (after.batches - before.batches).max(1) as f64;
        let to = if hot { ", all to one wallet" } else { "" };
        let what = format!("through the lane, {callers} callers{to}, {batch:.0} a batch");
        show(&what, &latencies, time.as_secs())?;
    }
    tally.drain();
    Ok(())
}

async fn caller(
    tally: Arc<Tally>,
    wallets: u64,
    (callers, number, hot): (u64, u64, bool),
    time: Duration,
) -> Result<Latencies, Failed> {
    let (mut rng, mut latencies) = (Rng::new(1 + callers * 10_000 + number), Latencies::default());
    let currency = Currency::parse("KRW").ok_or("a currency")?;
    let until = Instant::now() + time;
    for round in 0_u64.. {
        let began = Instant::now();
        if began >= until {
            break;
        }
        let (from, mut to) = pair(&mut rng, wallets);
        if hot && from != member(0) {
            to = member(0);
        }
        let (what, amount) = (Move::Transfer { from, to }, Amount::new(1).map_err(|one| one.detail())?);
        let key = RequestKey { scope: "key".into(), key: format!("{callers}{hot} {number} {round}").into() };
        let identity = Some(Identity { key, fingerprint: Fingerprint([0; 16]) });
        post(&tally, NewMove { order: Order { what, currency, amount, reference: None }, identity }).await?;
        latencies.record(began.elapsed());
    }
    Ok(latencies)
}

async fn on_server(url: &str, wallets: u64, connections: u64, time: Duration) -> Result<Latencies, Failed> {
    let mut tasks = Vec::new();
    for number in 0..connections {
        let mut conn = mysql_async::Conn::new(mysql_async::Opts::from_url(url)?).await?;
        tasks.push(tokio::spawn(async move {
            let (mut rng, mut latencies) = (Rng::new(1 + number), Latencies::default());
            let until = Instant::now() + time;
            for round in 0_i64.. {
                let began = Instant::now();
                if began >= until {
                    break;
                }
                let (from, to) = pair(&mut rng, wallets);
                let id = Uuid::new(clock::system()().plus(round), rng.bits()).0;
                let (from, to) = (from.0.0, to.0.0);
                conn.query_drop("START TRANSACTION").await?;
                let rows: Vec<(Vec<u8>, i64, u64)> = conn.exec(LOCK, (&from[..], &to[..])).await?;
                let of = |id: &[u8]| rows.iter().find(|row| row.0 == id).map(|row| (row.1, row.2));
                let ((balance, sequence), (other, place)) = of(&from).zip(of(&to)).ok_or("a wallet")?;
                conn.exec_drop(MOVE, (&from[..], 1, 1, &from[..], &to[..])).await?;
                let note = (&id[..], 1, &from[..], sequence + 1, &to[..], place + 1);
                conn.exec_drop(NOTE, note).await?;
                let (first, second) = (balance - 1, other + 1);
                let show = (
                    (&from[..], sequence + 1, &id[..], 1, first, &to[..]),
                    (&to[..], place + 1, &id[..], 1, second, &from[..]),
                );
                let (a, b) = show;
                let values: Vec<mysql_async::Value> = vec![
                    a.0.into(),
                    a.1.into(),
                    a.2.into(),
                    a.3.into(),
                    a.4.into(),
                    a.5.into(),
                    b.0.into(),
                    b.1.into(),
                    b.2.into(),
                    b.3.into(),
                    b.4.into(),
                    b.5.into(),
                ];
                conn.exec_drop(SHOW, values).await?;
                conn.query_drop("COMMIT").await?;
                latencies.record(began.elapsed());
            }
            conn.disconnect().await?;
            Ok::<_, Failed>(latencies)
        }));
    }
    let mut latencies = Latencies::default();
    for task in tasks {
        latencies.merge(&task.await??);
    }
    Ok(latencies)
}

/// The same four statements by one connection that syncs every commit.
fn in_file(path: &std::path::Path, wallets: u64, time: Duration) -> Result<Latencies, Failed> {
    let mut connection = rusqlite::Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    let (mut rng, mut latencies) = (Rng::new(1), Latencies::default());
    let lock = LOCK.replace(" FOR UPDATE", "");
    let moves = MOVE.replace("IF(", "iif(");
    let show = SHOW.replace('`', "\"");
    let until = Instant::now() + time;
    for round in 0_i64.. {
        let began = Instant::now();
        if began >= until {
            break;
        }
        let (from, to) = pair(&mut rng, wallets);
        let id = Uuid::new(clock::system()().plus(round), 0).0;
        let (from, to) = (from.0.0, to.0.0);
        let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let rows: Vec<([u8; 16], i64, i64)> = transaction
            .prepare_cached(&lock)?
            .query_map((from, to), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<Result<_, _>>()?;
        let of = |id: [u8; 16]| rows.iter().find(|row| row.0 == id).map(|row| (row.1, row.2));
        let ((balance, sequence), (other, place)) = of(from).zip(of(to)).ok_or("a wallet")?;
        transaction.prepare_cached(&moves)?.execute((from, 1, 1, from, to))?;
        transaction.prepare_cached(NOTE)?.execute((id, 1, from, sequence + 1, to, place + 1))?;
        transaction.prepare_cached(&show)?.execute((
            (from),
            sequence + 1,
            id,
            1,
            balance - 1,
            to,
            to,
            place + 1,
            id,
            1,
            other + 1,
            from,
        ))?;
        transaction.commit()?;
        latencies.record(began.elapsed());
    }
    Ok(latencies)
}
