//! Members and money: rows read back by every way, and transfers from all sides at once that end in books that agree.

use super::*;
use std::collections::BTreeMap;
use tally_rules::clock::DecisionTime;
use tally_rules::ledger::account::{Account, AccountKey, Total, Totals};
use tally_rules::ledger::entry::EntryKey;
use tally_rules::ledger::hold::{Ending, HoldEnd};
use tally_rules::ledger::limits::Spent;
use tally_rules::ledger::member::{Handle, HandleKind, Login, Phone, Pin, SECRET_NUMBERS};
use tally_rules::ledger::pin::Attempts;
use tally_rules::ledger::transfer_request::LedgerWrites;
use tally_rules::ledger::working_set::LedgerWorkingSet;
use tally_rules::ledger::{
    Amount, Currencies, Currency, Entry, EntryKind, Hold, HoldId, Member, MemberId, ReversalLink, Transfer,
    TransferId, TransferKind, TransferRequest, Uuid, Wallet, WalletKey,
};
use tally_rules::{Actor, KeyId, Origin};
use tally_store::{LedgerReadSet, LedgerWriteSet};
use tally_testkit::Rng;
use tally_testkit::rng::soak;

pub(crate) fn member_id(number: u8) -> MemberId {
    MemberId(Uuid([number; 16]))
}

pub(crate) fn wallet_key(member: u8, currency: &str) -> WalletKey {
    WalletKey { member: member_id(member), currency: Currency::parse(currency).unwrap() }
}

pub(crate) fn wallet(balance: i64, sequence: u64) -> Wallet {
    Wallet {
        balance,
        held: balance / 2,
        sequence,
        closed: balance % 2 == 1,
        spent: Spent { day: -3, units: 7 },
        credits: None,
    }
}

pub(crate) fn a_member(name: &str, full: bool) -> Member {
    Member {
        login: Login::new(name).unwrap(),
        phone: full.then(|| Phone::parse("010-1234-5678", None).unwrap()),
        player: PlayerId::new(&format!("{name}\0")).unwrap(),
        name: "Zoë 日本".into(),
        password: full.then(|| "$argon2id$…".into()),
        pin: full.then_some(Pin { mac: [0xfe; 32], digits: 4, secret: 0 }),
        attempts: Attempts { wrong: 3, locked_until: full.then_some(Micros(-5)) },
        tokens_from: Micros(i64::MIN),
        closed_at: full.then_some(Micros(i64::MAX)),
    }
}

pub(crate) fn entry(transfer: u8, amount: i64, after: i64, full: bool) -> Entry {
    Entry {
        transfer: TransferId(Uuid([transfer; 16])),
        kind: if full { EntryKind::TransferOut } else { EntryKind::Deposit },
        amount,
        after,
        counterparty: full.then(|| member_id(9)),
        reference: full.then(|| "Grüße\0".into()),
    }
}

pub(crate) fn change(store: &dyn Store, ledger: LedgerWriteSet) {
    write(store, &WriteSet { ledger, ..WriteSet::default() }).unwrap();
}

pub(crate) fn read(store: &dyn Store, ledger: LedgerReadSet) -> tally_store::LedgerLoaded {
    load(store, &ReadSet { ledger, ..ReadSet::default() }).ledger
}

/// Reads the store as it is, and again after it was opened anew.
pub(crate) fn twice(
    backend: &dyn Backend,
    store: Box<dyn Store>,
    look: impl Fn(&dyn Store),
) -> Box<dyn Store> {
    look(&*store);
    drop(store);
    let store = open(backend);
    look(&*store);
    store
}

