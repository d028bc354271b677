//! Reads that wait at the same time share queries, and each gets the reply that it would have had alone.

use futures_util::future::join_all;
use tally_ranking::redis::{Options, RankingError, RedisBackend, RedisWindow};
use tally_ranking::{Edge, PageQuery, PageStart, Reads};
use tally_rules::definition::{Definition, Ranking};
use tally_rules::{Micros, PlayerId, Record};
use tally_testkit::{RedisKind, Reply, RespClient, ScratchCluster, ScratchRedis};

const PLAYERS: i64 = 600;
const READINGS: i64 = 400;

fn player(number: i64) -> PlayerId {
    PlayerId::new(&format!("player{number}")).unwrap()
}

/// Random pages, some of them of absent players, and now and then a large one.
fn read(reads: &dyn Reads, nth: i64) -> String {
    let number = nth as usize;
    let query = |edge, start, limit| PageQuery { edge, start, limit, min: Some(nth % 7), max: None };
    match nth % 6 {
        0..=2 => format!("{:?}", reads.around(&player(nth * 2), number % 9, number % 5)),
        3 => format!("{:?}", reads.page(&query(Edge::Best, PageStart::Edge, number % 20))),
        4 => format!("{:?}", reads.page(&query(Edge::Worst, PageStart::Offset(nth as u64), 5))),
        _ => format!("{:?}", reads.page(&query(Edge::Best, PageStart::Offset(300), 400))),
    }
}

fn load(window: &RedisWindow) {
    let mut loader = window.load(1).unwrap();
    for number in 0..PLAYERS {
        let record = Record { score: number % 50, subscore: 0, at: Micros(number) };
        loader.push(&player(number), &record, 1).unwrap();
    }
    loader.finish().unwrap();
}

/// The replies of reads that begin at the same moment.
fn at_once(window: &RedisWindow) -> Vec<Result<String, RankingError>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(join_all((0..READINGS).map(|nth| window.read_later(move |reads| read(reads, nth)))))
}

/// Scripts that these servers have run.
fn scripts(clients: &mut [RespClient]) -> u64 {
    let calls = |client: &mut RespClient| {
        let Reply::Bulk(info) = client.call(&["INFO", "commandstats"]) else { panic!("INFO is text") };
        let info = String::from_utf8(info).unwrap();
        let line = info.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
        line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
    };
    clients.iter_mut().map(calls).sum()
}

/// At most `share` of the scripts that they take one by one.
fn any_reader(url: &str, mut clients: Vec<RespClient>, share: f64) {
    let ranking = RedisBackend::connect(url, &Options::default()).unwrap();
    for (kind, nth) in [Ranking::Ordinal, Ranking::Competition, Ranking::Dense].into_iter().zip(0..) {
        let window = ranking.window(1, nth, &Definition { ranking: kind, ..Definition::default() });
        load(&window);
        let before = scripts(&mut clients);
        let alone: Vec<_> = (0..READINGS).map(|nth| window.read(|reads| read(reads, nth))).collect();
        let between = scripts(&mut clients);
        assert_eq!(at_once(&window), alone, "{kind:?}");
        let (alone, together) = (between - before, scripts(&mut clients) - between);
        assert!((together as f64) < alone as f64 * share, "{together} scripts where {alone} did");
        window.forget().unwrap();
        assert!(at_once(&window).iter().all(|heard| *heard == Err(RankingError::Lost)), "{kind:?}");
    }
}

#[test]
fn of_one_server() {
    let server = ScratchRedis::start(RedisKind::Redis7, &[]);
    any_reader(&format!("redis://{}", server.address()), vec![server.client()], 0.3);
}

#[test]
fn of_a_cluster() {
    let cluster = ScratchCluster::start(RedisKind::Valkey9, &[]);
    let addresses: Vec<String> = cluster.addresses().iter().map(ToString::to_string).collect();
    let url = format!("redis-cluster://{}?partitions=5", addresses.join(","));
    // A page far inside and a shared rank need a first query alone: they are not coalesced.
    any_reader(&url, (0..3).map(|at| cluster.client(at)).collect(), 0.8);
}

#[test]
fn a_server_that_goes_answers_all_of_them() {
    let mut server = ScratchRedis::start(RedisKind::Redis7, &[]);
    let url = format!("redis://{}", server.address());
    let ranking = RedisBackend::connect(&url, &Options::default()).unwrap();
    let window = ranking.window(1, 1, &Definition::default());
    load(&window);
    server.kill();
    let heard = at_once(&window);
    assert!(heard.iter().all(|heard| matches!(heard, Err(RankingError::Unavailable(_)))), "{heard:?}");
    server.restart();
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    assert!(at_once(&window).iter().all(|heard| *heard == Err(RankingError::Lost)));
    load(&window);
    assert!(at_once(&window).iter().all(Result::is_ok));
}
