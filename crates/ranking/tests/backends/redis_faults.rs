//! Redis with lost data, unavailable, frozen, or shared: what callers get, and how it heals.

use std::collections::HashMap;
use std::time::Duration;
use tally_ranking::redis::{Options, Owner, RankingError, RedisBackend, RedisWindow, VersionedChange};
use tally_ranking::{PageQuery, RankingChange};
use tally_rules::definition::{Definition, Ranking};
use tally_rules::{Micros, PlayerId, Record};
use tally_testkit::{GIVE_UP, RedisKind, Reply, RespClient, Rng, ScratchCluster, ScratchRedis};

pub(crate) const KINDS: [RedisKind; 2] = [RedisKind::Redis7, RedisKind::Valkey9];

/// Short, so that a test does not wait long for silence, and long enough for a busy machine; no test measures it.
pub(crate) fn impatient() -> Options {
    let short = Duration::from_secs(1);
    Options { connect_timeout: short, response_timeout: short, threads: 1 }
}

pub(crate) fn connect(server: &ScratchRedis, options: &Options) -> RedisBackend {
    RedisBackend::connect(&format!("redis://{}", server.address()), options).unwrap()
}

fn connect_cluster(cluster: &ScratchCluster, options: &Options) -> RedisBackend {
    let seeds: Vec<String> = cluster.addresses().iter().map(ToString::to_string).collect();
    RedisBackend::connect(&format!("redis-cluster://{}?partitions=7", seeds.join(",")), options).unwrap()
}

fn id(number: u64) -> PlayerId {
    PlayerId::new(&format!("p{number}")).unwrap()
}

fn record(score: i64) -> Record {
    Record { score, subscore: 0, at: Micros(0) }
}

pub(crate) fn change(number: u64, score: Option<i64>, version: u64) -> VersionedChange {
    let change = RankingChange { player: id(number), record: score.map(record), ranked: true };
    VersionedChange { change, version, previous: None }
}

/// Twenty players, each with the number as score.
pub(crate) fn load(window: &RedisWindow, epoch: u64) {
    let mut loader = window.load(epoch).unwrap();
    (0..20_u8).for_each(|number| loader.push(&id(number.into()), &record(number.into()), 1).unwrap());
    loader.finish().unwrap();
}

pub(crate) fn assert_whole(window: &RedisWindow) {
    assert_eq!(window.is_ready(), Ok(true));
    assert_eq!(window.total(), Ok(20));
    let best = window.read(|it| it.page(&PageQuery { limit: 1, ..PageQuery::default() })).unwrap();
    assert_eq!((best.entries[0].player.clone(), best.entries[0].rank), (id(19), 1));
    assert_eq!(window.read(|it| it.find(b"p3")), Ok(Some((record(3), 16))));
}

/// Every query there is, by name.
fn every_question(window: &RedisWindow) -> Vec<(&'static str, Option<RankingError>)> {
    let player = id(3);
    let query = PageQuery { limit: 3, ..PageQuery::default() };
    vec![
        ("total", window.total().err()),
        ("purge", window.purge(1).err()),
        ("ranks", window.ranks(std::slice::from_ref(&player)).pop().unwrap().err()),
        ("publish", window.publish(&[change(3, Some(4), 9)], |_, _| ()).err()),
        ("record", window.read(|it| it.record(b"p3")).err()),
        ("find", window.read(|it| it.find(b"p3")).err()),
        ("score_places", window.read(|it| it.score_places(Some(1), None)).err()),
        ("partition", window.read(|it| it.partition(&|_| true)).err()),
        ("visit", window.read(|it| it.visit(0, 3, false, &mut |_, _| ())).err()),
        ("scan", window.read(|it| it.scan(0, 3, &mut |_, _| ())).err()),
        ("ranked", window.read(|it| it.ranked(&player)).err()),
        ("rank_of", window.read(|it| it.rank_of(&player, &record(1))).err()),
        ("page", window.read(|it| it.page(&query)).err()),
        ("around", window.read(|it| it.around(&player, 1, 1)).err()),
        ("among", window.read(|it| it.among(std::slice::from_ref(&player))).err()),
    ]
}

