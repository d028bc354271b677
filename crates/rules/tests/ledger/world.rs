//! A ledger in memory: everything that a store would keep, read and written through a [`LedgerWorkingSet`], and proven after each
//! step.

use std::collections::BTreeMap;
use tally_rules::Micros;
use tally_rules::ledger::account::{Total, Totals};
use tally_rules::ledger::entry::EntryKey;
use tally_rules::ledger::limits::CurrencyLimits;
use tally_rules::ledger::transfer_request::LedgerWrites;
use tally_rules::ledger::working_set::LedgerWorkingSet;
use tally_rules::ledger::{
    Currencies, Currency, Entry, Hold, HoldId, MemberId, ReversalLink, Transfer, TransferId, Uuid, Wallet,
    WalletKey,
};

/// What is stored.
pub(crate) struct World {
    pub(crate) currencies: Currencies,
    pub(crate) limits: BTreeMap<Currency, CurrencyLimits>,
    pub(crate) now: Micros,
    pub(crate) wallets: BTreeMap<WalletKey, Wallet>,
    pub(crate) holds: BTreeMap<HoldId, Hold>,
    pub(crate) entries: BTreeMap<EntryKey, Entry>,
    pub(crate) transfers: BTreeMap<TransferId, Transfer>,
    pub(crate) reversals: BTreeMap<TransferId, ReversalLink>,
    pub(crate) totals: Totals,
    given: i64,
}

pub(crate) fn code(text: &str) -> Currency {
    Currency::parse(text).unwrap()
}

pub(crate) fn member(number: u8) -> MemberId {
    MemberId(Uuid([number; 16]))
}

impl World {
    /// With these limits in each currency.
    pub(crate) fn new(limits: CurrencyLimits) -> Self {
        Self {
            currencies: Currencies::new((code("KRW"), 0), [(code("USD"), 2)]),
            limits: ["KRW", "USD"].map(|text| (code(text), limits)).into(),
            now: Micros(1_000_000),
            wallets: BTreeMap::new(),
            holds: BTreeMap::new(),
            entries: BTreeMap::new(),
            transfers: BTreeMap::new(),
            reversals: BTreeMap::new(),
            totals: Totals::default(),
            given: 0,
        }
    }

    /// An id that nothing has.
    pub(crate) fn id(&mut self) -> Uuid {
        self.given += 1;
        Uuid::new(Micros(self.now.0 + self.given), 0)
    }

