//! The whole ledger, page by page: every row once, in order, wherever it is kept, and all of one moment.

use super::ledger::{a_member, entry, member_id, origin, wallet, wallet_key};
use super::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use tally_rules::ledger::account::{Account, AccountKey, Total};
use tally_rules::ledger::entry::EntryKey;
use tally_rules::ledger::hold::HoldEnd;
use tally_rules::ledger::member::{Handle, Login, Phone};
use tally_rules::ledger::{
    Currency, Entry, EntryKind, Hold, HoldId, Member, MemberId, NameKey, ReversalLink, Transfer, TransferId,
    Uuid, Wallet, WalletKey,
};
use tally_store::snapshot::{RowPage, Snapshot};
use tally_store::{Ledger, LedgerWriteSet};

/// The written rows, table by table.
#[derive(Default)]
struct Model {
    members: BTreeMap<MemberId, Member>,
    handles: BTreeMap<Handle, MemberId>,
    wallets: BTreeMap<WalletKey, Wallet>,
    entries: BTreeMap<EntryKey, Entry>,
    transfers: BTreeMap<TransferId, Transfer>,
    holds: BTreeMap<HoldId, Hold>,
    reversals: BTreeMap<TransferId, ReversalLink>,
    totals: BTreeMap<AccountKey, Total>,
}

fn id(number: u8) -> Uuid {
    Uuid([number; 16])
}

impl Model {
    fn write(&mut self, store: &dyn Store, ledger: LedgerWriteSet) {
        self.members.extend(ledger.members.iter().cloned());
        for (handle, member) in &ledger.handles {
            match member {
                Some(member) => drop(self.handles.insert(handle.clone(), *member)),
                None => drop(self.handles.remove(handle)),
            }
        }
        self.wallets.extend(ledger.wallets.iter().cloned());
        self.entries.extend(ledger.entries.iter().cloned());
        self.transfers.extend(ledger.transfers.iter().cloned());
        self.holds.extend(ledger.holds.iter().cloned());
        self.reversals.extend(ledger.reversals.iter().cloned());
        for (key, more) in &ledger.totals {
            let total = self.totals.entry(*key).or_default();
            *total = total.plus(*more);
        }
        write(store, &WriteSet { ledger, ..WriteSet::default() }).unwrap();
    }

    fn check(&self, snapshot: &mut dyn Snapshot, limit: usize) {
        same(&self.members, limit, |after| snapshot.members(after.copied(), limit));
        same(&self.handles, limit, |after| snapshot.handles(after, limit));
        same(&self.wallets, limit, |after| snapshot.wallets(after.copied(), limit));
        same(&self.entries, limit, |after| snapshot.entries(after.copied(), limit));
        same(&self.transfers, limit, |after| snapshot.transfers(after.copied(), limit));
        same(&self.holds, limit, |after| snapshot.holds(after.copied(), limit));
        same(&self.reversals, limit, |after| snapshot.reversals(after.copied(), limit));
        let totals: Vec<_> = self.totals.iter().map(|(key, total)| (*key, *total)).collect();
        assert_eq!(snapshot.totals().unwrap(), totals);
        // Some that exist and some that do not.
        let wanted = |number: u8| EntryKey { wallet: wallet_key(number, "KRW"), sequence: 1 };
        let keys: Vec<EntryKey> = (0..=u8::MAX).map(wanted).collect();
        let found: Vec<_> = keys.iter().map(|key| self.entries.get(key).cloned()).collect();
        assert_eq!(snapshot.entries_of(&keys).unwrap(), found);
        let ids: Vec<TransferId> = (0..=u8::MAX).map(|number| TransferId(id(number))).collect();
        let found: Vec<_> = ids.iter().map(|id| self.transfers.get(id).cloned()).collect();
        assert_eq!(snapshot.transfers_of(&ids).unwrap(), found);
        let found: Vec<_> = ids.iter().map(|id| self.reversals.get(id).cloned()).collect();
        assert_eq!(snapshot.reversals_of(&ids).unwrap(), found);
        let ids: Vec<MemberId> = (0..=u8::MAX).map(|number| MemberId(id(number))).collect();
        let found: Vec<_> = ids.iter().map(|id| self.members.get(id).cloned()).collect();
        assert_eq!(snapshot.members_of(&ids).unwrap(), found);
        let handles: BTreeSet<Handle> = (0..=u8::MAX).flat_map(handles_of).collect();
        let handles: Vec<Handle> = handles.into_iter().collect();
        let found: Vec<_> = handles.iter().map(|handle| self.handles.get(handle).copied()).collect();
        assert_eq!(snapshot.handles_of(&handles).unwrap(), found);
        assert_eq!((snapshot.members_of(&[]).unwrap(), snapshot.handles_of(&[]).unwrap()), (vec![], vec![]));
        assert_eq!(snapshot.reversals_of(&[]).unwrap(), []);
        assert_eq!(
            (snapshot.entries_of(&[]).unwrap(), snapshot.transfers_of(&[]).unwrap()),
            (vec![], vec![])
        );
    }
}