fn assert_lost(window: &RedisWindow) {
    for (question, error) in every_question(window) {
        assert_eq!(error, Some(RankingError::Lost), "{question}");
    }
    assert_eq!(window.is_ready(), Ok(false));
}

#[track_caller]
fn assert_away<T: std::fmt::Debug>(answer: Result<T, RankingError>) {
    assert!(matches!(answer, Err(RankingError::Unavailable(_))), "{answer:?}");
}

/// Repeats a query until Redis is available again: recovery is automatic, and pauses between attempts.
fn when_back<T>(ask: impl Fn() -> Result<T, RankingError>) -> Result<T, RankingError> {
    for _ in 0..600 {
        match ask() {
            Err(RankingError::Unavailable(_)) => std::thread::sleep(Duration::from_millis(50)),
            answer => return answer,
        }
    }
    panic!("it stays away");
}

#[test]
fn a_flush_is_noticed_by_every_question_and_a_load_heals_it() {
    for kind in KINDS {
        let server = ScratchRedis::start(kind, &[]);
        let ranking = connect(&server, &Options::default());
        for kind in Ranking::ALL {
            let window = ranking.window(1, 0, &Definition { ranking: *kind, ..Definition::default() });
            assert_lost(&window);
            load(&window, 1);
            assert_whole(&window);
            assert_eq!(server.client().call(&["FLUSHALL"]), Reply::Simple(b"OK".into()));
            assert_lost(&window);
            load(&window, 2);
            assert_whole(&window);
            window.forget().unwrap();
            assert_eq!(server.client().call(&["DBSIZE"]), Reply::Integer(0));
        }
    }
}

/// A snapshot has the epoch and not the last changes.
#[test]
fn a_restart_from_an_old_snapshot_counts_as_a_loss() {
    for kind in KINDS {
        let mut server = ScratchRedis::start(kind, &[]);
        let window = connect(&server, &impatient()).window(1, 0, &Definition::default());
        load(&window, 1);
        assert_eq!(server.client().call(&["SAVE"]), Reply::Simple(b"OK".into()));
        window.publish(&[change(3, Some(100), 2)], |_, _| ()).unwrap();
        server.kill();
        assert_away(window.total());
        server.restart();
        assert_eq!(server.client().call(&["DBSIZE"]), Reply::Integer(2), "it has the snapshot");
        assert_eq!(when_back(|| window.total()), Err(RankingError::Lost));
        assert_lost(&window);
        load(&window, 2);
        assert_whole(&window);
    }
}

#[test]
fn a_key_that_was_evicted_is_noticed() {
    let server = ScratchRedis::start(RedisKind::Redis7, &[]);
    let ranking = connect(&server, &Options::default());
    for (number, key) in ["z", "m", "d"].iter().enumerate() {
        let definition = Definition { ranking: Ranking::Dense, ..Definition::default() };
        let window = ranking.window(1, number as u64, &definition);
        load(&window, 1);
        let key = format!("{{tally:1.{number}}}:{key}");
        assert_eq!(server.client().call(&["DEL", &key]), Reply::Integer(1));
        assert_lost(&window);
        load(&window, 2);
        assert_whole(&window);
    }
}

#[test]
fn a_frozen_server_is_unavailable_to_all_and_comes_back_with_its_data() {
    for kind in KINDS {
        let server = ScratchRedis::start(kind, &[]);
        let window = connect(&server, &impatient()).window(1, 0, &Definition::default());
        load(&window, 1);
        server.freeze();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| assert_away(window.read(|it| it.ranked(&id(3)))));
            }
            scope.spawn(|| assert_away(window.publish(&[change(3, Some(3), 2)], |_, _| ())));
        });
        assert_away(window.is_ready());
        server.thaw();
        assert_eq!(when_back(|| window.total()), Ok(20));
        assert_whole(&window);
        // Redis may have executed requests that were sent while it was frozen; a repetition does no harm.
        when_back(|| window.publish(&[change(3, Some(3), 2)], |_, _| ())).unwrap();
        assert_whole(&window);
    }
}

