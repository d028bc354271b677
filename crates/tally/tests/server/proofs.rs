//! A proof every night: `tally verify --checkpoint FILE` and `--since FILE`, beside a server and at rest.

use super::archive::member;
use crate::TALLY;
use serde_json::json;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use tally_testkit::command::Finished;
use tally_testkit::table_reader::change_tables;
use tally_testkit::{Client, DatabaseKind, ScratchDatabase, SetAtEnd, TestTally};

/// Proofs beside a server that writes.
const BESIDE: usize = 3;

/// Ann with 1,000, of which Bob gets 7: 2 movements with 3 entries.
fn begin(client: &mut Client) -> [String; 2] {
    let [ann, bob] = ["ann", "bob"].map(|login| member(client, login));
    client.post("/v1/deposits", &json!({"to": ann, "amount": 1_000})).expect(201);
    pay(client, (&ann, &bob), 7);
    [ann, bob]
}

fn pay(client: &mut Client, (from, to): (&str, &str), amount: i64) {
    client.post("/v1/transfers", &json!({"from": from, "to": to, "amount": amount})).expect(201);
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// The proof after a file; the next one begins where it ends.
fn next(server: &TestTally, file: &Path) -> Finished {
    server.run(&["verify", "--since", text(file), "--checkpoint", text(file)])
}

#[test]
fn a_proof_reads_what_came_after_the_last_one_also_beside_a_server_that_writes() {
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let file = folder.path().join("proof");
    let server = TestTally::start(TALLY);
    let mut client = server.local();
    let [ann, bob] = begin(&mut client);
    let whole = server.run(&["verify", "--checkpoint", text(&file)]).expect(0).to_owned();
    for words in [", 3 entries, 2 movements and", "      checkpoint: ", ", digest "] {
        assert!(whole.contains(words), "no {words:?} in {whole}");
    }
    let none = next(&server, &file);
    for words in [
        ", 0 entries, 0 movements and",
        "Not read: 2 movements and 3 entries of before; `tally verify` without --since reads them",
        "It follows from the whole verification of ",
    ] {
        assert!(none.expect(0).contains(words), "no {words:?} in {}", none.stdout);
    }
    let ended = AtomicBool::new(false);
    let beside: Vec<Finished> = std::thread::scope(|scope| {
        let end = SetAtEnd::new(&ended);
        let writing = scope.spawn(|| {
            let (mut client, mut paid) = (server.local(), 0_u64);
            while !ended.load(Ordering::Relaxed) {
                let sides = if paid.is_multiple_of(2) { (&ann, &bob) } else { (&bob, &ann) };
                pay(&mut client, (sides.0, sides.1), 1);
                paid += 1;
            }
        });
        let done = (0..BESIDE).map(|_| next(&server, &file)).collect();
        drop(end);
        writing.join().expect("all are paid");
        done
    });
    for proof in beside {
        proof.expect(0);
    }
    next(&server, &file).expect(0);
    let last = next(&server, &file);
    assert!(last.expect(0).contains(", 0 entries, 0 movements and"), "{}", last.stdout);
    server.run(&["verify"]).expect(0);
}

#[test]
fn a_changed_balance_after_a_proof_is_found_and_a_movement_before_it_is_not_read() {
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let [file, other] = ["proof", "other"].map(|name| folder.path().join(name));
    let mut server = TestTally::start(TALLY);
    let mut client = server.local();
    let [ann, bob] = begin(&mut client);
    server.run(&["verify", "--checkpoint", text(&file)]).expect(0);
    pay(&mut client, (&ann, &bob), 5);
    server.terminate();
    let kept = std::fs::read(&file).expect("it can be read");
    assert_eq!(change_tables(&server, "UPDATE transfers SET amount = 8 WHERE amount = 7"), 1);
    let since = server.run(&["verify", "--since", text(&file), "--checkpoint", text(&other)]);
    for words in [", 2 entries, 1 movements and", "Not read: 2 movements and 3 entries of before"] {
        assert!(since.expect(0).contains(words), "no {words:?} in {}", since.stdout);
    }
    server.run(&["verify"]).expect(1);
    assert_eq!(change_tables(&server, "UPDATE transfers SET amount = 7 WHERE amount = 8"), 1);
    assert_eq!(change_tables(&server, "UPDATE wallets SET balance = 13 WHERE balance = 12"), 1);
    let found = next(&server, &file);
    for words in ["its balance is 13, and its entries leave 12", "no checkpoint is written"] {
        assert!(found.expect(1).contains(words), "no {words:?} in {}", found.stdout);
    }
    assert!(std::fs::read(&file).expect("it can be read") == kept, "it stays as it was");
    assert_eq!(std::fs::read_dir(folder.path()).expect("it is there").count(), 2);
    assert_eq!(change_tables(&server, "UPDATE wallets SET balance = 12 WHERE balance = 13"), 1);
    next(&server, &file).expect(0);
}

#[test]
fn a_file_of_another_store_or_with_another_byte_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let file = folder.path().join("proof");
    let [server, other] = [(); 2].map(|()| TestTally::start(TALLY));
    for server in [&server, &other] {
        begin(&mut server.local());
    }
    server.run(&["verify", "--checkpoint", text(&file)]).expect(0);
    let refused = |server: &TestTally, why: &str| {
        let done = server.run(&["verify", "--since", text(&file)]);
        done.expect(2);
        assert!(done.stderr.contains(why), "no {why:?} in {}", done.stderr);
    };
    refused(&other, "this checkpoint is not of this store: its last movement, ");
    let whole = std::fs::read(&file).expect("it can be read");
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    for bytes in [&changed[..], &whole[..whole.len() - 1], &whole[..whole.len() / 2], b""] {
        std::fs::write(&file, bytes).expect("it can be written");
        refused(&server, "no file with a checkpoint: ");
    }
    std::fs::remove_file(&file).expect("it can be removed");
    refused(&server, "no file with a checkpoint: ");
    std::fs::write(&file, whole).expect("it can be written");
    server.run(&["verify", "--since", text(&file)]).expect(0);
    let nowhere = folder.path().join("none").join("proof");
    let done = server.run(&["verify", "--checkpoint", text(&nowhere)]);
    done.expect(1);
    assert!(done.stderr.contains("write the checkpoint: "), "{}", done.stderr);
}

