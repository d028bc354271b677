//! Batches in memory: hot wallets, linked groups that leave nothing, and one effect for each key.

use super::LedgerSettings;
use super::batch::{decide, read};
use super::request::{AnyRequest, Decision};
use super::transfers::{LinkedTransfers, NewTransfer, Transferred};
use crate::clock::ClockReading;
use crate::contests::actions::{Action, ActionResult, ContestDone, ContestRequest};
use crate::members::pay::NewPayment;
use crate::members::pin::Pins;
use crate::outcomes::Retention;
use crate::secret::Secret;
use std::collections::{BTreeMap, BTreeSet};
use tally_rules::audit::Audited;
use tally_rules::clock::ClockWatch;
use tally_rules::contest::definition::Fee;
use tally_rules::contest::record::ContestTask;
use tally_rules::contest::{ActorKind, Contest, ContestId, ContestPlayer, ContestRecord, ContestState};
use tally_rules::idempotency::{Fingerprint, IdempotencyKey, KEEP_DEFAULT_MICROS, RequestKey};
use tally_rules::instant::SECOND;
use tally_rules::ledger::limits::{CurrencyLimits, Spent};
use tally_rules::ledger::member::{Login, Phone};
use tally_rules::ledger::pin::{Attempts, Given};
use tally_rules::ledger::{
    Amount, Currency, Member, MemberId, TransferKind, TransferRequest, Uuid, Wallet, WalletKey,
};
use tally_rules::rejection::Limit;
use tally_rules::{Micros, Origin, PlayerId, Rejection};
use tally_store::{Loaded, WriteSet};

const NOW: Micros = Micros(1_000_000_000);
/// Outcomes are kept as long as by default.
const KEPT: Retention = Retention { at: NOW, keep_micros: KEEP_DEFAULT_MICROS };
const BELIEVED: ClockReading = ClockReading { now: NOW, doubt: None };

fn member(number: u8) -> MemberId {
    MemberId(Uuid([number; 16]))
}

fn transfer(from: u8, to: u8, units: i64, key: &str) -> NewTransfer {
    let (what, currency) =
        (TransferKind::Transfer { from: member(from), to: member(to) }, Currency::parse("KRW").unwrap());
    let order = TransferRequest { what, currency, amount: Amount::new(units).unwrap(), reference: None };
    let key = RequestKey { scope: "s".into(), key: key.into() };
    NewTransfer {
        order,
        origin: Origin::default(),
        idempotency: Some(IdempotencyKey { key, fingerprint: Fingerprint([1; 16]).into() }),
        mint_cap: None,
    }
}

fn linked(transfers: Vec<NewTransfer>) -> Box<dyn AnyRequest> {
    Box::new(LinkedTransfers(transfers, Vec::new()))
}

/// The rows of linked transfers.
fn rows(decision: &Decision) -> &[Result<Transferred, Rejection>] {
    let answer = decision.as_ref().unwrap();
    answer.downcast_ref::<Vec<_>>().unwrap()
}

/// The result of an action on a contest.
fn of_contest(decision: Decision) -> Result<ContestDone, Rejection> {
    decision.map(|answer| *answer.downcast().unwrap())
}

/// Decides a batch on wallets 1, 2 and 3 with 100 each.
fn decided(batch: &[Box<dyn AnyRequest>]) -> (WriteSet, Vec<Decision>) {
    decided_at(BELIEVED, batch, &LedgerSettings::default(), Spent::default())
}

