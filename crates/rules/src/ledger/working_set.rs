//! The working set of a ledger transaction: its wallets and holds, changed by one request after the other.
//!
//! Every row that a request may change is loaded first. Each request sees the state that the one before left. It returns
//! its own entry, or is rejected and changes nothing. A wallet is written once, in its last state, for any number of
//! requests; every entry still has the balance after it. Linked transfers are rolled back together:
//! [`LedgerWorkingSet::savepoint`] and [`LedgerWorkingSet::roll_back`].
//!
//! A member exists if its home wallet does, which it gets when it is created. Other wallets appear with their first credit.
//! A closed member pays and receives nothing. Exceptions are withdrawals by the operator, refunds, reversals, and holds from
//! before. Not here: credit that expires (`credit`), holds (`holds`), reversals (`reverse`), caps of keys (`mint`), idempotency, ids, and limits of queues.

mod credit;
mod holds;
mod mint;
mod reverse;

use super::account::Totals;
use super::entry::{Entry, EntryKey, EntryKind, Transfer};
use super::hold::Hold;
use super::id::{HoldId, MemberId, TransferId};
use super::limits::{CurrencyLimits, Spent};
use super::mint::MintKey;
use super::money::{Amount, Currencies, Currency};
use super::reversal::ReversalLink;
use super::transfer_request::{LedgerWrites, Posted, TransferKind, TransferRequest};
use super::wallet::{Wallet, WalletKey};
use crate::actor::Origin;
use crate::instant::Micros;
use crate::rejection::Rejection;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A wallet after a transfer, and its member; `None` if the side is an account.
type Side = Option<(MemberId, Wallet)>;

/// A row as it was loaded, and as it is now.
#[derive(Clone, Debug)]
struct Slot<T> {
    loaded: Option<T>,
    now: Option<T>,
}

impl<T: Clone> Slot<T> {
    fn new(loaded: Option<T>) -> Self {
        Self { now: loaded.clone(), loaded }
    }
}

/// The wallets and holds of one transaction.
#[derive(Debug)]
pub struct LedgerWorkingSet<'a> {
    /// That of the request that is being decided.
    origin: Origin,
    /// Credit has expired up to here.
    now: Micros,
    currencies: &'a Currencies,
    limits: &'a BTreeMap<Currency, CurrencyLimits>,
    wallets: BTreeMap<WalletKey, Slot<Wallet>>,
    holds: BTreeMap<HoldId, Slot<Hold>>,
    reversals: BTreeMap<TransferId, Slot<ReversalLink>>,
    minted: BTreeMap<MintKey, Slot<Spent>>,
    transfers: Vec<(TransferId, Transfer)>,
    entries: Vec<(EntryKey, Entry)>,
    /// Wallets before each change since the last savepoint.
    before: Vec<(WalletKey, Option<Wallet>)>,
    /// The same of what keys have made.
    minted_before: Vec<(MintKey, Option<Spent>)>,
}

/// A state that [`LedgerWorkingSet::roll_back`] returns to.
#[derive(Clone, Copy, Debug)]
pub struct Savepoint {
    transfers: usize,
    entries: usize,
}

impl<'a> LedgerWorkingSet<'a> {
    /// An empty working set. A currency without an entry in `limits` has no limits.
    pub fn new(currencies: &'a Currencies, limits: &'a BTreeMap<Currency, CurrencyLimits>) -> Self {
        Self {
            origin: Origin::default(),
            now: Micros(i64::MIN),
            currencies,
            limits,
            wallets: BTreeMap::new(),
            holds: BTreeMap::new(),
            reversals: BTreeMap::new(),
            minted: BTreeMap::new(),
            transfers: Vec::new(),
            entries: Vec::new(),
            before: Vec::new(),
            minted_before: Vec::new(),
        }
    }

    /// Sets the actor and the reason of what is written from here on.
    pub fn set_origin(&mut self, origin: Origin) {
        self.origin = origin;
    }

    /// Sets the instant up to which credit has expired.
    pub fn set_now(&mut self, now: Micros) {
        self.now = now;
    }

    /// Records the stored wallet.
    pub fn load_wallet(&mut self, key: WalletKey, wallet: Option<Wallet>) {
        self.wallets.insert(key, Slot::new(wallet));
    }

    /// Records the stored hold.
    pub fn load_hold(&mut self, id: HoldId, hold: Option<Hold>) {
        self.holds.insert(id, Slot::new(hold));
    }

    /// A wallet as it is now.
    ///
    /// # Panics
    /// If the wallet was not loaded: a wallet that does not exist must differ from one that was never read.
    pub fn wallet(&self, key: &WalletKey) -> Option<Wallet> {
        let mut wallet = self.wallets.get(key).expect("a wallet is loaded before it is read").now.clone()?;
        wallet.settle(self.now);
        Some(wallet)
    }

