//! Replaying the ledger: no finding in a sound one, and by SQL one wrong row of each kind, each named.

use crate::wallets::world::*;
use tally_rules::Origin;
use tally_rules::ledger::account::{Account, Total};
use tally_rules::ledger::entry::EntryKey;
use tally_rules::ledger::hold::Ending;
use tally_rules::ledger::member::{Handle, Phone};
use tally_rules::ledger::{
    Amount, HoldId, MemberId, Month, TransferId, TransferKind, TransferRequest, Uuid, WalletKey,
};
use tally_service::ledger::holds::{self, NewHold};
use tally_service::verify::{
    Checkpoint, Disagreement, Expected, Listener, MonthCheckpoint, Reconciled, reconcile,
};
use tally_store::archive::ProvedWallet;
use tally_store::sqlite::SqliteStore;
use tally_store::{LedgerWriteSet, ReadSet, Store, StoreError, WriteSet};
use tally_testkit::{DatabaseKind, ScratchDatabase};

const TABLES: [&str; 7] = ["members", "handles", "wallets", "entries", "transfers", "holds", "totals"];

/// What a reconciliation finds.
pub(crate) fn verify(store: &dyn Store) -> (Reconciled, Vec<String>) {
    verify_since(store, None)
}

/// The same after the end of a month.
pub(crate) fn verify_since(store: &dyn Store, since: Option<Month>) -> (Reconciled, Vec<String>) {
    let since = since.map(|month| {
        let mut snapshot = store.ledger().snapshot().unwrap();
        let found = MonthCheckpoint::find(&mut *snapshot, Some(month)).unwrap();
        Checkpoint::Month(found.expect("a checkpoint"))
    });
    verify_from(store, since, &mut |_, _| Ok(()))
}

/// The same after a checkpoint; `proved` gets each wallet.
pub(crate) fn verify_from(
    store: &dyn Store,
    since: Option<Checkpoint>,
    proved: &mut dyn FnMut(&WalletKey, &ProvedWallet) -> Result<(), StoreError>,
) -> (Reconciled, Vec<String>) {
    let (mut found, mut rows) = (Vec::new(), 0);
    let listener = Listener {
        found: &mut |one: &Disagreement| found.push(one.to_string()),
        read: &mut |more| rows += more,
        proved,
    };
    let expected = Expected::of(store).unwrap();
    let mut snapshot = store.ledger().snapshot().unwrap();
    let now = tally_rules::Micros(i64::MAX);
    let reconciled = reconcile(store, &mut *snapshot, (expected, now, since), listener).unwrap();
    assert_eq!(found.len() as u64, reconciled.disagreements);
    let Reconciled { members, handles, wallets, entries, transfers, scores, .. } = reconciled;
    let records = scores.records + scores.to_purge;
    let counted = members + handles + wallets + entries + transfers + records;
    // Records of missing owners are read and not counted.
    assert!(if found.is_empty() { rows == counted } else { rows >= counted }, "{rows} of {counted}");
    (reconciled, found)
}

/// Debts, as they are listed.
pub(crate) fn owed(reconciled: &Reconciled) -> Vec<String> {
    let listed: Vec<String> = reconciled.owed.first.iter().map(ToString::to_string).collect();
    assert_eq!(listed.len() as u64, reconciled.owed.count.min(100));
    listed
}

/// Ids of the created rows.
struct Made {
    ann: MemberId,
    bob: MemberId,
    cid: MemberId,
    open: HoldId,
    captured: HoldId,
    voided: HoldId,
    first: TransferId,
    second: TransferId,
}

