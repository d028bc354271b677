//! `tally backup --follow` beside a server, and `tally restore --at`: kills of both, and the data of each instant.

use crate::TALLY;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, SystemTime};
use tally_testkit::command::command;
use tally_testkit::{TestTally, wait_until};

pub(super) const BOARD: &str = "/v1/leaderboards/b";

/// A process that follows, killed when it is dropped.
pub(super) struct Follows {
    child: Child,
    /// Open until the end.
    _out: BufReader<ChildStdout>,
}

impl Follows {
    /// Starts it. With `first`, waits for its first base.
    pub(super) fn start(server: &TestTally, to: &Path, first: bool) -> Self {
        let mut command = command(TALLY, &["backup", "--follow"]);
        command.arg(to).arg("--data").arg(server.data());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
        if first {
            let mut line = String::new();
            out.read_line(&mut line).expect("UTF-8");
            assert!(line.contains("follows from"), "{line}");
        }
        Self { child, _out: out }
    }
}

impl Drop for Follows {
    fn drop(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }
}

/// When the copy last had everything.
fn whole_at(server: &TestTally) -> SystemTime {
    let marker = server.data().join("tally.db.followed");
    std::fs::metadata(marker).and_then(|file| file.modified()).expect("there is a marker")
}

/// Waits until the copy has everything that was acknowledged before.
pub(super) fn wait_whole(server: &TestTally) {
    // The look of the second time began after the first one was written.
    for _ in 0..2 {
        let before = whole_at(server);
        wait_until("the copy has everything", || whole_at(server) != before);
    }
}

/// Submits the score of one more player. Returns an instant after its answer, and before the next submit.
pub(super) fn submit(server: &TestTally, no: usize) -> String {
    let body = json!({"player": format!("p{no:04}"), "score": no});
    server.client().post(&format!("{BOARD}/scores"), &body).expect(200);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    std::thread::sleep(Duration::from_millis(1));
    let micros = i64::try_from(now.as_micros()).expect("it fits");
    tally_wire::time::format(tally_rules::Micros(micros))
}

pub(super) fn count(server: &TestTally) -> usize {
    let page = server.client().get(&format!("{BOARD}/scores?limit=1000")).expect(200);
    let names = page["entries"].as_array().expect("entries").iter();
    let mut names: Vec<&str> = names.map(|entry: &Value| entry["player"].as_str().expect("a name")).collect();
    names.sort_unstable();
    let wanted: Vec<String> = (1..=names.len()).map(|no| format!("p{no:04}")).collect();
    assert_eq!(names, wanted, "not a prefix");
    names.len()
}

/// A server on the restored copy, and what the command said.
fn restored(from: &TestTally, copy: &Path, at: Option<&str>) -> (TestTally, String) {
    let mut server = TestTally::stopped(TALLY);
    std::fs::copy(from.data().join("secret"), server.data().join("secret")).expect("the secret is copied");
    let copy = copy.to_str().expect("UTF-8");
    let args = [vec!["restore", copy], at.map_or(vec![], |at| vec!["--at", at])].concat();
    let said = server.run(&args).expect(0).to_owned();
    server.restart();
    (server, said)
}

pub(super) fn copy_of(server: &TestTally) -> PathBuf {
    server.data().join("followed")
}

#[test]
fn every_instant_comes_back_whatever_is_killed() {
    let mut server = TestTally::start(TALLY);
    server.client().put(BOARD, &json!({})).expect(201);
    let copy = copy_of(&server);
    let mut follows = Follows::start(&server, &copy, true);
    let mut at = vec![String::new()];
    for no in 1..=120 {
        at.push(submit(&server, no));
        match no {
            // The process that follows is away for a moment.
            20 | 75 => {
                drop(follows);
                follows = Follows::start(&server, &copy, false);
                wait_whole(&server);
            }
            40 | 60 => {
                server.kill9();
                server.restart();
            }
            // A journal file that comes and goes between two looks is a gap. A file that was seen once is read to its end.
            41 | 61 | 91 => wait_whole(&server),
            90 => {
                server.terminate();
                server.restart();
            }
            _ => {}
        }
    }
    wait_whole(&server);
    let metrics = server.client().get("/metrics").text();
    assert!(metrics.contains("tally_backup_followed_timestamp_seconds"), "{metrics}");
    drop(follows);
    for no in [1, 19, 21, 41, 59, 61, 89, 91, 119] {
        let (other, said) = restored(&server, &copy, Some(&at[no]));
        assert_eq!(count(&other), no, "{said}");
        assert!(said.contains("restored up to") && said.contains("left out"), "{said}");
    }
    let (other, said) = restored(&server, &copy, None);
    assert_eq!(count(&other), 120, "{said}");
    assert!(said.contains("nothing that was copied is left out"), "{said}");
}

#[test]
fn a_restore_says_what_a_copy_does_not_have() {
    let server = TestTally::start(TALLY);
    server.client().put(BOARD, &json!({})).expect(201);
    let copy = copy_of(&server);
    let follows = Follows::start(&server, &copy, true);
    let path = copy.to_str().expect("UTF-8");
    let second = server.run(&["backup", "--follow", path]);
    assert_eq!(second.code, Some(1), "{second:?}");
    assert!(second.stderr.contains("is held by a process"), "{second:?}");
    let at: Vec<String> = (1..=20).map(|no| submit(&server, no)).collect();
    wait_whole(&server);
    drop(follows);
    let refused = |args: &[&str], code, text: &str| {
        let other = TestTally::stopped(TALLY);
        let done = other.run(&[&["restore"], args].concat());
        assert_eq!(done.code, Some(code), "{done:?}");
        assert!(done.stderr.contains(text), "{text}: {done:?}");
        assert!(!other.data().join("tally.db").exists(), "nothing is restored");
    };
    refused(&[path, "--at", "2001-01-01T00:00:00Z"], 1, "the first instant in");
    refused(&[path, "--at", "yesterday"], 2, "must be an instant");
    let file = server.data().join("secret");
    refused(&[file.to_str().expect("UTF-8"), "--at", &at[0]], 2, "--at needs the directory");
    let taken = server.run(&["restore", path]);
    assert_eq!(taken.code, Some(1), "{taken:?}");
    // The last bytes of the frames are lost: what is before them can still be had.
    let frames = copy.join("frames-000001-00000000");
    let bytes = std::fs::read(&frames).expect("readable");
    std::fs::write(&frames, &bytes[..bytes.len() - 9]).expect("writable");
    refused(&[path], 1, "the copy is damaged");
    let said = TestTally::stopped(TALLY).run(&["restore", path]).stderr;
    let until = said.split("--at ").nth(1).expect("an instant").split(' ').next().expect("a word");
    let (other, _) = restored(&server, &copy, Some(until));
    assert_eq!(count(&other), 19, "{said}");
}
