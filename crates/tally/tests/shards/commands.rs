//! Transactions and pipelines of the Redis protocol over two shards, one of which is cut off.

use super::*;
use std::time::Duration;
use tally_testkit::{Cut, Proxy, RespClient};
use tally_wire::resp::Reply;

const MEMBERS: usize = 200;

/// Two shards, and what is in front of the second.
fn world() -> (World, Proxy) {
    let mut world = World::of(2);
    let to = world.servers[1].address();
    let proxy = Proxy::start(to);
    world.urls[1] = world.urls[1].replace(&to.to_string(), &proxy.address().to_string());
    (world, proxy)
}

/// Two players of a shard, with their scores of the beginning.
fn two(world: &World, shard: usize) -> [(String, i64); 2] {
    let score = |player: &String| player["player-".len()..].parse().expect("a number");
    let mut players = world.players(shard).into_iter().map(|player| (score(&player), player));
    [(); 2].map(|()| players.next().map(|(score, player)| (player, score)).expect("it has two"))
}

fn words(command: &str) -> Vec<&str> {
    command.split(' ').collect()
}

/// Replies of commands, as a transaction or as a pipeline.
fn ask(resp: &mut RespClient, atomic: bool, commands: &[String]) -> Vec<String> {
    let commands: Vec<Vec<&str>> = commands.iter().map(|command| words(command)).collect();
    let replies = if atomic {
        let (first, last) = (vec!["MULTI"], vec!["EXEC"]);
        let all: Vec<_> = [first].into_iter().chain(commands).chain([last]).collect();
        match resp.pipeline(&all).pop() {
            Some(Reply::Array(replies)) => replies,
            other => panic!("{other:?}"),
        }
    } else {
        resp.pipeline(&commands)
    };
    replies.iter().map(shown).collect()
}

fn shown(reply: &Reply) -> String {
    match reply {
        Reply::Error(why) if why.starts_with(b"TRYAGAIN shard 2 of 2 of the store cannot be used now") => {
            "away".into()
        }
        Reply::Integer(number) => number.to_string(),
        Reply::Bulk(text) => String::from_utf8_lossy(text).into_owned(),
        Reply::Null => "nil".into(),
        other => format!("{other:?}"),
    }
}