/// The same by another clock, with limits, and with what each wallet has spent.
fn decided_at(
    reading: ClockReading,
    batch: &[Box<dyn AnyRequest>],
    settings: &LedgerSettings,
    spent: Spent,
) -> (WriteSet, Vec<Decision>) {
    let ids: Vec<Uuid> = (0..batch.iter().map(|one| one.needs().ids).sum())
        .map(|at: usize| Uuid::new(Micros(at as i64), 4))
        .collect();
    let plan = read(batch, &ids, settings);
    let mut loaded = Loaded { requests: vec![None; plan.requests.len()], ..Loaded::default() };
    let of = |key: &WalletKey| {
        (key.member.0.0[0] <= 3).then(|| Wallet { balance: 100, spent, ..Wallet::default() })
    };
    loaded.ledger.wallets = plan.ledger.wallets.iter().map(of).collect();
    decide(batch, &ids, (&plan, &loaded), settings, (reading, KEPT))
}

#[test]
fn a_hot_wallet_is_written_once_and_each_entry_shows_its_own_balance() {
    let batch: Vec<_> = (0..50).map(|row| linked(vec![transfer(1, 2, 2, &format!("{row}"))])).collect();
    let (changes, decisions) = decided(&batch);
    let ledger = &changes.ledger;
    assert_eq!((ledger.wallets.len(), ledger.transfers.len(), ledger.entries.len()), (2, 50, 100));
    assert_eq!((ledger.wallets[0].1.balance, ledger.wallets[1].1.balance), (0, 200));
    assert_eq!((ledger.totals.len(), ledger.totals[0].1.debits), (1, 100));
    for (decision, wanted) in decisions.iter().zip((0..50).map(|row| 98 - 2 * row)) {
        let done = rows(decision);
        let [Ok(Transferred::Now(posted))] = done else { panic!("{done:?}") };
        assert_eq!((posted.entry.before(), posted.entry.after), (wanted + 2, wanted));
    }
}

#[test]
fn who_has_too_little_fails_alone() {
    let batch = [transfer(1, 2, 80, "a"), transfer(1, 2, 80, "b"), transfer(2, 1, 5, "c")];
    let (changes, decisions) = decided(&batch.map(|one| linked(vec![one])));
    let short = Rejection::InsufficientFunds { needed: 80, available: 20 };
    let refused = |at: usize| rows(&decisions[at]) == [Err(short.clone())];
    assert!(!refused(0) && refused(1) && !refused(2));
    assert_eq!((changes.requests.len(), changes.ledger.transfers.len()), (2, 2));
}

#[test]
fn a_linked_group_leaves_nothing_when_one_of_it_is_refused() {
    let group = linked(vec![transfer(1, 2, 100, "a"), transfer(2, 9, 10, "b"), transfer(2, 3, 200, "c")]);
    let (changes, decisions) = decided(&[group, linked(vec![transfer(1, 3, 60, "a")])]);
    let linked = Err(Rejection::LinkedFailed { nth: 2, code: "recipient_not_found" });
    assert_eq!(rows(&decisions[0]), [linked.clone(), Err(Rejection::RecipientNotFound), linked]);
    // Its key is as if it had not been: the same key is new for the next.
    let done = rows(&decisions[1]);
    assert!(matches!(done, [Ok(Transferred::Now(posted))] if posted.entry.after == 40), "{done:?}");
    assert_eq!((changes.requests.len(), changes.ledger.transfers.len()), (1, 1));
}

#[test]
fn the_same_key_has_one_effect_within_a_batch_and_within_a_linked_group() {
    let twice = || vec![transfer(1, 2, 10, "a"), transfer(1, 2, 10, "a")];
    let (changes, decisions) = decided(&[linked(twice()), linked(twice())]);
    assert_eq!(changes.ledger.transfers.len(), 1);
    let key = changes.ledger.entries[0].0;
    let again = Ok(Transferred::Replayed(key));
    assert_eq!(rows(&decisions[1]), [again.clone(), again]);
}

fn background() -> Audited {
    Audited::new(Origin::BACKGROUND, Micros(1), 0)
}

