//! Members' handles over their whole life: phone numbers that earlier versions stored, and those that a closed member
//! leaves. Not here: which texts are accepted, and kills (`tally/tests/api/money/names.rs`).

use crate::wallets::verify::verify;
use crate::wallets::world::*;
use std::path::Path;
use std::sync::Arc;
use tally_rules::ledger::member::{Handle, HandleKind, Phone};
use tally_rules::ledger::{Member, MemberId, TransferKind};
use tally_rules::{Origin, PlayerId};
use tally_service::members::change::MemberChange;
use tally_service::members::{self, NewMember};
use tally_service::players::search::search;
use tally_store::mysql::Options;
use tally_store::shards::Shards;
use tally_store::sqlite::SqliteStore;
use tally_store::{LedgerWriteSet, ReadSet, ShardSet, Store, WriteSet};
use tally_testkit::{DatabaseKind, ScratchDatabase, wait_until};

fn stored(text: &str) -> Phone {
    Phone::of_stored(text).unwrap()
}

/// Writes the rows of an earlier version: the number in a member's row, and the members that numbers find.
fn write(store: &dyn Store, rows: &[(MemberId, Option<&str>)], handles: &[(&str, Option<MemberId>)]) {
    let mut members: Vec<(MemberId, Member)> = rows
        .iter()
        .map(|(id, phone)| {
            let member = store.ledger().member(*id).unwrap().unwrap();
            (*id, Member { phone: phone.map(stored), ..member })
        })
        .collect();
    members.sort_unstable_by_key(|(id, _)| *id);
    let mut handles: Vec<_> =
        handles.iter().map(|(text, member)| (Handle::Phone(stored(text)), *member)).collect();
    handles.sort_unstable();
    let ledger = LedgerWriteSet { handles, members, ..LedgerWriteSet::default() };
    let plan = ReadSet { shards: ShardSet::of(0), ..ReadSet::default() };
    store.run(&plan, &mut |_| WriteSet { ledger: ledger.clone(), ..WriteSet::default() }).unwrap();
}

/// An open file of a killed process.
fn crash_image(store: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(store).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
    }
    copy
}

fn phone_of(store: &dyn Store, member: MemberId) -> Option<String> {
    store.ledger().member(member).unwrap().unwrap().phone.map(|phone| phone.as_str().to_owned())
}

fn numbers_that_were_misread_are_mended(world: World, again: impl FnOnce(World) -> World) {
    let make = |name: &str, phone: &str| world.create(with_phone(name, phone)).unwrap().id;
    let [alone, late, early, twice, thrice, renamed, short, thief, robbed, other] = [
        ("alone", "0100"),
        ("late", "0101"),
        ("early", "222222"),
        ("twice", "0102"),
        ("thrice", "0103"),
        ("renamed", "444444"),
        ("short", "0104"),
        ("thief", "0105"),
        ("robbed", "555555"),
        ("other", "0199"),
    ]
    .map(|(name, phone)| make(name, phone));
    let store = Arc::clone(&world.tally.store);
    let rows = [
        // The number that it becomes is free.
        (alone, Some("00111111")),
        // Another member has it.
        (late, Some("00222222")),
        // Two become one.
        (twice, Some("00333333")),
        (thrice, Some("0000333333")),
        // It becomes none.
        (short, Some("00123")),
        // A change wrote the misread number, and took it from the member that had it.
        (thief, Some("555555")),
    ];
    let old = ["0100", "0101", "0102", "0103", "0104", "0105"].map(|text| (text, None));
    let new = [
        ("00111111", Some(alone)),
        ("00222222", Some(late)),
        ("00333333", Some(twice)),
        ("0000333333", Some(thrice)),
        ("00123", Some(short)),
        ("00555555", Some(thief)),
        ("555555", Some(thief)),
        // A change removed the misread number only.
        ("00444444", Some(renamed)),
    ];
    write(&*store, &rows, &[&old[..], &new[..]].concat());
    let members = [alone, late, early, twice, thrice, renamed, short, thief, robbed, other];
    drop(store);
    let world = again(world);
    let store = &*world.tally.store;
    let phones = members.map(|member| phone_of(store, member));
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        phones,
        [text("111111"), None, text("222222"), None, None, text("444444"), None, None, None, text("0199")]
    );
    assert_eq!(verify(store).1, [""; 0]);
    // It runs, and numbers go to the members that they are given to.
    let made = world.create(with_phone("new", "333333")).unwrap().id;
    assert_eq!(store.ledger().member_of(&Handle::Phone(stored("333333"))).unwrap(), Some(made));
    assert!(matches!(
        refused(world.create(with_phone("x", "111111"))),
        tally_rules::Rejection::PhoneTaken(_)
    ));
    world.end(&members);
}

