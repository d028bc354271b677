//! A server of this version on the data of every earlier schema, and what an older program says of newer data: the claims
//! of `docs/operate/upgrades.md`.
//!
//! Files are those that earlier versions left (`crates/store/tests/fixtures`). A database gets the first schema with a row,
//! rows of money with the schema that brought them, and the shipped migrations up to each one. Not here: every row of a table
//! (`crates/store/tests/backends`).

use crate::TALLY;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tally_testkit::{DatabaseKind, ScratchDatabase, TestTally};

const SCORES: &str = "/v1/leaderboards/kept/scores";

/// The offset of the schema in a file.
const SCHEMA_AT: usize = 60;

/// The first schema of a file with bans.
const WITH_BANS: u32 = 2;

/// A row of the first schema, for the migrations after it.
const FIRST_ROWS: &str = "
    INSERT INTO boards (`no`, id, `order`, `update`, ranking, ties, score, subscore, all_time, rules_given, implicit, created_at)
        VALUES (1, 'kept', 'descending', 'best', 'competition', 'first', 'int64', 'none', 1, 0, 0, 1);
    UPDATE meta SET value = '2' WHERE name = 'store.next_board';
    INSERT INTO scores (board, part, player, score, subscore, `at`, version, gone)
        VALUES (1, 0, 'ann', 7, 0, 5, 1, 0), (1, 0, 'bob', 9, 0, 6, 1, 0);";

/// The first schema of a database with money.
const WITH_MONEY: usize = 3;

/// Members of [`MONEY_ROWS`], and what is held of the first one.
const ANN: &str = "01941f29-7c00-7000-8000-00000000000a";
const BOB: &str = "01941f29-7c00-7000-8000-00000000000b";
const HOLD: &str = "01941f29-7c00-7000-8000-00000000000f";

/// Rows of that schema: 1000 for a member, of which it sent 300 to another one and holds 100. They are of January 2025.
const MONEY_ROWS: &str = "
    SET @ann = 0x01941F297C007000800000000000000A, @bob = 0x01941F297C007000800000000000000B;
    SET @deposit = 0x01941F297C0070008000000000000010, @transfer = 0x01941F297C0070008000000000000020;
    INSERT INTO members (id, login, player, name, pin_wrong, tokens_from)
        VALUES (@ann, 'ann', 'ann', 'Ann', 0, 0), (@bob, 'bob', 'bob', 'Bob', 0, 0);
    INSERT INTO handles (kind, `text`, member) VALUES (1, 'ann', @ann), (1, 'bob', @bob), (3, 'ann', @ann), (3, 'bob', @bob);
    INSERT INTO wallets (member, currency, balance, held, sequence, closed, spent_day, spent)
        VALUES (@ann, 'KRW', 700, 100, 2, 0, 20089, 300), (@bob, 'KRW', 300, 0, 1, 0, 0, 0);
    INSERT INTO transfers (id, kind, currency, amount, debit_member, debit_sequence, credit_member, credit_sequence)
        VALUES (@deposit, 1, 'KRW', 1000, NULL, NULL, @ann, 1), (@transfer, 3, 'KRW', 300, @ann, 2, @bob, 1);
    INSERT INTO entries (member, currency, sequence, transfer, kind, amount, `after`, counterparty, reference)
        VALUES (@ann, 'KRW', 1, @deposit, 1, 1000, 1000, NULL, NULL), (@ann, 'KRW', 2, @transfer, 3, 300, 700, @bob, 'shop'),
            (@bob, 'KRW', 1, @transfer, 4, 300, 300, @ann, 'shop');
    INSERT INTO holds (id, member, currency, amount, state)
        VALUES (0x01941F297C007000800000000000000F, @ann, 'KRW', 100, 0);
    INSERT INTO totals (account, currency, slot, debits, credits) VALUES (1, 'KRW', 15, 1000, 0), (2, 'KRW', 15, 300, 1300);";

fn of_store(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../store").join(folder)
}