pub(crate) fn members_read_back_by_id_and_by_what_they_are_found_by(backend: &dyn Backend) {
    let store = open(backend);
    // Of the last number of a secret.
    let pin = Some(Pin { mac: [0xfd; 32], digits: 8, secret: SECRET_NUMBERS - 1 });
    let ann = Member { pin, ..a_member("ann", true) };
    let rows = [(member_id(1), ann), (member_id(0xff), a_member("Ann", false))];
    let of = |(id, member): &(MemberId, Member)| {
        member.handles(*id).into_iter().map(|one| (one, Some(*id))).collect()
    };
    let mut handles: Vec<(Handle, Option<MemberId>)> =
        rows.iter().flat_map(|row| -> Vec<_> { of(row) }).collect();
    handles.sort();
    change(
        &*store,
        LedgerWriteSet { members: rows.to_vec(), handles: handles.clone(), ..Default::default() },
    );
    let store = twice(backend, store, |store| {
        let plan = LedgerReadSet {
            handles: handles.iter().map(|(handle, _)| handle.clone()).collect(),
            members: vec![member_id(1), member_id(7), member_id(0xff)],
            ..Default::default()
        };
        let loaded = read(store, plan);
        assert_eq!(loaded.handles, handles.iter().map(|(_, member)| *member).collect::<Vec<_>>());
        assert_eq!(loaded.members, [Some(rows[0].1.clone()), None, Some(rows[1].1.clone())]);
        for (handle, member) in &handles {
            assert_eq!(store.ledger().member_of(handle).unwrap(), *member);
        }
        let (mut asked, mut found): (Vec<_>, Vec<_>) = handles.iter().cloned().unzip();
        assert_eq!(store.ledger().members_of(&asked).unwrap(), found);
        asked.insert(1, Handle::Login(Login::new("zzz-nobody").unwrap()));
        found.insert(1, None);
        let mut both: Vec<_> = asked.into_iter().zip(found).collect();
        both.sort();
        let (asked, found): (Vec<_>, Vec<_>) = both.into_iter().unzip();
        assert_eq!(store.ledger().members_of(&asked).unwrap(), found);
        assert_eq!(store.ledger().members_of(&[]).unwrap(), []);
        // By their beginnings: "Ann" and "ann" are two, and a phone number is no login.
        let prefixes = ["an", "010", "A", "anna"];
        for (kind, prefix) in HandleKind::ALL.into_iter().flat_map(|kind| prefixes.map(|one| (kind, one))) {
            let fits = |handle: &Handle| handle.kind() == kind && handle.as_str().starts_with(prefix);
            let wanted = handles.iter().filter(|(handle, _)| fits(handle));
            let wanted: Vec<_> = wanted.map(|(handle, member)| (handle.clone(), member.unwrap())).collect();
            let found = store.ledger().list_handles(kind, prefix, 9).unwrap().rows;
            assert_eq!(found, wanted, "{kind:?} {prefix}");
        }
        assert_eq!(store.ledger().member(rows[0].0).unwrap().as_ref(), Some(&rows[0].1));
        let ids = [member_id(1), member_id(7), member_id(0xff)];
        assert_eq!(store.ledger().members(&ids).unwrap(), loaded.members);
        assert_eq!(store.ledger().members(&[]).unwrap(), []);
        assert_eq!(store.ledger().member(member_id(7)).unwrap(), None);
    });
    // Another phone number: the old one is free.
    let (old, new) = (rows[0].1.phone.clone().unwrap(), Phone::parse("020", None));
    assert!(new.is_err(), "too short");
    let new = Phone::parse("0200", None).unwrap();
    let moved = Member { phone: Some(new.clone()), ..rows[0].1.clone() };
    let mut handles = vec![(Handle::Phone(old.clone()), None), (Handle::Phone(new.clone()), Some(rows[0].0))];
    handles.sort();
    change(
        &*store,
        LedgerWriteSet { members: vec![(rows[0].0, moved.clone())], handles, ..Default::default() },
    );
    twice(backend, store, |store| {
        assert_eq!(store.ledger().member_of(&Handle::Phone(old.clone())).unwrap(), None);
        assert_eq!(store.ledger().member_of(&Handle::Phone(new.clone())).unwrap(), Some(rows[0].0));
        assert_eq!(store.ledger().member(rows[0].0).unwrap().as_ref(), Some(&moved));
    });
}

