//! Holds in the working set: placed, captured, voided and expired.
//!
//! Held money stays in its wallet, so only a capture is a transfer. Not here: when a hold may end (`hold`).

use super::{LedgerWorkingSet, Slot};
use crate::actor::Origin;
use crate::clock::DecisionTime;
use crate::instant::Micros;
use crate::ledger::entry::EntryKind;
use crate::ledger::hold::{Ending, Hold, HoldDecision, HoldEnd};
use crate::ledger::id::{HoldId, MemberId, TransferId};
use crate::ledger::money::Amount;
use crate::ledger::transfer_request::TransferKind;
use crate::ledger::wallet::WalletKey;
use crate::rejection::Rejection;
use std::sync::Arc;

impl LedgerWorkingSet<'_> {
    /// Places a hold.
    pub fn place(
        &mut self,
        id: HoldId,
        wallet: WalletKey,
        amount: Amount,
        expires_at: Option<Micros>,
        now: Micros,
    ) -> Result<Hold, Rejection> {
        Hold::check_expiry(expires_at, now)?;
        self.currencies.check(wallet.currency)?;
        let is_closed = self.is_closed(wallet.member, false).ok_or(Rejection::MemberNotFound)?;
        let mut held = self.wallet(&wallet).ok_or(Rejection::WalletNotFound(wallet.currency))?;
        if is_closed {
            return Err(Rejection::MemberClosed(wallet.member));
        }
        held.hold(amount)?;
        self.set(wallet, held);
        let (origin, ended_by) = (self.origin.clone(), Origin::default());
        let hold = Hold { wallet, amount: amount.units(), expires_at, origin, end: None, ended_by };
        self.holds.insert(id, Slot { loaded: None, now: Some(hold.clone()) });
        Ok(hold)
    }

    /// Ends a hold; `transfer` is the id of the transfer if there is one.
    pub fn end(
        &mut self,
        id: HoldId,
        ending: Ending,
        transfer: TransferId,
        time: DecisionTime,
    ) -> Result<Hold, Rejection> {
        self.end_for(id, ending, (transfer, None), time)
    }

    /// Like [`end`](Self::end), with the contest whose fee it captures as reference.
    pub fn end_for(
        &mut self,
        id: HoldId,
        ending: Ending,
        (transfer, reference): (TransferId, Option<&Arc<str>>),
        time: DecisionTime,
    ) -> Result<Hold, Rejection> {
        let hold = self.hold(&id).ok_or(Rejection::HoldNotFound)?;
        let end = match (hold.decide_end(ending, time)?, ending) {
            (HoldDecision::AsItStands, _) => return Ok(hold),
            (HoldDecision::Capture(amount), Ending::Capture { to, .. }) => {
                self.capture(&hold, (amount, to), transfer, reference)?;
                HoldEnd::Captured { amount: amount.units(), to, transfer }
            }
            (HoldDecision::Void | HoldDecision::Capture(_), _) => {
                self.release(&hold);
                HoldEnd::Voided
            }
        };
        Ok(self.ended(id, hold, end, time.now))
    }

    /// Expires a hold that is due; `None` for other holds.
    pub fn expire(&mut self, id: HoldId, now: Micros) -> Option<Hold> {
        let hold = self.hold(&id).filter(|hold| hold.is_due(now))?;
        self.release(&hold);
        Some(self.ended(id, hold, HoldEnd::Expired, now))
    }

    fn ended(&mut self, id: HoldId, hold: Hold, end: HoldEnd, now: Micros) -> Hold {
        let hold = Hold { end: Some((end, now)), ended_by: self.origin.clone(), ..hold };
        self.holds.get_mut(&id).expect("it was read").now = Some(hold.clone());
        hold
    }

    fn release(&mut self, hold: &Hold) {
        let mut wallet = self.wallet(&hold.wallet).expect("what is held is in a wallet");
        wallet.release(hold.amount);
        self.set(hold.wallet, wallet);
    }

    fn capture(
        &mut self,
        hold: &Hold,
        (amount, to): (Amount, Option<MemberId>),
        transfer: TransferId,
        reference: Option<&Arc<str>>,
    ) -> Result<(), Rejection> {
        let WalletKey { member, currency } = hold.wallet;
        // A pool is no member: what it gets is a fee.
        let (rules, payee) = (self.rules(currency), to.filter(|to| !to.is_pool()));
        payee.map_or(Ok(()), |to| rules.allows(TransferKind::Transfer { from: member, to }, currency))?;
        if to == Some(member) {
            return Err(Rejection::SameWallet(member));
        }
        let pools = reference.is_some();
        let payee_closed =
            to.map(|to| self.is_closed(to, pools).ok_or(Rejection::RecipientNotFound)).transpose()?;
        if let Some(member) = to.filter(|_| payee_closed == Some(true)) {
            return Err(Rejection::MemberClosed(member));
        }
        let mut target = to.map(|member| self.wallet(&WalletKey { member, currency }).unwrap_or_default());
        target.as_mut().map_or(Ok(()), |wallet| wallet.credit(amount))?;
        if let Some(wallet) = target.as_ref().filter(|_| payee.is_some()) {
            rules.check_balance(wallet.balance)?;
        }
        let mut source = self.wallet(&hold.wallet).expect("what is held is in a wallet");
        match payee {
            // Credit that a member got would be money that never expires.
            Some(_) => {
                source.release(hold.amount);
                source.debit_plain(amount)?;
            }
            None => source.capture(hold.amount, amount),
        }
        // A capture with a reference is an entry fee.
        let kind = if reference.is_some() { EntryKind::Fee } else { EntryKind::Capture };
        let sides = (Some((member, source)), to.zip(target));
        self.write(transfer, (kind, None), (currency, amount), sides, reference);
        Ok(())
    }
}
