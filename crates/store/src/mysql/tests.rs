//! Tests that need internals: future migrations, and the number of messages of a transaction.

#![cfg(test)]

use super::text::Script;
use super::*;
use crate::plan::{BatchId, BoardChange, BoardNo, BoardRow, Loaded, ReadSet, ScoreKey, Window, WriteSet};
use crate::{Coordination, LedgerReadSet, LedgerWriteSet, Reads, Transactions};
use std::time::Duration;
use tally_rules::idempotency::{Fingerprint, RequestKey, Stored};
use tally_rules::ledger::entry::{Entry, EntryKey, EntryKind};
use tally_rules::ledger::{Currency, MemberId, TransferId, Uuid, Wallet, WalletKey};
use tally_rules::outcome::Outcome;
use tally_rules::profile::Profile;
use tally_rules::{BoardId, Definition, Micros, PlayerId, Record};
use tally_testkit::{DatabaseKind, ScratchDatabase};

const KNOWN: usize = migrate::MIGRATIONS.len();

const MORE: &str = "-- A table more; and a row.\nCREATE TABLE IF NOT EXISTS more (a INT PRIMARY KEY);\nREPLACE INTO more VALUES (1);\n";

/// The migrations, and one more.
const NEXT: &[&str] = &{
    let mut all = [MORE; KNOWN + 1];
    let mut at = 0;
    while at < KNOWN {
        all[at] = migrate::MIGRATIONS[at];
        at += 1;
    }
    all
};

#[test]
fn an_older_schema_is_migrated_only_when_that_is_asked_for() {
    let (older, newer) = (KNOWN as u32, NEXT.len() as u32);
    for kind in [DatabaseKind::MariaDb10, DatabaseKind::MySql9] {
        let server = ScratchDatabase::shared(kind);
        let url = server.create_database();
        let rows = || server.try_sql(&format!("SELECT a FROM {}.more", url.rsplit('/').next().unwrap()));
        drop(MySqlStore::open(&url, &Options::default()).unwrap());
        let refused = MySqlStore::open_with(&url, &Options::default(), NEXT, &mut |_| ()).map(drop);
        assert_eq!(refused, Err(StoreError::TooOld { found: older, known: newer }));
        assert!(rows().is_err());
        let asked = Options { migrate: true, ..Options::default() };
        drop(MySqlStore::open_with(&url, &asked, NEXT, &mut |_| ()).unwrap());
        assert_eq!(rows().unwrap(), "1");
        // Neither asks twice, and the older program refuses the newer schema.
        drop(MySqlStore::open_with(&url, &Options::default(), NEXT, &mut |_| ()).unwrap());
        let refused = MySqlStore::open(&url, &Options::default()).map(drop);
        assert_eq!(refused, Err(StoreError::TooNew { found: newer, known: older }));
        // An empty database gets the newest schema without being asked.
        drop(
            MySqlStore::open_with(&server.create_database(), &Options::default(), NEXT, &mut |_| ()).unwrap(),
        );
    }
}

/// A running server and a migration exclude each other, in both modes of writing.
#[test]
fn a_schema_that_a_server_works_on_is_not_migrated() {
    // Each refusal takes as long; a busy machine renews it in time.
    let lease = Duration::from_secs(3);
    let alone = |who: &str| Options { writer: Some(who.to_owned()), lease, ..Options::default() };
    let beside = Options { beside: Some("a server beside others".to_owned()), lease, ..Options::default() };
    for kind in [DatabaseKind::MariaDb10, DatabaseKind::MySql9] {
        let server = ScratchDatabase::shared(kind);
        for options in [alone("the only server"), beside.clone()] {
            let url = server.create_database();
            let rows = || server.try_sql(&format!("SELECT a FROM {}.more", url.rsplit('/').next().unwrap()));
            let running = MySqlStore::open(&url, &options).unwrap();
            for migrating in [alone("a migration"), beside.clone()] {
                let migrating = Options { migrate: true, ..migrating };
                let refused = MySqlStore::open_with(&url, &migrating, NEXT, &mut |_| ()).map(drop);
                let who = options.writer.as_ref().or(options.beside.as_ref()).unwrap();
                let held = matches!(&refused, Err(StoreError::Locked(why)) if why.contains(who));
                assert!(held && rows().is_err(), "{kind:?}: {refused:?}");
            }
            assert!(running.may_answer() && running.boards().unwrap().is_empty());
            drop(running);
            // A migration excludes servers by the same lease, and a server may write side by side afterwards.
            let migrating = Options { migrate: true, ..alone("a migration") };
            let migrated = MySqlStore::open_with(&url, &migrating, NEXT, &mut |_| ()).unwrap();
            assert_eq!(rows().unwrap(), "1");
            let refused = MySqlStore::open_with(&url, &beside, NEXT, &mut |_| ()).map(drop);
            assert!(matches!(refused, Err(StoreError::Locked(_))), "{kind:?}: {refused:?}");
            drop(migrated);
            drop(MySqlStore::open_with(&url, &beside, NEXT, &mut |_| ()).unwrap());
        }
        // A schema from before servers wrote side by side has one row of leases.
        let url = server.create_database();
        drop(MySqlStore::open_with(&url, &alone("an old server"), &NEXT[..3], &mut |_| ()).unwrap());
        let migrating = Options { migrate: true, ..beside.clone() };
        drop(MySqlStore::open_with(&url, &migrating, NEXT, &mut |_| ()).unwrap());
        drop(MySqlStore::open_with(&url, &beside, NEXT, &mut |_| ()).unwrap());
    }
}

