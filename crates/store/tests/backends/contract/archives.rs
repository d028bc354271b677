//! Months of the ledger in files: every read is as before, at every step, and what goes wrong leaves nothing behind.

use super::ledger::{change, changes_of, member_id, prove, twice, wallet_key};
use super::*;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tally_rules::ledger::working_set::LedgerWorkingSet;
use tally_rules::ledger::{
    Amount, Currencies, Currency, Entry, EntryKey, Month, Transfer, TransferId, TransferKind,
    TransferRequest, Uuid, Wallet, WalletKey,
};
use tally_rules::{Actor, Origin};
use tally_store::archive::{ArchiveStep, ArchivedMonth, MonthState, step, to_archive};
use tally_store::{LedgerReadSet, LedgerWriteSet, Redacted};

const MEMBERS: u8 = 3;
const HOUR: i64 = 3_600_000_000;
/// Transfers of a month.
const OF_MONTH: i64 = 620;
/// Transfers whose rows a step deletes: fewer.
const DELETED: usize = 500;

/// After every id.
pub(crate) fn last() -> TransferId {
    TransferId(Uuid([0xff; 16]))
}

pub(crate) fn month(text: &str) -> Month {
    Month::parse(text).unwrap()
}

/// Transfers of three months in a row among some members, every seventh with words.
pub(crate) fn fill(store: &dyn Store) {
    let (currencies, limits) = (Currencies::default(), BTreeMap::new());
    let mut book = LedgerWorkingSet::new(&currencies, &limits);
    (0..MEMBERS).for_each(|number| book.load_wallet(wallet_key(number, "KRW"), Some(Wallet::default())));
    for first in ["2025-11", "2025-12", "2026-01"] {
        let start = month(first).start();
        for number in 0..OF_MONTH {
            let member = |number: i64| member_id((number % i64::from(MEMBERS)) as u8);
            let what = match number % 3 {
                0 => TransferKind::Deposit { to: member(number / 3) },
                _ => TransferKind::Transfer { from: member(number / 3), to: member(number / 3 + 1) },
            };
            let reference = (number % 5 == 0).then(|| format!("order {number}").into());
            let words = |text: &str| (number % 7 == 0).then(|| text.into());
            book.set_origin(Origin {
                actor: Actor::Local,
                reason: words("Zoë asked"),
                metadata: words("{\"a\":1}"),
            });
            let amount = Amount::new(if number % 3 == 0 { 5 } else { 2 }).unwrap();
            let order = TransferRequest { what, currency: currencies.home(), amount, reference };
            let id = TransferId(Uuid::new(start.plus(number * HOUR), 64));
            book.post(id, &order, Micros(0)).unwrap();
        }
    }
    change(store, changes_of(book.into_writes()));
}

/// Everything that reads give of transfers and entries.
#[derive(Debug, PartialEq)]
pub(crate) struct Seen {
    transfers: Vec<(TransferId, Transfer)>,
    oldest_first: Vec<(TransferId, Transfer)>,
    histories: Vec<Vec<(u64, Entry)>>,
    of_snapshot: Vec<(TransferId, Transfer)>,
    entries_of_snapshot: Vec<(EntryKey, Entry)>,
}

pub(crate) fn look(store: &dyn Store) -> Seen {
    let ledger = store.ledger();
    let (mut transfers, mut before) = (Vec::new(), last());
    loop {
        let page = ledger.list_transfers(before, 97).unwrap().whole().unwrap();
        let Some((last, _)) = page.last() else { break };
        before = *last;
        transfers.extend(page);
    }
    let (mut oldest_first, mut after) = (Vec::new(), TransferId(Uuid([0; 16])));
    loop {
        let page = ledger.recent_transfers(after, 89).unwrap().whole().unwrap();
        let Some((last, _)) = page.last() else { break };
        after = *last;
        oldest_first.extend(page);
    }
    let history = |number| {
        let wallet = wallet_key(number, "KRW");
        let last = ledger.wallets_of(wallet.member).unwrap()[0].1.sequence;
        let (mut all, mut until) = (Vec::new(), last + 1);
        while until > 1 {
            let from = until.saturating_sub(71).max(1);
            all.extend(ledger.history(wallet, from..until).unwrap());
            until = from;
        }
        assert_eq!(ledger.history(wallet, 1..u64::MAX).unwrap(), all);
        all
    };
    let mut snapshot = ledger.snapshot().unwrap();
    let (mut of_snapshot, mut entries_of_snapshot) = (Vec::new(), Vec::new());
    loop {
        let after = of_snapshot.last().map(|(id, _): &(TransferId, Transfer)| *id);
        let page = snapshot.transfers(after, 101).unwrap();
        let is_last = page.len() < 101;
        of_snapshot.extend(page);
        if is_last {
            break;
        }
    }
    loop {
        let after = entries_of_snapshot.last().map(|(key, _): &(EntryKey, Entry)| *key);
        let page = snapshot.entries(after, 103).unwrap();
        let is_last = page.len() < 103;
        entries_of_snapshot.extend(page);
        if is_last {
            break;
        }
    }
    let ids: Vec<TransferId> = of_snapshot.iter().map(|(id, _)| *id).collect();
    let rows: Vec<_> = of_snapshot.iter().map(|(_, row)| Some(row.clone())).collect();
    assert_eq!(ledger.transfers(&ids).unwrap(), rows);
    assert_eq!(snapshot.transfers_of(&ids).unwrap(), rows);
    assert_eq!(ledger.transfer(ids[7]).unwrap(), rows[7]);
    let keys: Vec<EntryKey> = entries_of_snapshot.iter().map(|(key, _)| *key).collect();
    let rows: Vec<_> = entries_of_snapshot.iter().map(|(_, row)| Some(row.clone())).collect();
    assert_eq!(ledger.entries(&keys).unwrap(), rows);
    assert_eq!(snapshot.entries_of(&keys).unwrap(), rows);
    drop(snapshot);
    let histories = (0..MEMBERS).map(history).collect();
    Seen { transfers, oldest_first, histories, of_snapshot, entries_of_snapshot }
}