/// Pays back the fees of members of a cancelled contest, as their last piece; only some of them have a wallet.
fn refunded(
    record: &ContestRecord,
    members: &[u8],
    wallets: &BTreeSet<u8>,
) -> (WriteSet, Result<ContestDone, Rejection>) {
    let row = |number: &u8| {
        let enrolled =
            ContestPlayer { place: u32::from(*number), division: None, member: Some(member(*number)) };
        (PlayerId::new(&format!("p{number}")).unwrap(), enrolled)
    };
    let action = Action::Refund(members.iter().map(row).collect(), true);
    let (id, observed) = (ContestId::new("cup").unwrap(), Some(Box::new(record.clone())));
    let (by, at, boards, idempotency) = (ActorKind::Clock, None, Vec::new(), None);
    let order = ContestRequest { id, observed, by, audited: background(), at, action, boards, idempotency };
    let batch: [Box<dyn AnyRequest>; 1] = [Box::new(order)];
    let settings = LedgerSettings::default();
    let ids: Vec<Uuid> = (0..batch[0].needs().ids).map(|at| Uuid::new(Micros(at as i64), 4)).collect();
    let plan = read(&batch, &ids, &settings);
    let mut loaded = Loaded::default();
    loaded.ledger.contests.contests = vec![Some(record.clone())];
    let of = |key: &WalletKey| wallets.contains(&key.member.0.0[0]).then(Wallet::default);
    loaded.ledger.wallets = plan.ledger.wallets.iter().map(of).collect();
    let (changes, mut decisions) = decide(&batch, &ids, (&plan, &loaded), &settings, (BELIEVED, KEPT));
    (changes, of_contest(decisions.remove(0)))
}

/// The places whose fees were paid back.
fn places(changes: &WriteSet) -> Vec<u32> {
    assert_eq!(changes.ledger.transfers.len(), changes.ledger.contests.payouts.len());
    changes.ledger.contests.payouts.iter().map(|(key, _)| key.no).collect()
}

/// The wallet of one member is missing, as if its row was lost. Fees before it are paid; it is neither marked nor skipped, and
/// later ones wait with it.
#[test]
fn a_fee_that_cannot_be_paid_back_stops_its_piece_and_is_tried_again() {
    let fee = Fee { currency: Currency::parse("KRW").unwrap(), amount: Amount::new(7).unwrap() };
    let contest = Contest { entry_fee: Some(fee), ..Contest::default() };
    let mut record = ContestRecord::new(Uuid([9; 16]), contest, None, Micros(1));
    (record.state, record.members) = (ContestState::Cancelled, 3);
    record.work = ContestTask::Refund { after: None };
    let without = BTreeSet::from([1, 3]);
    let (changes, decision) = refunded(&record, &[1, 2, 3], &without);
    let ContestDone { record, result, .. } = decision.unwrap();
    assert_eq!((places(&changes), result), (vec![1], ActionResult::Paid(vec![Ok(())])));
    assert_eq!(record.work, ContestTask::Refund { after: PlayerId::new("p1").ok() });
    let (changes, decision) = refunded(&record, &[2, 3], &without);
    assert_eq!((places(&changes), decision), (vec![], Err(Rejection::RecipientNotFound)));
    let (changes, decision) = refunded(&record, &[2, 3], &BTreeSet::from([1, 2, 3]));
    let ContestDone { record, result, .. } = decision.unwrap();
    assert_eq!((places(&changes), result), (vec![2, 3], ActionResult::Paid(vec![Ok(()); 2])));
    assert_eq!(record.work, ContestTask::None);
}

/// The reading of a clock that differs from the store's by this.
fn doubted(time: Micros, ahead: i64) -> ClockReading {
    let mut watch = ClockWatch::default();
    watch.compare(ahead);
    ClockReading { now: time.plus(ahead), doubt: watch.distrust() }
}