    /// A hold as it is now.
    ///
    /// # Panics
    /// If it was not loaded.
    pub fn hold(&self, id: &HoldId) -> Option<Hold> {
        self.holds.get(id).expect("a hold is loaded before it is read").now.clone()
    }

    fn set(&mut self, key: WalletKey, wallet: Wallet) {
        let slot = self.wallets.get_mut(&key).expect("a wallet is loaded before it is written");
        self.before.push((key, slot.now.replace(wallet)));
    }

    /// Whether a member is closed, by its home wallet; `None` if it does not exist. Accounts of pools exist for contests alone.
    fn is_closed(&self, member: MemberId, for_contest: bool) -> Option<bool> {
        if member.is_pool() {
            return for_contest.then_some(false);
        }
        let home = self.wallets.get(&WalletKey { member, currency: self.currencies.home() });
        home.expect("a wallet is loaded before it is read").now.as_ref().map(|wallet| wallet.closed)
    }

    /// Gives a new member its home wallet.
    ///
    /// # Panics
    /// If it has one.
    pub fn open(&mut self, member: MemberId) {
        let key = WalletKey { member, currency: self.currencies.home() };
        assert!(self.wallet(&key).is_none(), "a member is made once");
        self.set(key, Wallet::default());
    }

    /// Closes a member whose wallets are all loaded. Repeating it changes nothing.
    pub fn close(&mut self, member: MemberId, force: bool) -> Result<(), Rejection> {
        if self.is_closed(member, false).ok_or(Rejection::MemberNotFound)? {
            return Ok(());
        }
        if !force {
            self.check_empty(member)?;
        }
        let key = WalletKey { member, currency: self.currencies.home() };
        let home = self.wallet(&key).ok_or(Rejection::MemberNotFound)?;
        self.set(key, Wallet { closed: true, ..home });
        Ok(())
    }

    /// Rejects a member with money or holds in its wallets, which are all loaded.
    pub fn check_empty(&self, member: MemberId) -> Result<(), Rejection> {
        let all = self.currencies.all().map(|currency| WalletKey { member, currency });
        let with_money = |key: WalletKey| {
            let wallet = self.wallet(&key).filter(|wallet| !wallet.is_empty())?;
            Some((key.currency, wallet.balance))
        };
        let balances: Vec<_> = all.filter_map(with_money).collect();
        if balances.is_empty() { Ok(()) } else { Err(Rejection::WalletNotEmpty(balances)) }
    }

    /// Whether a member could transfer this amount, without a check of the recipient.
    pub fn can_transfer(
        &self,
        from: MemberId,
        (currency, amount): (Currency, Amount),
        now: Micros,
    ) -> Result<(), Rejection> {
        self.rules(currency).allows(TransferKind::Transfer { from, to: from }, currency)?;
        let wallet = self.wallet(&WalletKey { member: from, currency });
        let wallet = wallet.ok_or(Rejection::WalletNotFound(currency))?;
        self.spend(wallet, (currency, amount), now)?.debit_plain(amount)
    }

    fn rules(&self, currency: Currency) -> CurrencyLimits {
        self.limits.get(&currency).copied().unwrap_or_default()
    }

    /// The wallet with the transfer counted towards its limits.
    fn spend(
        &self,
        wallet: Wallet,
        (currency, amount): (Currency, Amount),
        now: Micros,
    ) -> Result<Wallet, Rejection> {
        let spent = self.rules(currency).check(wallet.spent, amount, now)?;
        Ok(Wallet { spent, ..wallet })
    }

    /// Whether an empty wallet could be credited with this amount.
    pub fn fits(&self, currency: Currency, amount: Amount) -> Result<(), Rejection> {
        self.rules(currency).check_balance(amount.units())
    }

