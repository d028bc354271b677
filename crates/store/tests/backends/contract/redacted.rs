//! Rows that lose what names an erased person: replaced where they are, and on the shard where they are.

use super::ledger::{change, member_id, wallet_key};
use super::*;
use tally_rules::audit::{AuditEntry, AuditId};
use tally_rules::contest::{ContestPlayer, Payout};
use tally_rules::ledger::{Amount, Currency, EntryKind, Hold, HoldId, Transfer, TransferId, Uuid};
use tally_rules::{Actor, Origin};
use tally_store::{
    ContestWriteSet, EntrantKey, LedgerReadSet, LedgerWriteSet, PayoutKey, Redacted, ShardSet,
};

fn origin(words: bool) -> Origin {
    let text = |text: &str| words.then(|| text.into());
    Origin { actor: Actor::Local, reason: text("Grüße"), metadata: text("{\"a\":1}") }
}

fn transfer(amount: i64, words: bool) -> (TransferId, Transfer) {
    let (currency, credit) = (Currency::parse("KRW").unwrap(), Some((member_id(1), 1)));
    let row = Transfer {
        kind: EntryKind::Deposit,
        reverses: None,
        currency,
        amount,
        debit: None,
        credit,
        origin: origin(words),
    };
    (TransferId(Uuid::new(Micros(amount), 1)), row)
}

fn hold(number: i64, words: bool) -> (HoldId, Hold) {
    let (wallet, origin) = (wallet_key(1, "KRW"), origin(words));
    let ended_by = Origin { metadata: None, ..origin.clone() };
    let hold = Hold { wallet, amount: number, expires_at: None, origin, end: None, ended_by };
    (HoldId(Uuid::new(Micros(number), 2)), hold)
}

fn act(number: i64, words: bool) -> (AuditId, AuditEntry) {
    let (id, entry) = super::audit::row(number);
    (id, AuditEntry { origin: Origin { metadata: None, ..origin(words) }, ..entry })
}

fn entrant(player: &str) -> EntrantKey {
    EntrantKey { contest: Uuid([3; 16]), player: PlayerId::new(player).unwrap() }
}

fn payout(no: u32, player: &str) -> (PayoutKey, Payout) {
    let payout = Payout {
        player: PlayerId::new(player).unwrap(),
        member: member_id(1),
        division: None,
        rank: 1,
        currency: Currency::parse("KRW").unwrap(),
        amount: Amount::new(7).unwrap(),
        paid: Some(Ok(TransferId(Uuid([9; 16])))),
    };
    (PayoutKey { contest: Uuid([3; 16]), no }, payout)
}

pub(crate) fn redacted_rows_are_replaced_where_they_are(backend: &dyn Backend) {
    let store = open(backend);
    let place = |place| ContestPlayer { place, division: Some(1), member: Some(member_id(1)) };
    let contests = ContestWriteSet {
        members: vec![(entrant("ann"), place(0)), (entrant("bob"), place(1))],
        payouts: vec![payout(0, "ann"), payout(1, "bob")],
        ..ContestWriteSet::default()
    };
    change(
        &*store,
        LedgerWriteSet {
            transfers: (1..4).map(|at| transfer(at, true)).collect(),
            holds: (1..4).map(|at| hold(at, true)).collect(),
            contests,
            ..LedgerWriteSet::default()
        },
    );
    // A row of the audit log is where its act is.
    let (shards, acts) = (store.shards(), 6_i64);
    for number in 1..=acts {
        let shard = ShardSet::of(number.unsigned_abs() as usize % shards);
        let plan = ReadSet { shards: shard, ..ReadSet::default() };
        let audit = vec![act(number, true)];
        run(&*store, &plan, &mut |_| WriteSet { audit: audit.clone(), ..WriteSet::default() }).unwrap();
    }
    store.checkpoint().unwrap();
    let redacted = Redacted {
        transfers: vec![transfer(2, false)],
        audit: vec![act(2, false), act(3, false)],
        entrants: vec![(entrant("ann"), None), (entrant("id"), Some(place(0)))],
    };
    let ledger = LedgerWriteSet {
        holds: vec![hold(2, false)],
        contests: ContestWriteSet { payouts: vec![payout(0, "id")], ..ContestWriteSet::default() },
        ..LedgerWriteSet::default()
    };
    let changes = WriteSet { ledger, redacted, ..WriteSet::default() };
    let plan = ReadSet {
        shards: ShardSet::first(shards),
        ledger: LedgerReadSet { holds: vec![hold(2, true).0], ..LedgerReadSet::default() },
        ..ReadSet::default()
    };
    let check = |store: &dyn Store| {
        let newest = |last: i64| (1..=last).rev();
        let transfers: Vec<_> = newest(3).map(|at| transfer(at, at != 2)).collect();
        assert_eq!(store.ledger().list_transfers(TransferId(Uuid([0xff; 16])), 9).unwrap().rows, transfers);
        let holds: Vec<_> = newest(3).map(|at| hold(at, at != 2)).collect();
        assert_eq!(store.ledger().list_holds(HoldId(Uuid([0xff; 16])), 9).unwrap().rows, holds);
        let audit: Vec<_> = newest(acts).map(|at| act(at, at != 2 && at != 3)).collect();
        assert_eq!(store.list_audit(super::audit::LAST, 99).unwrap().rows, audit, "each once");
        let members = store.ledger().contest_members(Uuid([3; 16]), None, 9).unwrap();
        let named = |name: &str, at| (PlayerId::new(name).unwrap(), place(at));
        assert_eq!(members, [named("bob", 1), named("id", 0)]);
        let keys = [entrant("ann"), entrant("id")];
        assert_eq!(store.ledger().enrolled(&keys).unwrap(), [None, Some(place(0))]);
        let payouts = store.ledger().payouts(Uuid([3; 16]), 0, 9).unwrap();
        assert_eq!(payouts, [(0, payout(0, "id").1), (1, payout(1, "bob").1)]);
    };
    // Again changes nothing.
    for _ in 0..2 {
        run(&*store, &plan, &mut |_| changes.clone()).unwrap();
        check(&*store);
    }
    let store = super::ledger::twice(backend, store, check);
    store.checkpoint().unwrap();
    check(&*store);
}
