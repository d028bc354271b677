//! Links between transfers and their reversals: read back by every way, and kept to the amount of the original.

use super::ledger::{change, changes_of, prove, read, twice, wallet_key};
use super::*;
use std::collections::BTreeMap;
use tally_rules::Rejection;
use tally_rules::ledger::reversal::REVERSALS_MAX;
use tally_rules::ledger::working_set::LedgerWorkingSet;
use tally_rules::ledger::{
    Amount, Currencies, ReversalLink, ReversalRequest, TransferId, TransferKind, TransferRequest, Uuid,
    Wallet,
};
use tally_store::{LedgerReadSet, LedgerWriteSet};

/// A transfer that was reversed twice, and both of its reversals.
pub(crate) fn links() -> Vec<(TransferId, ReversalLink)> {
    let id = |number| TransferId(Uuid([number; 16]));
    let back = |reason: Option<&str>| {
        let reason = reason.map(Into::into);
        ReversalLink::Reverses { original: id(3), reason }
    };
    vec![
        (id(3), ReversalLink::Reversed(vec![(id(0xfe), 1), (id(0xff), 1_000_000_000_000_000)])),
        (id(0xfe), back(Some("Grüße\0'"))),
        (id(0xff), back(None)),
    ]
}

pub(crate) fn links_of_reversals_read_back_and_are_changed(backend: &dyn Backend) {
    let store = open(backend);
    let links = links();
    change(&*store, LedgerWriteSet { reversals: links.clone(), ..Default::default() });
    store.checkpoint().unwrap();
    let store = twice(backend, store, |store| {
        for (id, link) in &links {
            assert_eq!(store.ledger().reversal(*id).unwrap().as_ref(), Some(link));
        }
        let missing = TransferId(Uuid([4; 16]));
        assert_eq!(store.ledger().reversal(missing).unwrap(), None);
        let reversals = vec![links[0].0, missing, links[1].0];
        let loaded = read(store, LedgerReadSet { reversals, ..Default::default() });
        assert_eq!(loaded.reversals, [Some(links[0].1.clone()), None, Some(links[1].1.clone())]);
    });
    // As many as one transfer may have.
    let parts = (1..=REVERSALS_MAX as u8).map(|number| (TransferId(Uuid([number; 16])), i64::MAX / 200));
    let longer = ReversalLink::Reversed(parts.collect());
    change(&*store, LedgerWriteSet { reversals: vec![(links[0].0, longer.clone())], ..Default::default() });
    twice(backend, store, |store| {
        assert_eq!(store.ledger().reversal(links[0].0).unwrap().as_ref(), Some(&longer));
        assert_eq!(store.ledger().reversal(links[1].0).unwrap().as_ref(), Some(&links[1].1));
    });
}

/// Many that reverse the same transfer at once take back no more than all of it, whichever comes first.
pub(crate) fn concurrent_reversals_never_exceed_their_original(backend: &dyn Backend) {
    let (store, currencies, limits) = (open(backend), Currencies::default(), BTreeMap::new());
    let key = wallet_key(1, "KRW");
    let made = TransferId(Uuid::new(Micros(1), 0));
    let order = TransferRequest {
        what: TransferKind::Deposit { to: key.member },
        currency: currencies.home(),
        amount: Amount::new(100).unwrap(),
        reference: None,
    };
    let mut book = LedgerWorkingSet::new(&currencies, &limits);
    book.load_wallet(key, Some(Wallet::default()));
    book.post(made, &order, Micros(0)).unwrap();
    change(&*store, changes_of(book.into_writes()));
    let reverse = |id: TransferId| {
        let transfer = store.ledger().transfer(made).unwrap().expect("it was made");
        let amount = Some(Amount::new(30).unwrap());
        let request = ReversalRequest { original: made, transfer, amount, reference: None };
        let ledger = LedgerReadSet { wallets: vec![key], reversals: vec![made], ..Default::default() };
        let plan = ReadSet { ledger, ..ReadSet::default() };
        let mut done = Ok(());
        run(&*store, &plan, &mut |loaded| {
            let mut book = LedgerWorkingSet::new(&currencies, &limits);
            book.load_wallet(key, loaded.ledger.wallets[0].clone());
            book.load_reversal(made, loaded.ledger.reversals[0].clone());
            done = book.reverse(id, &request).map(drop);
            WriteSet { ledger: changes_of(book.into_writes()), ..WriteSet::default() }
        })
        .unwrap();
        done
    };
    let done: Vec<_> = std::thread::scope(|scope| {
        let one = |thread: u64| {
            let reverse = &reverse;
            scope.spawn(move || reverse(TransferId(Uuid::new(Micros(2), thread << 8))))
        };
        let all: Vec<_> = (0..6).map(one).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let exceeds = Err(Rejection::ExceedsReversible { left: 10 });
    assert_eq!(done.iter().filter(|done| done.is_ok()).count(), 3, "{done:?}");
    assert_eq!(done.iter().filter(|done| **done == exceeds).count(), 3, "{done:?}");
    let link = store.ledger().reversal(made).unwrap().expect("it is reversed");
    assert_eq!((link.reversed(), store.ledger().wallets_of(key.member).unwrap()[0].1.balance), (90, 10));
    assert_eq!(prove(&*store, 2), 10);
}
