//! The database cannot be reached at the moment of a commit: the same key later has one effect and its answer.

use crate::wallets::world::*;
use std::sync::Arc;
use tally_service::Failure;
use tally_service::failure::Fault;
use tally_store::mysql::{MySqlStore, Options};
use tally_testkit::{COMMIT, Cut, DatabaseKind, Proxy, ScratchDatabase, wait_for};

#[test]
fn a_transfer_whose_commit_was_lost_is_done_once() {
    let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let proxy = Proxy::start(server.address());
    let url = server.create_database();
    let through = url.replace(&server.address().to_string(), &proxy.address().to_string());
    let store = Arc::new(MySqlStore::open(&through, &Options::default()).unwrap());
    let world = World::on(store, tempfile::tempdir().unwrap());
    let (ann, bob) = (world.member("ann", 100), world.member("bob", 0));
    let mut balance = 100;
    for (round, cut) in [Cut::Answer, Cut::Before, Cut::Answer].into_iter().enumerate() {
        let key = format!("round {round}");
        proxy.cut_at(COMMIT, cut);
        proxy.refuse();
        let lost = world.transfer(ann, bob, 10, Some(&key));
        assert!(matches!(lost, Err(Failure::Fault(Fault::OutcomeUnknown(_)))), "{lost:?}");
        proxy.pass();
        let done = wait_for("the outcome is known", || match world.transfer(ann, bob, 10, Some(&key)) {
            Ok(done) => Some(done),
            Err(Failure::Fault(Fault::StoreUnavailable(_))) => None,
            Err(failure) => panic!("{failure}"),
        });
        balance -= 10;
        assert_eq!(
            (shown(&done), done.replayed),
            ((balance + 10, balance), cut == Cut::Answer),
            "round {round}"
        );
        assert_eq!(world.balance(ann), balance);
    }
    world.end(&[ann, bob]);
}