/// One of many concurrent callers gets it; all see the winner.
pub(crate) fn a_login_has_one_member(backend: &dyn Backend) {
    let store = open(backend);
    let handle = Handle::Login(Login::new("wanted").unwrap());
    let winners: Vec<MemberId> = std::thread::scope(|scope| {
        let want = |number: u8| {
            let (store, handle) = (&*store, handle.clone());
            scope.spawn(move || {
                let ledger = LedgerReadSet { handles: vec![handle.clone()], ..Default::default() };
                let mut winner = member_id(number);
                run(store, &ReadSet { ledger, ..ReadSet::default() }, &mut |loaded| {
                    winner = loaded.ledger.handles[0].unwrap_or(member_id(number));
                    let handles = vec![(handle.clone(), Some(winner))];
                    WriteSet {
                        ledger: LedgerWriteSet { handles, ..Default::default() },
                        ..WriteSet::default()
                    }
                })
                .unwrap();
                winner
            })
        };
        let wanting: Vec<_> = (1..=6).map(want).collect();
        wanting.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let winner = store.ledger().member_of(&handle).unwrap();
    assert!(winners.iter().all(|one| Some(*one) == winner), "{winners:?} {winner:?}");
}

pub(crate) fn wallets_read_back_by_key_and_by_member(backend: &dyn Backend) {
    let store = open(backend);
    let rows = vec![
        (wallet_key(1, "EUR"), wallet(0, 0)),
        (wallet_key(1, "KRW"), wallet(9_000_000_000_000_000_000, i64::MAX.unsigned_abs())),
        (wallet_key(2, "EUR"), wallet(101, 2)),
    ];
    change(&*store, LedgerWriteSet { wallets: rows.clone(), ..Default::default() });
    store.checkpoint().unwrap();
    let newer = wallet(7, 3);
    let more = vec![(wallet_key(1, "ABC"), wallet(2, 1)), (wallet_key(2, "EUR"), newer.clone())];
    change(&*store, LedgerWriteSet { wallets: more.clone(), ..Default::default() });
    twice(backend, store, |store| {
        let of = |number| store.ledger().wallets_of(member_id(number)).unwrap();
        let named = |row: &(WalletKey, Wallet)| (row.0.currency, row.1.clone());
        assert_eq!(of(1), [named(&more[0]), named(&rows[0]), named(&rows[1])]);
        assert_eq!(of(2), [(rows[2].0.currency, newer.clone())]);
        assert_eq!(of(3), []);
        let wallets = vec![wallet_key(1, "EUR"), wallet_key(1, "GBP"), wallet_key(2, "EUR")];
        let loaded = read(store, LedgerReadSet { wallets, ..Default::default() });
        assert_eq!(loaded.wallets, [Some(rows[0].1.clone()), None, Some(newer.clone())]);
    });
}

/// An origin of each kind, with and without a reason.
pub(crate) fn origin(number: u8) -> Origin {
    let actors = [
        Actor::Unknown,
        Actor::Key(KeyId([0, 0x27, 0x5c, 0xff, number, 1])),
        Actor::Member(member_id(number)),
        Actor::CommandLine,
        Actor::Local,
        Actor::Background,
    ];
    let reason = (number.is_multiple_of(2)).then(|| "Grüße\0'".into());
    Origin { actor: actors[usize::from(number) % actors.len()], reason, metadata: None }
}

pub(crate) fn movements_read_back_with_their_entries(backend: &dyn Backend) {
    let store = open(backend);
    let at = |member, sequence| EntryKey { wallet: wallet_key(member, "KRW"), sequence };
    let transfer = |debit, credit| Transfer {
        kind: EntryKind::TransferOut,
        reverses: None,
        currency: Currency::parse("KRW").unwrap(),
        amount: 1_000_000_000_000_000,
        debit,
        credit,
        origin: Origin::default(),
    };
    let sides = [Some((member_id(1), 1)), Some((member_id(2), u64::MAX >> 1))];
    let mut transfers = vec![
        (TransferId(Uuid([1; 16])), transfer(sides[0], sides[1])),
        (TransferId(Uuid([2; 16])), transfer(None, sides[0])),
    ];
    // Reversals of each kind: of what they are is stored with them.
    for (number, original) in (0x10_u8..).zip(EntryKind::ALL) {
        let (debit, kind) = match original {
            EntryKind::ReversalOut | EntryKind::ReversalIn => continue,
            EntryKind::Withdrawal | EntryKind::Fee => (None, EntryKind::ReversalIn),
            _ => (sides[1], EntryKind::ReversalOut),
        };
        let back = Transfer { kind, reverses: Some(*original), ..transfer(debit, sides[0]) };
        transfers.push((TransferId(Uuid([number; 16])), Transfer { origin: origin(number), ..back }));
    }
    for number in 0x20..0x2c {
        let made = Transfer { origin: origin(number), ..transfer(None, sides[0]) };
        transfers.push((TransferId(Uuid([number; 16])), made));
    }
    transfers.push((TransferId(Uuid([0xff; 16])), transfer(sides[1], None)));
    let entries: Vec<_> = (1..=600).map(|number| (at(1, number), entry(1, 5, 2, number % 2 == 0))).collect();
    change(
        &*store,
        LedgerWriteSet { transfers: transfers.clone(), entries: entries.clone(), ..Default::default() },
    );
    store.checkpoint().unwrap();
    let last = vec![(at(1, 601), entry(2, 1, 0, true)), (at(2, 1), entry(2, 1, 9, false))];
    change(&*store, LedgerWriteSet { entries: last.clone(), ..Default::default() });
    twice(backend, store, |store| {
        for (id, transfer) in &transfers {
            assert_eq!(store.ledger().transfer(*id).unwrap().as_ref(), Some(transfer));
        }
        let mut ids: Vec<_> = transfers.iter().map(|(id, _)| *id).collect();
        ids.push(TransferId(Uuid([3; 16])));
        ids.sort_unstable();
        let of = |id| transfers.iter().find(|(other, _)| other == id).map(|(_, transfer)| transfer.clone());
        let wanted: Vec<_> = ids.iter().map(of).collect();
        assert_eq!(store.ledger().transfers(&ids).unwrap(), wanted);
        assert_eq!(store.ledger().transfers(&[]).unwrap(), []);
        assert_eq!(store.ledger().transfer(TransferId(Uuid([3; 16]))).unwrap(), None);
        // In the requested order, which is that of a history, and the same twice.
        let mut keys: Vec<_> = entries.iter().rev().map(|(key, _)| *key).collect();
        keys.extend([at(1, 601), at(1, 602), at(2, 1), at(1, 601)]);
        let found = store.ledger().entries(&keys).unwrap();
        let mut wanted: Vec<_> = entries.iter().rev().map(|(_, entry)| Some(entry.clone())).collect();
        wanted.extend([Some(last[0].1.clone()), None, Some(last[1].1.clone()), Some(last[0].1.clone())]);
        assert_eq!(found, wanted);
        assert_eq!(store.ledger().entries(&[]).unwrap(), []);
        // An entry range of one wallet, newest first, whether its rows lie in one place or in two.
        let all: Vec<_> =
            entries.iter().chain(&last[..1]).map(|(key, one)| (key.sequence, one.clone())).collect();
        let wallet = wallet_key(1, "KRW");
        for numbers in [0..0, 1..1, 1..2, 599..602, 601..602, 590..9_000, 602..u64::MAX, 0..u64::MAX] {
            let of = all.iter().rev().filter(|(number, _)| numbers.contains(number));
            let wanted: Vec<_> = of.cloned().collect();
            assert_eq!(store.ledger().history(wallet, numbers.clone()).unwrap(), wanted, "{numbers:?}");
        }
        assert_eq!(store.ledger().history(wallet_key(1, "USD"), 0..99).unwrap(), []);
        assert_eq!(store.ledger().history(wallet_key(3, "KRW"), 0..99).unwrap(), []);
    });
}

pub(crate) fn holds_read_back_and_are_found_when_they_are_due(backend: &dyn Backend) {
    let store = open(backend);
    let hold = |expires_at: Option<i64>, end: Option<(HoldEnd, Micros)>| Hold {
        wallet: wallet_key(1, "KRW"),
        amount: 50,
        expires_at: expires_at.map(Micros),
        origin: origin(expires_at.unwrap_or_default() as u8 % 9),
        end,
        ended_by: end.map(|(_, at)| origin(at.0.unsigned_abs() as u8)).unwrap_or_default(),
    };
    let captured = |to| HoldEnd::Captured { amount: 20, to, transfer: TransferId(Uuid([8; 16])) };
    let id = |number| HoldId(Uuid([number; 16]));
    let rows = vec![
        (id(1), hold(Some(30), None)),
        (id(2), hold(Some(10), None)),
        (id(3), hold(None, None)),
        (id(4), hold(Some(5), Some((captured(Some(member_id(2))), Micros(4))))),
        (id(5), hold(Some(5), Some((captured(None), Micros(4))))),
        (id(6), hold(None, Some((HoldEnd::Voided, Micros(-4))))),
        (id(7), hold(Some(20), None)),
    ];
    change(&*store, LedgerWriteSet { holds: rows.clone(), ..Default::default() });
    let due = |store: &dyn Store, now, limit| -> Vec<HoldId> {
        let found = store.ledger().due_holds(Micros(now), limit).unwrap();
        assert!(found.iter().all(|(_, wallet)| *wallet == wallet_key(1, "KRW")));
        let mut found: Vec<_> = found.into_iter().map(|(id, _)| id).collect();
        found.sort();
        found
    };
    let store = twice(backend, store, |store| {
        for (id, hold) in &rows {
            assert_eq!(store.ledger().hold(*id).unwrap().as_ref(), Some(hold));
        }
        assert_eq!(store.ledger().hold(id(9)).unwrap(), None);
        let holds = vec![id(1), id(6), id(9)];
        let loaded = read(store, LedgerReadSet { holds, ..Default::default() });
        assert_eq!(loaded.holds, [Some(rows[0].1.clone()), Some(rows[5].1.clone()), None]);
        assert_eq!(due(store, 9, 9), []);
        assert_eq!(due(store, 20, 9), [id(2), id(7)]);
        assert_eq!(due(store, 99, 9), [id(1), id(2), id(7)]);
        assert_eq!(due(store, 99, 2).len(), 2);
    });
    // Ended holds are not due any more, wherever their older state lies.
    let ended = vec![(id(2), hold(Some(10), Some((HoldEnd::Expired, Micros(11)))))];
    change(&*store, LedgerWriteSet { holds: ended.clone(), ..Default::default() });
    twice(backend, store, |store| {
        assert_eq!(due(store, 99, 9), [id(1), id(7)]);
        assert_eq!(store.ledger().hold(id(2)).unwrap().as_ref(), Some(&ended[0].1));
    });
}

pub(crate) fn totals_add_up(backend: &dyn Backend) {
    let store = open(backend);
    let key = |account, currency| AccountKey { account, currency: Currency::parse(currency).unwrap() };
    let total = |debits, credits| Total { debits, credits };
    let large = u128::from(u64::MAX) * 1000;
    let keys =
        [key(Account::BankAsset, "KRW"), key(Account::BankPayable, "KRW"), key(Account::BankPayable, "USD")];
    let first = vec![(keys[0], total(1, 0)), (keys[2], total(large, 5))];
    let second = vec![(keys[0], total(2, 7)), (keys[1], total(3, 3)), (keys[2], total(large, 5))];
    for totals in [&first, &second] {
        change(&*store, LedgerWriteSet { totals: totals.clone(), ..Default::default() });
    }
    let store = twice(backend, store, |store| {
        let wanted = [(keys[0], total(3, 7)), (keys[1], total(3, 3)), (keys[2], total(2 * large, 10))];
        assert_eq!(store.ledger().totals().unwrap(), wanted);
    });
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    change(
                        &*store,
                        LedgerWriteSet { totals: vec![(keys[0], total(1, 1))], ..Default::default() },
                    );
                }
            });
        }
    });
    assert_eq!(store.ledger().totals().unwrap()[0].1, total(103, 107));
}

