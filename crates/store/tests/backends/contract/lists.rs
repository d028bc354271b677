//! Transfers, holds and members, newest first and page by page, wherever their rows are.

use super::ledger::{a_member, change, member_id, wallet_key};
use super::*;
use tally_rules::ledger::hold::HoldEnd;
use tally_rules::ledger::{Currency, EntryKind, Hold, HoldId, Member, MemberId, Transfer, TransferId, Uuid};
use tally_rules::{Actor, Origin};
use tally_store::LedgerWriteSet;

/// The id of that microsecond.
fn id(at: i64) -> Uuid {
    Uuid::new(Micros(at), 4)
}

/// Checks a list from each of its ends, in pages of several sizes. `newest` has all rows.
fn check<V: Clone + PartialEq + std::fmt::Debug>(
    newest: &[(Uuid, V)],
    list: impl Fn(Uuid, usize) -> Vec<(Uuid, V)>,
) {
    for limit in [1, 2, 7, 1_000] {
        let (mut before, mut all) = (Uuid([0xff; 16]), Vec::new());
        loop {
            let page = list(before, limit);
            assert!(page.len() <= limit);
            let Some((last, _)) = page.last() else { break };
            before = *last;
            all.extend(page);
        }
        assert_eq!(all, newest, "pages of {limit}");
    }
    for (at, (id, _)) in newest.iter().enumerate() {
        let rest = &newest[at + 1..];
        assert_eq!(list(*id, 3), rest[..rest.len().min(3)]);
    }
}

pub(crate) fn transfers_are_listed_newest_first(backend: &dyn Backend) {
    let store = open(backend);
    let row = |at: i64| {
        let text = |is_given: bool, text: &str| is_given.then(|| text.into());
        let (reason, metadata) = (text(at % 2 == 0, "Grüße"), text(at % 3 == 0, "{\"a\":\"Grüße'\"}"));
        let origin = Origin { actor: Actor::Local, reason, metadata };
        let credit = Some((member_id(1), at.unsigned_abs()));
        let currency = Currency::parse("KRW").unwrap();
        let (kind, amount) = (EntryKind::Deposit, at);
        (id(at), Transfer { kind, reverses: None, currency, amount, debit: None, credit, origin })
    };
    let list = |store: &dyn Store, before, limit| {
        let page = store.ledger().list_transfers(TransferId(before), limit).unwrap();
        assert_eq!(page.damaged, []);
        page.map(|(id, transfer)| (id.0, transfer)).rows
    };
    assert_eq!(list(&*store, Uuid([0xff; 16]), 9), []);
    let put = |store: &dyn Store, times: &mut dyn Iterator<Item = i64>| {
        let transfers = times.map(row).map(|(id, transfer)| (TransferId(id), transfer)).collect();
        change(store, LedgerWriteSet { transfers, ..Default::default() });
    };
    // Older and newer ones are stored last, and are in the memtable of the embedded store.
    put(&*store, &mut (10..20));
    store.checkpoint().unwrap();
    put(&*store, &mut (1..10).chain(20..30));
    let newest: Vec<_> = (1..30).rev().map(row).collect();
    let store = super::ledger::twice(backend, store, |store| {
        check(&newest, |before, limit| list(store, before, limit));
        check_oldest(&newest, store);
    });
    store.checkpoint().unwrap();
    check(&newest, |before, limit| list(&*store, before, limit));
    check_oldest(&newest, &*store);
}

/// Transfers are read on from each of them, the oldest first.
fn check_oldest(newest: &[(Uuid, Transfer)], store: &dyn Store) {
    let oldest: Vec<_> = newest.iter().rev().map(|(id, row)| (TransferId(*id), row.clone())).collect();
    let first = TransferId(Uuid([0; 16]));
    let afters = std::iter::once(first).chain(oldest.iter().map(|(id, _)| *id));
    for (at, after) in afters.enumerate() {
        for limit in [1, 7, 1_000] {
            let rest = &oldest[at..];
            let found = store.ledger().recent_transfers(after, limit).unwrap();
            assert_eq!(
                (found.rows.as_slice(), found.damaged),
                (&rest[..rest.len().min(limit)], vec![]),
                "{limit} after {at}"
            );
        }
    }
}

pub(crate) fn holds_are_listed_as_they_are(backend: &dyn Backend) {
    let store = open(backend);
    let row = |at: i64, end: Option<HoldEnd>| {
        // The longest that a hold may have.
        let metadata = (at % 2 == 0).then(|| format!("{{\"a\":\"{}\"}}", "x".repeat(2_040)).into());
        let origin = Origin { actor: Actor::Local, reason: None, metadata };
        let end = end.map(|end| (end, Micros(99)));
        let ended_by = end.map(|_| Origin::BACKGROUND).unwrap_or_default();
        let hold = Hold { wallet: wallet_key(1, "KRW"), amount: at, expires_at: None, origin, end, ended_by };
        (id(at), hold)
    };
    let list = |store: &dyn Store, before, limit| {
        let page = store.ledger().list_holds(HoldId(before), limit).unwrap();
        assert_eq!(page.damaged, []);
        page.map(|(id, hold)| (id.0, hold)).rows
    };
    let put = |rows: Vec<(Uuid, Hold)>| {
        let holds = rows.into_iter().map(|(id, hold)| (HoldId(id), hold)).collect();
        change(&*store, LedgerWriteSet { holds, ..Default::default() });
    };
    put((1..9).map(|at| row(at, None)).collect());
    store.checkpoint().unwrap();
    // Some end, and others begin: a page has their newest state.
    put(vec![row(2, Some(HoldEnd::Voided)), row(5, Some(HoldEnd::Expired)), row(9, None)]);
    let state = |at: i64| match at {
        2 => row(at, Some(HoldEnd::Voided)),
        5 => row(at, Some(HoldEnd::Expired)),
        _ => row(at, None),
    };
    let newest: Vec<_> = (1..10).rev().map(state).collect();
    super::ledger::twice(backend, store, |store| {
        check(&newest, |before, limit| list(store, before, limit));
    });
}

pub(crate) fn members_are_listed_newest_first(backend: &dyn Backend) {
    let store = open(backend);
    let row = |at: i64, name: &str| (id(at), a_member(name, at % 2 == 0));
    let list = |store: &dyn Store, before, limit| {
        let page = store.ledger().newest_members(MemberId(before), limit).unwrap();
        assert_eq!(page.damaged, []);
        page.map(|(id, member)| (id.0, member)).rows
    };
    assert_eq!(list(&*store, Uuid([0xff; 16]), 9), []);
    let put = |rows: Vec<(Uuid, Member)>| {
        let members = rows.into_iter().map(|(id, member)| (MemberId(id), member)).collect();
        change(&*store, LedgerWriteSet { members, ..Default::default() });
    };
    put((1..9).map(|at| row(at, "old")).collect());
    store.checkpoint().unwrap();
    // One has another name since, and one is new.
    put(vec![row(4, "new"), row(9, "old")]);
    let newest: Vec<_> = (1..10).rev().map(|at| row(at, if at == 4 { "new" } else { "old" })).collect();
    super::ledger::twice(backend, store, |store| {
        check(&newest, |before, limit| list(store, before, limit));
    });
}