/// Scans to the end, page by page.
fn same<K: Clone + Ord + Debug, V: Clone + PartialEq + Debug>(
    model: &BTreeMap<K, V>,
    limit: usize,
    mut page: impl FnMut(Option<&K>) -> RowPage<K, V>,
) {
    let mut found: Vec<(K, V)> = Vec::new();
    loop {
        let more = page(found.last().map(|(key, _)| key)).unwrap();
        assert!(more.len() <= limit);
        let ended = more.len() < limit;
        found.extend(more);
        if ended {
            break;
        }
    }
    let wanted: Vec<(K, V)> = model.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    assert_eq!(found.len(), wanted.len());
    found.iter().zip(&wanted).for_each(|(found, wanted)| assert_eq!(found, wanted));
}

/// The handles of a number.
fn handles_of(number: u8) -> [Handle; 4] {
    let player = PlayerId::new(&format!("{number}\0")).unwrap();
    [
        Handle::Name(NameKey::new(&format!("Zoë {}", number % 9), member_id(number))),
        Handle::Login(Login::new(&format!("Zoë {number}")).unwrap()),
        Handle::Phone(Phone::parse(&format!("010-{number:04}"), None).unwrap()),
        Handle::Player(player),
    ]
}

/// Handles in their order: those of some numbers are free.
fn handles(
    numbers: impl Iterator<Item = u8>,
    nobodys: impl Fn(u8) -> bool,
) -> Vec<(Handle, Option<MemberId>)> {
    let given =
        |number| handles_of(number).map(|handle| (handle, (!nobodys(number)).then(|| member_id(number))));
    let mut all: Vec<_> = numbers.flat_map(given).collect();
    all.sort();
    all
}

