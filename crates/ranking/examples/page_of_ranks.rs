//! A hundred ranks for one page: one question after the other, all in one script, and all at once across slots.
//!
//! The shape of a field report: 365 ms by a loop, 19 ms by one command for all, 25 ms by a pipeline, which was chosen
//! because keys of a cluster lie in different slots and one failing item fails alone. Servers are the test kit's own, on
//! loopback, so the loop costs less than in a data centre; what carries over is the order. Medians over rounds that take
//! the three in turn. Not a benchmark with a target: that would say what else the machine does.

use std::time::{Duration, Instant};
use tally_ranking::redis::{Options, RedisPart, RedisRanking};
use tally_rules::definition::{Definition, Ranking};
use tally_rules::{Micros, PlayerId, Record};
use tally_testkit::{RedisKind, ScratchCluster, ScratchRedis};

const ITEMS: u64 = 100;
const PLAYERS: u64 = 1_000;
const ROUNDS: usize = 201;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let single = ScratchRedis::start(RedisKind::Redis7, &[]);
    measure("single, Redis 7", &format!("redis://{}", single.address()))?;
    let valkey = ScratchRedis::start(RedisKind::Valkey9, &[]);
    measure("single, Valkey 9", &format!("redis://{}", valkey.address()))?;
    let cluster = ScratchCluster::start(RedisKind::Valkey9, &[]);
    let seeds: Vec<String> = cluster.addresses().iter().map(ToString::to_string).collect();
    measure("cluster, Valkey 9", &format!("redis-cluster://{}", seeds.join(",")))?;
    Ok(())
}

fn id(number: u64) -> PlayerId {
    PlayerId::new(&format!("player-{number}")).expect("it is short")
}

fn measure(name: &str, url: &str) -> Result<(), Box<dyn std::error::Error>> {
    let ranking = RedisRanking::connect(url, &Options::default())?;
    // Dense boards are whole on a cluster too: each item is in a slot of its own.
    let definition = Definition { ranking: Ranking::Dense, ..Definition::default() };
    let parts: Vec<RedisPart> = (0..ITEMS).map(|part| ranking.part(1, part, &definition)).collect();
    for part in &parts {
        let mut loader = part.load(1)?;
        for number in 0..PLAYERS {
            let record = Record { score: (number * 7_919 % 1_009) as i64, subscore: 0, at: Micros(0) };
            loader.push(&id(number), &record, 1)?;
        }
        loader.finish()?;
    }
    let players: Vec<PlayerId> = (0..ITEMS).map(id).collect();
    let items: Vec<(&RedisPart, &PlayerId)> = parts.iter().zip(&players).collect();
    let mut times: [Vec<Duration>; 3] = Default::default();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        for item in &items {
            assert!(ranking.ranks(std::slice::from_ref(item))[0].is_ok());
        }
        times[0].push(begun.elapsed());
        let begun = Instant::now();
        assert!(parts[0].ranks(&players).iter().all(Result::is_ok));
        times[1].push(begun.elapsed());
        let begun = Instant::now();
        assert!(ranking.ranks(&items).iter().all(Result::is_ok));
        times[2].push(begun.elapsed());
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64() * 1e3
    };
    let [lone, script, pipeline] = times.each_mut().map(median);
    let line = format!(
        "{name}: loop {lone:.2} ms, one script {script:.2} ms, pipeline {pipeline:.2} ms (365 : {:.0} : {:.0})\n",
        365.0 * script / lone,
        365.0 * pipeline / lone
    );
    std::io::Write::write_all(&mut std::io::stdout(), line.as_bytes())?;
    Ok(())
}