/// Three members, two currencies, and holds that are open, captured in part, captured whole, and voided.
fn make(world: &World) -> Made {
    let [ann, cid] = [("ann", 1000), ("cid", 0)].map(|(name, units)| world.member(name, units));
    let bob = world.create(with_phone("bob", "010-1111")).unwrap().id;
    world.post(order(TransferKind::Deposit { to: bob }, 500), None).unwrap();
    let dollars = TransferRequest { currency: code("USD"), ..order(TransferKind::Deposit { to: ann }, 7) };
    world.post(dollars, None).unwrap();
    let posted = |receipt: tally_service::ledger::transfers::Receipt| receipt.posted.entry.transfer;
    let first = posted(world.transfer(ann, bob, 100, None).unwrap());
    let second = posted(world.transfer(bob, cid, 50, None).unwrap());
    world.post(order(TransferKind::Withdrawal { from: cid }, 10), None).unwrap();
    world.post(order(TransferKind::Fee { from: ann }, 3), None).unwrap();
    let hold = |member, units| {
        let wallet = WalletKey { member, currency: code("KRW") };
        let new = NewHold {
            wallet,
            amount: Amount::new(units).unwrap(),
            expires_at: None,
            origin: Origin::default(),
            idempotency: None,
        };
        world.wait(holds::place(&world.tally, new)).unwrap().id
    };
    let end = |id, ending| world.wait(holds::end(&world.tally, id, ending, Origin::default(), None)).unwrap();
    let (open, captured, house, voided) = (hold(ann, 30), hold(bob, 20), hold(bob, 5), hold(bob, 4));
    let part = Some(Amount::new(12).unwrap());
    end(captured, Ending::Capture { amount: part, to: Some(cid) });
    end(house, Ending::Capture { amount: None, to: None });
    end(voided, Ending::Void);
    Made { ann, bob, cid, open, captured, voided, first, second }
}

pub(crate) fn hex(id: Uuid) -> String {
    format!("x'{:032x}'", u128::from_be_bytes(id.0))
}

#[test]
fn an_untouched_ledger_agrees() {
    for kind in [Kind::Sqlite, Kind::MariaDb, Kind::MySql] {
        let world = World::new(kind);
        assert_eq!(verify(&*world.tally.store).1, [""; 0]);
        let made = make(&world);
        let (reconciled, found) = verify(&*world.tally.store);
        assert_eq!(found, [""; 0]);
        let Reconciled { members, handles, wallets, entries, transfers, holds, totals, .. } = reconciled;
        assert_eq!((members, handles, wallets, entries, transfers, holds), (3, 10, 4, 12, 9, 4));
        let fees = totals.iter().find(|(key, _)| key.account == Account::Fees);
        assert_eq!(fees.map(|(_, total)| *total), Some(Total { debits: 0, credits: 8 }));
        world.end(&[made.ann, made.bob, made.cid]);
    }
}

/// A fault as SQL, and its findings: as many words as rows disagree.
pub(crate) type Broken = (String, Vec<String>);

/// An id without a row.
pub(crate) const GHOST: Uuid = Uuid([1; 16]);

pub(crate) fn fault(sql: String, wanted: &[&str]) -> Broken {
    (sql, wanted.iter().map(|text| (*text).to_owned()).collect())
}

fn at(member: Uuid) -> String {
    format!("member = {} AND currency = 'KRW'", hex(member))
}

fn entry(member: Uuid, number: u8) -> String {
    format!("{} AND sequence = {number}", at(member))
}

fn of_wallets(made: &Made) -> Vec<Broken> {
    let [ann, bob, cid] = [made.ann, made.bob, made.cid].map(|member| member.0);
    let owed = "BANK_PAYABLE/KRW: ";
    vec![
        fault(
            format!("UPDATE wallets SET balance = balance + 1 WHERE {}", at(ann)),
            &[&format!("wallets {ann}/KRW: its balance is 898, and its entries leave 897"), owed],
        ),
        fault(
            format!("UPDATE wallets SET sequence = 9 WHERE {}", at(bob)),
            &[&format!("wallets {bob}/KRW: it counts 9 entries, and the last is 5")],
        ),
        fault(
            format!("UPDATE wallets SET held = 31 WHERE {}", at(ann)),
            &[&format!("wallets {ann}/KRW: 31 is held, and open holds are 30")],
        ),
        fault(
            format!("UPDATE wallets SET held = 9999 WHERE {}", at(ann)),
            &[
                "9999 is held, and open holds are 30",
                &format!("wallets {ann}/KRW: 9999 is held of a balance of 897"),
            ],
        ),
        fault(
            format!("UPDATE wallets SET closed = 1 WHERE {}", at(cid)),
            &[&format!("wallets {cid}/KRW: it is closed, and its member is open")],
        ),
        fault(
            format!("DELETE FROM wallets WHERE {}", at(cid)),
            &[
                &format!("members {cid}: its wallet is not there"),
                &format!("entries {cid}/KRW/1: its wallet is not there"),
                owed,
            ],
        ),
        fault(
            format!("DELETE FROM members WHERE id = {}", hex(bob)),
            &[
                &format!("wallets {bob}/KRW: its member is not there"),
                &format!("handles name bob: its member is not there: {bob}"),
                &format!("handles login bob: its member is not there: {bob}"),
                &format!("handles phone number 0101111: its member is not there: {bob}"),
                &format!("handles player {bob}: its member is not there: {bob}"),
            ],
        ),
    ]
}

