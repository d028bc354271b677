//! The changed players of a partition, for the servers that watch it, whichever server published them.

use std::collections::BTreeSet;
use tally_ranking::redis::{Options, RedisBackend, RedisWindow, VersionedChange};
use tally_ranking::{RankingChange, Watched};
use tally_rules::definition::{Definition, Ranking, Ties};
use tally_rules::{Micros, PlayerId, Record};
use tally_testkit::{RedisKind, Reply, ScratchCluster, ScratchRedis};

const NAMES: [&str; 5] = ["ann", "a\0b", "zoë", "日本", "\u{7f}"];

fn change(name: &str, score: Option<i64>, version: u64, ranked: bool) -> VersionedChange {
    let record = score.map(|score| Record { score, subscore: 0, at: Micros(0) });
    let change = RankingChange { player: PlayerId::new(name).unwrap(), record, ranked };
    VersionedChange { change, version, previous: None }
}

/// The reported players, each once.
fn told(window: &RedisWindow, watched: &mut Watched) -> BTreeSet<String> {
    let (players, left_out) = window.changed(watched).unwrap();
    assert!(!left_out);
    let names: BTreeSet<String> = players.iter().map(|player| player.as_str().to_owned()).collect();
    assert_eq!(names.len(), players.len());
    names
}

fn names(some: &[&str]) -> BTreeSet<String> {
    some.iter().map(|name| (*name).to_owned()).collect()
}

/// Two servers on one Redis, or on one cluster.
fn any_publisher(urls: [String; 2]) {
    let [here, there] = urls.map(|url| RedisBackend::connect(&url, &Options::default()).unwrap());
    let kinds = [
        (Ranking::Ordinal, Ties::First),
        (Ranking::Competition, Ties::Player),
        (Ranking::Dense, Ties::PlayerReversed),
    ];
    for (nth, (ranking, ties)) in (0..).zip(kinds) {
        let definition = Definition { ranking, ties, ..Definition::default() };
        let [here, there] = [&here, &there].map(|ranking| ranking.window(1, nth, &definition));
        here.load(1).unwrap().finish().unwrap();
        let publish =
            |window: &RedisWindow, some: &[VersionedChange]| drop(window.publish(some, |_, _| ()).unwrap());
        publish(&there, &[change("before", Some(1), 1, true)]);
        let (mut first, mut second) = (Watched::default(), Watched::default());
        assert_eq!(told(&here, &mut first), names(&[]));
        assert_eq!(told(&there, &mut second), names(&[]));
        // Changes with ranks and without, by both servers, several times.
        for (at, window) in [&here, &there].into_iter().enumerate() {
            for version in 1..=3 {
                let some = NAMES.iter().enumerate().filter(|(number, _)| number % 2 == at);
                let change =
                    |(number, name): (usize, &&str)| change(name, Some(version as i64), version, number < 3);
                publish(window, &some.map(change).collect::<Vec<_>>());
            }
        }
        assert_eq!(told(&here, &mut first), names(&NAMES));
        // A late change changes nothing; a removed player is reported; a load reports no player.
        publish(&there, &[change("ann", Some(9), 2, true), change("zoë", None, 4, true)]);
        publish(&here, &[change("a\0b", Some(9), 2, false), change("日本", None, 4, false)]);
        assert_eq!(told(&here, &mut first), names(&["zoë", "日本"]));
        assert_eq!(told(&there, &mut second), names(&NAMES), "each looks for itself");
        let mut loader = here.load(2).unwrap();
        let record = Record { score: 1, subscore: 0, at: Micros(0) };
        loader.push(&PlayerId::new("loaded").unwrap(), &record, 9).unwrap();
        loader.finish().unwrap();
        assert_eq!(told(&here, &mut first), names(&[]));
    }
}

#[test]
fn watchers_get_the_changes_of_every_server() {
    for kind in [RedisKind::Redis7, RedisKind::Valkey9] {
        let server = ScratchRedis::start(kind, &[]);
        let url = format!("redis://{}", server.address());
        any_publisher([url.clone(), url]);
    }
    let cluster = ScratchCluster::start(RedisKind::Valkey9, &[]);
    let addresses: Vec<String> = cluster.addresses().iter().map(ToString::to_string).collect();
    let url = format!("redis-cluster://{}?partitions=7", addresses.join(","));
    any_publisher([url.clone(), url]);
}

#[test]
fn a_watch_without_watchers_costs_no_key_and_notes_expire() {
    let server = ScratchRedis::start(RedisKind::Redis7, &[]);
    let ranking =
        RedisBackend::connect(&format!("redis://{}", server.address()), &Options::default()).unwrap();
    let window = ranking.window(1, 0, &Definition::default());
    window.load(1).unwrap().finish().unwrap();
    let mut client = server.client();
    let mut keys = |pattern: &str| match client.call(&["KEYS", pattern]) {
        Reply::Array(all) => all.len(),
        other => panic!("{other:?}"),
    };
    window.publish(&[change("ann", Some(1), 1, true)], |_, _| ()).unwrap();
    assert_eq!((keys("*:l"), keys("*:w")), (0, 0));
    let mut watched = Watched::default();
    told(&window, &mut watched);
    let many: Vec<VersionedChange> =
        (0..3_000).map(|number| change(&format!("p{number}"), Some(number), 2, false)).collect();
    window.publish(&many, |_, _| ()).unwrap();
    assert_eq!((keys("*:l"), keys("*:w")), (1, 1));
    // More changes than one read returns: the next reads have the others.
    window.publish(&[change("last", Some(1), 3, true)], |_, _| ()).unwrap();
    let (mut heard, mut looks) = (BTreeSet::new(), 0);
    while heard.len() <= many.len() {
        let some = told(&window, &mut watched);
        assert!(!some.is_empty() && some.len() <= 1_000);
        heard.extend(some);
        looks += 1;
    }
    assert!(looks > 3 && heard.contains("last"));
    // More than are noted: the read reports the loss.
    let more: Vec<VersionedChange> =
        (0..12_000).map(|number| change(&format!("q{number}"), Some(number), 4, false)).collect();
    window.publish(&more, |_, _| ()).unwrap();
    let mut forgotten = false;
    loop {
        let (players, some) = window.changed(&mut watched).unwrap();
        forgotten |= some;
        if players.len() < 1_000 {
            break;
        }
    }
    assert!(forgotten);
    for key in ["{tally:1.0}:l", "{tally:1.0}:w"] {
        let Reply::Integer(left) = client.call(&["PTTL", key]) else { panic!("a time") };
        assert!(left > 0, "{key} stays for ever: {left}");
    }
}
