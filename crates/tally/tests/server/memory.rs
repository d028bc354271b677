//! Memory of a container: bounds that follow it, and a start that says how much it needs.
//!
//! The container is a file in place of that of the control group, in a name space of mounts that the server alone sees.

use crate::TALLY;
use serde_json::json;
use std::path::{Path, PathBuf};
use tally_testkit::TestTally;
use tally_testkit::command::write_script;

/// A program that runs the server in a container with that much memory.
fn container(folder: &Path, bytes: &str) -> PathBuf {
    let group = folder.join("group");
    std::fs::create_dir_all(group.join("memory")).expect("it is made");
    // Of both versions of control groups, whichever the machine has.
    std::fs::write(group.join("memory.max"), bytes).expect("it is written");
    std::fs::write(group.join("memory/memory.limit_in_bytes"), bytes).expect("it is written");
    let (program, group) = (folder.join("container"), group.display());
    // Root needs no name space of users, and some machines forbid them to others.
    let text = format!(
        "#!/bin/sh\nunshare -m true 2>/dev/null && how=-m || how=-rm\n\
         exec unshare $how sh -c 'mount --bind {group} /sys/fs/cgroup && exec \"$0\" \"$@\"' {TALLY} \"$@\"\n"
    );
    write_script(&program, &text);
    program
}

#[test]
fn bounds_follow_the_container_and_a_setting_overrides_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = container(folder.path(), "268435456\n");
    let settings = [("TALLY_LANE_QUEUE_BYTES_MAX", "9000000")];
    let server = TestTally::start_set(program.to_str().expect("UTF-8"), &settings);
    let log = server.log();
    let line = log.iter().find(|line| line.contains("limit_mib=")).expect("a line");
    for text in [
        "limit_mib=256",
        "by=\"cgroup memory.",
        "store.cache_mib=4",
        "store.memtable_mib=16",
        "http.bodies_bytes_max=16777216",
        "resp.buffer_bytes_max=33554432",
        "lane.queue_bytes_max=9000000",
        "members.cache_entries=12500",
    ] {
        assert!(line.contains(text), "{text}: {line}");
    }
    server.local().put("/v1/leaderboards/b", &json!({})).expect(201);
}

#[test]
fn a_start_without_room_for_its_ranks_says_how_much_they_need() {
    let mut server = TestTally::start(TALLY);
    let mut client = server.local();
    client.put("/v1/leaderboards/b", &json!({})).expect(201);
    for chunk in 0..100 {
        let score = |nth: i64| json!({"board": "b", "player": format!("player-{chunk}-{nth}"), "score": nth});
        let scores: Vec<_> = (0..100).map(score).collect();
        client.post("/v1/scores/batch", &json!({"scores": scores})).expect(200);
    }
    server.terminate();
    let folder = tempfile::tempdir().expect("a folder");
    let data = server.data().to_str().expect("UTF-8").to_owned();
    let small = container(folder.path(), "12900000");
    let args = ["serve", "--data", &data, "--http", "127.0.0.1:0", "--resp", "off"];
    let output = std::process::Command::new(small).args(args).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("ranks of 10000 records do not fit") && said.contains("give it 48 MiB"), "{said}");
    // With all of the machine's memory it starts.
    server.restart();
    let page = server.local().get("/v1/leaderboards/b/scores?limit=1").expect(200);
    assert_eq!(page["total"], 10_000);
}
