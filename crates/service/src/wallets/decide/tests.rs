//! Batches in memory: hot wallets, chains that leave nothing, and one effect for each key.

use super::*;
use crate::contests::command::{Act, ContestDone, ContestOrder, What};
use std::collections::BTreeSet;
use tally_rules::PlayerId;
use tally_rules::contest::definition::Fee;
use tally_rules::contest::record::ContestTask;
use tally_rules::contest::{ActorKind, Contest, ContestMember, State as Stands};
use tally_rules::idempotency::{Fingerprint, KEEP_DEFAULT_MICROS};
use tally_rules::ledger::{Amount, Currency, TransferKind, TransferRequest, Wallet};

const NOW: Micros = Micros(1_000_000_000);

fn member(number: u8) -> MemberId {
    MemberId(Uuid([number; 16]))
}

fn moving(from: u8, to: u8, units: i64, key: &str) -> NewMove {
    let (what, currency) =
        (TransferKind::Transfer { from: member(from), to: member(to) }, Currency::parse("KRW").unwrap());
    let order = TransferRequest { what, currency, amount: Amount::new(units).unwrap(), reference: None };
    let key = RequestKey { scope: "s".into(), key: key.into() };
    NewMove { order, identity: Some(IdempotencyKey { key, fingerprint: Fingerprint([1; 16]) }) }
}

/// Decides a batch on wallets 1, 2 and 3 with 100 each.
fn decided(batch: &[Request]) -> (Changes, Vec<Decision>) {
    let settings = LedgerSettings::default();
    let ids: Vec<Uuid> =
        (0..batch.iter().map(ids_of).sum()).map(|at: usize| Uuid::new(Micros(at as i64), 4)).collect();
    let plan = read(batch, &ids, &settings);
    let mut loaded = Loaded { requests: vec![None; plan.requests.len()], ..Loaded::default() };
    let of = |key: &WalletKey| (key.member.0.0[0] <= 3).then(|| Wallet { balance: 100, ..Wallet::default() });
    loaded.ledger.wallets = plan.ledger.wallets.iter().map(of).collect();
    decide(batch, &ids, (&plan, &loaded), &settings, (NOW, KEEP_DEFAULT_MICROS))
}

#[test]
fn a_hot_wallet_is_written_once_and_each_entry_shows_its_own_balance() {
    let batch: Vec<_> = (0..50).map(|row| Request::Chain(vec![moving(1, 2, 2, &format!("{row}"))])).collect();
    let (changes, decisions) = decided(&batch);
    let ledger = &changes.ledger;
    assert_eq!((ledger.wallets.len(), ledger.transfers.len(), ledger.entries.len()), (2, 50, 100));
    assert_eq!((ledger.wallets[0].1.balance, ledger.wallets[1].1.balance), (0, 200));
    assert_eq!((ledger.totals.len(), ledger.totals[0].1.debits), (1, 100));
    for (decision, wanted) in decisions.iter().zip((0..50).map(|row| 98 - 2 * row)) {
        let Ok(Done::Chain(done)) = decision else { panic!("{decision:?}") };
        let [Ok(Moved::Posted(posted))] = &done[..] else { panic!("{done:?}") };
        assert_eq!((posted.entry.before(), posted.entry.after), (wanted + 2, wanted));
    }
}

#[test]
fn who_has_too_little_fails_alone() {
    let batch = [moving(1, 2, 80, "a"), moving(1, 2, 80, "b"), moving(2, 1, 5, "c")];
    let (changes, decisions) = decided(&batch.map(|one| Request::Chain(vec![one])));
    let refused = |at: usize| decisions[at] == Ok(Done::Chain(vec![Err(Rejection::InsufficientFunds)]));
    assert!(!refused(0) && refused(1) && !refused(2));
    assert_eq!((changes.requests.len(), changes.ledger.transfers.len()), (2, 2));
}

#[test]
fn a_chain_leaves_nothing_of_itself_when_one_of_it_is_refused() {
    let chain = Request::Chain(vec![moving(1, 2, 100, "a"), moving(2, 9, 10, "b"), moving(2, 3, 200, "c")]);
    let (changes, decisions) = decided(&[chain, Request::Chain(vec![moving(1, 3, 60, "a")])]);
    let linked = Err(Rejection::LinkedFailed);
    let wanted = Done::Chain(vec![linked.clone(), Err(Rejection::RecipientNotFound), linked]);
    assert_eq!(decisions[0], Ok(wanted));
    // Its key is as if it had not been: the same key is new for the next.
    let Ok(Done::Chain(done)) = &decisions[1] else { panic!("{decisions:?}") };
    assert!(matches!(&done[..], [Ok(Moved::Posted(posted))] if posted.entry.after == 40), "{done:?}");
    assert_eq!((changes.requests.len(), changes.ledger.transfers.len()), (1, 1));
}

