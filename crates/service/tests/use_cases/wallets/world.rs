//! A service with members and a clock of the test's own, on a store of each kind.

use crate::world::Clocks;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tally_ranking::RedisApplications;
use tally_rules::idempotency::{Fingerprint, IdempotencyKey, RequestKey};
use tally_rules::ledger::account::Totals;
use tally_rules::ledger::entry::EntryKey;
use tally_rules::ledger::member::{Login, Phone};
use tally_rules::ledger::pin::Attempts;
use tally_rules::ledger::{
    Amount, Currencies, Currency, Member, MemberId, Transfer, TransferId, TransferKind, TransferRequest,
    WalletKey,
};
use tally_rules::{Micros, Origin, PlayerId, Rejection};
use tally_service::ledger::transfers::{NewTransfer, Receipt, TransferResult};
use tally_service::ledger::{LedgerSettings, transfers};
use tally_service::members::{self, Created, NewMember};
use tally_service::secret::Secret;
use tally_service::{Clock, Failure, Keys, Progress, Settings, Tally};
use tally_store::Store;
use tally_store::mysql::MySqlStore;
use tally_store::sqlite::SqliteStore;
use tally_testkit::{DatabaseKind, ScratchDatabase, wait_until};
use tokio::runtime::Runtime;

/// Where the store is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Sqlite,
    MariaDb,
    MySql,
}

/// The service with its clock.
pub(crate) struct World {
    pub(crate) tally: Arc<Tally>,
    now: Arc<AtomicI64>,
    pub(crate) runtime: Runtime,
    _folder: tempfile::TempDir,
}

pub(crate) fn code(text: &str) -> Currency {
    Currency::parse(text).unwrap()
}

pub(crate) fn settings() -> LedgerSettings {
    let currencies = Currencies::new((code("KRW"), 0), [(code("USD"), 2)]);
    LedgerSettings { currencies, ..LedgerSettings::default() }
}

pub(crate) fn idempotency(key: &str, print: u8) -> Option<IdempotencyKey> {
    let key = RequestKey { scope: "test".into(), key: key.into() };
    Some(IdempotencyKey { key, fingerprint: Fingerprint([print; 16]).into() })
}

/// The data of a member.
pub(crate) fn new_member(name: &str) -> NewMember {
    let member = Member {
        login: Login::new(name).unwrap(),
        phone: None,
        player: PlayerId::new("not asked").unwrap(),
        name: name.into(),
        password: None,
        pin: None,
        attempts: Attempts::default(),
        tokens_from: Micros(0),
        closed_at: None,
    };
    NewMember { member, player_is_id: true, idempotency: None }
}

pub(crate) fn with_phone(name: &str, phone: &str) -> NewMember {
    let new = new_member(name);
    let phone = Some(Phone::parse(phone, None).unwrap());
    NewMember { member: Member { phone, ..new.member }, ..new }
}

impl World {
    pub(crate) fn new(kind: Kind) -> Self {
        Self::with_ahead(kind, &Arc::default())
    }

    /// The same with a wall clock that is so far ahead of monotonic time.
    pub(crate) fn with_ahead(kind: Kind, ahead: &Arc<AtomicI64>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = |kind| {
            let url = ScratchDatabase::shared(kind).create_database();
            Arc::new(MySqlStore::open(&url, &tally_store::mysql::Options::default()).unwrap())
                as Arc<dyn Store>
        };
        let store: Arc<dyn Store> = match kind {
            Kind::Sqlite => {
                let path = folder.path().join("t.db");
                Arc::new(SqliteStore::open(&path, &tally_store::sqlite::Options::default()).unwrap())
            }
            Kind::MariaDb => database(DatabaseKind::MariaDb10),
            Kind::MySql => database(DatabaseKind::MySql9),
        };
        Self::by(store, folder, ahead)
    }

    pub(crate) fn on(store: Arc<dyn Store>, folder: tempfile::TempDir) -> Self {
        Self::by(store, folder, &Arc::default())
    }