fn of_handles(made: &Made) -> Vec<Broken> {
    let [ann, bob, cid] = [made.ann, made.bob, made.cid].map(|member| member.0);
    let ghost = GHOST;
    // Names come before all logins.
    let name = "kind = 1 AND `text` < ' '";
    let (login, phone) = ("kind = 1 AND `text` = 'ann'", "kind = 2 AND `text` = '0101111'");
    vec![
        fault(
            format!("DELETE FROM handles WHERE {login}"),
            &[&format!("members {ann}: its login ann finds nobody")],
        ),
        fault(
            format!("DELETE FROM handles WHERE {name} AND member = {}", hex(ann)),
            &[&format!("members {ann}: its name ann finds nobody")],
        ),
        fault(
            format!("UPDATE handles SET member = {} WHERE {name} AND member = {}", hex(cid), hex(ann)),
            &[
                &format!("members {ann}: its name ann finds another: {cid}"),
                &format!("handles name ann: its member has another name or none: {cid}"),
            ],
        ),
        fault(
            format!("UPDATE members SET name = 'Anna' WHERE id = {}", hex(ann)),
            &[
                &format!("members {ann}: its name anna finds nobody"),
                &format!("handles name ann: its member has another name or none: {ann}"),
            ],
        ),
        fault(
            format!("DELETE FROM handles WHERE {phone}"),
            &[&format!("members {bob}: its phone number 0101111 finds nobody")],
        ),
        fault(
            format!("DELETE FROM handles WHERE kind = 3 AND member = {}", hex(cid)),
            &[&format!("members {cid}: its player {cid} finds nobody")],
        ),
        fault(
            format!("UPDATE handles SET member = {} WHERE {login}", hex(ghost)),
            &[
                &format!("members {ann}: its login ann finds another: {ghost}"),
                &format!("handles login ann: its member is not there: {ghost}"),
            ],
        ),
        fault(
            format!("UPDATE handles SET member = {} WHERE {phone}", hex(cid)),
            &[
                &format!("members {bob}: its phone number 0101111 finds another: {cid}"),
                &format!("handles phone number 0101111: its member has another phone number or none: {cid}"),
            ],
        ),
        fault(
            format!("INSERT INTO handles VALUES (2, '0109999', {})", hex(ann)),
            &[&format!("handles phone number 0109999: its member has another phone number or none: {ann}")],
        ),
        fault(
            format!("UPDATE members SET login = 'bob' WHERE id = {}", hex(ann)),
            &[
                &format!("members {ann}: its login bob finds another: {bob}"),
                &format!("handles login ann: its member has another login or none: {ann}"),
            ],
        ),
        fault(
            format!("UPDATE members SET phone = NULL WHERE id = {}", hex(bob)),
            &[&format!("handles phone number 0101111: its member has another phone number or none: {bob}")],
        ),
    ]
}

