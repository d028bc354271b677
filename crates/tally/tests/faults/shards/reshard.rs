//! `tally migrate --reshard` from one server to two, to three and back, killed in between.

use super::*;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tally_testkit::{Rng, audit::audit};

const ROWS: usize = 10_000;
const KILLS: u64 = 3;

/// The answers of a server on these databases.
fn shown(world: &World, shards: &[usize]) -> Vec<Value> {
    let mut server = world.stopped(shards);
    server.restart();
    let seen = audit(&mut server.local());
    server.terminate();
    seen
}

fn migrate(world: &World, from: &[usize], to: &[usize]) -> Command {
    let mut command = Command::new(TALLY);
    command.args(["migrate", "--reshard", "--data"]).arg(world.folder.path());
    command.args(to.iter().flat_map(|shard| ["--store", &world.urls[*shard]]));
    if !from.is_empty() {
        let urls: Vec<&str> = from.iter().map(|shard| world.urls[*shard].as_str()).collect();
        let file = world.folder.path().join("databases-before");
        std::fs::write(&file, urls.join(",\n")).expect("it is written");
        command.arg("--from-file").arg(file);
    }
    command.env("TALLY_SECRET", SECRET).env("TALLY_STORE_LEASE", "2s");
    command
}

/// Kills it: first when it has begun, then anywhere, also where it waits for the lease of the one before.
fn kill(mut child: Child, world: &World, round: u64) {
    let begun = "SELECT COUNT(*) FROM tally_0.meta WHERE name = 'store.reshard'";
    while round == 0 && world.servers[0].sql(begun) == "0" {
        assert!(child.try_wait().expect("it can be asked").is_none(), "it ended before it had begun");
    }
    std::thread::sleep(Duration::from_millis(round * 1000 + Rng::of("kill a move").below(300)));
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
}

#[test]
fn records_move_between_servers_and_a_killed_move_goes_on() {
    let world = World::of(3);
    let mut server = world.started(&[0]);
    let mut client = server.local();
    fill(&mut client);
    for chunk in 0..ROWS / 1000 {
        let row =
            |at| json!({"board": "b", "player": format!("p{}", chunk * 1000 + at), "score": chunk * at});
        let scores: Vec<Value> = (0..1000).map(row).collect();
        client.post("/v1/scores/batch", &json!({"scores": scores})).expect(200);
    }
    let keyed = submit("p7", 70).idempotent("once");
    client.send(&keyed).expect(200);
    client.put("/v1/players/p7", &json!({"name": "Ann"})).expect(201);
    client.post("/v1/leaderboards/b/players/p8/ban", &json!({})).expect(200);
    // The data of a running server is not moved.
    let refused = migrate(&world, &[], &[0, 1]).output().expect("it runs");
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("is held by"));
    server.terminate();
    let before = shown(&world, &[0]);
    let lists: [(&[usize], &[usize]); 3] = [(&[0], &[0, 1]), (&[0, 1], &[0, 1, 2]), (&[0, 1, 2], &[0])];
    for (from, to) in lists {
        let from = if to.starts_with(from) { &[] } else { from };
        for round in 0..KILLS {
            let mut command = migrate(&world, from, to);
            let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
            kill(child, &world, round);
        }
        let done = migrate(&world, from, to).output().expect("it runs");
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert!(
            said.contains(&format!("{} records are on {} databases now", ROWS + PLAYERS, to.len())),
            "{said}"
        );
        assert!(said.contains(" a second"), "{said}");
        // One that was killed at its very end was done, and is run again.
        assert!(migrate(&world, from, to).output().expect("it runs").status.success());
        assert_eq!(shown(&world, to), before, "{to:?}");
        let mut server = world.started(to);
        assert!(server.local().send(&keyed).is_replay(), "{to:?}");
        server.terminate();
    }
}
