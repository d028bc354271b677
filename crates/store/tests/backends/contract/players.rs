//! Profiles, and bans of players.

use super::*;
use tally_rules::profile::Profile;
use tally_store::BanKey;

pub(crate) fn player(name: &str) -> PlayerId {
    PlayerId::new(name).unwrap()
}

pub(crate) fn profile(name: &str) -> Profile {
    Profile { name: Some(name.into()), avatar_url: None, metadata: Some(format!("{{\"of\":\"{name}\"}}")) }
}

pub(crate) fn ban(board: u32, name: &str, banned: bool) -> (BanKey, bool) {
    (BanKey { board: BoardNo(board), player: player(name) }, banned)
}

fn put(store: &dyn Store, profiles: Vec<(PlayerId, Option<Profile>)>) {
    write(store, &WriteSet { profiles, ..WriteSet::default() }).unwrap();
}

fn get(store: &dyn Store, names: &[&str]) -> Vec<Option<Profile>> {
    let players: Vec<PlayerId> = names.iter().map(|name| player(name)).collect();
    store.profiles(&players).unwrap().into_iter().map(Result::unwrap).collect()
}

pub(crate) fn profiles_read_back_and_are_replaced(backend: &dyn Backend) {
    let store = open(backend);
    let empty = Profile::default();
    put(&*store, vec![(player("ann"), Some(profile("Ann"))), (player("zoë"), Some(empty.clone()))]);
    // In the requested order, whatever it is, and the same twice.
    let asked = ["zoë", "nobody", "ann", "zoë"];
    let wanted = [Some(empty.clone()), None, Some(profile("Ann")), Some(empty.clone())];
    assert_eq!(get(&*store, &asked), wanted);
    put(&*store, vec![(player("ann"), Some(profile("Anna"))), (player("zoë"), None)]);
    drop(store);
    let store = open(backend);
    assert_eq!(get(&*store, &asked), [None, None, Some(profile("Anna")), None]);
    let plan = ReadSet { profiles: vec![player("ann"), player("zoë")], ..ReadSet::default() };
    assert_eq!(load(&*store, &plan).profiles, [Some(profile("Anna")), None]);
}

pub(crate) fn hidden_players_are_those_of_their_board(backend: &dyn Backend) {
    let store = open(backend);
    let board = create(&*store, "b", &Definition::default()).unwrap().0;
    let other = create(&*store, "c", &Definition::default()).unwrap().0;
    let hide = |bans| write(&*store, &WriteSet { bans, ..WriteSet::default() }).unwrap();
    hide(vec![ban(board, "Z", true), ban(board, "a", true), ban(other, "a", true)]);
    // A repetition changes nothing, and neither does a restore of a player that is not banned.
    hide(vec![ban(board, "Z", true), ban(board, "nobody", false), ban(other, "a", false)]);
    assert_eq!(store.bans(BoardNo(board)).unwrap(), [player("Z"), player("a")]);
    assert_eq!(store.bans(BoardNo(other)).unwrap(), []);
    drop(store);
    assert_eq!(open(backend).bans(BoardNo(board)).unwrap(), [player("Z"), player("a")]);
}

pub(crate) fn a_deleted_board_takes_its_bans_along(backend: &dyn Backend) {
    let store = open(backend);
    let board = create(&*store, "b", &Definition::default()).unwrap();
    let bans = vec![ban(board.0, "a", true), ban(board.0, "b", true), ban(board.0 + 1, "a", true)];
    write(&*store, &WriteSet { bans, ..WriteSet::default() }).unwrap();
    let boards = vec![BoardChange::Delete(board)];
    write(&*store, &WriteSet { boards, ..WriteSet::default() }).unwrap();
    assert_eq!(store.purge_deleted(100).unwrap(), 2);
    assert_eq!(store.bans(board).unwrap(), []);
    assert_eq!(store.bans(BoardNo(board.0 + 1)).unwrap(), [player("a")]);
}
