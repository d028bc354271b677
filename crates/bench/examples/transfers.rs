//! Measures transfers on SQLite, through the ledger's lane beside a transaction of four statements for each, on the same
//! rows.
//!
//! Run it with `--release`; arguments are the number of wallets and the seconds for each row of the table. The baseline
//! reads both wallets, updates both, and adds the transfer and its entries, on one connection, as SQLite has one writer.
//! The lane does that and keeps the request's key and the totals of accounts as well, both on the disk before the answer.
//! Not here: MariaDB (`cargo xtask bench transfer`), and HTTP.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tally_load::Latencies;
use tally_rules::idempotency::{Fingerprint, IdempotencyKey, RequestKey};
use tally_rules::ledger::{
    Amount, Currency, MemberId, TransferKind, TransferRequest, Uuid, Wallet, WalletKey,
};
use tally_rules::{Actor, KeyId, Micros};
use tally_service::ledger::transfers::NewTransfer;
use tally_service::ledger::transfers::post;
use tally_service::secret::Secret;
use tally_service::{Keys, Progress, Settings, Tally, clock};
use tally_store::{LedgerWriteSet, ReadSet, Store, WriteSet, sqlite};
use tally_testkit::Rng;

type Failed = Box<dyn std::error::Error + Send + Sync>;

const READ: &str = "SELECT member, balance, sequence FROM wallets WHERE currency = 'KRW' AND member IN (?, ?) \
     ORDER BY member";
const MOVE: &str = "UPDATE wallets SET balance = balance + iif(member = ?, -?, ?), sequence = sequence + 1 \
     WHERE currency = 'KRW' AND member IN (?, ?)";
const NOTE: &str = "INSERT INTO transfers (id, kind, currency, amount, debit_member, debit_sequence, credit_member, \
     credit_sequence) VALUES (?, 3, 'KRW', ?, ?, ?, ?, ?)";
const SHOW: &str = "INSERT INTO entries (member, currency, sequence, transfer, kind, amount, \"after\", counterparty) \
     VALUES (?, 'KRW', ?, ?, 3, ?, ?, ?), (?, 'KRW', ?, ?, 4, ?, ?, ?)";

fn main() -> Result<(), Failed> {
    let mut arguments = std::env::args().skip(1);
    let wallets: u64 = arguments.next().map_or(Ok(100_000), |text| text.parse())?;
    let seconds: u64 = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let time = Duration::from_secs(seconds);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let folder = tempfile::tempdir()?;
    let baseline = folder.path().join("baseline.db");
    let store = sqlite::SqliteStore::open(&baseline, &sqlite::Options::default())?;
    fill(&store, wallets)?;
    drop(store);
    show("one transaction each, one connection", &in_file(&baseline, wallets, time)?, seconds)?;
    let store = sqlite::SqliteStore::open(&folder.path().join("lane.db"), &sqlite::Options::default())?;
    lanes(Arc::new(store), &runtime, wallets, time)
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
        let ledger = LedgerWriteSet { wallets: some.iter().map(row).collect(), ..LedgerWriteSet::default() };
        store
            .run(&ReadSet::default(), &mut |_| WriteSet { ledger: ledger.clone(), ..WriteSet::default() })?;
    }
    Ok(store.checkpoint()?)
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
    let keys = Keys::load(Arc::clone(&store), secret.clone(), clock.clone(), &settings)?;
    let tally = Tally::start(store, Arc::new(keys), clock, settings, &Progress::default())?;
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
        let (what, amount) =
            (TransferKind::Transfer { from, to }, Amount::new(1).map_err(|one| one.detail())?);
        let key = RequestKey { scope: "key".into(), key: format!("{callers}{hot} {number} {round}").into() };
        let idempotency = Some(IdempotencyKey { key, fingerprint: Fingerprint([0; 16]).into() });
        post(
            &tally,
            NewTransfer {
                order: TransferRequest { what, currency, amount, reference: None },
                origin: Actor::Key(KeyId([7; 6])).into(),
                idempotency,
                mint_cap: None,
            },
        )
        .await?;
        latencies.record(began.elapsed());
    }
    Ok(latencies)
}

/// Four statements by one connection that syncs every commit.
fn in_file(path: &std::path::Path, wallets: u64, time: Duration) -> Result<Latencies, Failed> {
    let mut connection = rusqlite::Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    let (mut rng, mut latencies) = (Rng::new(1), Latencies::default());
    let until = Instant::now() + time;
    for round in 0_i64.. {
        let began = Instant::now();
        if began >= until {
            break;
        }
        let (from, to) = pair(&mut rng, wallets);
        let id = Uuid::new(clock::system().now().plus(round), 0).0;
        let (from, to) = (from.0.0, to.0.0);
        let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let rows: Vec<([u8; 16], i64, i64)> = transaction
            .prepare_cached(READ)?
            .query_map((from, to), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<Result<_, _>>()?;
        let of = |id: [u8; 16]| rows.iter().find(|row| row.0 == id).map(|row| (row.1, row.2));
        let ((balance, sequence), (other, place)) = of(from).zip(of(to)).ok_or("a wallet")?;
        transaction.prepare_cached(MOVE)?.execute((from, 1, 1, from, to))?;
        transaction.prepare_cached(NOTE)?.execute((id, 1, from, sequence + 1, to, place + 1))?;
        transaction.prepare_cached(SHOW)?.execute((
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
