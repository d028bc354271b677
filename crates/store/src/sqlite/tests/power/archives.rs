//! Power cuts and failed operations while a month of the ledger is archived: no transfer is lost, and each attempt after it ends.

use super::*;
use crate::archive::{ArchivedMonth, step};
use crate::webhooks::WebhookReads;
use crate::{Ledger, LedgerWriteSet, Transactions};
use tally_rules::Origin;
use tally_rules::ledger::{
    Currency, Entry, EntryKey, EntryKind, MemberId, Month, Transfer, TransferId, Uuid, WalletKey,
};
use tally_testkit::disk::{DiskError, DiskFault, PowerCut, scratch_folder};

/// The test stops at one in this many operations; `TALLY_SOAK` makes it all of them.
const STRIDE: u64 = 5;
const TRANSFERS: u64 = 40;

type Rows = (Vec<(TransferId, Transfer)>, Vec<(u64, Entry)>);

fn wallet() -> WalletKey {
    WalletKey { member: MemberId(Uuid([1; 16])), currency: Currency::parse("KRW").unwrap() }
}

/// Transfers of one month, and one of the next.
fn rows() -> Rows {
    let month = Month::parse("2025-11").unwrap();
    let at =
        |number| if number == TRANSFERS { month.next().start() } else { month.start().plus(number as i64) };
    let row = |number: u64| {
        let id = TransferId(Uuid::new(at(number), 0));
        let (kind, amount, credit) = (EntryKind::Deposit, 1, Some((wallet().member, number)));
        let transfer = Transfer {
            kind,
            reverses: None,
            currency: wallet().currency,
            amount,
            debit: None,
            credit,
            origin: Origin::default(),
        };
        let after = number as i64;
        let entry = Entry { transfer: id, kind, amount, after, counterparty: None, reference: None };
        ((id, transfer), (number, entry))
    };
    (1..=TRANSFERS).map(row).unzip()
}

fn open_at(disk: &Arc<SimulatedDisk>) -> Result<SqliteStore, StoreError> {
    let archives = Some(disk.folder().to_owned());
    SqliteStore::open(&path_on(disk), &Options { archives, ..options(disk) })
}

fn fill(store: &SqliteStore) -> Result<(), StoreError> {
    let (transfers, entries) = rows();
    let entries =
        entries.into_iter().map(|(sequence, entry)| (EntryKey { wallet: wallet(), sequence }, entry));
    let archives = vec![(Month::parse("2025-11").unwrap(), ArchivedMonth::requested())];
    let ledger =
        LedgerWriteSet { transfers, entries: entries.collect(), archives, ..LedgerWriteSet::default() };
    let changes = WriteSet { ledger, ..WriteSet::default() };
    store.run(&ReadSet::default(), &mut |_| changes.clone()).map(drop)
}

fn finish(store: &SqliteStore) -> Result<(), StoreError> {
    while step(store, 500, &mut || true)? != crate::archive::ArchiveStep::Nothing {
        store.work()?;
    }
    store.work()
}

fn seen(store: &SqliteStore) -> Rows {
    let transfers = store.recent_transfers(TransferId(Uuid([0; 16])), 1_000).unwrap().whole().unwrap();
    let mut entries = store.history(wallet(), 1..u64::MAX).unwrap();
    entries.reverse();
    (transfers, entries)
}

fn archive_files(disk: &SimulatedDisk) -> Vec<String> {
    let names = std::fs::read_dir(disk.folder()).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("2025-11")).collect()
}

/// All of it, and whether the rows were acknowledged.
fn all(disk: &Arc<SimulatedDisk>) -> bool {
    let Ok(store) = open_at(disk) else { return false };
    let filled = fill(&store).is_ok();
    let _cut_short = finish(&store);
    filled
}

fn operations() -> u64 {
    let disk = SimulatedDisk::new();
    assert!(all(&disk));
    assert_eq!(archive_files(&disk).len(), 2);
    disk.operations()
}

#[test]
fn a_power_cut_while_a_month_is_archived_loses_no_transfer() {
    let mut rng = Rng::of("power cuts of archives");
    let stride = usize::try_from((STRIDE / soak()).max(1)).unwrap();
    for at in (1..=operations()).step_by(stride) {
        let disk = SimulatedDisk::new();
        disk.stop_at(at);
        let filled = all(&disk);
        for image in 0..3 {
            let scratch = scratch_folder();
            let place = scratch.path().join("image");
            match image {
                0 => disk.image_of(PowerCut::DropAll, &place),
                1 => disk.image_of(PowerCut::KeepAll, &place),
                _ => disk.image(&mut rng, &place),
            }
            .unwrap();
            let after = SimulatedDisk::at(&place);
            let store = open_at(&after).unwrap();
            let found = seen(&store);
            assert!(
                found == rows() || !filled && found.0.is_empty(),
                "cut at {at}, image {image}: {found:?}"
            );
            finish(&store).unwrap_or_else(|error| panic!("cut at {at}, image {image}: {error}"));
            assert!(seen(&store) == found, "cut at {at}, image {image}");
            assert_eq!(archive_files(&after).len(), if found.0.is_empty() { 0 } else { 2 }, "cut at {at}");
        }
    }
}

#[test]
fn a_disk_error_while_a_month_is_archived_leaves_nothing_behind() {
    let stride = usize::try_from((STRIDE / soak()).max(1)).unwrap();
    for at in (1..=operations()).step_by(stride) {
        let disk = SimulatedDisk::new();
        disk.fail(DiskFault::new(at, DiskError::Io));
        // The failed operation may be one of opening or of filling: the rows are written then, or they are not.
        let store = match open_at(&disk).or_else(|_| open_at(&disk)) {
            Ok(store) => store,
            Err(_) => continue,
        };
        if fill(&store).is_err() {
            continue;
        }
        for _ in 0..3 {
            if finish(&store).is_ok() {
                break;
            }
        }
        finish(&store).unwrap_or_else(|error| panic!("operation {at}: {error}"));
        assert!(seen(&store) == rows(), "operation {at}");
        assert_eq!(archive_files(&disk).len(), 2, "operation {at}");
    }
}
