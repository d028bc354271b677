//! The reversal of a transfer: a transfer of its own in the other direction, whole or in parts.
//!
//! A row for the original names its reversals, and a row for each reversal names the original. So the sum of the reversals is
//! known without a scan, and never exceeds the original. A reversal is not reversed: its original would be partly reversed
//! again, and no sum would say by how much. Neither is credit that has expired. The way back is another transfer.
//!
//! Not here: whether wallets have the money (`working_set::reverse`).

use super::entry::{EntryKind, Transfer};
use super::id::TransferId;
use super::money::Amount;
use super::transfer_request::wallets_of;
use super::wallet::WalletKey;
use super::{Currency, MemberId};
use crate::rejection::{Limit, Rejection};
use std::sync::Arc;

/// The most reversals of one transfer.
pub const REVERSALS_MAX: usize = 100;

/// A link between a transfer and its reversals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReversalLink {
    /// Of a reversed transfer: its reversals with their amounts, oldest first.
    Reversed(Vec<(TransferId, i64)>),
    /// Of a reversal.
    Reverses {
        /// The reversed transfer.
        original: TransferId,
        /// Why, in the caller's words. Earlier releases stored it here; now the transfer of the reversal has it.
        reason: Option<Arc<str>>,
    },
}

impl ReversalLink {
    /// The sum of the reversals of a transfer; 0 for a reversal.
    pub fn reversed(&self) -> i64 {
        match self {
            Self::Reversed(parts) => sum(parts),
            Self::Reverses { .. } => 0,
        }
    }
}

fn sum(parts: &[(TransferId, i64)]) -> i64 {
    parts.iter().fold(0, |sum, (_, amount)| sum.saturating_add(*amount))
}

/// A reversal that a caller asks for. The caller has read the original, which never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReversalRequest {
    /// The id of the original.
    pub original: TransferId,
    /// The original.
    pub transfer: Transfer,
    /// The amount. The default is what is left.
    pub amount: Option<Amount>,
    /// The reference of the original, which the entries of the reversal repeat.
    pub reference: Option<Arc<str>>,
}

impl ReversalRequest {
    /// The payer and the recipient: those of the original, exchanged.
    pub fn sides(&self) -> (Option<MemberId>, Option<MemberId>) {
        let member = |side: Option<(MemberId, u64)>| side.map(|(member, _)| member);
        (member(self.transfer.credit), member(self.transfer.debit))
    }

    /// Every wallet that the request may read or write.
    pub fn wallets(&self, home: Currency) -> impl Iterator<Item = WalletKey> {
        let (from, to) = self.sides();
        wallets_of([from, to], self.transfer.currency, home)
    }

    /// The amount to reverse, given the reversals so far.
    pub(super) fn check_amount(&self, parts: &[(TransferId, i64)]) -> Result<Amount, Rejection> {
        if self.transfer.reverses.is_some() || self.transfer.kind == EntryKind::Expiry {
            return Err(Rejection::NotReversible);
        }
        let left = self.transfer.amount - sum(parts);
        let all = || Amount::new(left).map_err(|_| Rejection::ExceedsReversible { left });
        let amount = self.amount.map_or_else(all, Ok)?;
        if amount.units() > left {
            return Err(Rejection::ExceedsReversible { left });
        }
        Ok(amount)
    }

    /// Refuses one more reversal of a transfer that has the most.
    pub(super) fn check_count(parts: &[(TransferId, i64)]) -> Result<(), Rejection> {
        if parts.len() < REVERSALS_MAX { Ok(()) } else { Err(Rejection::LimitExceeded(Limit::Reversals)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::Origin;
    use crate::ledger::Uuid;

    fn checked(reverses: Option<EntryKind>, units: Option<i64>, parts: &[i64]) -> Result<i64, Rejection> {
        let id = |number: usize| TransferId(Uuid([number as u8; 16]));
        let currency = Currency::parse("KRW").unwrap();
        let origin = Origin::default();
        let transfer = Transfer {
            kind: EntryKind::Deposit,
            reverses,
            currency,
            amount: 100,
            debit: None,
            credit: None,
            origin,
        };
        let amount = units.map(|units| Amount::new(units).unwrap());
        let request = ReversalRequest { original: id(0), transfer, amount, reference: None };
        let parts: Vec<_> = parts.iter().enumerate().map(|(at, units)| (id(at + 1), *units)).collect();
        request.check_amount(&parts).map(Amount::units)
    }

    #[test]
    fn reversals_never_exceed_the_original() {
        let exceeds = |left| Err(Rejection::ExceedsReversible { left });
        for (units, parts, wanted) in [
            (None, vec![], Ok(100)),
            (Some(100), vec![], Ok(100)),
            (Some(101), vec![], exceeds(100)),
            (None, vec![30], Ok(70)),
            (Some(70), vec![30], Ok(70)),
            (Some(71), vec![30], exceeds(70)),
            (None, vec![30, 70], exceeds(0)),
            (Some(1), vec![30, 70], exceeds(0)),
        ] {
            assert_eq!(checked(None, units, &parts), wanted, "{units:?} after {parts:?}");
        }
        assert_eq!(checked(Some(EntryKind::Deposit), None, &[]), Err(Rejection::NotReversible));
    }
}