#[test]
fn a_checkpoint_takes_the_place_of_no_other_file() {
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let [other, empty] = ["other", "empty"].map(|name| folder.path().join(name));
    std::fs::write(&other, "letters").expect("it can be written");
    std::fs::write(&empty, "").expect("it can be written");
    let mut server = TestTally::start(TALLY);
    begin(&mut server.local());
    server.terminate();
    let store = server.data().join("tally.db");
    let refused = |given: &str, why: &str| {
        let done = server.run(&["verify", "--checkpoint", given]);
        done.expect(2);
        assert!(done.stderr.contains(why), "no {why:?} in {}", done.stderr);
    };
    for file in [&store, &other, &empty] {
        let kept = std::fs::read(file).expect("it can be read");
        refused(text(file), "this file is not replaced: it is no checkpoint");
        assert!(std::fs::read(file).expect("it can be read") == kept, "it stays as it was");
    }
    refused(text(folder.path()), "this file is not replaced: it is no regular file");
    for name in ["latest", "2026-01"] {
        refused(name, &format!("--since reads this as an archived month and not as a file; write ./{name}"));
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("it is there").count(), 2);
    server.run(&["verify"]).expect(0);
}

#[test]
fn an_id_of_a_clock_that_was_ahead_leaves_no_checkpoint() {
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let file = folder.path().join("proof");
    let mut server = TestTally::start(TALLY);
    begin(&mut server.local());
    server.terminate();
    // The first millisecond of 2100.
    let id = "x'03bb2cc3d80070008000000000000001'";
    for (sql, rows) in [("transfers SET id", 1), ("entries SET transfer", 2)] {
        assert_eq!(change_tables(&server, &format!("UPDATE {sql} = {id} WHERE amount = 7")), rows, "{sql}");
    }
    let done = server.run(&["verify", "--checkpoint", text(&file)]);
    for words in [", 3 entries, 2 movements and", "no checkpoint is written, and ", " is of 2100-01-01"] {
        assert!(done.expect(1).contains(words), "no {words:?} in {}", done.stdout);
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("it is there").count(), 0);
    server.run(&["verify"]).expect(0);
}

#[test]
fn a_database_has_proofs_as_well() {
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let file = folder.path().join("proof");
    let database = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let url = database.create_database();
    let mut server = TestTally::start_set(TALLY, &[("TALLY_STORE_URL", &url)]);
    let mut client = server.local();
    let [ann, bob] = begin(&mut client);
    server.run(&["verify", "--checkpoint", text(&file)]).expect(0);
    pay(&mut client, (&ann, &bob), 5);
    let since = next(&server, &file);
    assert!(since.expect(0).contains(", 2 entries, 1 movements and"), "{}", since.stdout);
    server.terminate();
    let kept = std::fs::read(&file).expect("it can be read");
    let name = url.rsplit('/').next().expect("it ends in its name");
    database.sql(&format!("UPDATE {name}.wallets SET balance = 13 WHERE balance = 12"));
    let found = next(&server, &file);
    assert!(found.expect(1).contains("its balance is 13, and its entries leave 12"), "{}", found.stdout);
    assert!(found.stderr.contains("the store is read once more"), "{}", found.stderr);
    assert!(std::fs::read(&file).expect("it can be read") == kept, "it stays as it was");
    database.sql(&format!("UPDATE {name}.wallets SET balance = 12 WHERE balance = 13"));
    next(&server, &file).expect(0);
}
