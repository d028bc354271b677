//! The commands of `docs/operate/backup.md` for a store in a file, and of `docs/operate/ledger-archives.md`, run as the pages have them.
//!
//! Not here: those for MariaDB (`database_backup`), and pages that show answers (`pages`).

use super::archive::{ARCHIVES, DAY, member, server};
use super::database_backup::Running;
use super::follow::{BOARD, count, submit, wait_whole};
use crate::TALLY;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use tally_testkit::command::command;
use tally_testkit::{TestTally, WallClock};

const BACKUP: &str = include_str!("../../../../docs/operate/backup.md");
const ARCHIVE: &str = include_str!("../../../../docs/operate/ledger-archives.md");

/// The commands of a page under a name.
pub(super) fn commands<'a>(page: &'a str, name: &str) -> &'a str {
    let block = page.split(&format!("```sh {name}\n")).nth(1).expect("the page has the block");
    block.split("```").next().expect("it ends").trim()
}

/// A shell that finds the program under test.
pub(super) fn shell(script: &str) -> Command {
    let programs = Path::new(TALLY).parent().expect("a folder").display();
    let path = std::env::var("PATH").expect("there is one");
    let mut shell = command("sh", &["-euc", script]);
    shell.env("PATH", format!("{programs}:{path}"));
    shell
}

fn run(mut shell: Command) {
    let done = shell.output().expect("there is a shell");
    assert!(done.status.success(), "{shell:?}\n{}", String::from_utf8_lossy(&done.stderr));
}

/// A block of the page of backups, with these folders instead of its own.
fn of_backups(name: &str, data: &Path, copies: &Path) -> String {
    let block = commands(BACKUP, name).replace("/var/lib/tally", &data.display().to_string());
    block.replace("/backups/", &format!("{}/", copies.display()))
}

/// A server on what the commands restore.
fn restored(from: &TestTally, script: impl FnOnce(&Path) -> String) -> TestTally {
    let mut server = TestTally::stopped(TALLY);
    std::fs::copy(from.data().join("secret"), server.data().join("secret")).expect("the secret is copied");
    run(shell(&script(server.data())));
    server.restart();
    server
}

#[test]
fn the_commands_of_the_page_copy_and_follow_a_file_and_bring_it_back() {
    let server = TestTally::start(TALLY);
    let folder = tempfile::tempdir().expect("a folder");
    let copies = folder.path();
    server.client().put(BOARD, &json!({})).expect(201);
    (1..=5).for_each(|no| drop(submit(&server, no)));
    run(shell(&of_backups("copy", server.data(), copies)));
    let mut follow = shell(&format!("exec {}", of_backups("follow-file", server.data(), copies)));
    let mut follow = follow.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("there is a shell");
    let mut out = BufReader::new(follow.stdout.take().expect("it is piped"));
    let follow = Running(follow);
    let mut line = String::new();
    out.read_line(&mut line).expect("UTF-8");
    assert!(line.contains("follows from"), "{line}");
    let at = submit(&server, 6);
    submit(&server, 7);
    wait_whole(&server);
    drop(follow);
    let copy = restored(&server, |data| of_backups("restore-copy", data, copies));
    assert_eq!(count(&copy), 5);
    let instant = |data: &Path| {
        let block = of_backups("restore-instant", data, copies);
        assert!(block.contains("2026-11-27T14:04:59Z"), "{block}");
        block.replace("2026-11-27T14:04:59Z", &at)
    };
    assert_eq!(count(&restored(&server, instant)), 6);
}

#[test]
fn the_commands_of_the_page_archive_a_month() {
    let mut clock = WallClock::at_noon();
    let server = server(&clock);
    let mut client = server.local();
    let ann = member(&mut client, "ann");
    client.post("/v1/deposits", &json!({"to": ann, "amount": 1})).expect(201);
    clock.jump(31 * DAY);
    let mut archive = shell(&commands(ARCHIVE, "archive").replace("2026-01", "2031-04"));
    archive.env("TALLY_DATA", server.data());
    run(archive);
    let items = client.get(ARCHIVES).expect(200)["items"].clone();
    assert_eq!((&items[0]["month"], &items[0]["state"]), (&json!("2031-03"), &json!("done")));
}

#[test]
fn the_commands_of_the_page_prove_night_after_night() {
    let server = TestTally::start(TALLY);
    let mut client = server.local();
    let ann = member(&mut client, "ann");
    let folder = tempfile::tempdir().expect("a folder");
    for block in ["first-proof", "proof", "proof"] {
        client.post("/v1/deposits", &json!({"to": ann, "amount": 1})).expect(201);
        let script = commands(ARCHIVE, block).replace("/var/lib/tally", &folder.path().display().to_string());
        let mut proof = shell(&script);
        proof.env("TALLY_DATA", server.data());
        run(proof);
    }
    assert!(folder.path().join("proof").is_file());
}