#[test]
fn connections_that_break_and_scripts_that_vanish_are_not_noticed() {
    for kind in KINDS {
        let server = ScratchRedis::start(kind, &[]);
        // Only what breaks is given up, however slow the machine is.
        let patient = Options { connect_timeout: GIVE_UP, response_timeout: GIVE_UP, ..Options::default() };
        let window = connect(&server, &patient).window(1, 0, &Definition::default());
        load(&window, 1);
        for _ in 0..20 {
            assert_eq!(server.client().call(&["SCRIPT", "FLUSH"]), Reply::Simple(b"OK".into()));
            assert_whole(&window);
            let Reply::Integer(_) = server.client().call(&["CLIENT", "KILL", "TYPE", "normal"]) else {
                panic!("a count")
            };
            assert_whole(&window);
        }
    }
}

#[test]
fn an_unreachable_or_refusing_server_is_named_at_once() {
    let server = ScratchRedis::start(RedisKind::Valkey9, &["--requirepass", "secret"]);
    let with = |login: &str| {
        RedisBackend::connect(&format!("redis://{login}{}", server.address()), &Options::default()).map(drop)
    };
    assert_eq!(with(":secret@"), Ok(()));
    for login in ["", ":wrong@"] {
        let refused = with(login);
        assert!(matches!(refused, Err(RankingError::Refused(_))), "{refused:?}");
    }
    let mut gone = ScratchRedis::start(RedisKind::Valkey9, &[]);
    gone.kill();
    let url = format!("redis://{}", gone.address());
    assert_away(RedisBackend::connect(&url, &Options::default()).map(drop));
    let cluster = format!("redis-cluster://{}", gone.address());
    assert_away(RedisBackend::connect(&cluster, &Options::default()).map(drop));
}

/// Two servers publish the same history, each in its own order with repeats; the newest version of every player stays.
#[test]
fn soak_older_versions_never_overwrite_newer_ones() {
    let times = std::env::var("TALLY_SOAK").ok().and_then(|times| times.parse::<u64>().ok()).unwrap_or(1);
    let seed = std::env::var("TALLY_SEED").ok().and_then(|seed| seed.parse::<u64>().ok()).unwrap_or(7);
    let single = ScratchRedis::start(RedisKind::Redis7, &[]);
    let cluster = ScratchCluster::start(RedisKind::Valkey9, &[]);
    for round in 0..5 * times {
        let mut rng = Rng::new(seed + round);
        // Versions that differ in their last bit only, beyond the precision of a double.
        let base = [0, (1 << 53) - 4, u64::MAX - 9, (1 << 32) - 4][(round % 4) as usize];
        let history: Vec<VersionedChange> = (0..10 * 8)
            .map(|n| {
                let score = (!rng.below(4).eq(&0)).then(|| i64::try_from(rng.below(6)).unwrap());
                change(n % 10, score, base + n / 10)
            })
            .collect();
        let newest: HashMap<PlayerId, Option<Record>> =
            history.iter().map(|one| (one.change.player.clone(), one.change.record)).collect();
        for (nth, ranking) in Ranking::ALL.iter().enumerate() {
            let definition = Definition { ranking: *ranking, ..Definition::default() };
            let number = 10 * round + nth as u64;
            for window in [
                connect(&single, &Options::default()).window(2, number, &definition),
                connect_cluster(&cluster, &Options::default()).window(2, number, &definition),
            ] {
                window.load(1).unwrap().finish().unwrap();
                let orders: Vec<Vec<VersionedChange>> =
                    (0..2).map(|_| shuffled(&history, &mut rng)).collect();
                std::thread::scope(|scope| {
                    for order in &orders {
                        let window = &window;
                        scope.spawn(move || {
                            for some in order.chunks(7) {
                                window.publish(some, |_, _| ()).unwrap();
                            }
                        });
                    }
                });
                for (player, wanted) in &newest {
                    let found = window.read(|it| it.record(player.as_bytes())).unwrap();
                    assert_eq!(found, *wanted, "{player:?} with seed {seed}, round {round}");
                }
                // Counts agree with the present entries, too.
                let there = newest.values().flatten().count() as u64;
                assert_eq!(window.total(), Ok(there));
                let late =
                    window.publish(&history, |_, ranks| assert_eq!(ranks.before, ranks.after)).unwrap();
                assert_eq!(late.len(), history.len());
                assert_eq!(window.purge(u64::MAX), Ok(10 - there));
                assert_eq!(window.total(), Ok(there));
            }
        }
    }
}