/// The files of each schema, by its number.
fn fixtures() -> Vec<(u32, PathBuf)> {
    let number =
        |path: &Path| path.file_name()?.to_str()?.strip_prefix('v')?.strip_suffix(".db")?.parse().ok();
    let files = std::fs::read_dir(of_store("tests/fixtures")).expect("readable");
    let files = files.map(|entry| entry.expect("readable").path());
    let mut found: Vec<_> = files.filter_map(|path| Some((number(&path)?, path))).collect();
    found.sort();
    found
}

/// Copies a file of a store and what is beside it.
fn put(fixture: &Path, store: &Path) {
    let name = fixture.file_name().expect("a name").to_str().expect("UTF-8");
    for entry in std::fs::read_dir(fixture.parent().expect("a folder")).expect("readable") {
        let path = entry.expect("readable").path();
        let more = path.file_name().and_then(|other| other.to_str()?.strip_prefix(name));
        if let Some(more) = more.filter(|more| !more.starts_with(|c: char| c.is_ascii_digit())) {
            std::fs::copy(&path, format!("{}{more}", store.display())).expect("copied");
        }
    }
}

fn count(server: &TestTally) -> usize {
    let page = server.local().get(&format!("{SCORES}?limit=1000")).expect(200);
    page["entries"].as_array().expect("entries").len()
}

/// What the rows of a fixture make a server warn of: they have the latest instant that there is, and prizes beyond the limit.
fn on_a_fixture() -> TestTally {
    let mut server = TestTally::stopped(TALLY);
    server.allow("the newest stored instant lies ahead of the clock");
    server.allow("run overdue actions of contests and prizes");
    server.allow("all prizes in KRW are more than");
    server
}

/// Reads, writes, and reads again after a restart. Stops the server without the audit: the rows of a fixture do not add up.
fn serves(server: &mut TestTally, before: usize) {
    assert_eq!(count(server), before);
    server.local().post(SCORES, &json!({"player": "later", "score": 3})).expect(200);
    assert_eq!(count(server), before + 1);
    server.terminate();
    server.restart();
    assert_eq!(count(server), before + 1);
    server.terminate();
}

#[test]
fn a_file_of_every_schema_is_served() {
    let fixtures = fixtures();
    let newest = fixtures.last().expect("there are files").0;
    assert!(fixtures.len() >= 16, "{fixtures:?}");
    for (schema, fixture) in &fixtures {
        let mut server = on_a_fixture();
        let store = server.data().join("tally.db");
        put(fixture, &store);
        server.restart();
        // Of four players one is banned, since there are bans.
        serves(&mut server, if *schema < WITH_BANS { 4 } else { 3 });
        let kept = server.data().join(format!("tally.db.v{schema}.bak"));
        assert_eq!(kept.exists(), *schema < newest, "schema {schema}");
    }
}

#[test]
fn an_older_program_refuses_a_newer_file_and_changes_nothing() {
    let mut server = on_a_fixture();
    let (newest, fixture) = fixtures().pop().expect("there are files");
    let store = server.data().join("tally.db");
    put(&fixture, &store);
    server.restart();
    server.terminate();
    let mut bytes = std::fs::read(&store).expect("readable");
    bytes[SCHEMA_AT..SCHEMA_AT + 4].copy_from_slice(&(newest + 1).to_be_bytes());
    std::fs::write(&store, &bytes).expect("writable");
    let copy = server.data().join("copy.db");
    let copy = copy.to_str().expect("UTF-8");
    let text = format!(
        "the store has schema version {}, this tally knows up to {newest}; use a newer tally (nothing was changed)",
        newest + 1
    );
    for args in [&["serve"][..], &["backup", copy], &["backup", "--follow", copy], &["verify"], &["migrate"]]
    {
        let refused = server.run(args);
        assert_eq!(refused.code, Some(1), "{args:?}: {refused:?}");
        assert!(refused.stderr.contains(&text), "{args:?}: {refused:?}");
    }
    assert!(std::fs::read(&store).expect("readable") == bytes, "the file was changed");
}

/// The migrations of a database, in order.
fn migrations() -> Vec<String> {
    let folder = of_store("migrations/mysql");
    let mut names: Vec<_> =
        std::fs::read_dir(&folder).expect("readable").map(|entry| entry.expect("readable").path()).collect();
    names.sort();
    names.iter().map(|path| std::fs::read_to_string(path).expect("readable")).collect()
}

