//! Files at umask 022, the usual one: no other account of the machine reads a store, a secret, a token or a copy.
//!
//! Not here: the content of the files.

use crate::TALLY;
use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tally_testkit::TestTally;
use tally_testkit::command::write_script;

const LOOSE: &str = "other accounts of this machine";

/// The binary as a shell with that umask starts it.
fn at_umask_022(folder: &Path) -> String {
    let script = folder.join("tally");
    write_script(&script, &format!("#!/bin/sh\numask 022\nexec '{TALLY}' \"$@\"\n"));
    script.to_str().expect("UTF-8").to_owned()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

/// What others may do something with, by name. A file that is gone meanwhile is none.
fn open_to_others(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("it is there").map(|entry| entry.expect("an entry").path());
    let is_open =
        |path: &PathBuf| fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o077 != 0);
    entries.filter(is_open).collect()
}

/// Runs a command to its end. Meanwhile and afterwards the folder has nothing that is open to others.
#[track_caller]
fn run_private(command: &mut Command, folder: &Path) {
    let mut running = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
    loop {
        let ended = running.try_wait().expect("it can be asked");
        assert_eq!(open_to_others(folder), [] as [PathBuf; 0], "{command:?}, ended: {ended:?}");
        if let Some(status) = ended {
            return assert!(status.success(), "{command:?}: {status}");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A server on a data directory that others may list.
fn server(folder: &Path) -> TestTally {
    let mut server = TestTally::stopped(&at_umask_022(folder));
    fs::set_permissions(server.data(), Permissions::from_mode(0o755)).expect("it is ours");
    server.allow(LOOSE);
    server
}

#[test]
fn whatever_a_server_writes_is_private() {
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let mut server = server(folder.path());
    server.restart();
    let score = json!({"player": "p", "score": 1});
    server.client().put("/v1/leaderboards/b", &json!({})).expect(201);
    server.client().post("/v1/leaderboards/b/scores", &score).expect(200);
    assert_eq!(open_to_others(server.data()), [] as [PathBuf; 0], "while it runs");
    server.kill9();
    server.restart();
    server.client().post("/v1/leaderboards/b/scores", &score).expect(200);
    assert_eq!(open_to_others(server.data()), [] as [PathBuf; 0], "after a kill");
    server.terminate();
    server.restart();
    assert_eq!(open_to_others(server.data()), [] as [PathBuf; 0], "after an end");
}

#[test]
fn copies_and_directories_of_commands_are_private() {
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let server = TestTally::start(&at_umask_022(folder.path()));
    let place = folder.path().join("copies");
    fs::create_dir(&place).expect("it can be made");
    let copy = place.join("copy.db");
    let mut backup = tally_testkit::command::command(&at_umask_022(folder.path()), &["backup"]);
    run_private(backup.arg(&copy).arg("--data").arg(server.data()), &place);
    assert_eq!(mode(&copy), 0o600);
    // A copy of an earlier release.
    fs::set_permissions(&copy, Permissions::from_mode(0o644)).expect("it is ours");
    let made = place.join("deep/data");
    let data = made.to_str().expect("UTF-8");
    let mut restore = tally_testkit::command::command(&at_umask_022(folder.path()), &["restore"]);
    assert!(restore.arg(&copy).args(["--data", data]).status().expect("it runs").success());
    assert_eq!(mode(&made), 0o700);
    assert_eq!(open_to_others(&made), [] as [PathBuf; 0]);
}

#[test]
fn what_others_may_read_is_named() {
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let mut server = server(folder.path());
    server.restart();
    let named = |log: &[String], what: &str| {
        log.iter().filter(|line| line.contains(LOOSE) && line.contains(what)).count()
    };
    let data = server.data().display().to_string();
    // The log is complete when the process has ended.
    server.terminate();
    assert_eq!(named(&server.log(), &format!("`{data}`")), 1, "{:?}", server.log());
    // Of an earlier release.
    let store = server.data().join("tally.db");
    fs::set_permissions(&store, Permissions::from_mode(0o644)).expect("it is ours");
    server.restart();
    server.wait_logged(&format!("`{}`", store.display()));
    let doctor = server.run(&["doctor"]);
    assert!(
        doctor.expect(0).lines().any(|line| line.starts_with("warn") && line.contains("tally.db`")),
        "{doctor:?}"
    );
    assert!(doctor.stdout.contains("chmod -R go= "), "{doctor:?}");
    fs::set_permissions(server.data(), Permissions::from_mode(0o700)).expect("it is ours");
    fs::set_permissions(&store, Permissions::from_mode(0o600)).expect("it is ours");
    server.terminate();
    let before = server.log().len();
    server.restart();
    server.terminate();
    assert_eq!(named(&server.log()[before..], ""), 0);
}
