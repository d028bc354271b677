//! Measures what rows of the ledger take, and how fast outcomes of requests expire, on SQLite and MariaDB.
//!
//! Run it with `--release`; arguments are the number of transfers, that of wallets, and a folder. Each transfer has its request, as keyed
//! ones do, and goes through `Store::run` in batches, as lanes do. Not here: other work at the same time, and HTTP.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tally_rules::Micros;
use tally_rules::idempotency::{Fingerprint, RequestKey, Stored};
use tally_rules::ledger::transfer_request::LedgerWrites;
use tally_rules::ledger::working_set::LedgerWorkingSet;
use tally_rules::ledger::{
    Amount, Currencies, EntryKey, MemberId, TransferId, TransferKind, TransferRequest, Uuid, WalletKey,
};
use tally_rules::outcome::Outcome;
use tally_store::mysql::MySqlStore;
use tally_store::sqlite::SqliteStore;
use tally_store::{LedgerReadSet, LedgerWriteSet, ReadSet, ShardSet, Store, WriteSet};
use tally_testkit::{DatabaseKind, Rng, ScratchDatabase};

const BATCH: u64 = 500;
const BEGIN: i64 = 1_760_000_000_000_000;
/// Between two transfers: a thousand a second.
const APART: i64 = 1_000;
/// As the maintenance of the service deletes them.
const STEPS: [usize; 3] = [500, 2_000, 8_000];

const SIZES: &str = "ANALYZE TABLE transfers, entries, requests; SELECT SUBSTRING_INDEX(NAME, '/', -1), FILE_SIZE \
     FROM information_schema.INNODB_SYS_TABLESPACES WHERE NAME LIKE '%/transfers' OR NAME LIKE '%/entries' OR \
     NAME LIKE '%/requests'; SELECT table_name, index_name, stat_value * 16384 FROM mysql.innodb_index_stats WHERE \
     stat_name = 'size' AND table_name IN ('transfers', 'entries', 'requests')";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let transfers: u64 = arguments.next().map_or(Ok(200_000), |text| text.parse())?;
    let wallets: u64 = arguments.next().map_or(Ok(20_000), |text| text.parse())?;
    let folder = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = tempfile::tempdir_in(folder)?;
    let (path, mut out) = (folder.path().join("tally.db"), std::io::stdout());
    let store = SqliteStore::open(&path, &tally_store::sqlite::Options::default())?;
    fill(&store, (transfers, wallets), &mut out)?;
    drop(store);
    pages(&path, transfers, &mut out)?;
    let store = SqliteStore::open(&path, &tally_store::sqlite::Options::default())?;
    expire(&store, transfers, &mut out)?;
    drop(store);
    let server = ScratchDatabase::start_with(
        DatabaseKind::MariaDb10,
        &["--innodb-buffer-pool-size=1G", "--innodb-log-file-size=1G"],
    );
    let url = server.create_database();
    let name = url.rsplit('/').next().unwrap_or_default();
    let store = MySqlStore::open(&url, &tally_store::mysql::Options::default())?;
    fill(&store, (transfers, wallets), &mut out)?;
    writeln!(out, "{}", server.sql(&format!("USE {name}; {SIZES}")))?;
    expire(&store, transfers, &mut out)
}

fn wallet(number: u64, currencies: &Currencies) -> WalletKey {
    let created = Micros(BEGIN - APART * (1 + number as i64));
    WalletKey { member: MemberId(Uuid::new(created, number)), currency: currencies.home() }
}

