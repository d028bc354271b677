//! Acknowledged writes are visible at once in every table and stay, under every durability and after every settling.

use super::windows::{block, row, window};
use super::*;
use tally_rules::ledger::account::{Account, AccountKey, Total};
use tally_rules::ledger::entry::EntryKey;
use tally_rules::ledger::hold::HoldEnd;
use tally_rules::ledger::member::Handle;
use tally_rules::ledger::{EntryKind, Hold, HoldId, Transfer, TransferId, Uuid};
use tally_rules::period::TimeSpan;
use tally_store::{BlockKey, Durability, Garbage, ImportKey, ImportRow, KeyChange, LedgerWriteSet, Redacted};

/// A row in every table, with the number of a round in it.
fn everything(round: i64) -> WriteSet {
    let name = format!("{round}");
    let number = u64::try_from(round).unwrap();
    let of = window(1, number);
    WriteSet {
        scores: vec![
            (key(1, 0, "always"), Some(record(round))),
            (key(1, 0, &format!("odd {}", round % 2)), (round % 4 < 2).then(|| record(round))),
        ],
        requests: vec![(request("s", &name), stored(1, round, Outcome::Removed))],
        imports: vec![(ImportKey { board: BoardNo(1), digest: [7; 32] }, import(number))],
        profiles: vec![(players::player("zoë"), (round % 3 > 0).then(|| players::profile(&name)))],
        bans: vec![players::ban(1, "eve", round % 2 == 0)],
        windows: vec![(of, Some(row(number, false, 1)))],
        blocks: vec![block(of, 1, number % 200)],
        garbage: vec![Garbage::Blocks(window(9, number), 1)],
        boards: vec![BoardChange::Redefine(BoardNo(1), definition(number))],
        keys: vec![KeyChange::Create(key_row(&name, round))],
        audit: vec![audit::row(round)],
        ledger: money(number),
        // Rows of tables that are above.
        redacted: Redacted::default(),
    }
}

/// One entry more, a wallet that says so, and the sum of them all.
fn money(number: u64) -> LedgerWriteSet {
    let wallet = ledger::wallet_key(1, "KRW");
    let end = Some((HoldEnd::Expired, Micros(number.cast_signed())));
    let (expires_at, by) = (Some(Micros(9)), u8::try_from(number).unwrap());
    // Only the end of a hold ever changes.
    let (origin, ended_by) = (ledger::origin(2), ledger::origin(by));
    let hold = Hold { wallet, amount: 5, expires_at, origin, end, ended_by };
    let origin = ledger::origin(by);
    let member = ledger::a_member("ann", number.is_multiple_of(2));
    let transfer = TransferId(Uuid([u8::try_from(number).unwrap(); 16]));
    let (kind, currency, amount) = (EntryKind::Deposit, wallet.currency, 1);
    let credit = Some((wallet.member, number));
    let moved = Transfer { kind, reverses: None, currency, amount, debit: None, credit, origin };
    let account = AccountKey { account: Account::BankPayable, currency };
    LedgerWriteSet {
        handles: vec![(
            Handle::Login(member.login.clone()),
            (!number.is_multiple_of(3)).then_some(wallet.member),
        )],
        members: vec![(wallet.member, member)],
        wallets: vec![(wallet, ledger::wallet(number.cast_signed(), number))],
        holds: vec![(HoldId(Uuid([1; 16])), hold)],
        transfers: vec![(transfer, moved)],
        entries: vec![(
            EntryKey { wallet, sequence: number },
            ledger::entry(7, 1, number.cast_signed(), true),
        )],
        totals: vec![(account, Total { debits: 0, credits: 1 })],
        ..LedgerWriteSet::default()
    }
}