fn shuffled(history: &[VersionedChange], rng: &mut Rng) -> Vec<VersionedChange> {
    let mut left: Vec<VersionedChange> = history.to_vec();
    let mut order = Vec::new();
    while !left.is_empty() {
        let at = usize::try_from(rng.below(left.len() as u64)).unwrap();
        order.push(left.swap_remove(at));
    }
    let repeated = order.clone();
    order.extend(repeated.into_iter().step_by(3));
    order
}

#[test]
fn a_load_and_publishers_at_once_leave_the_newest() {
    let single = ScratchRedis::start(RedisKind::Valkey9, &[]);
    let cluster = ScratchCluster::start(RedisKind::Redis7, &[]);
    let definition = Definition::default();
    for window in [
        connect(&single, &Options::default()).window(1, 0, &definition),
        connect_cluster(&cluster, &Options::default()).window(1, 0, &definition),
    ] {
        let mut loader = window.load(1).unwrap();
        assert_eq!(window.is_ready(), Ok(false));
        assert_eq!(window.total(), Err(RankingError::Loading));
        // Newer than the rows that will be loaded, and a player that was removed after the row was read.
        let changes = [change(1, Some(900), 2), change(2, None, 2), change(3, Some(3), 1)];
        let late = window.publish(&changes, |_, _| panic!("nobody has a rank yet")).unwrap();
        assert_eq!(late, [] as [usize; 0]);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 5_000..7_000 {
                    let late = window.publish(&[change(number, Some(0), 2)], |_, _| ()).unwrap();
                    assert_eq!(late, [] as [usize; 0]);
                }
            });
            for number in 0..9_000 {
                loader.push(&id(number), &record(i64::try_from(number).unwrap()), 1).unwrap();
            }
        });
        assert_eq!(window.total(), Err(RankingError::Loading));
        // A player that was removed before the load began is loaded as well: a late change from before does not bring it back.
        loader.push_gone(&id(9_000), 5).unwrap();
        loader.finish().unwrap();
        assert_eq!(window.publish(&[change(9_000, Some(1), 4)], |_, _| ()), Ok(vec![0]));
        assert_eq!(window.total(), Ok(8_999));
        let of =
            |number: u64| window.read(|it| it.record(id(number).as_bytes())).unwrap().map(|one| one.score);
        assert_eq!(
            [of(1), of(2), of(3), of(5_500), of(8_999)],
            [Some(900), None, Some(3), Some(0), Some(8_999)]
        );
        let worst = window.read(|it| it.score_places(None, Some(0))).unwrap();
        assert_eq!(worst, (8_999 - 2_001, 8_999));
    }
}

#[test]
fn of_two_loads_the_later_one_counts() {
    let server = ScratchRedis::start(RedisKind::Redis7, &[]);
    let window = connect(&server, &Options::default()).window(1, 0, &Definition::default());
    let mut first = window.load(1).unwrap();
    first.push(&id(1), &record(1), 1).unwrap();
    let mut second = window.load(2).unwrap();
    second.push(&id(2), &record(2), 1).unwrap();
    assert_eq!(first.finish(), Err(RankingError::Superseded));
    assert_eq!(window.is_ready(), Ok(false));
    second.finish().unwrap();
    assert_eq!(window.is_ready(), Ok(true));
    assert!(window.read(|it| it.record(b"p1")).unwrap().is_none(), "the first one wrote nothing more");
    assert!(window.read(|it| it.record(b"p2")).unwrap().is_some());
    // A load whose data is lost before its end does not become readable.
    let mut third = window.load(3).unwrap();
    assert_eq!(server.client().call(&["FLUSHALL"]), Reply::Simple(b"OK".into()));
    third.push(&id(1), &record(1), 1).unwrap();
    assert_eq!(third.finish(), Err(RankingError::Lost));
    assert_lost(&window);
}