/// The database reads a list of keys in the order of the primary key, even a long list or from a small table. Otherwise it
/// would lock other rows, and in another order.
#[test]
fn lists_of_keys_are_ranges_of_the_primary_key() {
    for kind in [DatabaseKind::MariaDb10, DatabaseKind::MySql9] {
        let server = ScratchDatabase::shared(kind);
        let url = server.create_database();
        let store = MySqlStore::open(&url, &Options::default()).unwrap();
        let currency = Currency::parse("KRW").unwrap();
        for rows in [3_u64, 2000] {
            let player = |number: u64| PlayerId::new(&format!("{number:05}")).unwrap();
            let key = |number: u64| ScoreKey {
                board: BoardNo(1),
                window: Window(number % 3),
                player: player(number),
            };
            let mut keys: Vec<ScoreKey> = (0..rows).map(key).collect();
            keys.sort();
            let row = Some(Record { score: 1, subscore: 0, at: Micros(0) });
            let profile = |key: &ScoreKey| (key.player.clone(), Some(Profile::default()));
            let mut profiles: Vec<_> = keys.iter().map(profile).collect();
            profiles.sort_by(|a, b| a.0.cmp(&b.0));
            let scores = keys.iter().map(|key| (key.clone(), row)).collect();
            let changes = WriteSet { scores, profiles: profiles.clone(), ..WriteSet::default() };
            store.run(&ReadSet::default(), &mut |_| changes.clone()).unwrap();
            let players: Vec<_> = profiles.into_iter().map(|(player, _)| player).collect();
            let mut script = Script::default();
            scores::select(&mut script, &keys, true);
            table::select::<profiles::Profiles>(&mut script, &players, true);
            let wallet =
                |number: u64| WalletKey { member: MemberId(Uuid::new(Micros(number as i64), 0)), currency };
            let wallets: Vec<WalletKey> = (0..rows).map(wallet).collect();
            let filled = wallets.iter().map(|key| (*key, Wallet::default())).collect();
            let ledger = LedgerWriteSet { wallets: filled, ..LedgerWriteSet::default() };
            store
                .run(&ReadSet::default(), &mut |_| WriteSet { ledger: ledger.clone(), ..WriteSet::default() })
                .unwrap();
            table::select::<wallets::Wallets>(&mut script, &wallets, true);
            let name = url.rsplit('/').next().unwrap();
            let text = script.messages(1 << 20).unwrap()[0].0;
            for statement in text.split_terminator(';') {
                let plan = server.sql(&format!("USE {name}; EXPLAIN FORMAT = TRADITIONAL {statement}"));
                assert!(plan.lines().count() == 1 && plan.contains("\trange\tPRIMARY\tPRIMARY\t"), "{plan}");
            }
        }
    }
}

