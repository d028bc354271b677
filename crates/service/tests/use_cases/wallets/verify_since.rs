//! Verifying from the end of an archived month. A sound ledger has no finding, a wrong row after it is named, and one before it is found
//! by a whole verification alone.

use crate::wallets::verify::{Broken, Place, fault, hex, verify, verify_since};
use crate::wallets::world::*;
use std::collections::{BTreeMap, BTreeSet};
use tally_rules::ledger::hold::Ending;
use tally_rules::ledger::transfer_request::LedgerWrites;
use tally_rules::ledger::working_set::LedgerWorkingSet;
use tally_rules::ledger::{Amount, MemberId, Month, TransferId, TransferKind, Uuid, WalletKey};
use tally_rules::{Actor, Micros, Origin};
use tally_service::ledger::archive;
use tally_service::ledger::holds::{self, NewHold};
use tally_service::ledger::reversals::{self, NewReversal};
use tally_service::ledger::transfers::{self, NewTransfer, Receipt};
use tally_service::verify::{Expected, Listener, MonthCheckpoint, reconcile};
use tally_store::archive::MonthState;
use tally_store::{LedgerReadSet, LedgerWriteSet, Loaded, ReadSet, ShardSet, Store, StoreError, WriteSet};
use tally_testkit::wait_until;

pub(crate) const TABLES: [&str; 6] = ["wallets", "entries", "transfers", "holds", "totals", "reversals"];
pub(crate) const DAY: i64 = 24 * 3_600_000_000;

pub(crate) fn november() -> Month {
    Month::parse("2023-11").unwrap()
}

/// What there is after the story of two months.
struct Made {
    members: [MemberId; 3],
    /// A transfer of November with words, and one that December reverses.
    worded: TransferId,
    reversed: TransferId,
    /// Of December.
    last: TransferId,
    back: TransferId,
}

pub(crate) fn id(receipt: &Receipt) -> TransferId {
    receipt.posted.entry.transfer
}

pub(crate) fn hold(world: &World, member: MemberId, units: i64) -> tally_rules::ledger::HoldId {
    let wallet = WalletKey { member, currency: code("KRW") };
    let amount = Amount::new(units).unwrap();
    let new = NewHold { wallet, amount, expires_at: None, origin: Origin::default(), idempotency: None };
    world.wait(holds::place(&world.tally, new)).unwrap().id
}

pub(crate) fn capture(world: &World, hold: tally_rules::ledger::HoldId) {
    let ending = Ending::Capture { amount: None, to: None };
    world.wait(holds::end(&world.tally, hold, ending, Origin::default(), None)).unwrap();
}

pub(crate) fn archive_all(world: &World, end: &str) {
    let end = Month::parse(end).unwrap();
    archive::request(&world.tally, end, (&Origin::BACKGROUND, None)).unwrap();
    wait_until("the months are archived", || {
        archive::list(&world.tally).unwrap().iter().all(|(_, row)| row.state == MonthState::Done)
    });
}

/// November, which is archived, and some days of December. A wallet has entries in both months, one in November alone, and one in
/// December alone.
fn make(world: &World) -> Made {
    let [ann, bob] = [("ann", 1_000), ("bob", 500)].map(|(name, units)| world.member(name, units));
    let dollars = order(TransferKind::Deposit { to: bob }, 7);
    world.post(tally_rules::ledger::TransferRequest { currency: code("USD"), ..dollars }, None).unwrap();
    let reversed = id(&world.transfer(ann, bob, 100, None).unwrap());
    let origin = Origin { actor: Actor::CommandLine, reason: Some("rent".into()), metadata: None };
    let order_ = order(TransferKind::Transfer { from: ann, to: bob }, 30);
    let new = NewTransfer { order: order_, origin: origin.clone(), idempotency: None, mint_cap: None };
    let worded = id(&world.wait(transfers::post(&world.tally, new)).unwrap());
    let (early, later) = (hold(world, ann, 5), hold(world, bob, 6));
    capture(world, early);
    world.advance(20 * DAY);
    archive_all(world, "2023-12");
    let cid = world.member("cid", 40);
    world.transfer(ann, cid, 11, None).unwrap();
    capture(world, later);
    let amount = Some(Amount::new(60).unwrap());
    let back = NewReversal { transaction: reversed.0, amount, origin, idempotency: None };
    let back = id(&world.wait(reversals::reverse(&world.tally, back)).unwrap());
    let last = id(&world.transfer(cid, ann, 2, None).unwrap());
    Made { members: [ann, bob, cid], worded, reversed, last, back }
}