    /// Makes one transfer.
    pub fn post(
        &mut self,
        id: TransferId,
        order: &TransferRequest,
        now: Micros,
    ) -> Result<Posted, Rejection> {
        let (from, to) = order.what.sides();
        self.currencies.check(order.currency)?;
        let rules = self.rules(order.currency);
        rules.allows(order.what, order.currency)?;
        let pools = order.what.is_of_contest();
        let payer =
            from.map(|from| self.is_closed(from, pools).ok_or(Rejection::MemberNotFound)).transpose()?;
        if let Some(member) = from.filter(|_| from == to) {
            return Err(Rejection::SameWallet(member));
        }
        let payee = to.map(|to| self.is_closed(to, pools).ok_or(Rejection::RecipientNotFound)).transpose()?;
        let key = |member| WalletKey { member, currency: order.currency };
        let mut source = from
            .map(|from| self.wallet(&key(from)).ok_or(Rejection::WalletNotFound(order.currency)))
            .transpose()?;
        let closed = [(from, payer), (to, payee)].into_iter().find(|(_, closed)| *closed == Some(true));
        if let Some((Some(member), _)) = closed.filter(|_| !order.what.reaches_closed()) {
            return Err(Rejection::MemberClosed(member));
        }
        if let (Some(wallet), TransferKind::Transfer { .. }) = (&mut source, order.what) {
            *wallet = self.spend(std::mem::take(wallet), (order.currency, order.amount), now)?;
        }
        // The limit of the recipient's balance takes precedence over insufficient funds, so it is checked first.
        let mut target = to.map(|to| self.wallet(&key(to)).unwrap_or_default());
        target.as_mut().map_or(Ok(()), |wallet| match order.what {
            TransferKind::Promotion { expires_at, .. } if expires_at <= self.now.max(now) => {
                Err(Rejection::CreditExpiryInPast { at: expires_at, now: self.now.max(now) })
            }
            TransferKind::Promotion { expires_at, .. } => wallet.promote(order.amount, expires_at),
            _ => wallet.credit(order.amount),
        })?;
        // A pool is no member, and what it needs for its prizes has no bound of theirs.
        let is_bounded = to.is_some_and(|to| !to.is_pool()) && !order.what.is_refund();
        if let Some(wallet) = target.as_ref().filter(|_| is_bounded) {
            rules.check_balance(wallet.balance)?;
        }
        source.as_mut().map_or(Ok(()), |wallet| match order.what {
            TransferKind::Transfer { .. } | TransferKind::PlainWithdrawal { .. } => {
                wallet.debit_plain(order.amount)
            }
            _ => wallet.debit(order.amount),
        })?;
        let sides = (from.zip(source), to.zip(target));
        let (kind, amount) = ((order.what.kind(), None), (order.currency, order.amount));
        Ok(self.write(id, kind, amount, sides, order.reference.as_ref()))
    }

    /// Records a transfer whose wallets are already changed: its transfer row, its entries, its wallets.
    fn write(
        &mut self,
        id: TransferId,
        (kind, reverses): (EntryKind, Option<EntryKind>),
        (currency, amount): (Currency, Amount),
        (source, target): (Side, Side),
        reference: Option<&Arc<str>>,
    ) -> Posted {
        let place = |(member, wallet): &(MemberId, Wallet)| (*member, wallet.sequence);
        let (debit, credit) = (source.as_ref().map(place), target.as_ref().map(place));
        let (amount, origin) = (amount.units(), self.origin.clone());
        let transfer = Transfer { kind, reverses, currency, amount, debit, credit, origin };
        let mut posted = None;
        for (entry, own) in transfer.sides().into_iter().zip([source, target]) {
            let Some(((key, kind, counterparty), (_, wallet))) = entry.zip(own) else { continue };
            let entry = Entry {
                transfer: id,
                kind,
                amount,
                after: wallet.balance,
                counterparty,
                reference: reference.cloned(),
            };
            posted.get_or_insert_with(|| Posted { key, entry: entry.clone() });
            self.entries.push((key, entry));
            self.set(key.wallet, wallet);
        }
        self.transfers.push((id, transfer));
        posted.expect("a movement touches a wallet")
    }

    /// Starts a group of linked transfers.
    pub fn savepoint(&mut self) -> Savepoint {
        self.before.clear();
        self.minted_before.clear();
        Savepoint { transfers: self.transfers.len(), entries: self.entries.len() }
    }

    /// Rolls back every transfer since the savepoint, which must be the last one.
    pub fn roll_back(&mut self, savepoint: Savepoint) {
        while let Some((key, wallet)) = self.before.pop() {
            self.wallets.get_mut(&key).expect("it was changed").now = wallet;
        }
        while let Some((key, minted)) = self.minted_before.pop() {
            self.minted.get_mut(&key).expect("it was changed").now = minted;
        }
        self.transfers.truncate(savepoint.transfers);
        self.entries.truncate(savepoint.entries);
    }

    /// The rows to write.
    pub fn into_writes(self) -> LedgerWrites {
        let Self { wallets, holds, reversals, minted, mut transfers, mut entries, .. } = self;
        let mut totals = Totals::default();
        transfers.iter().for_each(|(_, transfer)| totals.add(transfer));
        transfers.sort_unstable_by_key(|(id, _)| *id);
        entries.sort_unstable_by_key(|(key, _)| *key);
        let (wallets, holds, reversals) = (changed(wallets), changed(holds), changed(reversals));
        LedgerWrites { wallets, transfers, entries, holds, reversals, minted: changed(minted), totals }
    }
}

fn changed<K, T: PartialEq>(slots: BTreeMap<K, Slot<T>>) -> Vec<(K, T)> {
    let differs = |(key, slot): (K, Slot<T>)| (slot.now != slot.loaded).then_some(key).zip(slot.now);
    slots.into_iter().filter_map(differs).collect()
}
