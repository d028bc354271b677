//! Promotional credit of wallets: read back by every way, and found when it is due.

use super::ledger::{change, read, twice, wallet, wallet_key};
use super::*;
use std::sync::Arc;
use tally_rules::ledger::credit::{CREDITS_MAX, Credit, Credits};
use tally_rules::ledger::{Wallet, WalletKey};
use tally_store::{LedgerReadSet, LedgerWriteSet};

pub(crate) fn with_credit(lapsed: i64, covered: i64, open: &[(i64, i64)]) -> Wallet {
    let open = open.iter().map(|(at, left)| Credit { expires_at: Micros(*at), left: *left }).collect();
    Wallet { credits: Some(Arc::new(Credits { lapsed, covered, open })), ..wallet(1_000, 3) }
}

pub(crate) fn credit_reads_back_and_is_found_when_it_is_due(backend: &dyn Backend) {
    let store = open(backend);
    let key = |number| wallet_key(number, "KRW");
    let most: Vec<(i64, i64)> = (1..=CREDITS_MAX as i64).map(|number| (i64::MAX - 99 + number, 9)).collect();
    let mut rows = vec![
        (key(1), with_credit(0, 0, &[(10, 5), (20, 6)])),
        (key(2), with_credit(0, 7, &[])),
        (key(3), with_credit(1, 2, &[(30, 1)])),
        (key(4), with_credit(0, 0, &most)),
        (key(5), wallet(50, 1)),
    ];
    change(&*store, LedgerWriteSet { wallets: rows.clone(), ..Default::default() });
    let due = |store: &dyn Store, now, limit| -> Vec<WalletKey> {
        let mut found = store.ledger().due_credits(Micros(now), limit).unwrap();
        found.sort();
        found
    };
    let all = |store: &dyn Store, rows: &[(WalletKey, Wallet)]| {
        let wallets: Vec<WalletKey> = rows.iter().map(|(key, _)| *key).collect();
        let loaded = read(store, LedgerReadSet { wallets, ..Default::default() });
        for ((key, wallet), loaded) in rows.iter().zip(loaded.wallets) {
            assert_eq!(loaded.as_ref(), Some(wallet));
            let listed = store.ledger().wallets_of(key.member).unwrap();
            assert_eq!(listed, [(key.currency, wallet.clone())]);
        }
        assert_eq!(store.ledger().snapshot().unwrap().wallets(None, 99).unwrap(), rows);
    };
    let store = twice(backend, store, |store| {
        all(store, &rows);
        assert_eq!(due(store, 9, 9), [key(3)], "what has lapsed is due at once");
        assert_eq!(due(store, 10, 9), [key(1), key(3)]);
        assert_eq!(due(store, i64::MAX, 9), [key(1), key(3), key(4)]);
        assert_eq!(due(store, i64::MAX, 2).len(), 2);
    });
    // Wherever the older state is: one wallet has no credit any more, and another has its first.
    rows[0].1.credits = None;
    rows[4].1 = with_credit(0, 0, &[(11, 3)]);
    change(&*store, LedgerWriteSet { wallets: vec![rows[0].clone(), rows[4].clone()], ..Default::default() });
    twice(backend, store, |store| {
        all(store, &rows);
        assert_eq!(due(store, 11, 9), [key(3), key(5)]);
    });
}