/// A database as the last version with a schema left it. Returns its URL.
fn database_of(server: &ScratchDatabase, migrations: &[String], schema: usize) -> String {
    let url = server.create_database();
    for (number, migration) in (1..=schema).zip(migrations) {
        run_in(server, &url, migration);
        match number {
            1 => run_in(server, &url, FIRST_ROWS),
            WITH_MONEY => run_in(server, &url, MONEY_ROWS),
            _ => {}
        }
    }
    run_in(server, &url, &format!("REPLACE INTO meta (name, value) VALUES ('store.schema', '{schema}');"));
    url
}

fn run_in(server: &ScratchDatabase, url: &str, sql: &str) {
    let name = url.rsplit('/').next().expect("a name");
    server.sql(&format!("USE {name};\n{sql}"));
}

/// What the first member has, what is held of it, and the amounts of its transactions, newest first.
fn money_of_ann(server: &TestTally) -> (Value, Value, Vec<Value>) {
    let wallet = server.local().get(&format!("/v1/wallets/{ANN}")).expect(200)["items"][0].clone();
    let history = server.local().get(&format!("/v1/wallets/{ANN}/transactions")).expect(200);
    let amounts = history["items"].as_array().expect("items").iter().map(|item| item["amount"].clone());
    (wallet["balance"].clone(), wallet["held"].clone(), amounts.collect())
}

/// Moves the money of [`MONEY_ROWS`], and reads the old and the new.
fn moves_money(server: &TestTally) {
    let before = (json!("700"), json!("100"), vec![json!("300"), json!("1000")]);
    assert_eq!(money_of_ann(server), before);
    server.local().post("/v1/transfers", &json!({"from": BOB, "to": ANN, "amount": 50})).expect(201);
    server.local().post(&format!("/v1/holds/{HOLD}/capture"), &json!({"to": BOB})).expect(200);
    let moved = vec![json!("100"), json!("50"), json!("300"), json!("1000")];
    assert_eq!(money_of_ann(server), (json!("650"), json!("0"), moved));
}

/// Migrates a database of a schema by the command, and serves it. Then every balance is that of its entries.
fn is_migrated_and_served(database: &ScratchDatabase, migrations: &[String], schema: usize) {
    let newest = migrations.len();
    let url = database_of(database, migrations, schema);
    let mut server = TestTally::stopped(TALLY);
    server.set("TALLY_STORE_URL", &url);
    if schema < newest {
        let refused = server.run(&["serve"]);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        let text =
            format!("the store has schema version {schema}, this tally needs {newest}; run `tally migrate`");
        assert!(refused.stderr.contains(&text), "{refused:?}");
        server.run(&["migrate"]).expect(0);
    }
    server.restart();
    if schema >= WITH_MONEY {
        moves_money(&server);
    }
    serves(&mut server, 2);
    server.run(&["verify"]).expect(0);
    if schema == newest {
        let next = newest + 1;
        run_in(database, &url, &format!("UPDATE meta SET value = '{next}' WHERE name = 'store.schema';"));
        for args in [["serve"], ["migrate"], ["verify"]] {
            let refused = server.run(&args);
            assert_eq!(refused.code, Some(1), "{refused:?}");
            assert!(refused.stderr.contains("use a newer tally (nothing was changed)"), "{refused:?}");
        }
    }
}

#[test]
fn a_database_of_every_schema_is_migrated_by_the_command_and_served() {
    let (database, migrations) = (ScratchDatabase::shared(DatabaseKind::MariaDb10), migrations());
    (1..=migrations.len()).for_each(|schema| is_migrated_and_served(database, &migrations, schema));
}

/// The command runs all later migrations on each of them, so a few schemas are enough for what MySQL does differently.
#[test]
fn a_mysql_of_the_first_schemas_and_the_newest_is_migrated_and_served() {
    let (database, migrations) = (ScratchDatabase::shared(DatabaseKind::MySql9), migrations());
    [1, WITH_MONEY, migrations.len()]
        .into_iter()
        .for_each(|schema| is_migrated_and_served(database, &migrations, schema));
}
