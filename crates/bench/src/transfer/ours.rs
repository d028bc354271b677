//! The service in this process, its ledger's lane in front of the store on MySQL or MariaDB.
//!
//! Every wallet begins with a deposit, and the lane itself writes the history, so the ledger balances. Not here: HTTP.

use super::tables::OPENING;
use super::traffic::{Pairs, Traffic};
use super::{Amount, Ran};
use crate::error::{During, Error, prove};
use crate::ours;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tally_load::Latencies;
use tally_rules::idempotency::{Fingerprint, IdempotencyKey, RequestKey};
use tally_rules::ledger::account::AccountKey;
use tally_rules::ledger::{
    Account, Currency, MemberId, TransferKind, TransferRequest, Uuid, Wallet, WalletKey,
};
use tally_rules::{Actor, KeyId, Micros, ledger};
use tally_service::ledger::transfers::{NewTransfer, post, post_all};
use tally_service::{Failure, Tally};
use tally_store::mysql::{MySqlStore, Options};
use tally_store::{LedgerWriteSet, ReadSet, Store, WriteSet};
use tokio::runtime::Runtime;

/// Transfers of one request while filling, and concurrent requests.
const FILL: u64 = 1_000;
const FILLERS: u64 = 8;

/// Idempotency keys, unique over all runs.
static KEYS: AtomicU64 = AtomicU64::new(0);

/// The running service.
pub(super) struct Ours {
    store: Arc<dyn Store>,
    tally: Arc<Tally>,
    currency: Currency,
    members: u64,
}

impl Ours {
    /// Starts it in an empty database and fills it.
    pub(super) fn start(url: &str, amount: Amount, runtime: &Runtime) -> Result<Self, Error> {
        // As the product opens it: with rankings in memory there is one writer.
        let writer = Some("the bench".to_owned());
        let store =
            MySqlStore::open(url, &Options { writer, ..Options::default() }).during("open the store")?;
        let store: Arc<dyn Store> = Arc::new(store);
        let currency = Currency::parse("KRW").expect("a currency");
        let numbers: Vec<u64> = (0..amount.members).collect();
        for some in numbers.chunks(5_000) {
            let key = |&number| WalletKey { member: member(number), currency };
            let wallets = some.iter().map(|number| (key(number), Wallet::default())).collect();
            let ledger = LedgerWriteSet { wallets, ..LedgerWriteSet::default() };
            let fill = store.run(&ReadSet::default(), &mut |_| WriteSet {
                ledger: ledger.clone(),
                ..WriteSet::default()
            });
            fill.during("make wallets")?;
        }
        let tally = ours::serve(&store, 1).during("start the service")?;
        let own = Self { store, tally, currency, members: amount.members };
        runtime.block_on(own.fill(amount)).during("fill the ledger")?;
        Ok(own)
    }

    async fn fill(&self, amount: Amount) -> Result<(), Failure> {
        let deposit = |number| (TransferKind::Deposit { to: member(number) }, OPENING);
        self.post_many((0..amount.members).map(deposit)).await?;
        let mut pairs = Pairs::new(Traffic::Uniform, amount.members, usize::MAX);
        let transfer = |_| {
            let (from, to) = pairs.next();
            (TransferKind::Transfer { from: member(from), to: member(to) }, 1)
        };
        self.post_many((0..amount.transactions).map(transfer)).await
    }

    async fn post_many(&self, moves: impl Iterator<Item = (TransferKind, i64)>) -> Result<(), Failure> {
        let mut moves = moves.peekable();
        while moves.peek().is_some() {
            let mut tasks = Vec::new();
            for _ in 0..FILLERS {
                let some: Vec<_> = moves
                    .by_ref()
                    .take(FILL as usize)
                    .map(|(what, units)| (self.movement(what, units), false))
                    .collect();
                let tally = Arc::clone(&self.tally);
                tasks.push(tokio::spawn(async move { post_all(&tally, some).await }));
            }
            for task in tasks {
                for one in task.await.expect("a caller does not panic")? {
                    one?;
                }
            }
        }
        Ok(())
    }

