//! Verifying from a file that an earlier verification wrote. A sound ledger has no finding, a wrong row after it is named, and one
//! before it is found by a whole verification alone.

use crate::wallets::histories::paper::{FEE, Op, Shape};
use crate::wallets::histories::{Hand, player_of, spec};
use crate::wallets::verify::{Broken, Place, fault, hex, verify, verify_from};
use crate::wallets::verify_since::{DAY, TABLES, archive_all, capture, hold, id, november, post_at};
use crate::wallets::world::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tally_rules::contest::ContestId;
use tally_rules::ledger::{Amount, MemberId, TransferId, TransferKind, TransferRequest, Uuid};
use tally_rules::{Micros, Origin};
use tally_service::contests::change;
use tally_service::contests::execute::ContestActor;
use tally_service::ledger::reversals::{self, NewReversal};
use tally_service::verify::{CLOCKS_APART_MICROS, Checkpoint, Reconciled};
use tally_store::Store;
use tally_store::archive::{CheckpointFile, CheckpointWriter, Summary};

fn open(file: &Path) -> Checkpoint {
    Checkpoint::File(Arc::new(CheckpointFile::open(file).unwrap()))
}

/// What is found after a file.
fn verify_after(store: &dyn Store, file: &Path) -> (Reconciled, Vec<String>) {
    verify_from(store, Some(open(file)), &mut |_, _| Ok(()))
}

/// Writes what is proved at this moment, of all or after another file; it finds nothing. Returns how many transfers and entries it read.
fn write(store: &dyn Store, at: Micros, (since, file): (Option<&Path>, &Path)) -> (u64, u64) {
    let since = since.map(open);
    if let Some(since) = &since {
        assert_eq!(since.refused(&mut *store.ledger().snapshot().unwrap()).unwrap(), None);
    }
    let mut writer = CheckpointWriter::create(file).unwrap();
    let mut add = |wallet: &_, proved: &_| writer.add(wallet, proved);
    let (reconciled, found) = verify_from(store, since.clone(), &mut add);
    assert_eq!(found, [""; 0]);
    writer.finish(&Checkpoint::proved(since.as_ref(), &reconciled, at).unwrap()).unwrap();
    (reconciled.transfers, reconciled.entries)
}

/// Nothing is found from a file that proves an empty ledger, and nothing is left to read after one that proves all.
pub(crate) fn check(store: &dyn Store) {
    let folder = tempfile::tempdir().unwrap();
    let [empty, all, next] = ["empty", "all", "next"].map(|name| folder.path().join(name));
    // Contests of a test may be of any instant.
    let at = Micros(i64::MAX);
    let proved = Checkpoint::proved(None, &Reconciled::default(), at).unwrap();
    assert_eq!(proved.last, TransferId(Uuid([0; 16])));
    CheckpointWriter::create(&empty).unwrap().finish(&proved).unwrap();
    let whole = write(store, at, (None, &all));
    assert_eq!(write(store, at, (Some(&empty), &next)), whole);
    assert_eq!(open_summary(&all), open_summary(&next));
    assert_eq!(write(store, at, (Some(&all), &next)), (0, 0));
    assert_eq!(open_summary(&all), open_summary(&next));
}

fn open_summary(file: &Path) -> Summary {
    CheckpointFile::open(file).unwrap().summary().clone()
}

/// What there is after the story.
struct Made {
    _folder: tempfile::TempDir,
    file: PathBuf,
    members: [MemberId; 3],
    /// Before the file: a transfer, and one that is reversed after it.
    early: TransferId,
    reversed: TransferId,
    /// After it.
    last: TransferId,
    back: TransferId,
}

/// A file in the middle. A wallet has entries before and after it, one before alone, and one after alone.
fn make(world: &World) -> Made {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("proof");
    let [ann, bob] = [("ann", 1_000), ("bob", 500)].map(|(name, units)| world.member(name, units));
    let dollars = order(TransferKind::Deposit { to: bob }, 7);
    world.post(TransferRequest { currency: code("USD"), ..dollars }, None).unwrap();
    let reversed = id(&world.transfer(ann, bob, 100, None).unwrap());
    let early = id(&world.transfer(ann, bob, 30, None).unwrap());
    let later = hold(world, bob, 6);
    assert_eq!(write(&*world.tally.store, world.now(), (None, &file)), (5, 7));
    let cid = world.member("cid", 40);
    world.transfer(ann, cid, 11, None).unwrap();
    capture(world, later);
    let amount = Some(Amount::new(60).unwrap());
    let back = NewReversal { transaction: reversed.0, amount, origin: Origin::default(), idempotency: None };
    let back = id(&world.wait(reversals::reverse(&world.tally, back)).unwrap());
    let last = id(&world.transfer(cid, ann, 2, None).unwrap());
    Made { _folder: folder, file, members: [ann, bob, cid], early, reversed, last, back }
}