    /// One transaction over everything stored, including the wallets of members 0 to 9 and holds 0 to 99.
    pub(crate) fn transact<T>(
        &mut self,
        work: impl FnOnce(&mut LedgerWorkingSet<'_>, &mut dyn FnMut() -> Uuid) -> T,
    ) -> T {
        let (currencies, limits) = (self.currencies.clone(), self.limits.clone());
        let mut book = LedgerWorkingSet::new(&currencies, &limits);
        book.set_now(self.now);
        for member in (0..10).map(member) {
            for currency in currencies.all().chain([code("EUR")]) {
                let key = WalletKey { member, currency };
                book.load_wallet(key, self.wallets.get(&key).cloned());
            }
        }
        for id in self.holds.keys().copied().chain([HoldId(Uuid([0xff; 16]))]) {
            book.load_hold(id, self.holds.get(&id).cloned());
        }
        for id in self.transfers.keys() {
            book.load_reversal(*id, self.reversals.get(id).cloned());
        }
        let done = work(&mut book, &mut || self.id());
        let written = book.into_writes();
        self.apply(written);
        self.prove();
        done
    }

    fn apply(&mut self, written: LedgerWrites) {
        let LedgerWrites { wallets, transfers, entries, holds, reversals, totals, minted: _ } = written;
        assert!(wallets.is_sorted_by(|a, b| a.0 < b.0) && entries.is_sorted_by(|a, b| a.0 < b.0));
        assert!(transfers.is_sorted_by(|a, b| a.0 < b.0) && holds.is_sorted_by(|a, b| a.0 < b.0));
        self.wallets.extend(wallets);
        for (id, transfer) in transfers {
            assert_eq!(self.transfers.insert(id, transfer), None, "an id is given once");
        }
        for (key, entry) in entries {
            assert_eq!(self.entries.insert(key, entry), None, "a place is taken once");
        }
        for (id, hold) in holds {
            let is_open = hold.is_open();
            let before = self.holds.insert(id, hold);
            assert!(before.is_none_or(|before| before.is_open() && !is_open), "a hold ends once");
        }
        assert!(reversals.is_sorted_by(|a, b| a.0 < b.0));
        self.reversals.extend(reversals);
        assert!(totals.balanced());
        self.totals.extend(totals.into_rows());
    }

    /// Everything that must always be true.
    fn prove(&self) {
        assert!(self.totals.balanced(), "debits equal credits");
        let mut again = Totals::default();
        self.transfers.values().for_each(|transfer| again.add(transfer));
        assert_eq!(again, self.totals, "totals are those of the movements");
        let mut sums: BTreeMap<WalletKey, (i64, u64)> = BTreeMap::new();
        for (key, entry) in &self.entries {
            let (balance, sequence) = sums.entry(key.wallet).or_default();
            assert_eq!((entry.before(), key.sequence), (*balance, *sequence + 1), "entries join");
            (*balance, *sequence) = (entry.after, key.sequence);
            let transfer = &self.transfers[&entry.transfer];
            assert_eq!((transfer.amount, transfer.currency), (entry.amount, key.wallet.currency));
            assert!(transfer.entries().contains(&Some(*key)));
        }
        for (key, wallet) in &self.wallets {
            let (balance, sequence) = sums.remove(key).unwrap_or_default();
            assert_eq!((wallet.balance, wallet.sequence), (balance, sequence), "a balance is its entries");
            let of_wallet = self.holds.values().filter(|hold| hold.wallet == *key && hold.is_open());
            assert_eq!(wallet.held, of_wallet.map(|hold| hold.amount).sum::<i64>());
            assert!(0 <= wallet.held && wallet.held <= wallet.balance);
            let credits = wallet.credits.as_deref().cloned().unwrap_or_default();
            assert!(credits.covered <= wallet.held && credits.sum() <= wallet.balance, "{wallet:?}");
            assert!(wallet.held + credits.lapsed <= wallet.balance && credits.lapsed >= 0, "{wallet:?}");
            assert!(credits.open.is_sorted_by(|a, b| a.expires_at < b.expires_at));
            assert!(credits.open.iter().all(|credit| credit.left > 0) && credits.open.len() <= 16);
        }
        assert!(sums.is_empty(), "an entry is in a wallet");
        self.prove_reversals();
        let owed: i128 = self.wallets.values().map(|wallet| i128::from(wallet.balance)).sum();
        let payable = self.totals.rows().filter(|(key, _)| key.account.as_str() == "BANK_PAYABLE");
        let net = |total: &Total| total.credits.cast_signed() - total.debits.cast_signed();
        assert_eq!(payable.map(|(_, total)| net(total)).sum::<i128>(), owed, "what is owed is in wallets");
    }

    /// Links are there both ways, and no transfer is reversed by more than its amount.
    fn prove_reversals(&self) {
        for (id, transfer) in &self.transfers {
            let link = self.reversals.get(id);
            let is_reversal = matches!(link, Some(ReversalLink::Reverses { .. }));
            assert_eq!(transfer.reverses.is_some(), is_reversal, "a reversal names its original");
            match link {
                None => {}
                Some(link @ ReversalLink::Reversed(parts)) => {
                    assert!(!parts.is_empty() && link.reversed() <= transfer.amount);
                    for (part, amount) in parts {
                        let back = &self.transfers[part];
                        assert_eq!((back.amount, back.reverses), (*amount, Some(transfer.kind)));
                        let exchanged = transfer.accounts();
                        assert_eq!(back.accounts(), (exchanged.1, exchanged.0));
                        let named = &self.reversals[part];
                        assert!(matches!(named, ReversalLink::Reverses { original, .. } if original == id));
                    }
                }
                Some(ReversalLink::Reverses { original, .. }) => {
                    let named = &self.reversals[original];
                    let ReversalLink::Reversed(parts) = named else { panic!("{named:?}") };
                    assert_eq!(parts.iter().filter(|(part, _)| part == id).count(), 1);
                }
            }
        }
        assert!(self.reversals.keys().all(|id| self.transfers.contains_key(id)));
    }
}