#[test]
fn a_transaction_is_two_messages_at_most() {
    for kind in [DatabaseKind::MariaDb10, DatabaseKind::MySql9] {
        let url = ScratchDatabase::shared(kind).create_database();
        let store = MySqlStore::open(&url, &Options::default()).unwrap();
        let key = |player| ScoreKey { board: BoardNo(1), window: Window(0), player };
        let keys: Vec<_> =
            (0..1000).map(|number| key(PlayerId::new(&format!("{number:05}")).unwrap())).collect();
        let row = Some(Record { score: 1, subscore: 0, at: Micros(0) });
        let changes =
            WriteSet { scores: keys.iter().map(|key| (key.clone(), row)).collect(), ..WriteSet::default() };
        let messages = |plan: &ReadSet, changes: &WriteSet| {
            let before = store.pool.stats.messages.load(std::sync::atomic::Ordering::Relaxed);
            store.run(plan, &mut |_| changes.clone()).unwrap();
            store.pool.stats.messages.load(std::sync::atomic::Ordering::Relaxed) - before
        };
        let reads = ReadSet { boards: vec![BoardNo(1)], scores: keys.clone(), ..ReadSet::default() };
        assert_eq!(messages(&ReadSet::default(), &WriteSet::default()), 0);
        assert_eq!(messages(&ReadSet::default(), &changes), 1);
        for _ in 0..2 {
            assert_eq!(messages(&reads, &changes), 2);
        }
        assert_eq!(messages(&reads, &WriteSet::default()), 2);
    }
}

#[test]
fn the_only_writer_needs_one_message_where_nothing_unusual_is_read() {
    for kind in [DatabaseKind::MariaDb10, DatabaseKind::MySql9] {
        let url = ScratchDatabase::shared(kind).create_database();
        let writer = Some("the only one".to_owned());
        let store = MySqlStore::open(&url, &Options { writer, ..Options::default() }).unwrap();
        let (no, id) = (BoardNo(1), BoardId::new("b").unwrap());
        let definition = Definition::default();
        let board = BoardRow { no, id: id.clone(), definition, created_at: Micros(0) };
        let names = ReadSet { board_names: vec![id], ..ReadSet::default() };
        let create = WriteSet { boards: vec![BoardChange::Create(board)], ..WriteSet::default() };
        store.run(&names, &mut |_| create.clone()).unwrap();
        let player = PlayerId::new("p").unwrap();
        let key = |number: usize| RequestKey { scope: "s".into(), key: format!("{number}").into() };
        let fresh = || drop(store.boards().unwrap());
        // Adds one, with a request of that number. Returns the last decision and the number of messages.
        let add = |number: usize| {
            let plan = ReadSet { boards: vec![no], requests: vec![key(number)], ..ReadSet::default() };
            fresh();
            let before = store.pool.stats.messages.load(std::sync::atomic::Ordering::Relaxed);
            let mut last = None;
            store
                .run(&plan, &mut |loaded| {
                    last = Some((loaded.boards[0].is_some(), loaded.requests[0].is_some()));
                    if last != Some((true, false)) {
                        return WriteSet::default();
                    }
                    let row = Record { score: number as i64, subscore: 0, at: Micros(0) };
                    let score = ScoreKey { board: no, window: Window(0), player: player.clone() };
                    let outcome = Outcome::Removed;
                    let stored = Stored { fingerprint: Fingerprint([0; 16]), at: Micros(0), outcome };
                    WriteSet {
                        scores: vec![(score, Some(row))],
                        requests: vec![(key(number), stored)],
                        ..WriteSet::default()
                    }
                })
                .unwrap();
            let after = store.pool.stats.messages.load(std::sync::atomic::Ordering::Relaxed);
            (last.unwrap(), after - before)
        };
        // On a busy machine a connection may seem idle.
        let once = (1..100).find(|number| add(*number) == ((true, false), 1)).expect("one message does");
        // The request was done before: the optimistic transaction fails, and nothing is done twice.
        assert_eq!(add(once).0, (true, true), "{kind:?}");
        let score = ScoreKey { board: no, window: Window(0), player: player.clone() };
        let stored = || store.records(std::slice::from_ref(&score)).unwrap()[0].map(|record| record.score);
        assert_eq!(stored(), Some(once as i64));
        let delete = WriteSet { boards: vec![BoardChange::Delete(no)], ..WriteSet::default() };
        store.run(&ReadSet::default(), &mut |_| delete.clone()).unwrap();
        assert_eq!(add(100).0, (false, false), "{kind:?}: the board is gone");
        assert_eq!(stored(), Some(once as i64));
    }
}

/// A wallet with this balance after this number of entries.
fn wallet(balance: i64, sequence: u64) -> Wallet {
    Wallet { balance, sequence, ..Wallet::default() }
}