#[test]
fn commands_of_a_shard_that_is_away_say_so_at_their_place_and_the_others_are_done() {
    let (world, proxy) = world();
    let mut server = world.started(&[0, 1]);
    server.allow("shard 2 of 2");
    fill(&mut server.local());
    let ([(here, first), (also_here, _)], [(there, second), (also_there, _)]) =
        (two(&world, 0), two(&world, 1));
    let mut resp = RespClient::connect(server.resp());
    let commands = [
        format!("ZADD b {} {here}", first + 1000),
        format!("ZINCRBY b 1000 {there}"),
        format!("ZINCRBY b 1 {here}"),
        format!("ZSCORE b {here}"),
        format!("ZSCORE b {there}"),
        format!("ZADD b 5 {also_here} 5 {also_there}"),
        format!("ZMSCORE b {here} nobody"),
        format!("ZREM b {also_here}"),
        "ZCARD b".into(),
        format!("ZADD b 6 {also_here}"),
    ];
    let answers = |there: &str, added: i64, both: &str| -> Vec<String> {
        let of_here = format!("Array([Bulk({:?}), Null])", (first + 1001).to_string().into_bytes());
        let (one, two) = (added.to_string(), (first + 1001).to_string());
        let increment = if both == "away" { "away" } else { there };
        ["0", increment, &two, &two, there, both, &of_here, "1", &(PLAYERS - 1).to_string(), &one]
            .map(str::to_owned)
            .to_vec()
    };
    for atomic in [true, false] {
        let increased = (second + if atomic { 1000 } else { 2000 }).to_string();
        assert_eq!(ask(&mut resp, atomic, &commands), answers(&increased, 1, "0"), "atomic: {atomic}");
    }
    proxy.refuse();
    proxy.cut();
    // A connection that answered just now gets the next transaction in one message, and nobody could say what became of it.
    std::thread::sleep(Duration::from_millis(100));
    for atomic in [true, false] {
        let stays = (second + 2000).to_string();
        assert_eq!(ask(&mut resp, atomic, &commands), answers(&stays, 1, "away"), "atomic: {atomic}");
        // One that concerns whoever is there concerns all; what stands beside nothing but it is still answered.
        let alone = [format!("ZADD b 1 {there}"), "ZPOPMIN b".into(), "ZCARD b".into()];
        assert_eq!(ask(&mut resp, atomic, &alone), ["away", "away", &PLAYERS.to_string()]);
    }
    let rows = resp.call(&words(&format!("LB.MSUBMIT b {here} 7 {there} 7 {also_here} 8")));
    let Reply::Array(rows) = &rows else { panic!("{rows:?}") };
    assert!(matches!(&rows[..], [Reply::Array(_), Reply::Error(_), Reply::Array(_)]), "{rows:?}");
    // Each member of a long pipeline is there or is not, as its reply said, also after the server was killed.
    let members: Vec<String> = (0..MEMBERS).map(|number| format!("ZADD b {number} new-{number}")).collect();
    let told = ask(&mut resp, false, &members);
    assert!(told.contains(&"away".into()) && told.contains(&"1".into()), "{told:?}");
    server.kill9();
    proxy.pass();
    server.restart();
    let mut resp = RespClient::connect(server.resp());
    let asked: Vec<String> = (0..MEMBERS).map(|number| format!("ZSCORE b new-{number}")).collect();
    for (number, (told, found)) in told.iter().zip(ask(&mut resp, false, &asked)).enumerate() {
        assert_eq!(found, if told == "1" { number.to_string() } else { "nil".into() });
    }
    assert_eq!(ask(&mut resp, true, &[format!("ZSCORE b {there}")]), [(second + 2000).to_string()]);
    assert_eq!(ask(&mut resp, true, &[format!("ZADD b 3 {there} 3 {here}")]), ["0"]);
}

#[test]
fn a_commit_in_doubt_on_one_shard_keeps_nobody_from_the_others() {
    let (world, proxy) = world();
    let mut server = world.started(&[0, 1]);
    server.allow("shard 2 of 2");
    server.allow("what became of an earlier batch is not known yet");
    let mut client = server.local();
    fill(&mut client);
    let ([(here, _), (also_here, _)], [(there, _), (also_there, _)]) = (two(&world, 0), two(&world, 1));
    // Whatever else commits there may be what is cut.
    loop {
        proxy.cut_off_at(b"COMMIT", Cut::Answer);
        let answer = client.send(&submit(&there, 777));
        if answer.status == 503 && answer.code() == "outcome_unknown" {
            break;
        }
        proxy.pass();
    }
    // As long as nobody knows: who is elsewhere goes on, alone, with others, and in a transaction that concerns both.
    let mut resp = RespClient::connect(server.resp());
    for round in 0..3_i64 {
        client.send(&submit(&here, round)).expect(200);
        let commands = [
            format!("ZADD b {round} {here}"),
            format!("ZADD b {round} {also_there}"),
            format!("ZADD b {round} {also_here}"),
            "ZCARD b".into(),
        ];
        for atomic in [true, false] {
            assert_eq!(ask(&mut resp, atomic, &commands), ["0", "away", "0", &PLAYERS.to_string()]);
        }
        client.post(&format!("/v1/leaderboards/b/players/{here}/ban"), &json!({})).refused(503, "store_away");
        client.send(&submit(&also_there, 1)).refused(503, "store_away");
    }
    proxy.pass();
    while client.send(&submit(&also_there, 9)).status != 200 {
        std::thread::sleep(Duration::from_millis(20));
    }
    let found = client.get(&format!("/v1/leaderboards/b/players/{there}")).expect(200);
    assert_eq!(found["score"], 777, "it was committed before its answer was lost: {found}");
}
