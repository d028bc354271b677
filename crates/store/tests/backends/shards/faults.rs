//! Transactions of the first shard and another that are cut between the two. The first one's part stays, the caller gets a
//! partial or in-doubt result, and a retry finishes the rest.

use super::*;
use tally_store::ImportKey;
use tally_store::{Coordination, Reads, Transactions};
use tally_testkit::{COMMIT, Cut};

/// The commit to cut, and the effect by then.
const STEPS: [(usize, Cut, [i64; 2]); 4] =
    [(0, Cut::Before, [1, 1]), (0, Cut::Answer, [2, 1]), (1, Cut::Before, [2, 1]), (1, Cut::Answer, [2, 2])];

#[test]
fn a_retry_finishes_what_the_first_shard_did_and_another_did_not() {
    for (shard, cut, done) in STEPS {
        for anew in [false, true] {
            let world = World::new();
            let mut store = open(&world.through);
            let plan = counters(&store, "counter");
            store.run(&plan, &mut |_| all_are(&plan, 1)).unwrap();
            let mut first = true;
            let run = store.run(&plan, &mut |_| {
                if std::mem::take(&mut first) {
                    world.proxies[shard].cut_off_at(COMMIT, cut);
                }
                all_are(&plan, 2)
            });
            let case = format!("shard {shard}, {cut:?}, anew: {anew}: {run:?}");
            assert!(!world.proxies[shard].is_armed(), "{case}");
            // The other one has its reply: only this one's is in doubt.
            if anew {
                store = open(&world.urls);
            } else {
                is_away(&store.records(&of_shard(&store, &plan, shard).scores));
                world.proxies[shard].pass();
            }
            match &run {
                Err(StoreError::InDoubt { batch, .. }) if shard == 1 => {
                    let resolve = retry_while_unavailable(|| store.resolve(batch)).is_some();
                    assert_eq!(resolve, done[1] == 2, "{case}");
                    assert_eq!(store.resolve(batch).unwrap().is_some(), resolve, "{case}");
                }
                Err(StoreError::Partly(_)) => assert_eq!(shard, 0, "{case}"),
                _ => panic!("{case}"),
            }
            let counts = [0, 1].map(|shard| {
                let of_one = of_shard(&store, &plan, shard);
                retry_while_unavailable(|| store.records(&of_one.scores));
                count(&store, &of_one)
            });
            assert_eq!(counts, done, "{case}");
            retry_while_unavailable(|| store.run(&plan, &mut |_| all_are(&plan, 2)));
            assert_eq!(count(&store, &plan), 2, "{case}");
        }
    }
}

#[test]
fn an_unavailable_shard_leaves_the_others_usable() {
    let world = World::new();
    let store = open(&world.through);
    let plan = counters(&store, "counter");
    store.run(&plan, &mut |loaded| one_more(&plan, loaded)).unwrap();
    let (ours, theirs) = (of_shard(&store, &plan, 0), of_shard(&store, &plan, 1));
    world.cut_off(1);
    let done = store.run(&plan, &mut |loaded| one_more(&plan, loaded));
    assert!(
        matches!(&done, Err(StoreError::ShardUnavailable { alone: false, shard, .. }) if shard == "shard 2 of 2"),
        "{done:?}"
    );
    let done = store.run(&theirs, &mut |loaded| one_more(&theirs, loaded));
    assert!(matches!(&done, Err(StoreError::ShardUnavailable { alone: true, .. })), "{done:?}");
    store.run(&ours, &mut |loaded| one_more(&ours, loaded)).unwrap();
    assert_eq!(count(&store, &ours), 2);
    is_away(&store.count_scores(plan.scores[0].board, plan.scores[0].window));
    let import = ImportKey { board: plan.scores[0].board, digest: [1; 32] };
    assert_eq!(store.import_progress(&import).unwrap(), None);
    world.proxies[1].pass();
    retry_while_unavailable(|| store.run(&theirs, &mut |loaded| one_more(&theirs, loaded)));
    assert_eq!(count(&store, &plan), 2);
}

#[test]
fn a_connection_that_is_cut_is_made_again() {
    let world = World::new();
    let store = open(&world.through);
    let plan = counters(&store, "counter");
    store.run(&plan, &mut |loaded| one_more(&plan, loaded)).unwrap();
    let mut done = 1;
    for (shard, cut, _) in STEPS {
        world.proxies[shard].cut_at(COMMIT, cut);
        store.run(&plan, &mut |loaded| one_more(&plan, loaded)).unwrap();
        done += 1;
        assert!(!world.proxies[shard].is_armed());
        assert_eq!(count(&store, &plan), done, "shard {shard}, {cut:?}");
    }
}

#[test]
fn a_shard_that_lost_commits_stops_the_others() {
    let mut back = ScratchDatabase::start(DatabaseKind::MariaDb10);
    let urls = [ScratchDatabase::shared(DatabaseKind::MariaDb10).create_database(), back.create_database()];
    let store = open(&urls);
    let plan = counters(&store, "counter");
    store.run(&plan, &mut |_| all_are(&plan, 1)).unwrap();
    back.keep_copy();
    let [first, second] = [0, 1].map(|shard| of_shard(&store, &plan, shard));
    retry_while_unavailable(|| store.run(&second, &mut |_| all_are(&second, 2)));
    back.put_copy_back();
    assert!(store.lost().is_none() && store.may_answer(), "nobody has asked it since");
    store.run(&second, &mut |_| all_are(&second, 3)).unwrap_err();
    assert!(store.lost().is_some() && !store.may_answer());
    let error = store.run(&first, &mut |_| panic!("it decides on a state that is gone")).unwrap_err();
    assert!(matches!(&error, StoreError::Unavailable(why) if why.contains("has lost commits")), "{error}");
    drop(store);
    let again = Shards::open(&urls, &Options { anew: Some(u64::MAX), ..impatient() }).unwrap();
    assert_eq!((count(&again, &second), again.lost()), (1, None));
    again.run(&plan, &mut |_| all_are(&plan, 4)).unwrap();
}