fn verify_money(store: &dyn Store, number: u64) {
    let (money, read) = (money(number), store.ledger());
    let (wallet, held) = money.wallets[0].clone();
    assert_eq!(read.wallets_of(wallet.member).unwrap(), [(wallet.currency, held)]);
    assert_eq!(read.member(wallet.member).unwrap().as_ref(), Some(&money.members[0].1));
    assert_eq!(read.member_of(&money.handles[0].0).unwrap(), money.handles[0].1);
    assert_eq!(read.hold(money.holds[0].0).unwrap(), Some(money.holds[0].1.clone()));
    assert_eq!(read.transfer(money.transfers[0].0).unwrap(), Some(money.transfers[0].1.clone()));
    let keys: Vec<_> = (1..=number + 1).map(|sequence| EntryKey { wallet, sequence }).collect();
    let entries = read.entries(&keys).unwrap();
    let after: Vec<_> = entries.iter().map(|entry| entry.as_ref().map(|entry| entry.after)).collect();
    let mut wanted: Vec<_> = (1..=number).map(|number| Some(number.cast_signed())).collect();
    wanted.push(None);
    assert_eq!(after, wanted);
    assert_eq!(read.totals().unwrap()[0].1, Total { debits: 0, credits: number.into() });
}

fn import(lines: u64) -> ImportRow {
    ImportRow { lines, ..ImportRow::default() }
}

fn definition(number: u64) -> Definition {
    Definition { rules_given: u32::try_from(number).unwrap(), ..Definition::default() }
}

/// Everything of the last round, by every way to read it.
fn verify(store: &dyn Store, round: i64) {
    let number = u64::try_from(round).unwrap();
    let odd = [0, 1].map(|odd| {
        let last = (1..=round).rev().find(|round| round % 2 == odd)?;
        (last % 4 < 2).then(|| record(last))
    });
    let keys = vec![key(1, 0, "always"), key(1, 0, "odd 0"), key(1, 0, "odd 1")];
    let wanted = vec![Some(record(round)), odd[0], odd[1]];
    assert_eq!(store.records(&keys).unwrap(), wanted);
    let walked = keys.iter().zip(&wanted).filter_map(|(key, row)| Some((key.player.clone(), (*row)?)));
    assert_eq!(walk(store, BoardNo(1), Window(0), 2), walked.collect::<Vec<_>>());
    let mut names: Vec<String> = (1..=round + 1).map(|round| format!("{round}")).collect();
    names.sort();
    let plan = ReadSet {
        boards: vec![BoardNo(1), BoardNo(2)],
        board_names: vec![BoardId::new("board").unwrap()],
        requests: names.iter().map(|name| request("s", name)).collect(),
        imports: vec![ImportKey { board: BoardNo(1), digest: [7; 32] }],
        profiles: vec![players::player("zoë")],
        ..plan_of(keys)
    };
    let loaded = load(store, &plan);
    assert_eq!((&live(&loaded)[..], &loaded.scores), (&[true, false][..], &wanted));
    assert_eq!(loaded.board_names[0].as_ref().unwrap().definition, definition(number));
    assert_eq!(store.boards().unwrap()[0].definition, definition(number));
    for (name, found) in names.iter().zip(loaded.requests) {
        let wanted: i64 = name.parse().unwrap();
        assert_eq!(found, (wanted <= round).then(|| stored(1, wanted, Outcome::Removed)));
    }
    assert_eq!(loaded.imports, [Some(import(number))]);
    assert_eq!(store.import_progress(&plan.imports[0]).unwrap(), Some(import(number)));
    let profile = (round % 3 > 0).then(|| players::profile(&format!("{round}")));
    assert_eq!(loaded.profiles, std::slice::from_ref(&profile));
    assert_eq!(store.profiles(&plan.profiles).unwrap(), [Ok(profile)]);
    let banned = if round % 2 == 0 { vec![players::player("eve")] } else { Vec::new() };
    assert_eq!(store.bans(BoardNo(1)).unwrap(), banned);
    let windows: Vec<_> = (1..=number).map(|number| row(number, false, 1)).collect();
    assert_eq!(store.windows(BoardNo(1)).unwrap(), windows);
    let (key, wanted) = block(window(1, number), 1, number % 200);
    assert_eq!(store.block(&key).unwrap(), Some(wanted));
    assert_eq!(store.block(&BlockKey { version: 2, ..key }).unwrap(), None);
    let keys: Vec<_> = (1..=round).map(|round| key_row(&format!("{round}"), round)).collect();
    assert_eq!(store.keys().unwrap(), keys);
    let acts: Vec<_> = (1..=round).rev().map(audit::row).collect();
    assert_eq!(store.list_audit(audit::LAST, 99).unwrap().rows, acts);
    verify_money(store, number);
}