#[test]
fn the_only_writer_asks_once_for_rows_of_the_ledger() {
    for kind in [DatabaseKind::MariaDb10, DatabaseKind::MySql9] {
        let server = ScratchDatabase::shared(kind);
        let url = server.create_database();
        let writer = Some("the only one".to_owned());
        let store = MySqlStore::open(&url, &Options { writer, ..Options::default() }).unwrap();
        let currency = Currency::parse("KRW").unwrap();
        let key = |number: u8| WalletKey { member: MemberId(Uuid([number; 16])), currency };
        let keys = [key(1), key(2)];
        let plan = |keys: &[WalletKey], request: &str| ReadSet {
            requests: vec![RequestKey { scope: "s".into(), key: request.into() }],
            ledger: LedgerReadSet { wallets: keys.to_vec(), ..LedgerReadSet::default() },
            ..ReadSet::default()
        };
        let stored = Stored { fingerprint: Fingerprint([0; 16]), at: Micros(0), outcome: Outcome::Removed };
        // Adds to the balance it reads. Returns the new balance and the number of messages.
        let add = |keys: &[WalletKey], request: &str, add: i64| {
            drop(store.boards().unwrap());
            let before = store.pool.stats.messages.load(std::sync::atomic::Ordering::Relaxed);
            let plan = plan(keys, request);
            let mut found = Vec::new();
            let mut decide = |loaded: &Loaded| {
                found = loaded.ledger.wallets.iter().map(|one| one.as_ref().map(|one| one.balance)).collect();
                if loaded.requests[0].is_some() {
                    return WriteSet::default();
                }
                let rows = keys.iter().zip(&loaded.ledger.wallets).map(|(key, old)| {
                    let old = old.clone().unwrap_or_default();
                    (*key, wallet(old.balance + add, old.sequence + 1))
                });
                let ledger = LedgerWriteSet { wallets: rows.collect(), ..LedgerWriteSet::default() };
                let requests = vec![(plan.requests[0].clone(), stored.clone())];
                WriteSet { requests, ledger, ..WriteSet::default() }
            };
            // A changed wallet is a conflict of two messages if the connection seems idle.
            while matches!(store.run(&plan, &mut decide), Err(StoreError::Conflict(_))) {}
            let after = store.pool.stats.messages.load(std::sync::atomic::Ordering::Relaxed);
            (found, after - before)
        };
        // A wallet that was changed by hand is a conflict, and is read again.
        let name = url.rsplit('/').next().unwrap();
        let change = || drop(server.sql(&format!("UPDATE {name}.wallets SET balance = 1000")));
        assert_eq!(add(&keys, "1", 10).0, [None, None]);
        change();
        assert_eq!(add(&keys, "2", 5).0, [Some(1000), Some(1000)], "{kind:?}");
        assert_eq!(
            add(&[key(2), key(3)], "3", 1).0,
            [Some(1005), None],
            "one is known, the other is asked for"
        );
        assert_eq!(
            add(&keys, "2", 5).0,
            [Some(1005), Some(1006)],
            "a request that was done before is found out"
        );
        assert_eq!(add(&keys, "4", 1).0, [Some(1005), Some(1006)], "and does nothing");
        // On a busy machine a connection may seem idle.
        let once = (0..100).find(|number| add(&[key(2)], &format!("once {number}"), 0).1 == 1);
        once.expect("one message does");
        // Its holds and its end are compared, too.
        for edit in ["held = 7", "closed = 1"] {
            drop(server.sql(&format!("UPDATE {name}.wallets SET {edit}")));
            assert!(add(&[key(2)], edit, 0).1 > 1, "{kind:?}: {edit} is a conflict");
        }
        // A row that was written without reading it is cached as well.
        let ledger = LedgerWriteSet { wallets: vec![(key(1), wallet(100, 9))], ..LedgerWriteSet::default() };
        store
            .run(&ReadSet::default(), &mut |_| WriteSet { ledger: ledger.clone(), ..WriteSet::default() })
            .unwrap();
        assert_eq!(add(&[key(1)], "5", 1).0, [Some(100)]);
        // After a failed transaction everything is read.
        change();
        let bad = LedgerWriteSet { wallets: vec![(key(1), wallet(-1, 9))], ..LedgerWriteSet::default() };
        let refused = store
            .run(&plan(&[key(1)], "6"), &mut |_| WriteSet { ledger: bad.clone(), ..WriteSet::default() });
        assert!(matches!(refused, Err(StoreError::Row(_))), "{refused:?}");
        assert_eq!(add(&[key(1)], "7", 1).0, [Some(1000)]);
        assert_eq!(server.sql(&format!("SELECT SUM(balance) FROM {name}.wallets")).trim(), "3001");
        store.release();
    }
}