    fn movement(&self, what: TransferKind, units: i64) -> NewTransfer {
        let number = KEYS.fetch_add(1, Ordering::Relaxed);
        let key = RequestKey { scope: "bench".into(), key: format!("{number:032x}").into() };
        let idempotency = Some(IdempotencyKey { key, fingerprint: Fingerprint([0; 16]).into() });
        let amount = ledger::Amount::new(units).expect("an amount");
        NewTransfer {
            order: TransferRequest { what, currency: self.currency, amount, reference: None },
            origin: Actor::Key(KeyId([7; 6])).into(),
            idempotency,
            mint_cap: None,
        }
    }

    /// Messages to the database so far.
    pub(super) fn round_trips(&self) -> u64 {
        let gauges = self.store.gauges();
        gauges.iter().find(|gauge| gauge.0 == "round_trips").map_or(0, |gauge| gauge.1 as u64)
    }

    /// Transfers by so many callers until the time is over.
    pub(super) async fn run(&self, traffic: Traffic, callers: usize, time: Duration) -> Result<Ran, Failure> {
        let began = Instant::now();
        let until = began + time;
        let mut tasks = Vec::with_capacity(callers);
        for caller in 0..callers {
            let own = Self {
                store: Arc::clone(&self.store),
                tally: Arc::clone(&self.tally),
                currency: self.currency,
                members: self.members,
            };
            tasks.push(tokio::spawn(async move { own.call(traffic, caller, until).await }));
        }
        let mut latencies = Latencies::default();
        for task in tasks {
            latencies.extend(task.await.expect("a caller does not panic")?);
        }
        Ok(Ran { seconds: began.elapsed().as_secs_f64(), latencies, again: 0 })
    }

    async fn call(&self, traffic: Traffic, caller: usize, until: Instant) -> Result<Vec<Duration>, Failure> {
        let (mut pairs, mut latencies) = (Pairs::new(traffic, self.members, caller), Vec::new());
        while Instant::now() < until {
            let (from, to) = pairs.next();
            let new = self.movement(TransferKind::Transfer { from: member(from), to: member(to) }, 1);
            let sent_at = Instant::now();
            post(&self.tally, new).await?;
            latencies.push(sent_at.elapsed());
        }
        Ok(latencies)
    }

    /// Stops it, after a check that no money was made or lost and every transfer is there.
    pub(super) fn stop(self, amount: Amount, done: u64) -> Result<(), Error> {
        self.tally.drain();
        let totals = self.store.ledger().totals().during("read the totals")?;
        let of = |account| {
            let key = AccountKey { account, currency: self.currency };
            totals.iter().find(|total| total.0 == key).map(|total| total.1).unwrap_or_default()
        };
        let (asset, payable) = (of(Account::BankAsset), of(Account::BankPayable));
        let deposited = u128::from(amount.members) * u128::from(OPENING.unsigned_abs());
        let moved = u128::from(amount.transactions + done);
        prove(asset.debits == deposited, || format!("{} deposited of {deposited}", asset.debits))?;
        prove(payable.credits == deposited + moved && payable.debits == moved, || {
            format!("{moved} moved, but the ledger has {} and {}", payable.debits, payable.credits)
        })?;
        let mut sum = 0;
        for number in 0..amount.members {
            let wallets = self.store.ledger().wallets_of(member(number)).during("read a wallet")?;
            sum += wallets.iter().map(|wallet| i128::from(wallet.1.balance)).sum::<i128>();
        }
        prove(sum == deposited.cast_signed(), || format!("wallets add up to {sum}, not {deposited}"))
    }
}

fn member(number: u64) -> MemberId {
    MemberId(Uuid::new(Micros(number.cast_signed()), 0))
}
