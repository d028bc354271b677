//! Changes that reach a follower over the Redis protocol: the leader makes them, and the replies keep their order.
//!
//! Not here: which commands go to the leader, and what its answers mean (`tally-server`, `resp/forward.rs`).

use super::forward::{pair, sign};
use serde_json::json;
use tally_service::signed_requests::{Behalf, SignedRequest};
use tally_testkit::{Cut, Reply, Request, RespClient, TestTally, wait_until};

/// Commands that change and read the key `KEY`, in one pipeline.
const PIPELINE: [&str; 19] = [
    "ZSCORE KEY ann",
    "ZADD KEY 1 ann 2 bob 3 cy",
    "ZSCORE KEY ann",
    "CLIENT SETNAME me",
    "NONE KEY",
    "ZADD KEY 1",
    "ZINCRBY KEY 5 ann",
    "CLIENT GETNAME",
    "ZRANGE KEY 0 -1 WITHSCORES",
    "ZPOPMAX KEY",
    "ZRANK KEY bob",
    "LB.CREATE KEY.made ORDER ascending",
    "LB.CREATE KEY.made ORDER descending",
    "LB.SUBMIT KEY.made ann 7 ID KEY.one",
    "LB.SUBMIT KEY.made ann 7 ID KEY.one",
    "PING",
    "LB.TOP KEY.made 3",
    "DEL KEY",
    "EXISTS KEY KEY.made",
];

const TRANSACTION: [&str; 13] = [
    "ZADD KEY 1 ann 2 bob",
    "MULTI",
    "ZINCRBY KEY 5 ann",
    "PING",
    "ZRANGE KEY 0 -1 WITHSCORES",
    "ZREM KEY bob",
    "EXEC",
    "MULTI",
    "ZADD KEY x ann",
    "ZADD KEY",
    "EXEC",
    "EXEC",
    "ZRANGE KEY 0 -1 WITHSCORES",
];

fn words(line: &str, key: &str) -> Vec<String> {
    line.split(' ').map(|word| word.replace("KEY", key)).collect()
}

/// The replies to a pipeline on a key, byte by byte.
fn replies(client: &mut RespClient, lines: &[&str], key: &str) -> Vec<String> {
    let mut bytes = Vec::new();
    for line in lines {
        tally_wire::resp::command(&words(line, key), &mut bytes);
    }
    client.send_bytes(&bytes);
    let reply = |_: &&str| String::from_utf8_lossy(&client.read_bytes()).replace(key, "KEY");
    lines.iter().map(reply).collect()
}

/// An error that says that nothing was done.
fn is_undone(reply: &Reply) -> bool {
    let Reply::Error(error) = reply else { return false };
    let error = String::from_utf8_lossy(error);
    error.starts_with("LOADING ") || error.starts_with("TRYAGAIN ") && !error.contains("it is not known")
}

fn is_unknown(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(error) if error.ends_with(b"it is not known whether the changes were made"))
}

fn score(server: &TestTally, player: &str) -> Reply {
    RespClient::connect(server.resp()).call(&["ZSCORE", "z", player])
}

fn bulk(text: &str) -> Reply {
    Reply::Bulk(text.as_bytes().to_vec())
}

#[test]
fn a_follower_replies_as_the_leader_does() {
    let (_proxy, first, second) = pair();
    for protocol in ["2", "3"] {
        let mut clients = [&first, &second].map(|server| RespClient::connect(server.resp()));
        for client in &mut clients {
            client.call(&["HELLO", protocol]);
            assert_eq!(client.call(&["LB.DURABILITY", "relaxed"]), Reply::Simple(b"OK".to_vec()));
        }
        let [leader, follower] = &mut clients;
        for (name, lines) in [("pipeline", &PIPELINE[..]), ("transaction", &TRANSACTION[..])] {
            let wanted = replies(leader, lines, &format!("leader-{name}-{protocol}"));
            let found = replies(follower, lines, &format!("follower-{name}-{protocol}"));
            assert_eq!(found, wanted, "{name}, protocol {protocol}");
        }
    }
}

#[test]
fn a_connection_sees_its_own_writes_on_a_follower() {
    let (_proxy, _first, second) = pair();
    let mut client = RespClient::connect(second.resp());
    for number in 1..=200 {
        let number = number.to_string();
        client.call(&["ZADD", "z", &number, "ann"]);
        assert_eq!(client.call(&["ZSCORE", "z", "ann"]), bulk(&number));
    }
    // A pipeline that runs in several parts.
    let mut lines = vec!["ZADD KEY 201 ann"];
    lines.resize(1_500, "ZSCORE KEY ann");
    let found = replies(&mut client, &lines, "z");
    assert!(found[1..].iter().all(|reply| reply == "$3\r\n201\r\n"), "{found:?}");
}

#[test]
fn a_large_transaction_is_forwarded_whole() {
    let (_proxy, first, second) = pair();
    let mut client = RespClient::connect(second.resp());
    client.call(&["MULTI"]);
    // Together they are larger than the body of any request of a client.
    for part in 0..30 {
        let members = (0..1_000).flat_map(|number| ["1".to_owned(), format!("{part}-{number:0100}")]);
        let args: Vec<String> = ["ZADD".to_owned(), "z".to_owned()].into_iter().chain(members).collect();
        assert_eq!(client.call(&args), Reply::Simple(b"QUEUED".to_vec()));
    }
    assert_eq!(client.call(&["EXEC"]), Reply::Array(vec![Reply::Integer(1_000); 30]));
    assert_eq!(RespClient::connect(first.resp()).call(&["ZCARD", "z"]), Reply::Integer(30_000));
}