/// The guard of a cached wallet has no sequence. Its entries have the numbers, and their keys refuse a number that is taken.
#[test]
fn a_cached_wallet_whose_sequence_has_changed_is_not_overwritten() {
    for kind in [DatabaseKind::MariaDb10, DatabaseKind::MySql9] {
        let server = ScratchDatabase::shared(kind);
        let url = server.create_database();
        let writer = Some("the only one".to_owned());
        let store = MySqlStore::open(&url, &Options { writer, ..Options::default() }).unwrap();
        let key = WalletKey { member: MemberId(Uuid([1; 16])), currency: Currency::parse("KRW").unwrap() };
        let plan = ReadSet {
            ledger: LedgerReadSet { wallets: vec![key], ..LedgerReadSet::default() },
            ..ReadSet::default()
        };
        // A deposit of 1. Returns the number of its entry.
        let deposit = |transfer: u8| {
            let mut number = 0;
            let mut decide = |loaded: &Loaded| {
                let old = loaded.ledger.wallets[0].clone().unwrap_or_default();
                let new = wallet(old.balance + 1, old.sequence + 1);
                number = new.sequence;
                let entry = Entry {
                    transfer: TransferId(Uuid([transfer; 16])),
                    kind: EntryKind::Deposit,
                    amount: 1,
                    after: new.balance,
                    counterparty: None,
                    reference: None,
                };
                let entries = vec![(EntryKey { wallet: key, sequence: number }, entry)];
                let ledger =
                    LedgerWriteSet { wallets: vec![(key, new)], entries, ..LedgerWriteSet::default() };
                WriteSet { ledger, ..WriteSet::default() }
            };
            while matches!(store.run(&plan, &mut decide), Err(StoreError::Conflict(_))) {}
            number
        };
        assert_eq!((deposit(1), deposit(2)), (1, 2));
        let name = url.rsplit('/').next().unwrap();
        let sql = |text: &str| server.sql(&text.replace("{name}", name));
        // An entry that leaves the balance as it was, with the next number.
        sql("INSERT INTO {name}.entries (member, currency, sequence, transfer, kind, amount, `after`) \
             SELECT member, currency, 3, transfer, kind, amount, `after` FROM {name}.entries WHERE sequence = 2; \
             UPDATE {name}.wallets SET sequence = 3");
        assert_eq!(deposit(3), 4, "{kind:?}: the row is read again");
        assert_eq!(sql("SELECT COUNT(*) FROM {name}.entries").trim(), "4");
        sql("UPDATE {name}.wallets SET sequence = 9");
        assert_eq!(deposit(4), 5, "{kind:?}: no entry has this number");
        assert_eq!(sql("SELECT balance, sequence FROM {name}.wallets").trim(), "4\t9", "it is not lowered");
        store.release();
    }
}

/// A transaction finds a connection however many reads run, and so does resolving one.
#[test]
fn readers_leave_connections_to_transactions() {
    for pool_max in [2, 8] {
        let url = ScratchDatabase::shared(DatabaseKind::MariaDb10).create_database();
        let options = Options { pool_max, query_timeout: Duration::from_secs(2), ..Options::default() };
        let store = MySqlStore::open(&url, &options).unwrap();
        let readers: Vec<_> = std::iter::from_fn(|| store.pool.take().ok()).collect();
        assert!(!readers.is_empty() && readers.len() < pool_max, "{} of {pool_max}", readers.len());
        let player = PlayerId::new("ann").unwrap();
        let changes = WriteSet { profiles: vec![(player, Some(Profile::default()))], ..WriteSet::default() };
        store.run(&ReadSet::default(), &mut |_| changes.clone()).unwrap();
        assert_eq!(store.resolve(&BatchId { link: [1; 16], sequence: 1, ..BatchId::default() }), Ok(None));
        drop(readers);
        assert_eq!(store.boards(), Ok(Vec::new()));
    }
}