/// Rows of all tables whose keys are those numbers; `amount` distinguishes one write from another.
fn rows(numbers: impl Iterator<Item = u8> + Clone, amount: i64) -> LedgerWriteSet {
    let currency = Currency::parse("KRW").unwrap();
    let member =
        |number: u8| (member_id(number), a_member(&format!("{number} {amount}"), number.is_multiple_of(2)));
    let wallets = numbers.clone().flat_map(|number| {
        let codes: &[&str] = if number.is_multiple_of(3) { &["GOLD", "GOLDEN", "KRW"] } else { &["KRW"] };
        codes.iter().map(move |code| (wallet_key(number, code), wallet(amount, number.into())))
    });
    let entries = numbers.clone().flat_map(|number| {
        let key = move |sequence| EntryKey { wallet: wallet_key(number, "KRW"), sequence };
        [1, 2, 300].map(|sequence| (key(sequence), entry(number, amount, amount, number.is_multiple_of(2))))
    });
    let transfer = |number: u8| {
        let credit = (number.is_multiple_of(2)).then_some((member_id(number), u64::MAX >> 1));
        let debit = Some((member_id(1), 7));
        let (kind, origin) = (EntryKind::Capture, origin(number));
        let transfer = Transfer { kind, reverses: None, currency, amount, debit, credit, origin };
        (TransferId(id(number)), transfer)
    };
    let link = |number: u8| {
        let original = TransferId(id(1));
        let reversed = ReversalLink::Reversed(vec![(TransferId(id(number)), amount)]);
        let reverses = ReversalLink::Reverses { original, reason: Some(amount.to_string().into()) };
        (TransferId(id(number)), if number.is_multiple_of(2) { reversed } else { reverses })
    };
    let hold = |number: u8| {
        let end = HoldEnd::Captured { amount: 1, to: None, transfer: TransferId(id(number)) };
        let end = (number.is_multiple_of(2)).then_some((end, Micros(5)));
        // Only the end of a hold ever changes.
        let end = end.filter(|_| amount > 10);
        let ended_by = end.map(|_| origin(number + 1)).unwrap_or_default();
        let (wallet, origin) = (wallet_key(1, "KRW"), origin(number));
        (HoldId(id(number)), Hold { wallet, amount: 50, expires_at: None, origin, end, ended_by })
    };
    let total = (AccountKey { account: Account::Fees, currency }, Total { debits: 1, credits: 2 });
    LedgerWriteSet {
        handles: handles(numbers.clone(), |_| false),
        members: numbers.clone().map(member).collect(),
        wallets: wallets.collect(),
        entries: entries.collect(),
        transfers: numbers.clone().map(transfer).collect(),
        reversals: numbers.clone().map(link).collect(),
        holds: numbers.map(hold).collect(),
        totals: vec![total],
        ..LedgerWriteSet::default()
    }
}

/// Rows that may change are changed, those that never do are not.
fn changed(numbers: impl Iterator<Item = u8> + Clone, amount: i64) -> LedgerWriteSet {
    // Of handles some go.
    let handles = handles(numbers.clone(), |number| number.is_multiple_of(20));
    LedgerWriteSet { handles, entries: Vec::new(), transfers: Vec::new(), ..rows(numbers, amount) }
}

pub(crate) fn every_row_is_walked_once_in_order_of_keys(backend: &dyn Backend) {
    let (mut store, mut model) = (open(backend), Model::default());
    model.check(&mut *store.ledger().snapshot().unwrap(), 10);
    assert_eq!(store.ledger().snapshot().unwrap().rows().unwrap(), 0);
    model.write(&*store, rows((0..250).step_by(5), 10));
    store.checkpoint().unwrap();
    model.write(&*store, rows((3..250).step_by(5), 20));
    model.write(&*store, changed((0..100).step_by(10), 30));
    for _ in 0..2 {
        for limit in [1, 2, 7, 50, 100, 10_000] {
            model.check(&mut *store.ledger().snapshot().unwrap(), limit);
        }
        assert!(store.ledger().snapshot().unwrap().rows().unwrap() > 100);
        drop(store);
        store = open(backend);
    }
}

pub(crate) fn books_stay_as_they_were_at_their_moment(backend: &dyn Backend) {
    let (store, mut model) = (open(backend), Model::default());
    model.write(&*store, rows((0..250).step_by(5), 10));
    let ledger: &dyn Ledger = store.ledger();
    let mut snapshot = ledger.snapshot().unwrap();
    let mut now = Model::default();
    now.write(&*store, rows((3..250).step_by(5), 20));
    now.write(&*store, changed((0..100).step_by(10), 30));
    for settled in [false, true] {
        model.check(&mut *snapshot, 7);
        assert!(ledger.member(member_id(3)).unwrap().is_some(), "nobody who writes waits for it");
        if !settled {
            store.checkpoint().unwrap();
        }
    }
    drop(snapshot);
    // The next reader reads the present.
    let mut later = ledger.snapshot().unwrap();
    assert_eq!(later.members(Some(member_id(2)), 1).unwrap()[0].0, member_id(3));
    assert_eq!(ledger.wallets_of(member_id(10)).unwrap()[0].1.balance, 30);
}
