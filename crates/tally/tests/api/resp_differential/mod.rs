//! The same random commands to tally and to a real Valkey 9: every reply is the same, byte for byte.
//!
//! Valkey speaks as Redis 7.2. The intended differences are in [`same`]. They are the list that users find in `docs/redis.md`.
//! Replies without an order of their own are sorted first. Not here: our own commands, and boards that `PUT` has made.

mod commands;
mod ranges;

use crate::TALLY;
use commands::{Command, Commands};
use tally_testkit::backends::share;
use tally_testkit::redis::{RedisKind, ScratchRedis};
use tally_testkit::resp::RespClient;
use tally_testkit::rng::{Rng, soak};
use tally_testkit::server::TestTally;
use tally_wire::resp::Reply;

/// Commands of one run; `TALLY_SOAK` multiplies.
const COMMANDS: usize = 40_000;

#[test]
fn soak_replies_are_those_of_a_real_server_in_the_old_protocol() {
    compare("2");
}

#[test]
fn soak_replies_are_those_of_a_real_server_in_the_new_protocol() {
    compare("3");
}

fn compare(protocol: &str) {
    let (tally, valkey) = (TestTally::start(TALLY), ScratchRedis::start(RedisKind::Valkey9, &[]));
    let mut ours = RespClient::connect(tally.resp());
    let mut theirs = RespClient::connect(valkey.address());
    for client in [&mut ours, &mut theirs] {
        client.call(&["HELLO", protocol]);
        client.call(&["FLUSHALL"]);
    }
    let mut commands = Commands::new(Rng::of(&format!("differential {protocol}")));
    let mut sent = 0;
    while sent < soak(COMMANDS).div_ceil(share()) {
        // From one command at a time to long pipelines.
        let pipeline = commands.pipeline();
        let args: Vec<&[Vec<u8>]> = pipeline.iter().map(|one| one.args.as_slice()).collect();
        let (mine, real) = (ours.pipeline(&args), theirs.pipeline(&args));
        for ((command, mine), real) in pipeline.iter().zip(mine).zip(real) {
            let (mine, real) = (same(command, mine), same(command, real));
            assert!(
                mine == real,
                "{command}\n  ours:   {}\n  theirs: {}\nafter {sent} commands, protocol {protocol}; in a pipeline of\n{}",
                text(&mine),
                text(&real),
                pipeline.iter().map(|one| format!("  {one}\n")).collect::<String>()
            );
        }
        sent += pipeline.len();
    }
}

/// A reply for people.
fn text(reply: &Reply) -> String {
    let list = |list: &[Reply]| list.iter().map(text).collect::<Vec<_>>().join(" ");
    match reply {
        Reply::Bulk(bytes) => format!("\"{}\"", bytes.escape_ascii()),
        Reply::Error(bytes) | Reply::Simple(bytes) | Reply::Double(bytes) => bytes.escape_ascii().to_string(),
        Reply::Array(elements) => format!("[{}]", list(elements)),
        other => format!("{other:?}"),
    }
}

/// A reply without the parts that may differ.
fn same(command: &Command, reply: Reply) -> Reply {
    match reply {
        // Minus zero is stored as zero.
        Reply::Bulk(bytes) if bytes == b"-0" => Reply::Bulk(b"0".to_vec()),
        Reply::Double(bytes) if bytes == b"-0" => Reply::Double(b"0".to_vec()),
        Reply::Array(list) => {
            let mut list: Vec<Reply> = list.into_iter().map(|one| same(command, one)).collect();
            if command.is("KEYS") {
                list.sort_by_key(|one| format!("{one:?}"));
            }
            // Members by chance: only their number can be compared.
            if command.is("ZRANDMEMBER") {
                list.iter_mut().for_each(|one| *one = Reply::Null);
            }
            Reply::Array(list)
        }
        Reply::Bulk(_) if command.is("ZRANDMEMBER") => Reply::Null,
        other => other,
    }
}
