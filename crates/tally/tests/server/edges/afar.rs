//! Commands for a server elsewhere: `--url` and `--key`.

use super::{TALLY, key, sum_board};
use serde_json::json;
use std::path::PathBuf;
use tally_testkit::TestTally;
use tally_testkit::command::{Finished, run_set};

/// The machine of the commands: one without a store.
struct Elsewhere {
    data: tempfile::TempDir,
    url: String,
}

impl Elsewhere {
    fn new(server: &TestTally) -> Self {
        let data = tempfile::TempDir::with_prefix("tally-elsewhere-").expect("it can be made");
        Self { data, url: format!("http://{}", server.address()) }
    }

    /// Runs a command on the server; the URL comes before the subcommand of a command that has some.
    fn run(&self, args: &[&str], key: &str) -> Finished {
        let key = if key.is_empty() { vec![] } else { vec!["--key", key] };
        let (before, after) = args.split_at(if args[0] == "keys" { 1 } else { args.len() });
        self.set(&[before, &["--url", &self.url], &key, after].concat(), &[])
    }

    fn set(&self, args: &[&str], settings: &[(&str, &str)]) -> Finished {
        let done = run_set(TALLY, &self.data.path().join("none"), args, settings);
        assert!(!self.data.path().join("none").exists(), "{args:?} made a store of its own");
        done
    }

    fn file(&self, text: &str) -> PathBuf {
        let path = self.data.path().join("scores.csv");
        std::fs::write(&path, text).expect("it is written");
        path
    }
}

#[track_caller]
fn failed(done: &Finished, word: &str) {
    done.expect(1);
    assert!(done.stderr.contains(word), "no {word:?} in {}", done.stderr);
    assert!(!done.stderr.contains("panicked"), "{}", done.stderr);
}

#[test]
fn keys_are_kept_from_afar() {
    let server = TestTally::start(TALLY);
    let here = Elsewhere::new(&server);
    let admin =
        here.run(&["keys", "create", "--role", "admin", "--name", "far"], "").expect(0).trim().to_owned();
    let without = here.run(&["keys", "list"], "");
    failed(&without, "needs an API key: give it by --key or in TALLY_KEY");
    failed(&without, "(unauthorized)");
    failed(&here.run(&["keys", "list"], "tally_nobody_nothing"), "unauthorized");
    let reader = here.run(&["keys", "create", "--role", "reader"], &admin).expect(0).trim().to_owned();
    let listed = here.run(&["keys", "list"], &admin).expect(0).to_owned();
    assert_eq!(listed.lines().count(), 3, "{listed}");
    assert!(listed.contains("far"), "{listed}");
    failed(&here.run(&["keys", "list"], &reader), "forbidden");
    failed(&here.run(&["keys", "create", "--role", "admin"], &reader), "forbidden");
    // The key may be in the environment, where no list of processes shows it.
    let by_env = here.set(&["keys", "--url", &here.url, "list"], &[("TALLY_KEY", &admin)]);
    assert_eq!(by_env.expect(0), listed);
    let file = here.file(&format!("{admin}\n"));
    let file = file.to_str().expect("a path of text");
    let by_file = here.set(&["keys", "--url", &here.url, "--key-file", file, "list"], &[("TALLY_KEY", "")]);
    assert_eq!(by_file.expect(0), listed);
    let of_variable = here.set(&["keys", "--url", &here.url, "list"], &[("TALLY_KEY_FILE", file)]);
    assert_eq!(of_variable.expect(0), listed);
    let id = reader.split('_').nth(1).expect("an id");
    here.run(&["keys", "revoke", id], &admin).expect(0);
    failed(&here.run(&["export", "b"], &reader), "unauthorized");
    assert_eq!(here.run(&["keys", "list"], &admin).expect(0).lines().count(), 2);
}

#[test]
fn imports_and_exports_from_afar() {
    let server = TestTally::start(TALLY);
    let mut local = sum_board(&server);
    local.delete("/v1/leaderboards/b").expect(204);
    let here = Elsewhere::new(&server);
    let [writer, reader] = ["server", "reader"].map(|role| key(&mut local, role));
    let rows: String = (0..4_500).map(|at| format!("p{},{at}\n", at % 1_500)).collect();
    let path = here.file(&format!("player,score\n{rows}bad,x\n"));
    let path = path.to_str().expect("a path of text");
    let import =
        ["import", "scores", "b", path, "--player", "player", "--score", "score", "--create", "update=sum"];
    failed(&here.run(&import, &reader), "forbidden");
    local.get("/v1/leaderboards/b").refused(404, "leaderboard_not_found");
    let done = here.run(&import, &writer);
    assert!(done.expect(0).contains("imported 4500 rows"), "{}", done.stdout);
    assert!(here.data.path().join("scores.rejects.csv").exists());
    assert!(here.run(&import, &writer).expect(0).contains("before"));
    // A slash at the end of the address is no other address.
    let slash = format!("{}/", here.url);
    let far = here.set(&["export", "b", "--url", &slash, "--key", &reader], &[]);
    let exported = far.expect(0).to_owned();
    assert_eq!(exported.lines().count(), 1_501);
    assert!(exported.lines().nth(1).is_some_and(|best| best.starts_with("1,p1499,8997,")), "{far:?}");
    assert_eq!(server.run(&["export", "b"]).expect(0), exported, "the same as on the spot");
    failed(&here.run(&["export", "none"], &reader), "leaderboard_not_found");
}

#[test]
fn what_cannot_be_reached_is_said() {
    let mut server = TestTally::start(TALLY);
    let here = Elsewhere::new(&server);
    server.client().put("/v1/leaderboards/b", &json!({})).expect(201);
    here.run(&["export", "b"], "").expect(0);
    server.terminate();
    for args in [&["export", "b"][..], &["keys", "list"]] {
        failed(&here.run(args, ""), &here.url);
    }
    let url = here.url.as_str();
    for (args, variable, says) in [
        (&["keys", "--key", "tally_a_b", "list"][..], "", "--url"),
        (&["keys", "--key-file", "/dev/null", "list"], "", "--url"),
        (&["keys", "--url", url, "--key-file", "/dev/null", "list"], "", "which is empty"),
        (&["keys", "--url", url, "--key-file", "/dev/null", "list"], "tally_a_b", "exclude each other"),
    ] {
        let done = here.set(args, &[("TALLY_KEY", variable)]);
        done.expect(2);
        assert!(done.stderr.contains(says), "{}", done.stderr);
    }
}

/// As it is typed: what to do first, then where.
#[test]
fn the_place_may_stand_behind_the_command() {
    let server = TestTally::start(TALLY);
    let here = Elsewhere::new(&server);
    let place = ["--url", &here.url];
    let admin = here.set(&[&["keys", "create", "--role", "admin"], &place[..]].concat(), &[]);
    let admin = admin.expect(0).trim().to_owned();
    let listed = here.set(&[&["keys", "list"], &place[..], &["--key", &admin]].concat(), &[]);
    assert_eq!(listed.expect(0).lines().count(), 2);
    let id = admin.split('_').nth(1).expect("an id");
    here.set(&[&["keys", "revoke", id, "--force"], &place[..], &["--key", &admin]].concat(), &[]).expect(0);
}
