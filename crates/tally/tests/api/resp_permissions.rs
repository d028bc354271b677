//! Permissions of the commands of the Redis protocol: every command, with every role and without a key.
//!
//! `COMMAND LIST` names all commands. A command without a row here fails the test, so none can be forgotten. Also how a
//! connection gets and loses its permissions. Not here: the effects of the commands.

use crate::TALLY;
use serde_json::json;
use std::net::Ipv4Addr;
use tally_testkit::{RespClient, TestTally};
use tally_wire::resp::Reply;

const NO_AUTH: &str = "NOAUTH Authentication required.";
const WRONG_PASS: &str = "WRONGPASS invalid username-password pair or user is disabled.";

/// Allowed for all.
const OPEN: [&str; 4] = ["AUTH nonsense", "HELLO 3", "QUIT", "RESET"];

/// Allowed for readers.
const READS: [&str; 39] = [
    "CLIENT ID",
    "COMMAND COUNT",
    "CONFIG GET save",
    "DBSIZE",
    "DISCARD",
    "ECHO x",
    "EXEC",
    "EXISTS b",
    "INFO",
    "KEYS *",
    "LB.AMONG b ann",
    "LB.AROUND b ann 1 1",
    "LB.DURABILITY commit",
    "LB.PERIODS b",
    "LB.RANK b ann",
    "LB.TOP b 1",
    "MULTI",
    "PING",
    "SCAN 0",
    "SELECT 0",
    "TIME",
    "TYPE b",
    "WATCH b",
    "ZCARD b",
    "ZCOUNT b 0 1",
    "ZLEXCOUNT b - +",
    "ZMSCORE b ann",
    "ZRANDMEMBER b",
    "ZRANGE b 0 -1",
    "ZRANGEBYLEX b - +",
    "ZRANGEBYSCORE b 0 1",
    "ZRANK b ann",
    "ZREVRANGE b 0 -1",
    "ZREVRANGEBYLEX b + -",
    "ZREVRANGEBYSCORE b 1 0",
    "ZREVRANK b ann",
    "ZSCAN b 0",
    "ZSCORE b ann",
    "ZRANGE b 0 -1 REV",
];

/// Allowed for writers.
const WRITES: [&str; 13] = [
    "LB.CREATE c",
    "LB.SUBMIT b bob 1",
    "LB.MSUBMIT b bob 1",
    "UNLINK c",
    "ZADD b 2 ann",
    "ZINCRBY b 1 ann",
    "ZPOPMAX c",
    "ZPOPMIN c",
    "ZREM b bob",
    "ZREMRANGEBYLEX c - +",
    "ZREMRANGEBYRANK c 0 -1",
    "ZREMRANGEBYSCORE c 0 1",
    "DEL b",
];

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

fn name(line: &str) -> String {
    words(line)[0].to_lowercase()
}

fn error(text: &str) -> Reply {
    Reply::Error(text.as_bytes().to_vec())
}

fn ok() -> Reply {
    Reply::Simple(b"OK".to_vec())
}

/// The code of an error; nothing where it is none.
fn code(reply: &Reply) -> String {
    let Reply::Error(text) = reply else { return String::new() };
    String::from_utf8_lossy(text).split(' ').next().unwrap_or_default().to_owned()
}

/// A server with a board, and a key of each role, by id and by text.
fn stage() -> (TestTally, [(String, String); 3]) {
    let server = TestTally::start(TALLY);
    let mut local = server.local();
    assert_eq!(connect(&server).call(&words("ZADD b 1 ann")), Reply::Integer(1));
    let keys = ["reader", "server", "admin"].map(|role| {
        let made = local.post("/v1/keys", &json!({"role": role})).expect(201);
        let text = |member: &str| made[member].as_str().expect("it is shown").to_owned();
        (text("id"), text("key"))
    });
    (server, keys)
}

fn connect(server: &TestTally) -> RespClient {
    RespClient::connect(server.resp())
}

#[track_caller]
fn with_key(server: &TestTally, key: &str) -> RespClient {
    let mut client = connect(server);
    assert_eq!(client.call(&["AUTH", key]), ok());
    client
}

#[test]
fn every_command_stands_in_one_row() {
    let server = TestTally::start(TALLY);
    let Reply::Array(list) = connect(&server).call(&["COMMAND", "LIST"]) else { panic!("it is a list") };
    let mut there: Vec<String> = list
        .iter()
        .map(|one| match one {
            Reply::Bulk(name) => String::from_utf8_lossy(name).into_owned(),
            other => panic!("{other:?} is no name"),
        })
        .collect();
    let mut here: Vec<String> = OPEN.iter().chain(&READS).chain(&WRITES).map(|line| name(line)).collect();
    there.sort_unstable();
    here.sort_unstable();
    here.dedup();
    assert_eq!(here, there);
}

