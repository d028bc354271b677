//! The scripts that write, alone: run by `EVAL` on keys of the test's own, without the client.

use std::collections::BTreeMap;
use tally_testkit::{RedisKind, Reply, RespClient, Rng, ScratchRedis};

const COMMON: &str = include_str!("../../src/redis/scripts/common.lua");
const WATCHED: &str = include_str!("../../src/redis/scripts/watched.lua");
const NEWER: &str = include_str!("../../src/redis/scripts/newer.lua");
const PUBLISH: &str = include_str!("../../src/redis/scripts/publish.lua");
const BULK: &str = include_str!("../../src/redis/scripts/bulk.lua");
const RUN: &str = "0123456789012345678901234567890123456789";
/// A head of two bytes, of which the first is the score.
const WIDTHS: [&str; 2] = ["2", "1"];
const STATE: &[u8] = b"\xffstate";

/// One row: field, version, kept value.
type Row = (String, u64, String);

struct Part {
    client: RespClient,
    keys: [String; 5],
}

impl Part {
    fn new(server: &ScratchRedis, tag: &str) -> Self {
        let mut window = Self {
            client: server.client(),
            keys: ["z", "m", "d", "l", "w"].map(|kind| format!("{{{tag}}}:{kind}")),
        };
        let state = [b"R", RUN.as_bytes(), b"epoch"].concat();
        let key = window.keys[1].clone();
        let fields: [&[u8]; 6] = [b"HSET", key.as_bytes(), STATE, &state, b"\xffgone", b"0"];
        assert_eq!(window.client.call(&fields), Reply::Integer(2));
        window
    }

    fn eval(&mut self, body: &str, args: Vec<Vec<u8>>) -> Vec<Reply> {
        let mut command: Vec<Vec<u8>> =
            vec!["EVAL".into(), format!("{COMMON}{WATCHED}{NEWER}{body}").into(), "5".into()];
        command.extend(self.keys.iter().map(|key| key.clone().into_bytes()));
        command.push(RUN.into());
        command.extend(WIDTHS.map(Vec::from));
        command.extend(args);
        match self.client.call(&command) {
            Reply::Array(list) => list,
            other => panic!("{other:?}"),
        }
    }

    /// One by one with ranks.
    fn publish(&mut self, rows: &[Row]) -> Vec<Reply> {
        let mut args = vec![b"d".to_vec()];
        for (field, version, kept) in rows {
            args.extend([
                field.clone().into(),
                version.to_be_bytes().to_vec(),
                b"1".to_vec(),
                kept.clone().into(),
            ]);
        }
        self.eval(PUBLISH, args)
    }

    fn bulk(&mut self, rows: &[Row]) -> Vec<Reply> {
        let row = |(field, version, kept): &Row| {
            [field.clone().into(), version.to_be_bytes().to_vec(), kept.clone().into()]
        };
        // Of no load.
        self.eval(BULK, std::iter::once(Vec::new()).chain(rows.iter().flat_map(row)).collect())
    }

    /// Members, distinct scores, and the number of tombstones.
    fn content(&mut self) -> (Vec<String>, Vec<String>, i64) {
        let mut list = |key: usize| {
            let key = self.keys[key].clone();
            let Reply::Array(all) = self.client.call(&["ZRANGE", &key, "0", "-1"]) else { panic!("a list") };
            let text = |reply: Reply| match reply {
                Reply::Bulk(text) => String::from_utf8(text).unwrap(),
                other => panic!("{other:?}"),
            };
            all.into_iter().map(text).collect()
        };
        let (members, scores): (Vec<String>, Vec<String>) = (list(0), list(2));
        let gone: [&[u8]; 3] = [b"HGET", self.keys[1].as_bytes(), b"\xffgone"];
        let Reply::Bulk(gone) = self.client.call(&gone) else { panic!("a count") };
        let gone = String::from_utf8(gone).unwrap().parse().unwrap();
        let Reply::Integer(fields) = self.client.call(&["HLEN", &self.keys[1]]) else { panic!("a count") };
        assert_eq!(fields, members.len() as i64 + gone + 2, "the scripts take anything else for a loss");
        (members, scores, gone)
    }
}

