//! A server of this version on the data of every earlier schema, and what an older program says of newer data: the claims
//! of `docs/operate/upgrades.md`.
//!
//! Files are those that earlier versions left (`crates/store/tests/fixtures`). A database gets the first schema with a row,
//! and then the shipped migrations up to each one. Not here: every row of a table (`crates/store/tests/backends`).

use crate::TALLY;
use serde_json::json;
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

#[test]
fn a_database_of_every_schema_is_migrated_by_the_command_and_served() {
    let database = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let folder = of_store("migrations/mysql");
    let mut names: Vec<_> =
        std::fs::read_dir(&folder).expect("readable").map(|entry| entry.expect("readable").path()).collect();
    names.sort();
    let migrations: Vec<_> =
        names.iter().map(|path| std::fs::read_to_string(path).expect("readable")).collect();
    let newest = migrations.len();
    for schema in 1..=newest {
        let url = database.create_database();
        let name = url.rsplit('/').next().expect("a name");
        let run = |sql: &str| database.sql(&format!("USE {name};\n{sql}"));
        run(&migrations[0]);
        run(FIRST_ROWS);
        migrations[1..schema].iter().for_each(|migration| drop(run(migration)));
        run(&format!("REPLACE INTO meta (name, value) VALUES ('store.schema', '{schema}');"));
        let mut server = TestTally::stopped(TALLY);
        server.set("TALLY_STORE_URL", &url);
        if schema < newest {
            let refused = server.run(&["serve"]);
            assert_eq!(refused.code, Some(1), "{refused:?}");
            let text = format!(
                "the store has schema version {schema}, this tally needs {newest}; run `tally migrate`"
            );
            assert!(refused.stderr.contains(&text), "{refused:?}");
            server.run(&["migrate"]).expect(0);
        }
        server.restart();
        serves(&mut server, 2);
        if schema == newest {
            run(&format!("UPDATE meta SET value = '{}' WHERE name = 'store.schema';", newest + 1));
            for args in [["serve"], ["migrate"], ["verify"]] {
                let refused = server.run(&args);
                assert_eq!(refused.code, Some(1), "{refused:?}");
                assert!(refused.stderr.contains("use a newer tally (nothing was changed)"), "{refused:?}");
            }
        }
    }
}
