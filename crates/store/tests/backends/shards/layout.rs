//! Lists that are not the store's.

use super::*;
use crate::contract::create;
use tally_rules::Definition;
use tally_store::mysql::MySqlStore;
use tally_store::shards::check_alone;
use tally_store::{Maintenance, Transactions};

fn refused(urls: &[&String]) -> String {
    let urls: Vec<String> = urls.iter().copied().cloned().collect();
    match Shards::open(&urls, &impatient()) {
        Err(StoreError::Layout(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_list_that_is_not_the_stores_is_refused() {
    let all = Databases::new(DatabaseKind::MariaDb10, 5).urls;
    let [a, b, c, d, e] = &all[..] else { panic!("there are five") };
    for store in [open(&[a.clone(), b.clone()]), open(&[c.clone(), d.clone()])] {
        create(&store, "b", &Definition::default()).unwrap();
    }
    assert!(refused(&[b, a]).contains("is at place 1"));
    assert!(refused(&[a, d]).contains("is shard 2 of 2"));
    assert!(refused(&[a, b, e]).contains("--reshard"));
    assert!(refused(&[a]).contains("--reshard"));
    assert!(refused(&[e, b]).contains("is empty"));
    assert!(refused(&[a, a]).contains("are the same"));
    assert!(refused(&[]).contains("1 to 64"));
    let alone = MySqlStore::open(b, &impatient()).unwrap();
    assert!(matches!(check_alone(&alone), Err(StoreError::Layout(_))));
    check_alone(&MySqlStore::open(e, &impatient()).unwrap()).unwrap();
    // One that was cut short when it was made is made whole.
    let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let urls = [server.create_database(), server.create_database()];
    drop(open(&urls));
    let first = urls[0].rsplit('/').next().unwrap();
    server.sql(&format!("DELETE FROM {first}.meta WHERE name = 'store.shard'"));
    drop(open(&urls));
    drop(open(&urls));
    // A store of one database is spread only if that is meant.
    MySqlStore::open(e, &impatient()).unwrap().set_meta("a", b"b").unwrap();
    assert!(refused(&[e, c]).contains("tally migrate --reshard"));
}

#[test]
fn an_observer_reads_and_repairs_nothing() {
    let all = Databases::new(DatabaseKind::MariaDb10, 2).urls;
    assert!(matches!(Shards::observe(&all, &impatient()), Err(StoreError::Layout(_))));
    let store = open(&all);
    let plan = counters(&store, "counter");
    store.run(&plan, &mut |loaded| one_more(&plan, loaded)).unwrap();
    assert_eq!(count(&Shards::observe(&all, &impatient()).unwrap(), &plan), 1);
}