fn of_entries(made: &Made) -> Vec<Broken> {
    let [ann, bob] = [made.ann, made.bob].map(|member| member.0);
    let (first, second, ghost) = (made.first.0, made.second.0, GHOST);
    vec![
        fault(
            format!("UPDATE entries SET `after` = `after` + 1 WHERE {}", entry(bob, 2)),
            &[
                &format!("entries {bob}/KRW/2: the balance before it is 501, and the one below leaves 500"),
                &format!("entries {bob}/KRW/3: the balance before it is 600, and the one below leaves 601"),
            ],
        ),
        fault(
            format!("DELETE FROM entries WHERE {}", entry(bob, 2)),
            &[
                &format!("entries {bob}/KRW/3: it follows entry 1: what is between is missing"),
                &format!("entries {bob}/KRW/3: the balance before it is 600, and the one below leaves 500"),
                &format!("transfers {first}: its entry is not there: {bob}/KRW/2"),
            ],
        ),
        fault(
            format!("DELETE FROM entries WHERE {}", entry(bob, 5)),
            &[
                &format!("wallets {bob}/KRW: its balance is 533, and its entries leave 538"),
                &format!("wallets {bob}/KRW: it counts 5 entries, and the last is 4"),
                "its entry is not there",
            ],
        ),
        fault(
            format!("UPDATE entries SET kind = 2 WHERE {}", entry(ann, 2)),
            &[&format!(
                "transfers {first}: its entry {ann}/KRW/2 is withdrawal of 100 with {bob}, and it is transfer_out of 100 with {bob}"
            )],
        ),
        fault(
            format!("UPDATE entries SET counterparty = NULL WHERE {}", entry(ann, 2)),
            &[&format!("is transfer_out of 100 with nobody, and it is transfer_out of 100 with {bob}")],
        ),
        fault(
            format!("UPDATE entries SET transfer = {} WHERE {}", hex(ghost), entry(ann, 2)),
            &[
                &format!("transfers {first}: its entry {ann}/KRW/2 is of another movement: {ghost}"),
                &format!("entries {ann}/KRW/2: its movement is not there: {ghost}"),
            ],
        ),
        fault(
            format!("UPDATE entries SET transfer = {} WHERE {}", hex(second), entry(ann, 2)),
            &[
                "is of another movement",
                &format!("entries {ann}/KRW/2: its movement has no such entry: {second}"),
            ],
        ),
    ]
}

fn of_movements(made: &Made) -> Vec<Broken> {
    let [ann, bob] = [made.ann, made.bob].map(|member| member.0);
    let first = made.first.0;
    vec![
        fault(
            format!("DELETE FROM transfers WHERE id = {}", hex(first)),
            &[
                "totals BANK_PAYABLE/KRW: debits",
                &format!("entries {ann}/KRW/2: its movement is not there: {first}"),
                &format!("entries {bob}/KRW/2: its movement is not there: {first}"),
            ],
        ),
        fault(
            format!("UPDATE transfers SET amount = 101 WHERE id = {}", hex(first)),
            &[
                &format!("transfers {first}: its entry {ann}/KRW/2 is transfer_out of 100"),
                &format!("transfers {first}: its entry {bob}/KRW/2 is transfer_in of 100"),
                "and its movements come to",
            ],
        ),
        fault(
            "UPDATE totals SET debits = debits + 1 WHERE account = 1 AND currency = 'KRW' LIMIT 1".into(),
            &[
                "totals BANK_ASSET/KRW: debits 1501 and credits 10, and its movements come to debits 1500",
                "totals KRW: debits are",
            ],
        ),
        fault(
            "DELETE FROM totals WHERE currency = 'USD' AND account = 2".into(),
            &[
                "totals BANK_PAYABLE/USD: is not there",
                "totals USD: debits are 7 and credits 0",
                "totals BANK_PAYABLE/USD: 0 is owed, and wallets have 7",
            ],
        ),
    ]
}