/// Asks for months to be archived.
pub(crate) fn ask(store: &dyn Store, months: &[Month]) {
    let archives = months.iter().map(|month| (*month, ArchivedMonth::requested())).collect();
    change(store, LedgerWriteSet { archives, ..Default::default() });
}

pub(crate) fn one_step(store: &dyn Store) -> ArchiveStep {
    step_of(store, DELETED)
}

/// A step that deletes the rows of at most so many transfers.
fn step_of(store: &dyn Store, deleted_max: usize) -> ArchiveStep {
    loop {
        match step(store, deleted_max, &mut || true) {
            Err(StoreError::Conflict(_)) => std::thread::yield_now(),
            done => return done.unwrap(),
        }
    }
}

fn finish(store: &dyn Store) {
    while one_step(store) != ArchiveStep::Nothing {}
}

/// The files of the store's archives.
fn files(store: &dyn Store) -> Vec<PathBuf> {
    let folder = store.ledger().archives().folder().unwrap();
    let mut all: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

pub(crate) fn archived_months_are_read_as_before(backend: &dyn Backend) {
    let store = open(backend);
    assert_eq!(to_archive(store.ledger(), month("2026-01")).unwrap(), []);
    fill(&*store);
    let before = look(&*store);
    assert_eq!(before.transfers.len(), 3 * OF_MONTH as usize);
    let months = to_archive(store.ledger(), month("2026-01")).unwrap();
    assert_eq!(months, [month("2025-11"), month("2025-12")]);
    ask(&*store, &months);
    assert_eq!(look(&*store), before);
    let mut steps = Vec::new();
    loop {
        // The second month is deleted in one step.
        let done = step_of(&*store, if steps.len() < 3 { DELETED } else { 2 * DELETED });
        assert!(look(&*store) == before, "{done:?}");
        if done == ArchiveStep::Nothing {
            break;
        }
        steps.push(done);
        // Some steps find rows in the tables, and others in what is not flushed yet.
        if steps.len() % 2 == 0 {
            store.checkpoint().unwrap();
        }
    }
    let [first, second] = [months[0], months[1]];
    let first = [ArchiveStep::Wrote(first), ArchiveStep::Deleted(first), ArchiveStep::Done(first)];
    assert_eq!(steps, [&first[..], &[ArchiveStep::Wrote(second), ArchiveStep::Done(second)]].concat());
    assert_eq!(to_archive(store.ledger(), month("2026-01")).unwrap(), []);
    let store = twice(backend, store, |store| {
        assert!(look(store) == before);
        assert_eq!(prove(store, MEMBERS), before_sum(&before));
        let catalog = store.ledger().archived_months().unwrap();
        assert!(catalog.iter().all(|(_, row)| row.state == MonthState::Done));
        let rows: Vec<u64> =
            catalog.iter().map(|(_, row)| row.files.as_ref().unwrap().transfers.rows).collect();
        assert_eq!(rows, [OF_MONTH as u64; 2]);
        assert_eq!(files(store).len(), 4);
    });
    // Words of an archived transfer are in its table, and go from there.
    let (id, worded) = before.transfers.iter().find(|(_, row)| row.origin.has_words()).unwrap().clone();
    assert!(before.transfers.iter().any(|(id, row)| row.origin.has_words() && id.0.at() < months[1].start()));
    let silent = Transfer { origin: worded.origin.without_words(), ..worded };
    let redacted = Redacted { transfers: vec![(id, silent.clone())], ..Redacted::default() };
    write(&*store, &WriteSet { redacted, ..WriteSet::default() }).unwrap();
    twice(backend, store, |store| assert_eq!(store.ledger().transfer(id).unwrap(), Some(silent.clone())));
}

fn before_sum(seen: &Seen) -> i64 {
    seen.histories.iter().map(|history| history.first().map_or(0, |(_, entry)| entry.after)).sum()
}

pub(crate) fn a_stopped_or_failed_attempt_leaves_no_files(backend: &dyn Backend) {
    let store = open(backend);
    fill(&*store);
    let before = look(&*store);
    ask(&*store, &[month("2025-11")]);
    assert_eq!(step(&*store, DELETED, &mut || false).unwrap(), ArchiveStep::Stopped);
    assert_eq!(files(&*store), Vec::<PathBuf>::new());
    // A transfer without its entry.
    let wallet = WalletKey { member: member_id(9), currency: Currency::parse("KRW").unwrap() };
    let id = TransferId(Uuid::new(month("2025-11").start(), 0));
    let lonely = Transfer { credit: Some((wallet.member, 1)), ..before.transfers.last().unwrap().1.clone() };
    change(&*store, LedgerWriteSet { transfers: vec![(id, lonely.clone())], ..Default::default() });
    for _ in 0..2 {
        let failed = step(&*store, DELETED, &mut || true).unwrap_err();
        assert!(matches!(&failed, StoreError::CorruptRow(row) if row.table == "entries"), "{failed}");
        assert_eq!(files(&*store), Vec::<PathBuf>::new());
    }
    let entry = Entry { transfer: id, after: 5, amount: lonely.amount, ..before.histories[0][0].1.clone() };
    let key = EntryKey { wallet, sequence: 1 };
    change(&*store, LedgerWriteSet { entries: vec![(key, entry.clone())], ..Default::default() });
    // Files that a killed server has left.
    let folder = store.ledger().archives().folder().unwrap().to_owned();
    std::fs::write(folder.join("2025-11-0123456789abcdef.entries.part"), b"half").unwrap();
    finish(&*store);
    assert_eq!(files(&*store).len(), 2);
    assert_eq!(store.ledger().entries(&[key]).unwrap(), [Some(entry)]);
}

pub(crate) fn of_two_attempts_one_is_kept(backend: &dyn Backend) {
    let store = open(backend);
    fill(&*store);
    let before = look(&*store);
    ask(&*store, &[month("2025-11")]);
    let is_first = Cell::new(true);
    let first = step(&*store, DELETED, &mut || {
        if is_first.replace(false) {
            assert_eq!(one_step(&*store), ArchiveStep::Wrote(month("2025-11")));
        }
        true
    });
    // Its files were removed by the other one, or its month was no longer its own.
    assert!(matches!(first, Ok(ArchiveStep::Stopped) | Err(StoreError::Archive { .. })), "{first:?}");
    assert_eq!(files(&*store).len(), 2);
    finish(&*store);
    twice(backend, store, |store| assert!(look(store) == before));
}

pub(crate) fn a_file_that_is_missing_or_changed_is_named(backend: &dyn Backend) {
    let store = open(backend);
    fill(&*store);
    let before = look(&*store);
    ask(&*store, &[month("2025-11"), month("2025-12")]);
    finish(&*store);
    let wallet = wallet_key(0, "KRW");
    let plan = LedgerReadSet { archives: vec![month("2025-11")], ..Default::default() };
    let loaded = super::ledger::read(&*store, plan);
    let attempt = loaded.archives[0].as_ref().unwrap().attempt;
    drop(store);
    let names_it = |error: StoreError, name: &str| {
        assert!(matches!(&error, StoreError::Archive { file, .. } if file == name), "{name}: {error:?}");
    };
    for of in ["transfers", "entries"] {
        let name = format!("2025-11-{attempt:016x}.{of}");
        let path = open(backend).ledger().archives().folder().unwrap().join(&name);
        let whole = std::fs::read(&path).unwrap();
        let damages: [&dyn Fn(); 3] = [
            &|| std::fs::remove_file(&path).unwrap(),
            &|| {
                let mut other = whole.clone();
                let at = whole.len() / 3;
                other[at] ^= 1;
                std::fs::write(&path, other).unwrap();
            },
            &|| std::fs::write(&path, &whole[..whole.len() - 1]).unwrap(),
        ];
        for damage in damages {
            damage();
            let store = open(backend);
            let ledger = store.ledger();
            let read = || {
                ledger.list_transfers(last(), 9_999)?;
                ledger.history(wallet, 1..u64::MAX).map(drop)
            };
            names_it(read().unwrap_err(), &name);
            let read = || {
                let mut snapshot = ledger.snapshot()?;
                snapshot.transfers(None, 9_999)?;
                snapshot.entries(None, 9_999).map(drop)
            };
            names_it(read().unwrap_err(), &name);
            std::fs::write(&path, &whole).unwrap();
        }
    }
    assert!(look(&*open(backend)) == before);
    // A month that is not that of the chain.
    let store = open(backend);
    let (first, row) = store.ledger().archived_months().unwrap().remove(0);
    let mut files = row.files.clone().unwrap();
    files.digest[0] ^= 1;
    let archives = vec![(first, ArchivedMonth { files: Some(files), ..row })];
    run(
        &*store,
        &ReadSet {
            ledger: LedgerReadSet { archives: vec![first], ..Default::default() },
            ..ReadSet::default()
        },
        &mut |_| {
            let ledger = LedgerWriteSet { archives: archives.clone(), ..Default::default() };
            WriteSet { ledger, ..WriteSet::default() }
        },
    )
    .unwrap();
    assert!(matches!(store.ledger().snapshot().map(drop), Err(StoreError::Archive { .. })));
}