pub(crate) fn money_that_cannot_be_is_refused_at_once(backend: &dyn Backend) {
    let store = open(backend);
    let key = EntryKey { wallet: wallet_key(1, "KRW"), sequence: 1 };
    let refused = |ledger: LedgerWriteSet| {
        let done = write(&*store, &WriteSet { ledger, ..WriteSet::default() });
        assert!(matches!(done, Err(StoreError::Row(_))), "{done:?}");
    };
    for (balance, held) in [(1, 2), (1, -1), (-1, 0)] {
        let bad = Wallet { balance, held, ..Wallet::default() };
        refused(LedgerWriteSet { wallets: vec![(key.wallet, bad)], ..Default::default() });
    }
    refused(LedgerWriteSet { entries: vec![(key, entry(1, 0, 5, true))], ..Default::default() });
    refused(LedgerWriteSet { entries: vec![(key, entry(1, 5, -1, true))], ..Default::default() });
    let none = EntryKey { sequence: 0, ..key };
    refused(LedgerWriteSet { entries: vec![(none, entry(1, 5, 5, true))], ..Default::default() });
    let (kind, currency) = (EntryKind::Deposit, key.wallet.currency);
    let credit = Some((member_id(1), 1));
    let (origin, ended_by) = (Origin::default(), Origin::default());
    let bad = Transfer { kind, reverses: None, currency, amount: 0, debit: None, credit, origin };
    refused(LedgerWriteSet { transfers: vec![(TransferId(Uuid([1; 16])), bad)], ..Default::default() });
    let origin = Origin::default();
    let bad = Hold { wallet: key.wallet, amount: -1, expires_at: None, origin, end: None, ended_by };
    refused(LedgerWriteSet { holds: vec![(HoldId(Uuid([1; 16])), bad)], ..Default::default() });
    for parts in [vec![], vec![(TransferId(Uuid([2; 16])), 0)]] {
        let bad = ReversalLink::Reversed(parts);
        refused(LedgerWriteSet { reversals: vec![(TransferId(Uuid([1; 16])), bad)], ..Default::default() });
    }
    store.checkpoint().unwrap();
    assert_eq!(store.ledger().wallets_of(member_id(1)).unwrap(), []);
}

