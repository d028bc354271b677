//! The commands of `docs/operate/backup.md` for MariaDB and MySQL, run as the page has them, on a database with a server of tally.

use crate::TALLY;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tally_testkit::{DatabaseKind, ScratchDatabase, TestTally, wait_until};

const PAGE: &str = include_str!("../../../../docs/operate/backup.md");
const SCORES: &str = "/v1/leaderboards/b/scores";

/// The commands of the page under a name, in a folder instead of `/backup`.
fn commands(name: &str, folder: &Path) -> String {
    let block = PAGE.split(&format!("```sh {name}\n")).nth(1).expect("the page has the block");
    let block = block.split("```").next().expect("it ends");
    block.replace("/backup/", &format!("{}/", folder.display()))
}

/// A shell that finds the programs of the database, and the option file with its address.
fn shell(script: &str, home: &Path) -> Command {
    let mut command = Command::new("sh");
    let bin = DatabaseKind::MariaDb10.program();
    let bin = bin.parent().expect("a folder").display();
    let path = std::env::var("PATH").expect("there is one");
    command.args(["-euc", script]).env("PATH", format!("{bin}:{path}")).env("HOME", home);
    command
}

fn run(script: &str, home: &Path) {
    let done = shell(script, home).output().expect("there is a shell");
    assert!(done.status.success(), "{script}\n{}", String::from_utf8_lossy(&done.stderr));
}

/// Killed when it is dropped.
pub(super) struct Running(pub(super) Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().expect("it can be killed");
        self.0.wait().expect("it ends");
    }
}

fn submit(server: &TestTally, no: usize) {
    server.client().post(SCORES, &json!({"player": format!("p{no}"), "score": no})).expect(200);
}

fn count(server: &TestTally) -> usize {
    let page = server.client().get(&format!("{SCORES}?limit=1000")).expect(200);
    page["entries"].as_array().expect("entries").len()
}

/// Waits for the begin of a later second, and returns it.
fn next_second() -> u64 {
    let second = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let before = second();
    wait_until("the next second", || second() > before);
    second()
}

#[test]
fn the_commands_of_the_page_restore_an_instant_of_a_database() {
    let args = ["--log-bin=mariadb-bin", "--server-id=1", "--binlog-format=ROW", "--sync-binlog=1"];
    restores_an_instant(DatabaseKind::MariaDb10, &args, ["dump", "follow", "restore"], "mariadb-bin");
}

/// With the identities of transactions, which the page says how to leave out.
#[test]
fn the_commands_of_the_page_restore_an_instant_of_a_mysql() {
    let args = ["--log-bin=binlog", "--gtid-mode=ON", "--enforce-gtid-consistency=ON"];
    let blocks = ["mysql-dump", "mysql-follow", "mysql-restore"];
    restores_an_instant(DatabaseKind::MySql9, &args, blocks, "binlog");
}

/// Runs these blocks of the page on a database whose log has this name.
fn restores_an_instant(kind: DatabaseKind, args: &[&str], blocks: [&str; 3], log_name: &str) {
    let [dump, follow, restore] = blocks;
    let database = ScratchDatabase::start_with(kind, args);
    database.sql("CREATE DATABASE tally");
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path();
    let address = database.address();
    let options =
        format!("[client]\nhost={}\nport={}\nuser=root\nprotocol=tcp\n", address.ip(), address.port());
    std::fs::write(home.join(".my.cnf"), options).expect("writable");
    std::fs::set_permissions(home.join(".my.cnf"), PermissionsExt::from_mode(0o600)).expect("set");
    let mut server = TestTally::stopped(TALLY);
    server.set("TALLY_STORE_URL", &database.url("tally"));
    server.restart();
    server.client().put("/v1/leaderboards/b", &json!({})).expect(201);
    (0..10).for_each(|no| submit(&server, no));
    run(&commands(dump, home), home);
    let follows = Running(shell(&commands(follow, home), home).spawn().expect("it starts"));
    (10..20).for_each(|no| submit(&server, no));
    let at = next_second();
    std::thread::sleep(Duration::from_millis(20));
    (20..30).for_each(|no| submit(&server, no));
    server.terminate();
    // The copied log is as long as that of the database, which has one file.
    let file = format!("{log_name}.000001");
    let log = database.folder().join("data").join(&file);
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
    let copied = home.join(&file);
    wait_until("the log is copied", || length(&copied) == length(&log) && length(&log) > 0);
    drop(follows);
    let stop = tally_wire::time::format(tally_rules::Micros(i64::try_from(at).expect("small") * 1_000_000));
    let stop = stop.replace('T', " ").replace('Z', "");
    let stop = stop.split('.').next().expect("a second");
    run(&commands(restore, home).replace("2026-11-27 14:05:00", stop), home);
    let mut other = TestTally::stopped(TALLY);
    std::fs::copy(server.data().join("secret"), other.data().join("secret")).expect("copied");
    other.set("TALLY_STORE_URL", &database.url("tally_restored"));
    other.restart();
    assert_eq!(count(&other), 20);
    server.restart();
    assert_eq!(count(&server), 30);
    drop((other, server));
}