#[test]
fn one_item_of_a_page_fails_alone() {
    let server = ScratchRedis::start(RedisKind::Valkey9, &[]);
    let ranking = connect(&server, &Options::default());
    let parts: Vec<RedisWindow> =
        (0..3).map(|window| ranking.window(1, window, &Definition::default())).collect();
    parts.iter().for_each(|window| load(window, 1));
    // A corrupt record, and one that the ranking does not have.
    let mut client = server.client();
    assert_eq!(client.call(&["HSET", "{tally:1.0}:m", "p3", "12345678abc"]), Reply::Integer(0));
    let answers = parts[0].ranks(&(0..300).map(id).collect::<Vec<_>>());
    for (number, answer) in answers.iter().enumerate() {
        match number {
            3 => assert!(matches!(answer, Err(RankingError::Refused(_))), "{answer:?}"),
            0..20 => assert_eq!(answer.as_ref().unwrap().unwrap().rank, 20 - number as u64),
            _ => assert_eq!(*answer, Ok(None)),
        }
    }
    // A page over several partitions, one of which is lost.
    parts[1].forget().unwrap();
    let player = id(7);
    let items: Vec<(&RedisWindow, &PlayerId)> = parts.iter().map(|window| (window, &player)).collect();
    let answers = ranking.ranks(&items);
    assert_eq!(answers[1], Err(RankingError::Lost));
    for at in [0, 2] {
        assert_eq!(answers[at].as_ref().unwrap().unwrap().rank, 13);
    }
}

#[test]
fn a_cluster_node_that_is_killed_takes_its_partitions_and_no_other_part() {
    let arguments = ["--cluster-require-full-coverage", "no"];
    let mut cluster = ScratchCluster::start(RedisKind::Valkey9, &arguments);
    let ranking = connect_cluster(&cluster, &impatient());
    let split = ranking.window(1, 0, &Definition::default());
    load(&split, 1);
    // Dense boards are whole, each on one node.
    let dense = Definition { ranking: Ranking::Dense, ..Definition::default() };
    let whole: Vec<(usize, RedisWindow)> = (1..9)
        .map(|number| {
            (cluster.node_of(&format!("{{tally:1.{number}}}:z"), 0), ranking.window(1, number, &dense))
        })
        .collect();
    whole.iter().for_each(|(_, window)| load(window, 1));
    let lost = whole[0].0;
    cluster.kill(lost);
    assert_away(split.total());
    for (node, window) in &whole {
        if *node == lost { assert_away(window.total()) } else { assert_whole(window) }
    }
    cluster.restart(lost);
    cluster.wait_ok();
    assert_eq!(when_back(|| split.total()), Err(RankingError::Lost));
    for (node, window) in &whole {
        if *node == lost {
            assert_eq!(when_back(|| window.total()), Err(RankingError::Lost));
            load(window, 2);
        }
        assert_whole(window);
    }
    load(&split, 2);
    assert_whole(&split);
}

#[test]
fn a_frozen_cluster_node_is_away_and_comes_back() {
    let cluster = ScratchCluster::start(RedisKind::Redis7, &[]);
    let split = connect_cluster(&cluster, &impatient()).window(1, 0, &Definition::default());
    load(&split, 1);
    cluster.freeze(1);
    assert_away(split.total());
    let everybody: Vec<VersionedChange> = (0..20_u8).map(|n| change(n.into(), Some(n.into()), 1)).collect();
    assert_away(split.publish(&everybody, |_, _| panic!("ranks need every node")));
    // Now the others refuse as well, because a slot is not served.
    cluster.wait_not_ok(0);
    assert_away(split.total());
    cluster.thaw(1);
    cluster.wait_ok();
    assert_eq!(when_back(|| split.total()), Ok(20));
    assert_whole(&split);
}