/// Faults after the file, and what is found from there. A whole verification finds at least one, too.
fn after(made: &Made) -> Vec<Broken> {
    let [ann, bob, cid] = made.members.map(|member| member.0);
    let (last, back, reversed) = (made.last.0, made.back.0, made.reversed.0);
    let at = |member| format!("member = {} AND currency = 'KRW'", hex(member));
    vec![
        fault(
            format!("UPDATE wallets SET balance = balance + 1 WHERE {}", at(cid)),
            &[
                &format!("wallets {cid}/KRW: its balance is 50, and its entries leave 49"),
                "BANK_PAYABLE/KRW: ",
            ],
        ),
        // A wallet without an entry after it.
        fault(
            "UPDATE wallets SET balance = balance + 1 WHERE currency = 'USD'".into(),
            &[&format!("wallets {bob}/USD: its balance is 8, and its entries leave 7"), "BANK_PAYABLE/USD: "],
        ),
        fault(
            "UPDATE wallets SET sequence = sequence + 1 WHERE currency = 'USD'".into(),
            &[&format!("wallets {bob}/USD: it counts 2 entries, and the last is 1")],
        ),
        fault(
            "UPDATE wallets SET sequence = sequence - 1 WHERE currency = 'USD'".into(),
            &[&format!(
                "wallets {bob}/USD: it counts 0 entries, and the last is 1; or this store was restored to an earlier state"
            )],
        ),
        fault(
            "DELETE FROM wallets WHERE currency = 'USD'".into(),
            &[
                &format!(
                    "wallets {bob}/USD: it is not there, and was at the checkpoint; or this store was restored to an earlier"
                ),
                "BANK_PAYABLE/USD: ",
            ],
        ),
        // A wallet as it was before its last entry.
        fault(
            format!("UPDATE wallets SET balance = balance - 2, sequence = sequence - 1 WHERE {}", at(ann)),
            &["entries since the checkpoint: ", "BANK_PAYABLE/KRW: "],
        ),
        fault(
            format!("DELETE FROM entries WHERE {} AND sequence = 5", at(ann)),
            &[
                &format!("entries {ann}/KRW/6: it follows entry 4: what is between is missing"),
                &format!("entries {ann}/KRW/6: the balance before it is"),
                &format!("transfers {back}: its entry is not there: {ann}/KRW/5"),
            ],
        ),
        fault(
            format!("DELETE FROM transfers WHERE id = {}", hex(last)),
            &[
                "totals BANK_PAYABLE/KRW: ",
                &format!("entries {ann}/KRW/6: its movement is not there: {last}"),
                &format!("entries {cid}/KRW/3: its movement is not there: {last}"),
            ],
        ),
        fault(
            "UPDATE totals SET credits = credits + 1 WHERE account = 2 AND currency = 'USD'".into(),
            &[
                "totals BANK_PAYABLE/USD: debits 0 and credits 8",
                "totals USD: debits are",
                "8 is owed, and wallets have 7",
            ],
        ),
        fault(
            format!("UPDATE holds SET captured = 5 WHERE member = {} AND currency = 'KRW'", hex(bob)),
            &["it is not as the movement that captured it"],
        ),
        fault(
            format!("DELETE FROM reversals WHERE id = {}", hex(reversed)),
            &[&format!("reversals {back}: its original {reversed} lists it 0 times")],
        ),
    ]
}

#[test]
fn what_is_wrong_after_a_file_is_found_from_there() {
    for (place, made) in Place::each(make) {
        let (whole, since) = place.broken(&[], "", |store| (verify(store), verify_after(store, &made.file)));
        assert_eq!((whole.1, since.1), (vec![], vec![]));
        assert_eq!((whole.0.transfers, whole.0.entries), (10, 15));
        assert_eq!((since.0.transfers, since.0.entries), (5, 8));
        assert_eq!((whole.0.wallets, whole.0.totals), (since.0.wallets, since.0.totals));
        for (sql, wanted) in after(&made) {
            let found = place.broken(&TABLES, &sql, |store| {
                assert_ne!(verify(store).1, [""; 0], "{sql}");
                verify_after(store, &made.file).1
            });
            assert_eq!(found.len(), wanted.len(), "{sql}: {found:#?}");
            for wanted in wanted {
                assert!(found.iter().any(|found| found.contains(&wanted)), "{sql}: {wanted:?} in {found:#?}");
            }
        }
        let sql = format!("UPDATE transfers SET amount = 31 WHERE id = {}", hex(made.early.0));
        place.broken(&TABLES, &sql, |store| {
            assert_ne!(verify(store).1, [""; 0]);
            assert_eq!(verify_after(store, &made.file).1, [""; 0], "it does not read what is before");
        });
    }
}

