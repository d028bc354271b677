//! `tally archive`: months of the ledger move into files beside a running server, and every read is as before.

use super::follow::{Follows, copy_of, wait_whole};
use crate::TALLY;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tally_testkit::audit::{metric, read_pages};
use tally_testkit::{Client, DatabaseKind, ScratchDatabase, TestTally, WallClock, wait_until};

pub(super) const ARCHIVES: &str = "/v1/ledger/archives";
pub(super) const DAY: i64 = 24 * 3_600;
/// Transfers of a month, in batches of this size. A step deletes fewer.
const BATCHES: usize = 8;
const BATCH: usize = 100;

/// A server whose clock the test sets, in March of 2031.
pub(super) fn server(clock: &WallClock) -> TestTally {
    let mut server = TestTally::stopped(TALLY);
    clock.set_for(&mut server);
    server.set("TALLY_CLOCK_JUMP_MAX", "90000h");
    server.restart();
    server
}

pub(super) fn member(client: &mut Client, login: &str) -> String {
    let made = client.post("/v1/members", &json!({"login_id": login, "name": login})).expect(201);
    made["id"].as_str().expect("an id").to_owned()
}

/// Transfers from one to the other and back, and some with words.
fn a_month(client: &mut Client, ann: &str, bob: &str) -> Vec<String> {
    for number in 0..BATCHES {
        let (from, to) = if number % 2 == 0 { (ann, bob) } else { (bob, ann) };
        let one = |at: usize| json!({"from": from, "to": to, "amount": 1, "reference": format!("r{at}")});
        let transfers: Vec<Value> = (0..BATCH).map(one).collect();
        client.post("/v1/transfers/batch", &json!({"transfers": transfers})).expect(200);
    }
    let mut worded = |amount: i64| {
        let body = json!({"from": ann, "to": bob, "amount": amount, "reason": "rent of Bob", "metadata": {"of": "Bob"}});
        client.post("/v1/transfers", &body).expect(201)["id"].as_str().expect("an id").to_owned()
    };
    (1..=3).map(&mut worded).collect()
}

/// Everything that reads show of the ledger.
fn seen(client: &mut Client, members: [&str; 2]) -> Vec<Vec<Value>> {
    let mut lists = vec![read_pages(client, "/v1/ledger/transactions?limit=317", "items").0];
    for query in ["reference=r7&limit=3", "type=deposit&limit=5"] {
        lists.push(read_pages(client, &format!("/v1/ledger/transactions?{query}"), "items").0);
    }
    for member in members {
        lists.push(read_pages(client, &format!("/v1/wallets/{member}/transactions?limit=211"), "items").0);
    }
    lists
}

fn states(client: &mut Client) -> Vec<(String, String)> {
    let items = client.get(ARCHIVES).expect(200)["items"].clone();
    let text = |row: &Value, name: &str| row[name].as_str().expect("a text").to_owned();
    let items = items.as_array().expect("items").iter();
    items.map(|row| (text(row, "month"), text(row, "state"))).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    all.sort();
    all
}