#[test]
fn numbers_that_were_misread_are_mended_on_sqlite_from_the_journal_and_from_the_tables() {
    for settled in [false, true] {
        let (folder, now) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let open = |folder: &Path| -> Arc<dyn Store> {
            let options = tally_store::sqlite::Options::default();
            Arc::new(SqliteStore::open(&folder.join("t.db"), &options).unwrap())
        };
        numbers_that_were_misread_are_mended(World::on(open(folder.path()), now), |world| {
            if settled {
                world.tally.store.checkpoint().unwrap();
            }
            let copy = crash_image(folder.path());
            World::on(open(copy.path()), copy)
        });
    }
}

#[test]
fn numbers_that_were_misread_are_mended_on_databases_and_shards() {
    for kind in [DatabaseKind::MariaDb10, DatabaseKind::MySql9] {
        for shards in [1, 2] {
            let urls: Vec<String> =
                (0..shards).map(|_| ScratchDatabase::shared(kind).create_database()).collect();
            let open = || -> Arc<dyn Store> {
                match &urls[..] {
                    [url] => {
                        Arc::new(tally_store::mysql::MySqlStore::open(url, &Options::default()).unwrap())
                    }
                    urls => Arc::new(Shards::open(urls, &Options::default()).unwrap()),
                }
            };
            numbers_that_were_misread_are_mended(World::on(open(), tempfile::tempdir().unwrap()), |world| {
                world.tally.drain();
                drop(world);
                World::on(open(), tempfile::tempdir().unwrap())
            });
        }
    }
}

/// A member that has all three names.
fn named(world: &World, name: &str, phone: &str) -> MemberId {
    let new = with_phone(name, phone);
    let member = Member { player: PlayerId::new(name).unwrap(), ..new.member };
    world.create(NewMember { member, player_is_id: false, ..new }).unwrap().id
}

#[test]
fn closing_releases_what_finds_a_member_and_keeps_its_history() {
    for kind in [Kind::Sqlite, Kind::MariaDb, Kind::MySql] {
        let world = World::new(kind);
        let store = Arc::clone(&world.tally.store);
        let first = named(&world, "ann", "010-1111");
        world.post(order(TransferKind::Deposit { to: first }, 5), None).unwrap();
        let close = |member| {
            world.wait(members::close(&world.tally, member, true, Origin::BACKGROUND, None)).unwrap()
        };
        close(first);
        let kept = store.ledger().member(first).unwrap().unwrap();
        assert_eq!((kept.closed_at, kept.player.as_str()), (Some(world.now()), "ann"));
        for handle in kept.names(first) {
            assert_eq!(store.ledger().member_of(&handle).unwrap(), None, "{handle:?}");
        }
        let second = named(&world, "ann", "010-1111");
        // Again, it takes nothing from the member that has its names by now.
        close(first);
        for handle in kept.names(first) {
            // That of a name has the id of its member.
            let finds = (handle.kind() != HandleKind::Name).then_some(second);
            assert_eq!(store.ledger().member_of(&handle).unwrap(), finds, "{handle:?}");
        }
        assert_eq!((world.balance(first), world.balance(second)), (5, 0));
        world.end(&[first, second]);
    }
}

/// The members that a search finds, by player, and whether there are no others.
fn found(world: &World, typed: &str) -> (Vec<MemberId>, bool) {
    let found = search(&world.tally, typed, 100, true).unwrap();
    (found.items.values().filter_map(|one| Some(one.member.as_ref()?.0)).collect(), found.complete)
}

fn rename(world: &World, member: MemberId, name: &str) {
    let change = MemberChange { name: Some(name.into()), ..MemberChange::default() };
    assert!(!world.wait(members::change(&world.tally, member, change, None, None)).unwrap());
}

#[test]
fn a_member_is_found_by_its_name_from_its_creation_to_its_end() {
    for kind in [Kind::Sqlite, Kind::MariaDb, Kind::MySql] {
        let world = World::new(kind);
        let named = |login: &str, name: &str| {
            let new = new_member(login);
            let member = Member { name: name.into(), ..new.member };
            world.create(NewMember { member, ..new }).unwrap().id
        };
        let (ann, other) = (named("l1", "Ann Smith"), named("l2", "ANN  Smithers"));
        // By the ids of their players, which are their own.
        assert_eq!(found(&world, "aNN smith"), (vec![ann, other], true));
        assert_eq!(found(&world, "ann smithe"), (vec![other], true));
        assert_eq!(found(&world, "smith"), (vec![], true));
        rename(&world, ann, "Zoë");
        assert_eq!((found(&world, "ann"), found(&world, "ZO")), ((vec![other], true), (vec![ann], true)));
        assert_eq!(verify(&*world.tally.store).1, [""; 0]);
        world.wait(members::close(&world.tally, other, false, Origin::BACKGROUND, None)).unwrap();
        world.wait(members::erase(&world.tally, ann, Origin::BACKGROUND, None)).unwrap();
        assert_eq!((found(&world, "ann"), found(&world, "zo")), ((vec![], true), (vec![], true)));
        assert_eq!(found(&world, "erased"), (vec![], true), "what an erased member has in place of a name");
        world.end(&[ann, other]);
    }
}