#[test]
fn without_a_key_nothing_but_presenting_one() {
    let (server, keys) = stage();
    for line in READS.iter().chain(&WRITES) {
        assert_eq!(connect(&server).call(&words(line)), error(NO_AUTH), "{line}");
        // Nor in another spelling, nor behind something else.
        let replies = connect(&server).pipeline(&[words("AUTH x"), words(&line.to_lowercase())]);
        assert_eq!(replies, [error(WRONG_PASS), error(NO_AUTH)], "{line}");
    }
    let mut client = connect(&server);
    assert_eq!(code(&client.call(&words("HELLO 3"))), "NOAUTH");
    assert_eq!(client.call(&words("AUTH nonsense")), error(WRONG_PASS));
    assert_eq!(client.call(&words("RESET")), Reply::Simple(b"RESET".to_vec()));
    assert_eq!(client.call(&words("QUIT")), ok());
    assert_eq!(client.read_to_end(), b"");
    let mut client = with_key(&server, &keys[0].1);
    assert_eq!(client.call(&words("ZSCORE b ann")), Reply::Bulk(b"1".to_vec()), "nothing was changed");
}

#[test]
fn a_reader_reads_and_others_do_all() {
    let (server, keys) = stage();
    let [reader, writers @ ..] = &keys;
    let mut client = with_key(&server, &reader.1);
    for line in READS {
        let reply = client.call(&words(line));
        assert!(!["NOAUTH", "NOPERM"].contains(&code(&reply).as_str()), "{line}: {reply:?}");
        // A transaction was begun by one of them.
        client.call(&words("DISCARD"));
    }
    for line in WRITES {
        let refused =
            error(&format!("NOPERM this key has no permissions to run the '{}' command", name(line)));
        assert_eq!(client.call(&words(line)), refused);
        let between = [words("ZCARD b"), words(line), words("ZCARD b")];
        let wanted = [Reply::Integer(1), refused.clone(), Reply::Integer(1)];
        assert_eq!(client.pipeline(&between), wanted, "{line}");
        let queued = client.pipeline(&[words("MULTI"), words(line), words("EXEC")]);
        assert_eq!(queued[..2], [ok(), refused], "{line}");
        assert_eq!(code(&queued[2]), "EXECABORT", "{line}");
    }
    assert_eq!(client.call(&words("ZSCORE b ann")), Reply::Bulk(b"1".to_vec()), "nothing was changed");
    for (_, key) in writers {
        let mut client = with_key(&server, key);
        client.call(&words("ZADD b 1 ann"));
        for line in READS.iter().chain(&WRITES) {
            let reply = client.call(&words(line));
            assert!(!["NOAUTH", "NOPERM"].contains(&code(&reply).as_str()), "{line}: {reply:?}");
            client.call(&words("DISCARD"));
        }
        assert_eq!(client.call(&words("EXISTS b")), Reply::Integer(0), "the last of them deletes it");
    }
}

/// The writing commands that need the scope `boards:admin`. The others need `scores:write`.
const BOARDS: [&str; 3] = ["LB.CREATE c", "UNLINK c", "DEL b"];

#[test]
fn a_scope_allows_its_commands_and_no_others() {
    let (server, [_, (_, writer), _]) = stage();
    let scopes = [
        "scores:write",
        "boards:admin",
        "members:read",
        "members:write",
        "money:read",
        "money:move",
        "money:mint",
        "contests:manage",
        "audit:read",
    ];
    assert!(BOARDS.iter().all(|line| WRITES.contains(line)));
    for scope in scopes {
        with_key(&server, &writer).call(&words("ZADD b 1 ann"));
        let made = server.local().post("/v1/keys", &json!({"scopes": [scope]})).expect(201);
        let mut client = with_key(&server, made["key"].as_str().expect("it is shown"));
        for line in READS {
            let reply = client.call(&words(line));
            assert!(!["NOAUTH", "NOPERM"].contains(&code(&reply).as_str()), "{scope}: {line}: {reply:?}");
            client.call(&words("DISCARD"));
        }
        for line in WRITES {
            let needed = if BOARDS.contains(&line) { "boards:admin" } else { "scores:write" };
            let reply = client.call(&words(line));
            assert_eq!(code(&reply) == "NOPERM", scope != needed, "{scope}: {line}: {reply:?}");
        }
    }
}