#[test]
fn months_of_the_ledger_move_into_files_and_all_reads_stay() {
    let mut clock = WallClock::at_noon();
    let mut server = server(&clock);
    // A copy that goes on meanwhile.
    let (followed, follows) = (copy_of(&server), Follows::start(&server, &copy_of(&server), true));
    let mut client = server.local();
    let (ann, bob) = (member(&mut client, "ann"), member(&mut client, "bob"));
    client.post("/v1/deposits", &json!({"to": ann, "amount": 10_000})).expect(201);
    let march = a_month(&mut client, &ann, &bob);
    clock.jump(31 * DAY);
    let april = a_month(&mut client, &ann, &bob);
    // April is not over.
    client.post(ARCHIVES, &json!({"before": "2031-05"})).refused(400, "invalid_field");
    clock.jump(30 * DAY);
    a_month(&mut client, &ann, &bob);
    let before = seen(&mut client, [&ann, &bob]);
    assert_eq!(before[0].len(), 3 * (BATCHES * BATCH + 3) + 1);
    let body = json!({"before": "2031-05", "reason": "the books are closed"});
    client.post(ARCHIVES, &body).expect(202);
    // Killed in the middle, at another moment each time.
    for rows in [0, 1, 500] {
        wait_until("the month is as far as that", || {
            let items = client.get(ARCHIVES).expect(200)["items"].clone();
            let sum = |row: &Value| row["deleted"].as_u64().expect("a number");
            items.as_array().expect("items").iter().map(sum).sum::<u64>() >= rows
        });
        server.kill9();
        server.restart();
        client = server.local();
        assert!(seen(&mut client, [&ann, &bob]) == before, "after {rows} deleted rows");
    }
    server.run(&["archive", "--before", "2031-05"]).expect(0);
    let wanted = ["2031-03", "2031-04"].map(|month| (month.to_owned(), "done".to_owned()));
    assert_eq!(states(&mut client), wanted);
    assert!(seen(&mut client, [&ann, &bob]) == before);
    let folder = server.data().join("archive");
    assert_eq!(files(&folder).len(), 4);
    let acts = client.get("/v1/audit?action=ledger.archived").expect(200);
    assert_eq!(acts["items"][1]["reason"], "the books are closed");
    server.run(&["verify"]).expect(0);
    for checkpoint in ["2031-03", "2031-04", "latest"] {
        let told = server.run(&["verify", "--since", checkpoint]).expect(0).to_owned();
        let month = if checkpoint == "2031-03" { "2031-03" } else { "2031-04" };
        assert!(told.contains(&format!("since the end of {month}. Not read: ")), "{told}");
    }
    let refused = server.run(&["verify", "--since", "2031-05"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("the latest checkpoint is 2031-04"), "{}", refused.stderr);
    server.run(&["ledger"]).expect(0);
    // What can still change: a reversal, and the words of an erased member.
    let path = |id: &str| format!("/v1/ledger/transactions/{id}");
    let rent = client.get(&path(&march[0])).expect(200);
    assert_eq!((&rent["reason"], &rent["metadata"]["of"]), (&json!("rent of Bob"), &json!("Bob")));
    client.post(&format!("{}/reverse", path(&april[1])), &json!({"amount": 1})).expect(201);
    assert_eq!(client.get(&path(&april[1])).expect(200)["reversed"], "1");
    let balance = client.get(&format!("/v1/wallets/{bob}")).expect(200)["items"][0]["balance"].clone();
    client.post("/v1/withdrawals", &json!({"from": bob, "amount": balance})).expect(201);
    client.post(&format!("/v1/members/{bob}/erase"), &json!({})).expect(200);
    for id in march.iter().chain(&april) {
        let transfer = client.get(&path(id)).expect(200);
        assert_eq!((&transfer["reason"], &transfer["metadata"]), (&json!(null), &json!(null)));
    }
    server.run(&["verify"]).expect(0);
    wait_whole(&server);
    drop(follows);
    let copy = server.data().join("copy.db");
    server.run(&["backup", copy.to_str().expect("UTF-8")]).expect(0);
    for copy in [copy, followed] {
        a_copy_has_its_archives(&server, &clock, &copy);
    }
    a_damaged_file_is_named(&mut server, &ann);
}

#[test]
fn old_months_are_archived_without_a_request() {
    let mut clock = WallClock::at_noon();
    let mut server = server(&clock);
    let mut client = server.local();
    let ann = member(&mut client, "ann");
    for _ in 0..3 {
        client.post("/v1/deposits", &json!({"to": ann, "amount": 5})).expect(201);
        clock.jump(30 * DAY);
    }
    // It is June, and May stays: from the start on.
    server.terminate();
    server.set("TALLY_ARCHIVE_KEEP", "1");
    server.restart();
    let mut client = server.local();
    let wanted = ["2031-03", "2031-04"].map(|month| (month.to_owned(), "done".to_owned()));
    wait_until("both months are archived", || states(&mut client) == wanted);
    let history = read_pages(&mut client, &format!("/v1/wallets/{ann}/transactions?limit=1"), "items").0;
    assert_eq!(history.len(), 3);
    let acts = client.get("/v1/audit?action=ledger.archived").expect(200);
    assert_eq!(acts["items"], json!([]));
}

#[test]
fn a_month_that_cannot_be_archived_ends_the_command_with_the_reason() {
    let mut clock = WallClock::at_noon();
    let mut server = server(&clock);
    server.allow("archive the ledger");
    let mut client = server.local();
    let none = server.run(&["archive"]);
    assert!(
        none.code == Some(0) && none.stderr.contains("no month of the ledger is archived"),
        "{}",
        none.stderr
    );
    let ann = member(&mut client, "ann");
    client.post("/v1/deposits", &json!({"to": ann, "amount": 5})).expect(201);
    clock.jump(31 * DAY);
    let none = server.run(&["archive", "--before", "2031-03"]);
    assert!(
        none.code == Some(0) && none.stderr.contains("no transfer is from before 2031-03"),
        "{}",
        none.stderr
    );
    // Its folder is a file.
    let folder = server.data().join("archive");
    std::fs::write(&folder, b"").expect("the file can be written");
    let refused = server.run(&["archive", "--before", "2031-04"]);
    assert!(
        refused.code == Some(1) && refused.stderr.contains("2031-03 cannot be archived: "),
        "{}",
        refused.stderr
    );
    assert_eq!(metric(&client.get("/metrics"), "tally_archives_failing"), 1.0);
    let listed = server.run(&["archive"]);
    assert!(
        listed.code == Some(0) && listed.stderr.contains("2031-03 cannot be archived: "),
        "{}",
        listed.stderr
    );
    std::fs::remove_file(&folder).expect("the file can be removed");
    let done = server.run(&["archive", "--before", "2031-04"]);
    assert!(done.code == Some(0) && done.stderr.contains("2031-03 done"), "{}", done.stderr);
    assert_eq!(metric(&client.get("/metrics"), "tally_archives_failing"), 0.0);
}

#[test]
fn a_store_in_a_database_needs_a_folder_for_archives() {
    let database = ScratchDatabase::shared(DatabaseKind::MariaDb10).create_database();
    let server = TestTally::start_set(TALLY, &[("TALLY_STORE_URL", &database), ("TALLY_ARCHIVE_DIR", "")]);
    server.local().post(ARCHIVES, &json!({"before": "2020-01"})).refused(409, "no_archive_dir");
    let refused = server.run(&["archive", "--before", "2020-01"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("archive.dir"), "{}", refused.stderr);
    assert_eq!(states(&mut server.local()), []);
    let whole = server.run(&["verify", "--since", "latest"]).expect(0).to_owned();
    assert!(whole.contains("no month is archived: all of the ledger is checked"), "{whole}");
    assert_eq!(server.run(&["verify", "--since", "2020-01"]).code, Some(2));
    assert_eq!(server.run(&["verify", "--since", "January"]).code, Some(2));
}

fn a_copy_has_its_archives(server: &TestTally, clock: &WallClock, copy: &Path) {
    let mut other = TestTally::stopped(TALLY);
    clock.set_for(&mut other);
    other.set("TALLY_CLOCK_JUMP_MAX", "90000h");
    std::fs::copy(server.data().join("secret"), other.data().join("secret")).expect("the secret is copied");
    other.run(&["restore", copy.to_str().expect("UTF-8")]).expect(0);
    other.restart();
    let list =
        |server: &TestTally| read_pages(&mut server.local(), "/v1/ledger/transactions?limit=1000", "items").0;
    assert!(list(&other) == list(server), "{}", copy.display());
    other.run(&["verify"]).expect(0);
}

fn a_damaged_file_is_named(server: &mut TestTally, ann: &str) {
    let path = files(&server.data().join("archive")).remove(0);
    let name = path.file_name().expect("a name").to_str().expect("UTF-8").to_owned();
    let whole = std::fs::read(&path).expect("the file can be read");
    let mut other = whole.clone();
    other[whole.len() / 2] ^= 1;
    std::fs::write(&path, other).expect("the file can be written");
    for text in [&*name, "request failed"] {
        server.allow(text);
    }
    let mut client = server.local();
    let mut refused = None;
    let mut next = Some(format!("/v1/wallets/{ann}/transactions?limit=1000"));
    while let Some(target) = next.take() {
        let page = client.get(&target);
        if page.status != 200 {
            refused = Some(page);
            break;
        }
        let cursor = page.json()["next_cursor"].as_str().map(str::to_owned);
        next = cursor.map(|cursor| format!("/v1/wallets/{ann}/transactions?limit=1000&cursor={cursor}"));
    }
    let refused = refused.expect("a history without these rows is no history");
    assert_eq!((refused.status, refused.code().as_str()), (500, "damaged"), "{}", refused.text());
    assert!(refused.text().contains(&name), "{}", refused.text());
    let verified = server.run(&["verify"]);
    assert!(verified.code == Some(1) && verified.stderr.contains(&name), "{}", verified.stderr);
    server.run(&["verify", "--since", "2031-03"]).expect(0);
    std::fs::write(&path, whole).expect("the file can be written");
    client.get(&format!("/v1/wallets/{ann}/transactions?limit=1000")).expect(200);
}