    /// The same on a store that has rows.
    pub(crate) fn by(store: Arc<dyn Store>, folder: tempfile::TempDir, ahead: &Arc<AtomicI64>) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
        let now = Arc::new(AtomicI64::new(1_700_000_000_000_000));
        let clocks = Clocks { now: Arc::clone(&now), ahead: Arc::clone(ahead), boot: false };
        let tally = start_by(store, Clock::new(clocks), settings(), None).unwrap();
        Self { tally, now, runtime, _folder: folder }
    }

    pub(crate) fn now(&self) -> Micros {
        Micros(self.now.load(Ordering::SeqCst))
    }

    pub(crate) fn advance(&self, micros: i64) {
        self.now.fetch_add(micros, Ordering::SeqCst);
    }

    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    pub(crate) fn create(&self, new: NewMember) -> Result<Created, Failure> {
        self.wait(members::create(&self.tally, new, &Origin::BACKGROUND))
    }

    /// A member with this balance.
    pub(crate) fn member(&self, name: &str, units: i64) -> MemberId {
        let id = self.create(new_member(name)).unwrap().id;
        if units > 0 {
            self.post(order(TransferKind::Deposit { to: id }, units), None).unwrap();
        }
        id
    }

    pub(crate) fn post(&self, order: TransferRequest, key: Option<&str>) -> TransferResult {
        let idempotency = key.and_then(|key| idempotency(key, 1));
        self.wait(transfers::post(
            &self.tally,
            NewTransfer { order, origin: Origin::default(), idempotency, mint_cap: None },
        ))
    }

    pub(crate) fn transfer(
        &self,
        from: MemberId,
        to: MemberId,
        units: i64,
        key: Option<&str>,
    ) -> TransferResult {
        self.post(order(TransferKind::Transfer { from, to }, units), key)
    }

    /// Many at once, each linked to the next or not.
    pub(crate) fn post_all(&self, moves: Vec<(TransferRequest, bool)>) -> Vec<TransferResult> {
        let new = |(order, linked)| {
            (NewTransfer { order, origin: Origin::default(), idempotency: None, mint_cap: None }, linked)
        };
        self.wait(transfers::post_all(&self.tally, moves.into_iter().map(new).collect())).unwrap()
    }

    pub(crate) fn balance(&self, member: MemberId) -> i64 {
        let wallets = self.tally.store.ledger().wallets_of(member).unwrap();
        wallets
            .into_iter()
            .find(|(currency, _)| *currency == code("KRW"))
            .map_or(0, |(_, wallet)| wallet.balance)
    }

    /// Ends, and returns the folder of its file.
    pub(crate) fn stop(self) -> tempfile::TempDir {
        self.tally.drain();
        wait_until("no other has the service", || Arc::strong_count(&self.tally) == 1);
        let Self { _folder: folder, .. } = self;
        folder
    }

    /// Proves that everything agrees, and ends.
    pub(crate) fn end(self, members: &[MemberId]) {
        self.tally.drain();
        prove(&*self.tally.store, members);
        assert_eq!(crate::wallets::verify::verify(&*self.tally.store).1, [""; 0]);
        crate::wallets::verify_file::check(&*self.tally.store);
    }
}

pub(crate) fn start(
    store: Arc<dyn Store>,
    now: &Arc<AtomicI64>,
    ledger: LedgerSettings,
) -> Result<Arc<Tally>, Failure> {
    start_with(store, now, ledger, None)
}

/// The same with the applications of contests without money elsewhere.
pub(crate) fn start_with(
    store: Arc<dyn Store>,
    now: &Arc<AtomicI64>,
    ledger: LedgerSettings,
    applications: Option<RedisApplications>,
) -> Result<Arc<Tally>, Failure> {
    let now = Arc::clone(now);
    start_by(store, Clock::of(move || Micros(now.load(Ordering::SeqCst))), ledger, applications)
}

/// The same with a clock of the caller's.
pub(crate) fn start_by(
    store: Arc<dyn Store>,
    clock: Clock,
    ledger: LedgerSettings,
    applications: Option<RedisApplications>,
) -> Result<Arc<Tally>, Failure> {
    start_set(store, clock, Settings { ledger, applications, ..Settings::default() })
}

/// The same with all settings of the caller's.
pub(crate) fn start_set(
    store: Arc<dyn Store>,
    clock: Clock,
    settings: Settings,
) -> Result<Arc<Tally>, Failure> {
    let secret = Secret::new([1; 32]);
    let keys = Keys::load(Arc::clone(&store), secret.clone(), clock.clone(), &settings).unwrap();
    Tally::start(store, Arc::new(keys), clock, settings, &Progress::default())
}

pub(crate) fn order(what: TransferKind, units: i64) -> TransferRequest {
    TransferRequest { what, currency: code("KRW"), amount: Amount::new(units).unwrap(), reference: None }
}

pub(crate) fn refused<T: std::fmt::Debug>(done: Result<T, Failure>) -> Rejection {
    match done {
        Err(Failure::Rejected(rejection)) => rejection,
        done => panic!("{done:?}"),
    }
}

/// Before and after, as in the reply.
pub(crate) fn shown(receipt: &Receipt) -> (i64, i64) {
    (receipt.posted.entry.before(), receipt.posted.entry.after)
}

/// Balances are their entries, entries are of transfers, totals are those of all transfers, and debits equal credits.
pub(crate) fn prove(store: &dyn Store, members: &[MemberId]) {
    let read = store.ledger();
    let mut moves = std::collections::BTreeMap::<TransferId, Transfer>::new();
    for member in members {
        for (currency, wallet) in read.wallets_of(*member).unwrap() {
            let key = WalletKey { member: *member, currency };
            let places = 1..=wallet.sequence;
            let keys: Vec<_> = places.map(|sequence| EntryKey { wallet: key, sequence }).collect();
            let mut balance = 0;
            for entry in read.entries(&keys).unwrap() {
                let entry = entry.expect("entries have no gap");
                assert_eq!(entry.before(), balance);
                balance = entry.after;
                moves.insert(
                    entry.transfer,
                    read.transfer(entry.transfer).unwrap().expect("it is of a movement"),
                );
            }
            assert_eq!(wallet.balance, balance);
            assert!(0 <= wallet.held && wallet.held <= wallet.balance);
        }
    }
    let mut totals = Totals::default();
    moves.values().for_each(|transfer| totals.add(transfer));
    assert!(totals.balanced());
    assert_eq!(totals.into_rows(), read.totals().unwrap());
}