/// The write set of a book.
pub(crate) fn changes_of(written: LedgerWrites) -> LedgerWriteSet {
    let LedgerWrites { wallets, transfers, entries, holds, reversals, minted, totals } = written;
    let totals = totals.into_rows();
    LedgerWriteSet { wallets, transfers, entries, holds, reversals, minted, totals, ..Default::default() }
}

/// Everything agrees: balances with entries, entries with transfers, totals with both.
pub(crate) fn prove(store: &dyn Store, members: u8) -> i64 {
    let (mut sum, mut totals) = (0, Totals::default());
    let mut moves: BTreeMap<TransferId, Transfer> = BTreeMap::new();
    for number in 0..members {
        for (currency, wallet) in store.ledger().wallets_of(member_id(number)).unwrap() {
            let key = WalletKey { member: member_id(number), currency };
            let keys: Vec<_> =
                (1..=wallet.sequence + 1).map(|sequence| EntryKey { wallet: key, sequence }).collect();
            let mut entries = store.ledger().entries(&keys).unwrap();
            assert_eq!(entries.pop(), Some(None), "no entry beyond the last");
            let mut balance = 0;
            for entry in entries {
                let entry = entry.expect("entries have no gap");
                assert_eq!(entry.before(), balance);
                balance = entry.after;
                let transfer =
                    store.ledger().transfer(entry.transfer).unwrap().expect("an entry is of a movement");
                moves.insert(entry.transfer, transfer);
            }
            assert_eq!(wallet.balance, balance);
            sum += balance;
        }
    }
    moves.values().for_each(|transfer| totals.add(transfer));
    assert!(totals.balanced());
    assert_eq!(totals.into_rows(), store.ledger().totals().unwrap());
    sum
}