/// Transfers among random wallets, each with the outcome of its request.
fn fill(
    store: &dyn Store,
    (transfers, wallets): (u64, u64),
    out: &mut dyn Write,
) -> Result<(), Box<dyn Error>> {
    let (currencies, limits, mut rng) = (Currencies::default(), BTreeMap::new(), Rng::new(7));
    let started = Instant::now();
    for first in (0..transfers).step_by(BATCH as usize) {
        let orders: Vec<_> = (first..(first + BATCH).min(transfers))
            .map(|number| {
                let [from, to] = [(); 2].map(|()| rng.below(wallets));
                let [from, to] = [from, if to == from { (to + 1) % wallets } else { to }]
                    .map(|number| wallet(number, &currencies));
                (number, from, to)
            })
            .collect();
        let keys: BTreeSet<WalletKey> = orders.iter().flat_map(|(_, from, to)| [*from, *to]).collect();
        let keys: Vec<WalletKey> = keys.into_iter().collect();
        let ledger = LedgerReadSet { wallets: keys.clone(), ..LedgerReadSet::default() };
        let plan = ReadSet { shards: ShardSet::of(0), ledger, ..ReadSet::default() };
        store.run(&plan, &mut |loaded| {
            let mut book = LedgerWorkingSet::new(&currencies, &limits);
            for (key, wallet) in keys.iter().zip(&loaded.ledger.wallets) {
                book.load_wallet(*key, Some(wallet.clone().unwrap_or_default()));
            }
            let mut requests = Vec::new();
            for (number, from, to) in &orders {
                let at = Micros(BEGIN + *number as i64 * APART);
                let amount = Amount::new(1).expect("one is an amount");
                // A wallet gets something first.
                let what = match book.wallet(from).is_some_and(|wallet| wallet.balance > 0) {
                    true => TransferKind::Transfer { from: from.member, to: to.member },
                    false => TransferKind::Deposit { to: to.member },
                };
                let reference = Some(format!("order {number}").into());
                let order = TransferRequest { what, currency: currencies.home(), amount, reference };
                let id = TransferId(Uuid::new(at, *number));
                book.post(id, &order, at).expect("a wallet with money pays");
                let key = RequestKey { scope: "local".into(), key: id.0.to_string().into() };
                let outcome = Outcome::Posted(EntryKey { wallet: *to, sequence: 1 });
                requests.push((key, Stored { fingerprint: Fingerprint([7; 16]), at, outcome }));
            }
            let LedgerWrites { wallets, transfers, entries, totals, .. } = book.into_writes();
            let totals = totals.into_rows();
            let ledger = LedgerWriteSet { wallets, transfers, entries, totals, ..LedgerWriteSet::default() };
            WriteSet { ledger, requests, ..WriteSet::default() }
        })?;
    }
    let rate = transfers as f64 / started.elapsed().as_secs_f64();
    Ok(writeln!(out, "{}: {transfers} transfers with their requests, {rate:.0} a second", store.name())?)
}

/// The pages of each table of a file.
fn pages(path: &Path, transfers: u64, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let file = rusqlite::Connection::open(path)?;
    let mut query = file.prepare(
        "SELECT name, sum(pgsize), sum(payload), sum(ncell) FROM dbstat WHERE name IN ('transfers', 'entries', \
         'requests', 'requests_by_age') GROUP BY name",
    )?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let (name, bytes, payload): (String, f64, f64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let cells: i64 = row.get(3)?;
        let of_one = |bytes: f64| bytes / transfers as f64;
        writeln!(
            out,
            "  {name}: {cells} cells, {:.0} bytes for each transfer, {:.0} of them payload",
            of_one(bytes),
            of_one(payload)
        )?;
    }
    Ok(())
}

/// Deletes all outcomes, a third of them by each size of step.
fn expire(store: &dyn Store, requests: u64, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    for (at, step) in STEPS.into_iter().enumerate() {
        let before = Micros(BEGIN + APART * (requests as i64 * (at as i64 + 1) / STEPS.len() as i64));
        let (started, mut gone, mut longest) = (Instant::now(), 0, 0.0_f64);
        loop {
            let began = Instant::now();
            let rows = store.expire_requests(before, step)?;
            longest = longest.max(began.elapsed().as_secs_f64());
            gone += rows;
            if rows < step {
                break;
            }
        }
        let rate = gone as f64 / started.elapsed().as_secs_f64();
        writeln!(
            out,
            "  {gone} outcomes deleted in steps of {step}: {rate:.0} a second, the longest step {:.0} ms",
            longest * 1e3
        )?;
    }
    Ok(())
}