/// Servers commit ids in another order, and a month is archived after a file that is from before its end.
#[test]
fn late_ids_and_months_that_are_archived_since_are_no_finding() {
    let made = |world: &World| {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let store = &*world.tally.store;
        let [ann, bob] = [("ann", 1_000), ("bob", 500)].map(|(name, units)| world.member(name, units));
        let december = november().next().start();
        let post = |seconds: i64, from, to| post_at(store, december.plus(seconds * 1_000_000), from, to);
        let write = |since: Option<&str>, file: &str| {
            let since = since.map(path);
            write(store, december.plus(DAY), (since.as_deref(), &path(file)))
        };
        post(-10, ann, bob);
        assert_eq!(write(None, "a"), (3, 4));
        post(-20, bob, ann);
        post(-5, ann, bob);
        assert_eq!(write(Some("a"), "b"), (2, 4));
        post(-30, bob, ann);
        world.advance(20 * DAY);
        archive_all(world, "2023-12");
        // In files alone.
        assert_eq!(write(Some("b"), "c"), (1, 2));
        post(1, ann, bob);
        post(-7, ann, bob);
        assert_eq!(write(Some("c"), "d"), (2, 4));
        assert_eq!(write(Some("a"), "e"), (5, 10));
        assert_eq!(open_summary(&path("d")), open_summary(&path("e")));
        assert_eq!(write(None, "f"), (8, 14));
        assert_eq!(open_summary(&path("f")), open_summary(&path("e")));
        let late = |file: &str| verify_after(store, &path(file)).0.late;
        assert_eq!(["a", "b", "c", "f"].map(late), [2, 2, 1, 0]);
    };
    drop(Place::each(made));
}

/// After it, every transfer until then would be a late one.
#[test]
fn an_id_that_is_ahead_of_the_clock_leaves_no_checkpoint() {
    let world = World::new(Kind::Sqlite);
    let [ann, bob] = [("ann", 1_000), ("bob", 500)].map(|(name, units)| world.member(name, units));
    let ahead = world.now().plus(CLOCKS_APART_MICROS + 1_000_000);
    post_at(&*world.tally.store, ahead, ann, bob);
    let (reconciled, found) = verify(&*world.tally.store);
    assert_eq!(found, [""; 0]);
    let why = Checkpoint::proved(None, &reconciled, world.now()).unwrap_err();
    assert!(
        why.starts_with("the last movement, ") && why.contains("the clock of this machine says"),
        "{why}"
    );
    assert_eq!(Checkpoint::proved(None, &reconciled, ahead).unwrap().last.0.at(), ahead);
    world.end(&[ann, bob]);
}

/// A contest from before the file: the fee is taken by a start after it, also if the contest is over by then.
#[test]
fn the_fee_of_a_start_after_a_file_is_compared() {
    let made = |world: &World| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("proof");
        let members = [world.member("ann", 100)];
        let hand = Hand { tally: &world.tally, runtime: &world.runtime, members: &members };
        let shape = Shape { fee: FEE, prizes: true, ordinal: true, each: false, division: None };
        let begin = |name: &str| {
            let id = ContestId::new(name).unwrap();
            change::create(&world.tally, &id, &ContestActor::SERVER, &spec(shape), None).unwrap();
            for op in [Op::Open, Op::Apply(0), Op::Accept(0)] {
                hand.act(&id, op, None, None).unwrap();
            }
            id
        };
        let ids = ["early", "cup", "over"].map(begin);
        let start = |id: &ContestId| hand.act(id, Op::Start, None, None).unwrap();
        start(&ids[0]);
        write(&*world.tally.store, world.now(), (None, &file));
        world.advance(2 * CLOCKS_APART_MICROS);
        ids[1..].iter().for_each(start);
        hand.act(&ids[2], Op::Finish, None, None).unwrap();
        (folder, file, members[0])
    };
    for (place, (_folder, file, ann)) in Place::each(made) {
        let found = |sql: &str| place.broken(&["entries"], sql, |store| verify_after(store, &file).1);
        assert_eq!(found(""), [""; 0]);
        for name in ["cup", "over"] {
            let found =
                found(&format!("UPDATE entries SET reference = NULL WHERE reference = 'contest:{name}'"));
            let row = format!("contest_members {name}/{}", player_of(ann).as_str());
            assert_eq!(found, [format!("{row}: its fee, 10, is no movement")]);
        }
    }
}

#[test]
fn a_file_of_another_store_or_of_a_later_state_is_refused() {
    let (ours, other) = (World::new(Kind::Sqlite), World::new(Kind::Sqlite));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("proof");
    let refused = |world: &World| {
        let mut snapshot = world.tally.store.ledger().snapshot().unwrap();
        open(&file).refused(&mut *snapshot).unwrap()
    };
    let [ann, bob] = [&ours, &other].map(|world| world.member("ann", 10));
    write(&*ours.tally.store, ours.now(), (None, &file));
    assert_eq!(refused(&ours), None);
    let why = refused(&other).unwrap();
    assert!(why.starts_with("its last movement, ") && why.contains(" is not there. "), "{why}");
    for world in [&ours, &other] {
        world.advance(20 * DAY);
        archive_all(world, "2023-12");
    }
    write(&*ours.tally.store, ours.now(), (Some(&file), &file));
    assert_eq!(refused(&ours), None);
    assert_eq!(refused(&other).unwrap(), "the archive of 2023-11 is not the one that it was made with");
    ours.end(&[ann]);
    other.end(&[bob]);
}