#[test]
fn ways_to_present_a_key() {
    let (server, [(_, key), _, _]) = stage();
    let score = Reply::Bulk(b"1".to_vec());
    let longer = format!("{key}x");
    let upper = key.to_uppercase();
    let wrong: [&[&str]; 9] = [
        &["AUTH", ""],
        &["AUTH", &key[1..]],
        &["AUTH", &longer],
        &["AUTH", &upper],
        &["AUTH", "ann", &key],
        &["AUTH", "", &key],
        &["AUTH", "DEFAULT", &key],
        &["HELLO", "3", "AUTH", "ann", &key],
        &["HELLO", "3", "AUTH", "default", &longer],
    ];
    let mut client = connect(&server);
    for line in wrong {
        assert_eq!(client.call(line), error(WRONG_PASS), "{line:?}");
        assert_eq!(client.call(&words("ZSCORE b ann")), error(NO_AUTH), "{line:?}");
    }
    let right: [&[&str]; 5] = [
        &["AUTH", &key],
        &["auth", "default", &key],
        &["HELLO", "2", "AUTH", "default", &key],
        &["HELLO", "2", "SETNAME", "game", "AUTH", "default", &key],
        &["hello", "2", "auth", "default", &key, "setname", "game"],
    ];
    for line in right {
        let mut client = connect(&server);
        assert!(!matches!(client.call(line), Reply::Error(_)), "{line:?}");
        assert_eq!(client.call(&words("ZSCORE b ann")), score, "{line:?}");
        // A wrong one removes nothing; RESET does.
        assert_eq!(client.call(&["AUTH", &longer]), error(WRONG_PASS));
        assert_eq!(client.call(&words("ZSCORE b ann")), score, "{line:?}");
        client.call(&["RESET"]);
        assert_eq!(client.call(&words("ZSCORE b ann")), error(NO_AUTH), "{line:?}");
    }
}

#[test]
fn the_first_key_ends_what_needed_none() {
    let server = TestTally::start(TALLY);
    let (mut open, mut queueing) = (connect(&server), connect(&server));
    assert_eq!(open.call(&words("ZADD b 1 ann")), Reply::Integer(1));
    queueing.pipeline(&[words("MULTI"), words("ZADD b 2 ann")]);
    let made = server.local().post("/v1/keys", &json!({"role": "reader"})).expect(201);
    assert_eq!(open.call(&words("ZADD b 3 ann")), error(NO_AUTH));
    assert_eq!(queueing.call(&["EXEC"]), error(NO_AUTH));
    assert_eq!(open.call(&["AUTH", made["key"].as_str().expect("it is shown")]), ok());
    assert_eq!(open.call(&words("ZSCORE b ann")), Reply::Bulk(b"1".to_vec()));
}

#[test]
fn revoking_the_last_key_opens_nothing() {
    let server = TestTally::start(TALLY);
    let mut local = server.local();
    let made = local.post("/v1/keys", &json!({"role": "reader"})).expect(201);
    local.delete(&format!("/v1/keys/{}", made["id"].as_str().expect("an id"))).expect(204);
    assert_eq!(connect(&server).call(&words("ZADD b 1 ann")), error(NO_AUTH));
}

#[test]
fn without_keys_only_a_listener_of_the_loopback_interface_answers() {
    let mut server = TestTally::stopped(TALLY);
    server.listen_on(Ipv4Addr::UNSPECIFIED.into());
    server.restart();
    let denied = |server: &TestTally| code(&connect(server).call(&words("ZADD b 1 ann")));
    assert_eq!(denied(&server), "DENIED");
    let always = TestTally::start_set(TALLY, &[("TALLY_KEYS_REQUIRED", "true")]);
    assert_eq!(denied(&always), "DENIED");
    let made = always.local().post("/v1/keys", &json!({"role": "server"})).expect(201);
    let mut client = with_key(&always, made["key"].as_str().expect("it is shown"));
    assert_eq!(client.call(&words("ZADD b 1 ann")), Reply::Integer(1));
}

#[test]
fn a_revoked_key_is_of_no_more_use() {
    let (server, [_, (id, key), (_, admin)]) = stage();
    let (mut using, mut queueing) = (with_key(&server, &key), with_key(&server, &key));
    assert_eq!(using.call(&words("ZADD b 2 ann")), Reply::Integer(0));
    queueing.pipeline(&[words("MULTI"), words("ZADD b 3 ann")]);
    server.client().with_key(&admin).delete(&format!("/v1/keys/{id}")).expect(204);
    // At once: the caller is checked whenever bytes come.
    assert_eq!(using.call(&words("ZADD b 4 ann")), error(NO_AUTH));
    assert_eq!(queueing.call(&["EXEC"]), error(NO_AUTH));
    assert_eq!(using.call(&["AUTH", &key]), error(WRONG_PASS));
    assert_eq!(using.call(&["AUTH", &admin]), ok());
    assert_eq!(using.call(&words("ZSCORE b ann")), Reply::Bulk(b"2".to_vec()));
}