/// A server goes on while its clock is in doubt. The day of a limit is that of the time without the known error then.
#[test]
fn a_clock_in_doubt_neither_begins_a_day_of_a_limit_nor_repeats_one() {
    const HOUR: i64 = 3_600 * SECOND;
    let noon = Micros((100 * 24 + 12) * HOUR);
    let limits = CurrencyLimits { per_transfer: None, per_day: Some(100), ..CurrencyLimits::default() };
    let limits = BTreeMap::from([(Currency::parse("KRW").unwrap(), limits)]);
    let settings = LedgerSettings { limits, ..LedgerSettings::default() };
    let spend = |reading: ClockReading, spent: Spent| {
        let (changes, decisions) =
            decided_at(reading, &[linked(vec![transfer(1, 2, 40, "a")])], &settings, spent);
        let done = rows(&decisions[0])[0].clone();
        done.map(|_| changes.ledger.wallets[0].1.spent)
    };
    for ahead in [0, 25 * HOUR, -25 * HOUR, 240 * HOUR] {
        let reading = doubted(noon, ahead);
        assert_eq!(
            spend(reading, Spent { day: 99, units: 100 }),
            Ok(Spent { day: 100, units: 40 }),
            "{ahead}"
        );
        assert_eq!(
            spend(reading, Spent { day: 100, units: 60 }),
            Ok(Spent { day: 100, units: 100 }),
            "{ahead}"
        );
        let refused = Err(Rejection::LimitExceeded(Limit::PerDay { max: 100, left: 39, amount: 40 }));
        assert_eq!(spend(reading, Spent { day: 100, units: 61 }), refused, "{ahead}");
    }
}

/// Neither does it end a lock of a PIN, which would give guesses away, nor does a lock last for its jump.
#[test]
fn a_clock_in_doubt_neither_ends_a_lock_of_a_pin_nor_lengthens_one() {
    const LOCK: i64 = 900 * SECOND;
    let login = Login::new("ann").unwrap();
    let guess = Pins::new(Secret::new([3; 32]).into()).guess(&login, &Given::Digits("0042".into()));
    let ann = Member {
        login,
        phone: None,
        player: PlayerId::new("ann").unwrap(),
        name: "Ann".into(),
        password: None,
        pin: None,
        attempts: Attempts::default(),
        tokens_from: NOW,
        closed_at: None,
    };
    let payment = NewPayment {
        from: member(1),
        tokens_from: NOW,
        guess,
        phone: Phone::parse("010-1111", None).unwrap(),
        to: None,
        currency: Currency::parse("KRW").unwrap(),
        amount: Amount::new(1).unwrap(),
        idempotency: None,
    };
    let batch: [Box<dyn AnyRequest>; 1] = [Box::new(payment)];
    let settings = LedgerSettings::default();
    let ids = [Uuid::new(NOW, 4)];
    let plan = read(&batch, &ids, &settings);
    let guessed = |reading: ClockReading, attempts: Attempts| {
        let mut loaded = Loaded::default();
        loaded.ledger.members = vec![Some(Member { attempts, ..ann.clone() })];
        loaded.ledger.handles = vec![None];
        loaded.ledger.wallets = vec![None; plan.ledger.wallets.len()];
        let (changes, mut decisions) = decide(&batch, &ids, (&plan, &loaded), &settings, (reading, KEPT));
        let after = changes.ledger.members.first();
        (after.map(|(_, member)| member.attempts.locked_until), decisions.remove(0).err())
    };
    for ahead in [0, 25, -25, 240].map(|hours| hours * 3_600 * SECOND) {
        let reading = doubted(NOW, ahead);
        let locked = Attempts { wrong: 5, locked_until: Some(NOW.plus(LOCK)) };
        let refused = Some(Rejection::PinLocked { retry_after_s: 900 });
        assert_eq!(guessed(reading, locked), (None, refused), "{ahead}");
        let last = Attempts { wrong: 4, locked_until: None };
        let wrong = (Some(Some(NOW.plus(LOCK))), Some(Rejection::InvalidPin));
        assert_eq!(guessed(reading, last), wrong, "{ahead}");
    }
}