/// Faults after the checkpoint: with each, what is found from there, and of a whole verification how much.
fn after(made: &Made) -> Vec<(Broken, usize)> {
    let [ann, bob, cid] = made.members.map(|member| member.0);
    let (last, back, reversed) = (made.last.0, made.back.0, made.reversed.0);
    let at = |member| format!("member = {} AND currency = 'KRW'", hex(member));
    let had = "archives 2023-11: wallets had";
    let one = |sql: String, wanted: &[&str], whole: usize| (fault(sql, wanted), whole);
    vec![
        one(
            format!("UPDATE wallets SET balance = balance + 1 WHERE {}", at(cid)),
            &[
                &format!("wallets {cid}/KRW: its balance is 50, and its entries leave 49"),
                "BANK_PAYABLE/KRW: ",
            ],
            2,
        ),
        // A wallet without an entry after the checkpoint: the sum of all is another.
        one(
            "UPDATE wallets SET balance = balance + 1 WHERE currency = 'USD'".into(),
            &[&format!("{had} 8 USD at its end, and the archived transfers leave 7"), "BANK_PAYABLE/USD: "],
            2,
        ),
        one(
            "UPDATE wallets SET sequence = sequence + 1 WHERE currency = 'USD'".into(),
            &[&format!("{had} 9 entries at its end, and 8 are archived")],
            1,
        ),
        one(
            format!("DELETE FROM entries WHERE {} AND sequence = 6", at(ann)),
            &[
                &format!("entries {ann}/KRW/7: it follows entry 5: what is between is missing"),
                &format!("entries {ann}/KRW/7: the balance before it is"),
                &format!("transfers {back}: its entry is not there: {ann}/KRW/6"),
            ],
            3,
        ),
        one(
            format!(
                "UPDATE entries SET amount = 3, `after` = `after` + 1 WHERE transfer = {} AND member = {}",
                hex(last),
                hex(ann)
            ),
            &[
                &format!("wallets {ann}/KRW: its balance is"),
                &format!("transfers {last}: its entry {ann}/KRW/7 is transfer_in of 3"),
            ],
            2,
        ),
        one(
            format!("DELETE FROM transfers WHERE id = {}", hex(last)),
            &[
                "totals BANK_PAYABLE/KRW: ",
                &format!("entries {ann}/KRW/7: its movement is not there: {last}"),
                &format!("entries {cid}/KRW/3: its movement is not there: {last}"),
            ],
            3,
        ),
        one(
            "UPDATE totals SET credits = credits + 1 WHERE account = 2 AND currency = 'USD'".into(),
            &[
                "totals BANK_PAYABLE/USD: debits 0 and credits 8",
                "totals USD: debits are",
                "8 is owed, and wallets have 7",
            ],
            3,
        ),
        one(
            format!("UPDATE holds SET captured = 5 WHERE member = {} AND currency = 'KRW'", hex(bob)),
            &["it is not as the movement that captured it"],
            1,
        ),
        // Both ends of a link whose original is before the checkpoint.
        one(
            format!("DELETE FROM reversals WHERE id = {}", hex(reversed)),
            &[&format!("reversals {back}: its original {reversed} lists it 0 times")],
            1,
        ),
    ]
}

#[test]
fn what_is_wrong_after_a_checkpoint_is_found_from_there() {
    for (place, made) in Place::each(make) {
        let sound = place.broken(&[], "", |store| [verify(store), verify_since(store, Some(november()))]);
        let counts = sound.map(|(reconciled, found)| {
            assert_eq!(found, [""; 0]);
            (reconciled.transfers, reconciled.entries, reconciled.wallets, reconciled.totals)
        });
        let [whole, since] = counts;
        assert_eq!((whole.0, whole.1), (11, 16));
        assert_eq!((since.0, since.1), (5, 8));
        assert_eq!((whole.2, whole.3), (since.2, since.3));
        for ((sql, wanted), whole) in after(&made) {
            let found = place
                .broken(&TABLES, &sql, |store| [verify_since(store, Some(november())).1, verify(store).1]);
            let [since, all] = found;
            assert_eq!((since.len(), all.len()), (wanted.len(), whole), "{sql}: {since:#?} {all:#?}");
            for wanted in wanted {
                assert!(since.iter().any(|found| found.contains(&wanted)), "{sql}: {wanted:?} in {since:#?}");
            }
        }
    }
}

/// The result of a whole verification, which may end at a file.
fn whole(store: &dyn Store) -> Result<u64, tally_service::Failure> {
    let mut snapshot = store.ledger().snapshot()?;
    let listener = Listener { found: &mut |_| (), read: &mut |_| (), proved: &mut |_, _| Ok(()) };
    let terms = (Expected::of(store)?, tally_rules::Micros(i64::MAX), None);
    Ok(reconcile(store, &mut *snapshot, terms, listener)?.disagreements)
}

#[test]
fn what_is_wrong_before_a_checkpoint_is_found_by_a_whole_verification_alone() {
    for (place, made) in Place::each(make) {
        let sql = format!("UPDATE transfers SET amount = 31 WHERE id = {}", hex(made.worded.0));
        place.broken(&TABLES, &sql, |store| {
            assert_eq!(verify_since(store, Some(november())).1, [""; 0]);
            assert_eq!(whole(store).unwrap(), 3);
        });
        // A file: its bytes, and its length.
        place.broken(&[], "", |store| {
            let folder = store.ledger().archives().folder().unwrap().to_owned();
            let files = || std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
            let file = files().find(|path| path.extension().is_some_and(|of| of == "entries")).unwrap();
            let bytes = std::fs::read(&file).unwrap();
            let mut other = bytes.clone();
            other[20] ^= 1;
            std::fs::write(&file, &other).unwrap();
            assert_eq!(verify_since(store, Some(november())).1, [""; 0]);
            assert!(whole(store).unwrap_err().to_string().contains("2023-11"));
            std::fs::write(&file, &bytes[1..]).unwrap();
            let mut snapshot = store.ledger().snapshot().unwrap();
            let short = snapshot.leave_out(november());
            assert!(matches!(short, Err(StoreError::Archive { .. })), "{short:?}");
            drop(snapshot);
            std::fs::write(&file, &bytes).unwrap();
            assert_eq!(whole(store).unwrap(), 0);
        });
    }
}