/// Both scripts, random rows, versions that differ in any byte: the same content as a map that keeps the newest.
#[test]
fn soak_the_newest_of_every_player_stays() {
    let mut rng = Rng::of("the scripts of the ranking");
    for kind in [RedisKind::Redis7, RedisKind::Valkey9] {
        let server = ScratchRedis::start(kind, &[]);
        for round in 0..tally_testkit::rng::soak(60) {
            let mut window = Part::new(&server, &format!("part{round}"));
            let mut model: BTreeMap<String, (u64, String)> = BTreeMap::new();
            for _ in 0..12 {
                let mut rows: Vec<Row> = Vec::new();
                for _ in 0..=rng.below(8) {
                    let field = format!("p{}", rng.below(9));
                    let version = rng.below(4) << [0, 8, 31, 32, 33, 53, 61][rng.below(7) as usize];
                    let kept = if rng.percent(25) {
                        String::new()
                    } else {
                        format!("{}{}", rng.below(3), rng.below(3))
                    };
                    // Each player once: the precondition of a bulk change.
                    if rows.iter().all(|row| row.0 != field) {
                        rows.push((field, version, kept));
                    }
                }
                let bulk = rng.percent(50);
                let answers = if bulk { window.bulk(&rows) } else { window.publish(&rows) };
                for (at, (field, version, kept)) in rows.into_iter().enumerate() {
                    let present = model.get(&field).map(|(version, _)| *version);
                    let newer = present.is_none_or(|present| version > present);
                    let wanted = match present {
                        _ if !bulk => Reply::Integer(newer.into()),
                        Some(present) => Reply::Bulk(present.to_be_bytes().to_vec()),
                        None => Reply::Bulk(Vec::new()),
                    };
                    assert_eq!(answers[if bulk { 2 + at } else { 2 + 3 * at }], wanted);
                    if newer {
                        model.insert(field, (version, kept));
                    }
                }
                let there = model.iter().filter(|(_, (_, kept))| !kept.is_empty());
                let mut members: Vec<String> =
                    there.map(|(field, (_, kept))| format!("{kept}{field}")).collect();
                members.sort();
                let mut scores: Vec<String> = members.iter().map(|member| member[..1].to_owned()).collect();
                scores.dedup();
                assert_eq!(answers[1], Reply::Integer(members.len() as i64), "the total");
                let gone = (model.len() - members.len()) as i64;
                assert_eq!(window.content(), (members, scores, gone));
            }
        }
    }
}

/// Ranks in between are those of the moment: dense, with a distinct score that comes and goes.
#[test]
fn each_change_hears_the_ranks_of_its_turn() {
    let server = ScratchRedis::start(RedisKind::Redis7, &[]);
    let mut window = Part::new(&server, "part");
    let row = |field: &str, version, kept: &str| (field.to_owned(), version, kept.to_owned());
    let rows = [
        row("a", 1, "50"),
        row("b", 1, "30"),
        row("a", 2, "20"),
        row("b", 1, "10"),
        row("a", 3, ""),
        row("b", 2, "90"),
    ];
    let answers = window.publish(&rows);
    let numbers: Vec<i64> =
        answers[2..].iter().map(|reply| if let Reply::Integer(n) = reply { *n } else { panic!() }).collect();
    let turns: Vec<[i64; 3]> = numbers.chunks(3).map(|turn| turn.try_into().unwrap()).collect();
    assert_eq!(turns, [[1, -1, 0], [1, -1, 0], [1, 1, 0], [0, 1, 1], [1, 0, -1], [1, 0, 0]]);
    assert_eq!(window.content(), (vec!["90b".to_owned()], vec!["9".to_owned()], 1));
}

/// Strings would compare by the server's locale, and numbers only to 53 bits.
#[test]
fn versions_compare_as_numbers_whatever_the_bytes() {
    let server = ScratchRedis::start(RedisKind::Redis7, &[]);
    let mut client = server.client();
    let edges = [
        0,
        1,
        0x41,
        0x61,
        0x7f,
        0x80,
        0xff,
        0x100,
        1 << 32,
        (1 << 53) + 1,
        1 << 53,
        i64::MAX as u64,
        1 << 63,
        u64::MAX,
    ];
    let body = format!("{NEWER}if newer(ARGV[1], ARGV[2]) then return 1 end return 0");
    for a in edges {
        for b in edges {
            let command: [&[u8]; 5] = [b"EVAL", body.as_bytes(), b"0", &a.to_be_bytes(), &b.to_be_bytes()];
            assert_eq!(client.call(&command), Reply::Integer((a > b).into()), "{a} {b}");
        }
    }
}