fn of_holds(made: &Made) -> Vec<Broken> {
    let (ann, ghost) = (made.ann.0, GHOST);
    let (open, captured, voided) = (made.open.0, made.captured.0, made.voided.0);
    vec![
        fault(
            format!("UPDATE holds SET amount = 29 WHERE id = {}", hex(open)),
            &[&format!("wallets {ann}/KRW: 30 is held, and open holds are 29")],
        ),
        fault(
            format!("DELETE FROM holds WHERE id = {}", hex(open)),
            &[&format!("wallets {ann}/KRW: 30 is held, and open holds are 0")],
        ),
        fault(
            format!("UPDATE holds SET member = {} WHERE id = {}", hex(ghost), hex(open)),
            &[
                "30 is held, and open holds are 0",
                &format!("holds {ghost}/KRW: 30 is held of a wallet that is not there"),
            ],
        ),
        fault(
            format!("UPDATE holds SET captured = 13 WHERE id = {}", hex(captured)),
            &[&format!("holds {captured}: it is not as the movement that captured it")],
        ),
        fault(
            format!("UPDATE holds SET transfer = {} WHERE id = {}", hex(ghost), hex(captured)),
            &[
                &format!("holds {captured}: the movement that captured it is not there: {ghost}"),
                "no hold was captured by it",
            ],
        ),
        fault(
            format!(
                "UPDATE holds JOIN holds AS other ON other.id = {} SET holds.state = 1, holds.captured = 4, \
                 holds.transfer = other.transfer WHERE holds.id = {}",
                hex(captured),
                hex(voided)
            ),
            &["2 holds say that it captured them"],
        ),
        fault(
            format!(
                "UPDATE holds SET state = 2, captured = NULL, captured_to = NULL, transfer = NULL WHERE id = {}",
                hex(captured)
            ),
            &["no hold was captured by it"],
        ),
    ]
}

/// A world in a database of a server, and the database's name there.
pub(crate) fn in_a_database(server: &ScratchDatabase) -> (World, String) {
    let url = server.create_database();
    let name = url.rsplit('/').next().unwrap().to_owned();
    let folder = tempfile::tempdir().unwrap();
    let archives = Some(folder.path().join(tally_store::sqlite::ARCHIVES));
    let options = tally_store::mysql::Options { archives, ..Default::default() };
    let store = std::sync::Arc::new(tally_store::mysql::MySqlStore::open(&url, &options).unwrap());
    (World::on(store, folder), name)
}

/// Where rows are broken.
pub(crate) enum Place {
    /// In the database of that name, of a world that may go on.
    Server(World, &'static ScratchDatabase, String),
    /// In copies of the file of a world that has ended.
    File(tempfile::TempDir),
}

impl Place {
    /// A new world of each kind, and the result of `make` on it.
    pub(crate) fn each<T>(make: impl Fn(&World) -> T) -> Vec<(Self, T)> {
        let (file, server) = (World::new(Kind::Sqlite), ScratchDatabase::shared(DatabaseKind::MariaDb10));
        let made = make(&file);
        let (world, name) = in_a_database(server);
        let made_there = make(&world);
        vec![(Self::File(file.stop()), made), (Self::Server(world, server, name), made_there)]
    }

    pub(crate) fn is_file(&self) -> bool {
        matches!(self, Self::File(_))
    }

    /// Returns the store with rows of these tables broken by `sql`, which finds their former state under `kept_`. They are
    /// restored afterwards.
    pub(crate) fn broken<T>(&self, tables: &[&str], sql: &str, with: impl FnOnce(&dyn Store) -> T) -> T {
        let each = |text: &dyn Fn(&str) -> String| tables.iter().map(|table| text(table)).collect::<String>();
        match self {
            Self::Server(world, server, name) => {
                let keep = |table: &str| format!("CREATE TABLE kept_{table} AS SELECT * FROM {table}; ");
                server.sql(&format!("USE {name}; {} {sql}", each(&keep)));
                let done = with(&*world.tally.store);
                let back = |table: &str| {
                    let again = format!("INSERT INTO {table} SELECT * FROM kept_{table}");
                    format!("DELETE FROM {table}; {again}; DROP TABLE kept_{table}; ")
                };
                server.sql(&format!("USE {name}; {}", each(&back)));
                done
            }
            Self::File(folder) => {
                let copy = tempfile::tempdir().unwrap();
                let path = copy.path().join("t.db");
                std::fs::copy(folder.path().join("t.db"), &path).unwrap();
                let archives = |folder: &tempfile::TempDir| folder.path().join(tally_store::sqlite::ARCHIVES);
                for file in std::fs::read_dir(archives(folder)).into_iter().flatten() {
                    let file = file.unwrap();
                    std::fs::create_dir_all(archives(&copy)).unwrap();
                    std::fs::copy(file.path(), archives(&copy).join(file.file_name())).unwrap();
                }
                let file = rusqlite::Connection::open(&path).unwrap();
                // As a damaged page does: neither checks nor types hold.
                let loose = "PRAGMA ignore_check_constraints = 1; PRAGMA writable_schema = ON; \
                     UPDATE sqlite_schema SET sql = replace(sql, 'STRICT, ', '') WHERE sql LIKE '%STRICT, %'; \
                     PRAGMA writable_schema = RESET; ";
                let keep = |table: &str| format!("CREATE TEMP TABLE kept_{table} AS SELECT * FROM {table}; ");
                file.execute_batch(&format!("{loose} {} {sql}", each(&keep))).unwrap();
                drop(file);
                with(&SqliteStore::open(&path, &tally_store::sqlite::Options::default()).unwrap())
            }
        }
    }

