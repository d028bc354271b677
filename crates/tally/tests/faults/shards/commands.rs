//! Pipelines and transactions of the Redis protocol over two shards, one of which is cut off.

use super::*;
use std::time::Duration;
use tally_testkit::{COMMIT, Cut, Proxy, RespClient, wait_until};
use tally_wire::resp::Reply;

const MEMBERS: usize = 200;

/// Two shards, and the proxy in front of the second.
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

/// Replies of a pipeline.
fn ask(resp: &mut RespClient, commands: &[String]) -> Vec<String> {
    let commands: Vec<Vec<&str>> = commands.iter().map(|command| words(command)).collect();
    resp.pipeline(&commands).iter().map(shown).collect()
}

/// The result of `EXEC` for a transaction.
fn exec(resp: &mut RespClient, commands: &[String]) -> Reply {
    let commands = commands.iter().map(|command| words(command));
    let all: Vec<_> = [vec!["MULTI"]].into_iter().chain(commands).chain([vec!["EXEC"]]).collect();
    resp.pipeline(&all).pop().expect("a reply for each")
}

fn shown(reply: &Reply) -> String {
    match reply {
        Reply::Error(why) if why.starts_with(b"TRYAGAIN shard 2 of 2 of the store cannot be used now") => {
            "away".into()
        }
        Reply::Error(why) if why.ends_with(b"it is not known whether the change was made") => "part".into(),
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
        let increment = if both == "part" { "away" } else { there };
        ["0", increment, &two, &two, there, both, &of_here, "1", &(PLAYERS - 1).to_string(), &one]
            .map(str::to_owned)
            .to_vec()
    };
    let increased = (second + 1000).to_string();
    assert_eq!(ask(&mut resp, &commands), answers(&increased, 1, "0"));
    proxy.refuse();
    proxy.cut();
    // A connection that answered just now gets the next transaction in one message, and its outcome would be unknown.
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(ask(&mut resp, &commands), answers(&increased, 1, "part"));
    // A removal by rank concerns all present players; commands beside it that touch nothing else are still answered.
    let by_rank = [
        format!("ZADD b 1 {there}"),
        format!("ZINCRBY b 100000 {there}"),
        "ZREMRANGEBYRANK b -1 -1".into(),
        format!("ZADD b -5 {also_here}"),
        "ZREMRANGEBYRANK b 0 0".into(),
        "ZCARD b".into(),
        format!("ZADD b 6 {also_here}"),
    ];
    let of_there = first + 1001 < second + 1000;
    let top = if of_there { "away" } else { "1" };
    let left = (PLAYERS - 1 - usize::from(!of_there)).to_string();
    assert_eq!(ask(&mut resp, &by_rank), ["away", "away", top, "0", "1", &left, "1"]);
    if !of_there {
        assert_eq!(ask(&mut resp, &[format!("ZADD b {} {here}", first + 1001)]), ["1"]);
    }
    let rows = resp.call(&words(&format!("LB.MSUBMIT b {here} 7 {there} 7 {also_here} 8")));
    let Reply::Array(rows) = &rows else { panic!("{rows:?}") };
    assert!(matches!(&rows[..], [Reply::Array(_), Reply::Error(_), Reply::Array(_)]), "{rows:?}");
    // Each member of a long pipeline is present or not, as its reply said, also after the server was killed.
    let members: Vec<String> = (0..MEMBERS).map(|number| format!("ZADD b {number} new-{number}")).collect();
    let told = ask(&mut resp, &members);
    assert!(told.contains(&"away".into()) && told.contains(&"1".into()), "{told:?}");
    server.kill9();
    proxy.pass();
    server.restart();
    let mut resp = RespClient::connect(server.resp());
    let asked: Vec<String> = (0..MEMBERS).map(|number| format!("ZSCORE b new-{number}")).collect();
    for (number, (told, found)) in told.iter().zip(ask(&mut resp, &asked)).enumerate() {
        assert_eq!(found, if told == "1" { number.to_string() } else { "nil".into() });
    }
    assert_eq!(ask(&mut resp, &[format!("ZSCORE b {there}")]), [(second + 1000).to_string()]);
    assert_eq!(ask(&mut resp, &[format!("ZADD b 3 {there} 3 {here}")]), ["0"]);
    // Those of both with the lowest and the highest scores, in the requested order.
    let lowest = [format!("ZADD b -1 {there} -2 {here} -3 {also_there}"), "ZPOPMIN b 3".into()];
    let bulks: Vec<Reply> = [(&also_there, -3), (&here, -2), (&there, -1)]
        .iter()
        .flat_map(|(player, score): &(&String, i32)| {
            [player.as_bytes().to_vec(), score.to_string().into_bytes()]
        })
        .map(Reply::Bulk)
        .collect();
    assert_eq!(ask(&mut resp, &lowest), ["0".to_owned(), format!("{:?}", Reply::Array(bulks))]);
    assert_eq!(ask(&mut resp, &["DEL b".into(), "ZCARD b".into()]), ["1", "0"]);
}