/// Opposite transfers, rings and crowds, each its own transaction: nothing is lost, nothing is made, and there is no deadlock.
pub(crate) fn transfers_from_all_sides_lose_nothing_and_never_conflict(backend: &dyn Backend) {
    const MEMBERS: u8 = 4;
    let (store, currencies) = (open(backend), Currencies::default());
    let wallets = (0..MEMBERS).map(|number| (wallet_key(number, "KRW"), Wallet::default())).collect();
    change(&*store, LedgerWriteSet { wallets, ..Default::default() });
    let post = |id: Uuid, what: TransferKind, units: i64| {
        let order = TransferRequest {
            what,
            currency: currencies.home(),
            amount: Amount::new(units).unwrap(),
            reference: None,
        };
        let mut wallets: Vec<_> = order.wallets(currencies.home()).collect();
        wallets.sort();
        let plan = ReadSet { ledger: LedgerReadSet { wallets, ..Default::default() }, ..ReadSet::default() };
        let done = store.run(&plan, &mut |loaded| {
            let limits = BTreeMap::new();
            let mut book = LedgerWorkingSet::new(&currencies, &limits);
            for (key, wallet) in plan.ledger.wallets.iter().zip(&loaded.ledger.wallets) {
                book.load_wallet(*key, wallet.clone());
            }
            // A wallet with too little gives nothing.
            drop(book.post(TransferId(id), &order, Micros(0)));
            WriteSet { ledger: changes_of(book.into_writes()), ..WriteSet::default() }
        });
        done.unwrap_or_else(|error| panic!("{what:?}: {error}"));
    };
    for number in 0..MEMBERS {
        post(Uuid::new(Micros(number.into()), 0), TransferKind::Deposit { to: member_id(number) }, 100);
    }
    std::thread::scope(|scope| {
        for thread in 0..8_u8 {
            let post = &post;
            scope.spawn(move || {
                for round in 0..25_i64 {
                    let from = thread % MEMBERS;
                    let step = if thread < 4 { 1 } else { MEMBERS - 1 };
                    let what = TransferKind::Transfer {
                        from: member_id(from),
                        to: member_id((from + step) % MEMBERS),
                    };
                    post(Uuid::new(Micros(1000 + round), u64::from(thread) << 8), what, 1 + round);
                }
            });
        }
    });
    assert_eq!(prove(&*store, MEMBERS), 400);
}

