//! Reversals in the working set: a transfer back, and the links of both.
//!
//! An operator reverses, so the limits of transfers do not apply, and closed members pay and receive. Money that the recipient
//! has spent cannot be taken back, and only a reversal of credit takes credit back. Whether a transfer of a pool can be reversed is a rule of its contest. Not here: how much is left
//! to reverse (`reversal`).

use super::{LedgerWorkingSet, Slot};
use crate::ledger::entry::EntryKind;
use crate::ledger::id::TransferId;
use crate::ledger::reversal::{ReversalLink, ReversalRequest};
use crate::ledger::transfer_request::Posted;
use crate::ledger::wallet::WalletKey;
use crate::rejection::Rejection;

impl LedgerWorkingSet<'_> {
    /// Records the stored link of a transfer.
    pub fn load_reversal(&mut self, id: TransferId, link: Option<ReversalLink>) {
        self.reversals.insert(id, Slot::new(link));
    }

    /// Reverses a transfer, whole or in part.
    ///
    /// # Panics
    /// If the link of the original was not loaded.
    pub fn reverse(&mut self, id: TransferId, request: &ReversalRequest) -> Result<Posted, Rejection> {
        let link = &self.reversals.get(&request.original).expect("a link is loaded before it is read").now;
        let mut parts = match link {
            None => Vec::new(),
            Some(ReversalLink::Reversed(parts)) => parts.clone(),
            Some(ReversalLink::Reverses { .. }) => return Err(Rejection::NotReversible),
        };
        let amount = request.check_amount(&parts)?;
        let currency = request.transfer.currency;
        self.currencies.check(currency)?;
        let (from, to) = request.sides();
        from.map(|from| self.is_closed(from, true).ok_or(Rejection::MemberNotFound)).transpose()?;
        to.map(|to| self.is_closed(to, true).ok_or(Rejection::RecipientNotFound)).transpose()?;
        let key = |member| WalletKey { member, currency };
        let mut source = from
            .map(|from| self.wallet(&key(from)).ok_or(Rejection::WalletNotFound(currency)))
            .transpose()?;
        ReversalRequest::check_count(&parts)?;
        let mut target = to.map(|to| self.wallet(&key(to)).unwrap_or_default());
        target.as_mut().map_or(Ok(()), |wallet| wallet.credit(amount))?;
        source.as_mut().map_or(Ok(()), |wallet| match request.transfer.kind {
            EntryKind::Promotion => wallet.debit_credit(amount),
            _ => wallet.debit_plain(amount),
        })?;
        let kind = (EntryKind::of_reversal(from.is_some()), Some(request.transfer.kind));
        let sides = (from.zip(source), to.zip(target));
        let posted = self.write(id, kind, (currency, amount), sides, request.reference.as_ref());
        parts.push((id, amount.units()));
        self.link(request.original, ReversalLink::Reversed(parts));
        self.link(id, ReversalLink::Reverses { original: request.original, reason: None });
        Ok(posted)
    }

    fn link(&mut self, id: TransferId, link: ReversalLink) {
        self.reversals.entry(id).or_insert_with(|| Slot::new(None)).now = Some(link);
    }
}
