//! A transaction of several shards that is cut at each of its steps: it is done everywhere or nowhere, for whoever goes
//! on and for whoever opens the shards anew, and nobody sees one half of it.

use super::*;
use tally_store::ImportKey;
use tally_testkit::{Cut, Proxy};

/// Two shards whose ways can be disturbed, each with its database's address without the disturbance.
struct World {
    proxies: Vec<Proxy>,
    urls: Vec<String>,
    through: Vec<String>,
}

impl World {
    fn new() -> Self {
        let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
        let urls: Vec<String> = (0..2).map(|_| server.create_database()).collect();
        let proxies: Vec<Proxy> = urls.iter().map(|_| Proxy::start(server.address())).collect();
        let through = |(url, proxy): (&String, &Proxy)| {
            url.replace(&server.address().to_string(), &proxy.address().to_string())
        };
        let through = urls.iter().zip(&proxies).map(through).collect();
        Self { proxies, urls, through }
    }

    /// Cuts the next message to a shard that says this, and lets nobody connect to it any more.
    fn cut_off(&self, shard: usize, at: &str, cut: Cut) {
        // The database's names are written as digits.
        let digits: String = at.bytes().map(|byte| format!("{byte:02x}")).collect();
        self.proxies[shard].cut_at(digits.as_bytes(), cut);
        self.proxies[shard].refuse();
    }
}

/// Where it is cut, and what becomes of it.
const STEPS: [(usize, &str, Cut, bool); 4] = [
    (0, "store.intent.", Cut::Before, false),
    (0, "store.intent.", Cut::Answer, true),
    (1, "store.applied.", Cut::Before, true),
    (1, "store.applied.", Cut::Answer, true),
];

#[test]
fn a_transaction_of_several_is_done_everywhere_or_nowhere() {
    for (shard, at, cut, done) in STEPS {
        for anew in [false, true] {
            let world = World::new();
            let mut store = open(&world.through);
            let plan = counters(&store, "counter");
            store.run(&plan, &mut |loaded| one_more(&plan, loaded)).unwrap();
            let mut first = true;
            let run = store.run(&plan, &mut |loaded| {
                if std::mem::take(&mut first) {
                    world.cut_off(shard, at, cut);
                }
                one_more(&plan, loaded)
            });
            let case = format!("shard {shard}, {at}, {cut:?}, anew: {anew}: {run:?}");
            assert!(!world.proxies[shard].is_armed(), "{case}");
            match &run {
                // Whoever is behind is not read before it has got what was done.
                Ok(_) => {
                    assert!(shard == 1, "{case}");
                    is_away(&store.records(&plan.scores));
                    is_away(&store.run(&plan, &mut |loaded| one_more(&plan, loaded)));
                }
                Err(StoreError::LostAtCommit { batch, .. }) => {
                    assert!(shard == 0, "{case}");
                    is_away(&store.records(&plan.scores));
                    is_away(&store.became(batch));
                }
                Err(error) => panic!("{case}: {error}"),
            }
            if anew {
                store = open(&world.urls);
            } else {
                world.proxies[shard].pass();
                if let Err(StoreError::LostAtCommit { batch, .. }) = &run {
                    assert_eq!(store.became(batch).unwrap().is_some(), done, "{case}");
                    assert_eq!(store.became(batch).unwrap().is_some(), done, "{case}");
                }
            }
            assert_eq!(count(&store, &plan), 1 + i64::from(done), "{case}");
            // It goes on, also past the pause in which one that was silent is not asked.
            let again = loop {
                match store.run(&plan, &mut |loaded| one_more(&plan, loaded)) {
                    Err(StoreError::ShardAway { .. }) => std::thread::yield_now(),
                    again => break again,
                }
            };
            again.unwrap();
            assert_eq!(count(&store, &plan), 2 + i64::from(done), "{case}");
            drop(store);
            assert_eq!(count(&open(&world.urls), &plan), 2 + i64::from(done), "{case}");
        }
    }
}

#[test]
fn a_shard_that_is_away_keeps_nobody_from_the_others() {
    let world = World::new();
    let store = open(&world.through);
    let plan = counters(&store, "counter");
    store.run(&plan, &mut |loaded| one_more(&plan, loaded)).unwrap();
    let of = |shard: usize| {
        let keys = plan.scores.iter().filter(|key| store.shard_of(&key.player) == shard);
        Plan { scores: keys.cloned().collect(), ..Plan::default() }
    };
    let (ours, theirs) = (of(0), of(1));
    world.proxies[1].refuse();
    world.proxies[1].cut();
    let done = store.run(&plan, &mut |loaded| one_more(&plan, loaded));
    assert!(
        matches!(&done, Err(StoreError::ShardAway { alone: false, shard, .. }) if shard == "shard 2 of 2"),
        "{done:?}"
    );
    let done = store.run(&theirs, &mut |loaded| one_more(&theirs, loaded));
    assert!(matches!(&done, Err(StoreError::ShardAway { alone: true, .. })), "{done:?}");
    store.run(&ours, &mut |loaded| one_more(&ours, loaded)).unwrap();
    assert_eq!(count(&store, &ours), 2);
    is_away(&store.count_scores(plan.scores[0].board, plan.scores[0].part));
    let import = ImportKey { board: plan.scores[0].board, digest: [1; 32] };
    assert_eq!(store.import_progress(&import).unwrap(), None);
    world.proxies[1].pass();
    while store.run(&theirs, &mut |loaded| one_more(&theirs, loaded)).is_err() {
        std::thread::yield_now();
    }
    assert_eq!(count(&store, &plan), 2);
}

#[test]
fn a_connection_that_is_cut_is_made_again() {
    let world = World::new();
    let store = open(&world.through);
    let plan = counters(&store, "counter");
    store.run(&plan, &mut |loaded| one_more(&plan, loaded)).unwrap();
    let mut done = 1;
    for (shard, at, cut, _) in STEPS {
        let digits: String = at.bytes().map(|byte| format!("{byte:02x}")).collect();
        world.proxies[shard].cut_at(digits.as_bytes(), cut);
        store.run(&plan, &mut |loaded| one_more(&plan, loaded)).unwrap();
        done += 1;
        assert!(!world.proxies[shard].is_armed());
        assert_eq!(count(&store, &plan), done, "shard {shard}, {at}, {cut:?}");
    }
}