/// A random ledger request, done or refused; a hold that was made.
fn any_order(
    book: &mut LedgerWorkingSet<'_>,
    rng: &mut Rng,
    holds: &[HoldId],
    id: Uuid,
    now: Micros,
) -> Option<HoldId> {
    let mut who = || member_id(u8::try_from(rng.below(5)).unwrap());
    let (one, other) = (who(), who());
    let currency = Currency::parse(if rng.percent(30) { "USD" } else { "KRW" }).unwrap();
    let amount = Amount::new(rng.between(1, 50)).unwrap();
    let what = match rng.below(6) {
        0 | 1 => TransferKind::Deposit { to: one },
        2 => TransferKind::Withdrawal { from: one },
        3 => {
            let until = rng.percent(50).then(|| now.plus(rng.between(1, 9)));
            let done = book.place(HoldId(id), WalletKey { member: one, currency }, amount, until, now);
            return done.is_ok().then_some(HoldId(id));
        }
        4 if !holds.is_empty() => {
            let capture = Ending::Capture { amount: None, to: Some(one) };
            let ending = if rng.percent(50) { capture } else { Ending::Void };
            let time = DecisionTime::trusted(now);
            let _refused = book.end(*rng.pick(holds), ending, TransferId(id), time);
            return None;
        }
        _ => TransferKind::Transfer { from: one, to: other },
    };
    let _refused =
        book.post(TransferId(id), &TransferRequest { what, currency, amount, reference: None }, now);
    None
}