#[test]
fn a_month_is_a_checkpoint_once_files_alone_have_it_and_all_before() {
    let world = World::new(Kind::Sqlite);
    let store = &*world.tally.store;
    let find = |month: Option<&str>| {
        let mut snapshot = store.ledger().snapshot().unwrap();
        let month = month.map(|text| Month::parse(text).unwrap());
        let found = MonthCheckpoint::find(&mut *snapshot, month).unwrap();
        found.map(|found| (found.month.to_string(), found.months, found.transfers))
    };
    let ann = world.member("ann", 10);
    assert_eq!((find(None), find(Some("2023-11"))), (None, None));
    world.advance(20 * DAY);
    world.post(order(TransferKind::Deposit { to: ann }, 1), None).unwrap();
    archive_all(&world, "2023-12");
    assert_eq!(find(Some("2023-12")), None);
    world.advance(40 * DAY);
    archive_all(&world, "2024-01");
    let (first, both) = (("2023-11".to_owned(), 1, 1), ("2023-12".to_owned(), 2, 2));
    assert_eq!([find(Some("2023-10")), find(Some("2023-11"))], [None, Some(first)]);
    assert_eq!([find(Some("2023-12")), find(None)], [Some(both.clone()), Some(both)]);
    assert_eq!(find(Some("2024-01")), None);
    for month in ["2023-11", "2023-12"] {
        let (reconciled, found) = verify_since(store, Month::parse(month));
        assert_eq!((reconciled.disagreements, found), (0, vec![]));
    }
    world.end(&[ann]);
}

/// A transfer with an id of a server whose clock is this one.
pub(crate) fn post_at(store: &dyn Store, at: Micros, from: MemberId, to: MemberId) {
    let (currencies, limits) = (settings().currencies, BTreeMap::new());
    let wallets: Vec<WalletKey> = BTreeSet::from([from, to])
        .into_iter()
        .map(|member| WalletKey { member, currency: code("KRW") })
        .collect();
    let ledger = LedgerReadSet { wallets: wallets.clone(), ..LedgerReadSet::default() };
    let plan = ReadSet { shards: ShardSet::of(0), ledger, ..ReadSet::default() };
    let post = &mut |loaded: &Loaded| {
        let mut book = LedgerWorkingSet::new(&currencies, &limits);
        let rows = wallets.iter().zip(&loaded.ledger.wallets);
        rows.for_each(|(key, wallet)| book.load_wallet(*key, wallet.clone()));
        book.post(TransferId(Uuid::new(at, 7)), &order(TransferKind::Transfer { from, to }, 5), at).unwrap();
        let LedgerWrites { wallets, transfers, entries, totals, .. } = book.into_writes();
        let totals = totals.into_rows();
        let ledger = LedgerWriteSet { wallets, transfers, entries, totals, ..LedgerWriteSet::default() };
        WriteSet { ledger, ..WriteSet::default() }
    };
    while let Err(error) = store.run(&plan, post) {
        assert!(matches!(error, StoreError::Conflict(_)), "{error}");
    }
}

/// Servers whose clocks differ: a transfer of November is stored after one of December, before and after November is archived.
#[test]
fn ids_in_another_order_than_entries_are_no_finding() {
    let made = |world: &World| {
        let [ann, bob] = [("ann", 1_000), ("bob", 500)].map(|(name, units)| world.member(name, units));
        let december = november().next().start();
        let post = |seconds: i64, from, to| {
            post_at(&*world.tally.store, december.plus(seconds * 1_000_000), from, to);
        };
        // The last row of Ann is one of December, and that of Bob one of November.
        [1, -3, 2, -2].into_iter().for_each(|seconds| post(seconds, ann, bob));
        let cid = world.member("cid", 10);
        post(3, ann, cid);
        world.advance(20 * DAY);
        archive_all(world, "2023-12");
        [-1, 4].into_iter().for_each(|seconds| post(seconds, bob, ann));
    };
    for (place, ()) in Place::each(made) {
        let both = |store: &dyn Store| [verify(store), verify_since(store, Some(november()))];
        let [whole, since] = place.broken(&[], "", both);
        assert_eq!((whole.1, since.1), (vec![], vec![]));
        assert_eq!((whole.0.transfers, since.0.transfers), (10, 5));
        assert_eq!((whole.0.entries, since.0.entries), (17, 10));
    }
}