/// The old node redirects the client, which reads the slots and finds nothing at the new one: a load heals it.
#[test]
fn a_slot_that_moves_is_followed() {
    let cluster = ScratchCluster::start(RedisKind::Valkey9, &[]);
    let ranking = connect_cluster(&cluster, &Options::default());
    let window = ranking.window(1, 0, &Definition { ranking: Ranking::Dense, ..Definition::default() });
    load(&window, 1);
    window.forget().unwrap();
    let key = "{tally:1.0}:z";
    let from = cluster.node_of(key, 0);
    let to = (from + 1) % 3;
    let text = |client: &mut RespClient, command: &[&str]| match client.call(command) {
        Reply::Bulk(text) => String::from_utf8(text).unwrap(),
        other => panic!("{other:?}"),
    };
    let owner = text(&mut cluster.client(to), &["CLUSTER", "MYID"]);
    let Reply::Integer(slot) = cluster.client(0).call(&["CLUSTER", "KEYSLOT", key]) else {
        panic!("a number")
    };
    // As an operator's tool does; the importing node then has the newest state.
    let begun = ["IMPORTING", &text(&mut cluster.client(from), &["CLUSTER", "MYID"])].map(str::to_owned);
    let importing = ["CLUSTER", "SETSLOT", &slot.to_string(), &begun[0], &begun[1]];
    assert_eq!(cluster.client(to).call(&importing), Reply::Simple(b"OK".into()));
    for node in [to, from, (from + 2) % 3] {
        let moved = cluster.client(node).call(&["CLUSTER", "SETSLOT", &slot.to_string(), "NODE", &owner]);
        assert_eq!(moved, Reply::Simple(b"OK".into()));
    }
    assert_lost(&window);
    load(&window, 2);
    assert_whole(&window);
    assert_eq!(cluster.client(to).call(&["EXISTS", key]), Reply::Integer(1));
    // A client that takes a node of a cluster for a single server gets an error.
    let single = connect(cluster.node(from), &Options::default());
    let refused = single.window(1, 0, &Definition::default()).total();
    assert!(
        matches!(&refused, Err(RankingError::Refused(why)) if why.contains("redis-cluster")),
        "{refused:?}"
    );
}

/// Two stores under one prefix: the second is refused, and nothing of the first is read, changed or deleted by it.
#[test]
fn a_ranking_of_another_store_is_refused() {
    for kind in KINDS {
        let mut server = ScratchRedis::start(kind, &[]);
        let of = |server: &ScratchRedis, store: Option<u8>| {
            let ranking = connect(server, &impatient());
            if let Some(store) = store {
                ranking.set_owner(Owner { store: [store; 16], generation: 1, term: 0 });
            }
            ranking.window(1, 0, &Definition::default())
        };
        // Rankings that a version without ids loaded are loaded again.
        load(&of(&server, None), 1);
        let first = of(&server, Some(1));
        assert_eq!(first.is_ready(), Ok(false));
        load(&first, 2);
        let second = of(&server, Some(2));
        assert_eq!(second.is_ready(), Ok(false));
        assert_eq!(second.publish(&[change(1, Some(99), 9)], |_, _| {}).map(drop), Err(RankingError::Lost));
        for refused in [second.load(3).map(drop), second.forget()] {
            assert!(
                matches!(&refused, Err(RankingError::Refused(why)) if why.contains("another store")),
                "{refused:?}"
            );
        }
        assert_whole(&first);
        assert_whole(&of(&server, Some(1)));
        first.forget().unwrap();
        load(&second, 4);
        assert_whole(&second);
        assert!(first.load(5).is_err());
        // Data of another process belongs to no store.
        server.kill();
        server.restart();
        let first = of(&server, Some(1));
        load(&first, 6);
        assert_whole(&first);
    }
}