    /// Breaks rows by each fault in turn, and checks that `verify` reports exactly that fault.
    pub(crate) fn break_each(&self, tables: &[&str], faults: Vec<Broken>) {
        for (sql, wanted) in faults {
            let (_, found) = self.broken(tables, &sql, verify);
            assert_eq!(found.len(), wanted.len(), "{sql}: {found:#?}");
            for wanted in wanted {
                assert!(
                    found.iter().any(|found| found.contains(&wanted)),
                    "{sql}: no {wanted:?} in {found:#?}"
                );
            }
            assert_eq!(self.broken(&[], "", verify).1, [""; 0], "after {sql}");
        }
    }
}

#[test]
fn every_kind_of_row_that_was_broken_by_sql_is_named() {
    let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let (world, name) = in_a_database(server);
    let made = make(&world);
    let faults =
        [of_wallets(&made), of_handles(&made), of_entries(&made), of_movements(&made), of_holds(&made)]
            .concat();
    Place::Server(world, server, name).break_each(&TABLES, faults);
}

#[test]
fn rows_of_a_file_are_named_as_well_wherever_they_are_kept() {
    let world = World::new(Kind::Sqlite);
    let made = make(&world);
    let store = &*world.tally.store;
    let key = EntryKey { wallet: WalletKey { member: made.bob, currency: code("KRW") }, sequence: 2 };
    let entry = store.ledger().entries(&[key]).unwrap().remove(0).unwrap();
    let write = |amount| {
        let entries = vec![(key, tally_rules::ledger::Entry { amount, ..entry.clone() })];
        let ledger = LedgerWriteSet { entries, ..LedgerWriteSet::default() };
        store
            .run(&ReadSet::default(), &mut |_| WriteSet { ledger: ledger.clone(), ..WriteSet::default() })
            .unwrap();
    };
    for settled in [false, true] {
        write(99);
        if settled {
            store.checkpoint().unwrap();
        }
        let (_, found) = verify(store);
        assert_eq!(found.len(), 2, "{found:#?}");
        assert!(found[0].contains("/KRW/2: the balance before it is 501"), "{found:#?}");
        assert!(found[1].contains("is transfer_in of 99 with"), "{found:#?}");
        write(100);
        assert_eq!(verify(store).1, [""; 0]);
    }
    let phone = Handle::Phone(Phone::parse("010-1111", None).unwrap());
    let give = |member| {
        let handles = vec![(phone.clone(), member)];
        let ledger = LedgerWriteSet { handles, ..LedgerWriteSet::default() };
        store
            .run(&ReadSet::default(), &mut |_| WriteSet { ledger: ledger.clone(), ..WriteSet::default() })
            .unwrap();
    };
    let (bob, cid) = (made.bob.0, made.cid.0);
    let found_by = format!("members {bob}: its phone number 0101111 finds");
    let another = format!("handles phone number 0101111: its member has another phone number or none: {cid}");
    for settled in [false, true] {
        let faults = [
            (None, vec![format!("{found_by} nobody")]),
            (Some(made.cid), vec![format!("{found_by} another: {cid}"), another.clone()]),
        ];
        for (holder, wanted) in faults {
            give(holder);
            if settled {
                store.checkpoint().unwrap();
            }
            assert_eq!(verify(store).1, wanted);
        }
        give(Some(made.bob));
        assert_eq!(verify(store).1, [""; 0]);
    }
    world.end(&[made.ann, made.bob, made.cid]);
}
