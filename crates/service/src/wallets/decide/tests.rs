//! Batches in memory: hot wallets, chains that leave nothing, and one effect for each key.

use super::*;
use tally_rules::idempotency::{Fingerprint, KEEP_DEFAULT_MICROS};
use tally_rules::ledger::{Amount, Currency, Move, Order, Wallet};

const NOW: Micros = Micros(1_000_000_000);

fn member(number: u8) -> MemberId {
    MemberId(Uuid([number; 16]))
}

fn moving(from: u8, to: u8, units: i64, key: &str) -> NewMove {
    let (what, currency) =
        (Move::Transfer { from: member(from), to: member(to) }, Currency::parse("KRW").unwrap());
    let order = Order { what, currency, amount: Amount::new(units).unwrap(), reference: None };
    let key = RequestKey { scope: "s".into(), key: key.into() };
    NewMove { order, identity: Some(Identity { key, fingerprint: Fingerprint([1; 16]) }) }
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
    let refused = |at: usize| decisions[at] == Ok(Done::Chain(vec![Err(Refusal::InsufficientFunds)]));
    assert!(!refused(0) && refused(1) && !refused(2));
    assert_eq!((changes.requests.len(), changes.ledger.transfers.len()), (2, 2));
}

#[test]
fn a_chain_leaves_nothing_of_itself_when_one_of_it_is_refused() {
    let chain = Request::Chain(vec![moving(1, 2, 100, "a"), moving(2, 9, 10, "b"), moving(2, 3, 200, "c")]);
    let (changes, decisions) = decided(&[chain, Request::Chain(vec![moving(1, 3, 60, "a")])]);
    let linked = Err(Refusal::LinkedFailed);
    let wanted = Done::Chain(vec![linked.clone(), Err(Refusal::RecipientNotFound), linked]);
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