fn write_as(store: &dyn Store, durability: Durability, changes: &WriteSet) {
    run(store, &ReadSet { durability, ..ReadSet::default() }, &mut |_| changes.clone()).unwrap();
}

/// Relaxed and not, settled and not, reopened and not: every read returns the last written value.
pub(crate) fn everything_acknowledged_is_seen_at_once_and_stays(backend: &dyn Backend) {
    let mut store = open(backend);
    create(&*store, "board", &Definition::default()).unwrap();
    for round in 1..=48 {
        let durability = if round % 3 == 0 { Durability::Commit } else { Durability::Relaxed };
        write_as(&*store, durability, &everything(round));
        verify(&*store, round);
        if round % 4 == 0 {
            store.checkpoint().unwrap();
            verify(&*store, round);
        }
        if round % 7 == 0 {
            drop(store);
            store = open(backend);
            verify(&*store, round);
        }
    }
}

/// A waiting row is never present without those before it.
pub(crate) fn order_holds_whatever_a_transaction_waits_for(backend: &dyn Backend) {
    for round in 1..20 {
        let store = open(backend);
        let plan = plan_of(vec![key(1, 0, "a"), key(1, 0, "b")]);
        let seen = load(&*store, &plan).scores;
        let before = (round > 1).then(|| record(round - 1));
        assert_eq!(seen, [before, before]);
        write_as(&*store, Durability::Relaxed, &scores(vec![(key(1, 0, "a"), Some(record(round)))]));
        // It decides on the effect of the relaxed one.
        run(&*store, &plan, &mut |loaded| scores(vec![(key(1, 0, "b"), loaded.scores[0])])).unwrap();
        assert_eq!(load(&*store, &plan).scores, [Some(record(round)), Some(record(round))]);
    }
}

pub(crate) fn settling_changes_nothing_and_can_be_repeated(backend: &dyn Backend) {
    let store = open(backend);
    store.checkpoint().unwrap();
    assert_eq!(store.boards().unwrap(), []);
    write(&*store, &scores(vec![(key(1, 0, "a"), Some(record(1)))])).unwrap();
    for _ in 0..3 {
        store.checkpoint().unwrap();
        assert_eq!(walk(&*store, BoardNo(1), Window(0), 9), [(key(1, 0, "a").player, record(1))]);
    }
    drop(store);
    let store = open(backend);
    store.checkpoint().unwrap();
    write(&*store, &scores(vec![(key(1, 0, "a"), None)])).unwrap();
    store.checkpoint().unwrap();
    assert_eq!(walk(&*store, BoardNo(1), Window(0), 9), []);
}

/// Rows that can never be stored are refused before they are acknowledged, wherever rows wait.
pub(crate) fn what_no_table_could_hold_is_refused_at_once(backend: &dyn Backend) {
    let store = open(backend);
    let past = u64::MAX;
    let refused = |changes: WriteSet| {
        let done = write(&*store, &changes);
        assert!(matches!(done, Err(StoreError::Row(_))), "{done:?} for {changes:?}");
    };
    refused(scores(vec![(key(1, past, "a"), Some(record(1)))]));
    let row = |row| WriteSet { windows: vec![(window(1, 1), Some(row))], ..WriteSet::default() };
    refused(row(tally_store::WindowRow { total: past, ..super::windows::row(1, true, 1) }));
    let backwards = TimeSpan { start: Micros(2), end: Micros(2) };
    refused(row(tally_store::WindowRow { span: backwards, ..super::windows::row(1, true, 1) }));
    refused(WriteSet { windows: vec![(window(1, past), None)], ..WriteSet::default() });
    let mut bad = block(window(1, 1), 1, 1);
    bad.1.distinct_better = past;
    refused(WriteSet { blocks: vec![bad], ..WriteSet::default() });
    refused(WriteSet { garbage: vec![Garbage::Window(window(1, past))], ..WriteSet::default() });
    let twice = Definition { periods: vec![boards::period("week"); 2], ..Definition::default() };
    assert!(matches!(create(&*store, "board", &twice), Err(StoreError::Row(_))));
    store.checkpoint().unwrap();
    assert_eq!(store.boards().unwrap(), []);
    assert_eq!(store.windows(BoardNo(1)).unwrap(), []);
}