/// Members without handles of their names; the store remembers what it is told.
fn forget_names(store: &dyn Store, members: &[MemberId], progress: &[u8]) {
    let row = |id: &MemberId| store.ledger().member(*id).unwrap().unwrap();
    let handles = members.iter().flat_map(|id| row(id).names(*id));
    let names = handles.filter(|handle| handle.kind() == HandleKind::Name);
    let mut handles: Vec<_> = names.map(|handle| (handle, None)).collect();
    handles.sort_unstable();
    let ledger = LedgerWriteSet { handles, ..LedgerWriteSet::default() };
    let plan = ReadSet { shards: ShardSet::of(0), ..ReadSet::default() };
    store.run(&plan, &mut |_| WriteSet { ledger: ledger.clone(), ..WriteSet::default() }).unwrap();
    store.set_meta("member_names", progress).unwrap();
}

/// More than two pages; and the rest of them, by a store that was left in the middle.
#[test]
fn members_of_an_earlier_version_are_found_by_their_names_some_time_after_a_start() {
    for (kind, is_resumed) in [(Kind::Sqlite, false), (Kind::Sqlite, true), (Kind::MariaDb, false)] {
        let before = World::new(kind);
        let (world, store) = (&before, Arc::clone(&before.tally.store));
        let mut ids: Vec<_> = (0..405).map(|number| world.member(&format!("ann-{number:03}"), 0)).collect();
        ids.sort_unstable();
        world.wait(members::close(&world.tally, ids[7], false, Origin::BACKGROUND, None)).unwrap();
        world.tally.drain();
        if is_resumed {
            forget_names(&*store, &ids[..250], &ids[250].0.0);
        } else {
            forget_names(&*store, &ids, b"");
        }
        // A store that lacks some has no wrong row.
        assert_eq!(verify(&*store).1, [""; 0]);
        let world = World::on(store, tempfile::tempdir().unwrap());
        wait_until("all have names", || found(&world, "ann-404").1);
        for (number, id) in ids.iter().enumerate() {
            let row = world.tally.store.ledger().member(*id).unwrap().unwrap();
            let name = row.names(*id).swap_remove(0);
            let wanted = Some(*id).filter(|_| number != 7);
            assert_eq!(world.tally.store.ledger().member_of(&name).unwrap(), wanted, "{name:?}");
        }
        rename(&world, ids[9], "Zoë");
        assert_eq!(found(&world, "zoë"), (vec![ids[9]], true));
        world.end(&ids);
    }
}

#[test]
fn names_of_members_that_an_earlier_version_closed_are_released() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let before = World::new(kind);
        let (world, store) = (&before, Arc::clone(&before.tally.store));
        let (old, other) = (named(world, "old", "010-1111"), named(world, "other", "010-2222"));
        world.wait(members::close(&world.tally, old, false, Origin::BACKGROUND, None)).unwrap();
        // As it was left then.
        let names = store.ledger().member(old).unwrap().unwrap().names(old);
        let handles = names.iter().map(|name| (name.clone(), Some(old))).collect();
        let ledger = LedgerWriteSet { handles, ..LedgerWriteSet::default() };
        let plan = ReadSet { shards: ShardSet::of(0), ..ReadSet::default() };
        store.run(&plan, &mut |_| WriteSet { ledger: ledger.clone(), ..WriteSet::default() }).unwrap();
        assert!(matches!(
            refused(world.create(with_phone("x", "010-1111"))),
            tally_rules::Rejection::PhoneTaken(_)
        ));
        world.tally.drain();
        let world = World::on(store, tempfile::tempdir().unwrap());
        assert_eq!(verify(&*world.tally.store).1, [""; 0]);
        let made = named(&world, "old", "010-1111");
        assert!(matches!(
            refused(world.create(with_phone("x", "010-2222"))),
            tally_rules::Rejection::PhoneTaken(_)
        ));
        world.end(&[old, other, made]);
    }
}