#[test]
fn the_same_key_has_one_effect_within_a_batch_and_within_a_chain() {
    let twice = || vec![moving(1, 2, 10, "a"), moving(1, 2, 10, "a")];
    let (changes, decisions) = decided(&[Request::Chain(twice()), Request::Chain(twice())]);
    assert_eq!(changes.ledger.transfers.len(), 1);
    let key = changes.ledger.entries[0].0;
    let again = Ok(Moved::Replayed(key));
    assert_eq!(decisions[1], Ok(Done::Chain(vec![again.clone(), again])));
}

/// Pays back the fees of members of a cancelled contest, as their last piece; only some of them have a wallet.
fn refunded(record: &Record, members: &[u8], wallets: &BTreeSet<u8>) -> (Changes, Decision) {
    let row = |number: &u8| {
        let enrolled =
            ContestMember { place: u32::from(*number), division: None, member: Some(member(*number)) };
        (PlayerId::new(&format!("p{number}")).unwrap(), enrolled)
    };
    let act = Act::Refund(members.iter().map(row).collect(), true);
    let (id, seen) = (ContestId::new("cup").unwrap(), Some(Box::new(record.clone())));
    let (by, at, boards, identity) = (ActorKind::Clock, None, Vec::new(), None);
    let batch = [Request::Contest(Box::new(ContestOrder { id, seen, by, at, act, boards, identity }))];
    let settings = LedgerSettings::default();
    let ids: Vec<Uuid> = (0..ids_of(&batch[0])).map(|at| Uuid::new(Micros(at as i64), 4)).collect();
    let plan = read(&batch, &ids, &settings);
    let mut loaded = Loaded::default();
    loaded.ledger.contests.contests = vec![Some(record.clone())];
    let of = |key: &WalletKey| wallets.contains(&key.member.0.0[0]).then(Wallet::default);
    loaded.ledger.wallets = plan.ledger.wallets.iter().map(of).collect();
    let (changes, mut decisions) =
        decide(&batch, &ids, (&plan, &loaded), &settings, (NOW, KEEP_DEFAULT_MICROS));
    (changes, decisions.remove(0))
}

/// The places whose fees were paid back.
fn places(changes: &Changes) -> Vec<u32> {
    assert_eq!(changes.ledger.transfers.len(), changes.ledger.contests.payouts.len());
    changes.ledger.contests.payouts.iter().map(|(key, _)| key.no).collect()
}

/// The wallet of one cannot be found, as a lost row would have it. Those before it are paid, it is neither marked nor passed over, and
/// those behind it wait with it.
#[test]
fn a_fee_that_cannot_be_paid_back_stops_its_piece_and_is_tried_again() {
    let fee = Fee { currency: Currency::parse("KRW").unwrap(), amount: Amount::new(7).unwrap() };
    let contest = Contest { entry_fee: Some(fee), ..Contest::default() };
    let mut record = Record::new(Uuid([9; 16]), contest, None, Micros(1));
    (record.state, record.members) = (Stands::Cancelled, 3);
    record.work = ContestTask::Refund { after: None };
    let without = BTreeSet::from([1, 3]);
    let (changes, decision) = refunded(&record, &[1, 2, 3], &without);
    let Ok(Done::Contest(ContestDone { record, what, .. })) = decision else { panic!("{decision:?}") };
    assert_eq!((places(&changes), what), (vec![1], What::Paid(vec![Ok(())])));
    assert_eq!(record.work, ContestTask::Refund { after: PlayerId::new("p1").ok() });
    let (changes, decision) = refunded(&record, &[2, 3], &without);
    assert_eq!((places(&changes), decision), (vec![], Err(Rejection::RecipientNotFound)));
    let (changes, decision) = refunded(&record, &[2, 3], &BTreeSet::from([1, 2, 3]));
    let Ok(Done::Contest(ContestDone { record, what, .. })) = decision else { panic!("{decision:?}") };
    assert_eq!((places(&changes), what), (vec![2, 3], What::Paid(vec![Ok(()); 2])));
    assert_eq!(record.work, ContestTask::None);
}