/// Random batches of requests through a book, with settling and reopening in between.
pub(crate) fn random_money_agrees_with_its_entries(backend: &dyn Backend) {
    const MEMBERS: u8 = 5;
    let currencies =
        Currencies::new((Currency::parse("KRW").unwrap(), 0), [(Currency::parse("USD").unwrap(), 2)]);
    let (mut store, mut rng) = (open(backend), Rng::of("store ledger"));
    let wallets = (0..MEMBERS).map(|number| (wallet_key(number, "KRW"), Wallet::default())).collect();
    change(&*store, LedgerWriteSet { wallets, ..Default::default() });
    let (mut holds, mut given): (Vec<HoldId>, i64) = (Vec::new(), 0);
    for round in 0..soak(30) {
        let now = Micros(i64::try_from(round).unwrap());
        let mut wallets: Vec<_> =
            (0..MEMBERS).flat_map(|one| currencies.all().map(move |code| (one, code))).collect();
        wallets.sort();
        let wallets: Vec<_> = wallets
            .into_iter()
            .map(|(one, currency)| WalletKey { member: member_id(one), currency })
            .collect();
        let plan = ReadSet {
            ledger: LedgerReadSet { wallets, holds: holds.clone(), ..Default::default() },
            ..ReadSet::default()
        };
        let (start, begun) = (rng.clone(), given);
        let mut placed = Vec::new();
        run(&*store, &plan, &mut |loaded| {
            // It may be decided twice.
            (rng, given) = (start.clone(), begun);
            placed.clear();
            let limits = BTreeMap::new();
            let mut book = LedgerWorkingSet::new(&currencies, &limits);
            for (key, wallet) in plan.ledger.wallets.iter().zip(&loaded.ledger.wallets) {
                book.load_wallet(*key, wallet.clone());
            }
            for (id, hold) in plan.ledger.holds.iter().zip(&loaded.ledger.holds) {
                book.load_hold(*id, hold.clone());
            }
            for _ in 0..rng.below(20) {
                given += 1;
                placed.extend(any_order(
                    &mut book,
                    &mut rng,
                    &plan.ledger.holds,
                    Uuid::new(Micros(given), 0),
                    now,
                ));
            }
            let due: Vec<_> =
                plan.ledger.holds.iter().filter(|id| book.hold(id).unwrap().is_due(now)).copied().collect();
            due.into_iter().for_each(|id| assert!(book.expire(id, now).is_some()));
            WriteSet { ledger: changes_of(book.into_writes()), ..WriteSet::default() }
        })
        .unwrap();
        holds.extend(placed.iter().copied());
        holds.sort();
        assert_eq!(store.ledger().due_holds(now, 99).unwrap(), []);
        if round % 5 == 0 {
            store.checkpoint().unwrap();
        }
        if round % 10 == 9 {
            prove(&*store, MEMBERS);
            drop(store);
            store = open(backend);
        }
    }
    prove(&*store, MEMBERS);
}