#[test]
fn a_transaction_is_of_one_database() {
    let world = World::of(2);
    let server = world.started(&[0, 1]);
    fill(&mut server.local());
    let ([(here, first), (also_here, _)], [(there, _), _]) = (two(&world, 0), two(&world, 1));
    let mut resp = RespClient::connect(server.resp());
    let crossing: [&[String]; 4] = [
        &[format!("ZADD b 900 {here}"), format!("ZADD b 900 {there}")],
        &[format!("ZADD b 900 {here} 900 {there}"), "ZCARD b".into()],
        &[format!("ZADD b 900 {here}"), "ZPOPMIN b".into()],
        &[format!("ZADD made 900 {here}"), "DEL made".into()],
    ];
    for commands in crossing {
        let Reply::Error(why) = exec(&mut resp, commands) else { panic!("{commands:?}") };
        assert!(why.starts_with(b"CROSSSLOT "), "{}", String::from_utf8_lossy(&why));
    }
    let commands = [
        format!("ZSCORE b {here}"),
        format!("ZADD b 900 {here} 901 {also_here}"),
        format!("ZSCORE b {there}"),
        "ZCARD b".into(),
    ];
    let Reply::Array(replies) = exec(&mut resp, &commands) else { panic!("it is of one database") };
    let shown: Vec<String> = replies.iter().map(shown).collect();
    assert_eq!([&shown[0], &shown[1], &shown[3]], [&first.to_string(), "0", &PLAYERS.to_string()]);
}

#[test]
fn an_in_doubt_commit_on_one_shard_leaves_the_others_usable() {
    let (world, proxy) = world();
    let mut server = world.started(&[0, 1]);
    server.allow("shard 2 of 2");
    server.allow("the outcome of an earlier batch is not known yet");
    let mut client = server.local();
    fill(&mut client);
    let ([(here, _), (also_here, _)], [(there, _), (also_there, _)]) = (two(&world, 0), two(&world, 1));
    // The cut may hit any other commit there.
    wait_until("its commit is cut", || {
        proxy.cut_off_at(COMMIT, Cut::Answer);
        let answer = client.send(&submit(&there, 777));
        let is_cut = answer.status == 503 && answer.code() == "outcome_unknown";
        if !is_cut {
            proxy.pass();
        }
        is_cut
    });
    // While the outcome is unknown, players elsewhere go on, alone and in a pipeline that concerns both.
    let mut resp = RespClient::connect(server.resp());
    for round in 0..3_i64 {
        client.send(&submit(&here, round)).expect(200);
        let commands = [
            format!("ZADD b {round} {here}"),
            format!("ZADD b {round} {also_there}"),
            format!("ZADD b {round} {also_here}"),
            "ZCARD b".into(),
        ];
        assert_eq!(ask(&mut resp, &commands), ["0", "away", "0", &PLAYERS.to_string()]);
        let ban = |player: &str| format!("/v1/leaderboards/b/players/{player}/ban");
        client.post(&ban(&here), &json!({})).expect(200);
        client.post(&format!("/v1/leaderboards/b/players/{here}/restore"), &json!({})).expect(200);
        client.post(&ban(&also_there), &json!({})).refused(503, "store_unavailable");
        client.send(&submit(&also_there, 1)).refused(503, "store_unavailable");
    }
    proxy.pass();
    wait_until("its database answers", || client.send(&submit(&also_there, 9)).status == 200);
    let found = client.get(&format!("/v1/leaderboards/b/players/{there}")).expect(200);
    assert_eq!(found["score"], 777, "it was committed before its answer was lost: {found}");
}