#[test]
fn commands_whose_answer_was_lost_are_not_sent_again() {
    let (proxy, first, second) = pair();
    let mut client = RespClient::connect(second.resp());
    assert_eq!(client.call(&["ZINCRBY", "z", "1", "ann"]), bulk("1"));
    proxy.cut_at(b"ZINCRBY", Cut::Answer);
    let found = client.pipeline(&[["ZINCRBY", "z", "1", "ann"], ["ZINCRBY", "z", "1", "bob"]]);
    assert!(found.iter().all(is_unknown), "{found:?}");
    wait_until("the leader has done them", || score(&first, "bob") == bulk("1"));
    assert_eq!(client.call(&["ZINCRBY", "z", "1", "ann"]), bulk("3"));

    proxy.cut_at(b"ZPOPMIN", Cut::Answer);
    assert!(is_unknown(&client.call(&["ZPOPMIN", "z"])));
    wait_until("the leader has done it", || score(&first, "bob") == Reply::Null);
    client.call(&["MULTI"]);
    client.call(&["ZADD", "z", "9", "cy"]);
    proxy.cut_at(b"ZADD", Cut::Before);
    assert!(is_unknown(&client.call(&["EXEC"])));
    assert_eq!(score(&first, "cy"), Reply::Null);
}

#[test]
fn a_client_of_a_follower_goes_on_after_the_leader_is_killed() {
    let (_proxy, mut first, second) = pair();
    let mut client = RespClient::connect(second.resp());
    let increment = [&["ZINCRBY", "z", "1", "ann"][..], &["ZSCORE", "z", "ann"][..]];
    for number in 1..=10 {
        assert_eq!(client.pipeline(&increment), vec![bulk(&number.to_string()); 2]);
    }
    first.kill9();
    // A command on a connection that has just broken may or may not have arrived.
    let (mut unknown, mut last) = (0, Reply::Null);
    wait_until("the follower leads and goes on", || {
        let replies = client.pipeline(&increment);
        unknown += usize::from(is_unknown(&replies[0]));
        last = replies[1].clone();
        assert!(
            matches!(replies[0], Reply::Bulk(_)) || is_undone(&replies[0]) || is_unknown(&replies[0]),
            "{replies:?}"
        );
        matches!(replies[0], Reply::Bulk(_))
    });
    let Reply::Bulk(score) = last else { panic!("{last:?}") };
    let score: usize = String::from_utf8(score).expect("text").parse().expect("a number");
    assert!((11..=11 + unknown).contains(&score), "{score}, {unknown} unknown");
}

/// A request of a server, on behalf of the key or of the machine, with a valid signature.
fn signed(key: &str, behalf: Behalf, commands: &[&[&str]]) -> Request {
    let mut bytes = Vec::new();
    commands.iter().for_each(|args| tally_wire::resp::command(args, &mut bytes));
    let target = format!("/servers/commands?protocol=2&relaxed=false&atomic=false&key={key}");
    let headers: &[(&str, &[u8])] = &[("content-type", b"application/octet-stream")];
    let request = SignedRequest { method: "POST", target: &target, headers };
    let value = sign(&request, &bytes, behalf);
    Request::new("POST", &target).body("application/octet-stream", bytes).header("Tally-Forwarded", &value)
}

#[test]
fn the_leader_judges_the_key_of_the_caller() {
    let (_proxy, first, second) = pair();
    let mut local = first.local();
    let mut make = |role: &str| {
        let made = local.post("/v1/keys", &json!({"role": role})).expect(201);
        let key = made["key"].as_str().expect("a key").to_owned();
        let id = key.split('_').nth(1).expect("an id").to_owned();
        (key, id)
    };
    let ((key, id), (_, reader)) = (make("server"), make("reader"));
    let mut leader = first.client();
    let zadd: &[&[&str]] = &[&["ZADD", "z", "1", "ann"]];
    let mut sent = |key: &str| leader.send(&signed(key, Behalf::Client, zadd)).text();
    assert_eq!(sent(&id), ":1\r\n");
    assert_eq!(sent(&reader), "-NOPERM this key has no permissions to run the 'zadd' command\r\n");
    assert_eq!(sent("0123456789ab"), "-NOAUTH Authentication required.\r\n");
    // There are keys, so the machine of a follower needs one.
    let answer = leader.send(&signed("", Behalf::Local, zadd));
    assert_eq!(answer.text(), "-NOAUTH Authentication required.\r\n");
    for behalf in [Behalf::Local, Behalf::Server, Behalf::CommandLine] {
        leader.send(&signed(&id, behalf, zadd)).refused(401, "unauthorized");
    }
    for wrong in [&["AUTH", &key][..], &["CLIENT", "LIST"], &["EXEC"], &["NONE"]] {
        leader.send(&signed(&id, Behalf::Client, &[wrong])).refused(400, "bad_request");
    }
    let unsigned = Request::new("POST", "/servers/commands").body("text/plain", "PING\r\n");
    leader.send(&unsigned.key(&key)).refused(401, "unauthorized");
    // It is never forwarded again.
    second.client().send(&signed(&id, Behalf::Client, zadd)).refused(503, "not_leader");

    let mut client = RespClient::connect(second.resp());
    wait_until("the follower knows the key", || {
        client.call(&["AUTH", &key]) == Reply::Simple(b"OK".to_vec())
    });
    assert_eq!(client.call(&["ZADD", "z", "2", "bob"]), Reply::Integer(1));
    first.local().delete(&format!("/v1/keys/{id}")).expect(204);
    let no_auth = Reply::Error(b"NOAUTH Authentication required.".to_vec());
    assert_eq!(client.call(&["ZADD", "z", "3", "cy"]), no_auth);
    assert_eq!(first.local().get("/v1/leaderboards/z/scores").expect(200)["total"], 2);
}
