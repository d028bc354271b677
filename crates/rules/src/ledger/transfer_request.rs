//! A transfer request: one transfer that a caller asks for, and the results of such requests.
//!
//! Not here: whether the transfer is made (`working_set`).

use super::account::Totals;
use super::entry::{Entry, EntryKey, EntryKind, Transfer};
use super::hold::Hold;
use super::id::{HoldId, MemberId, TransferId};
use super::limits::Spent;
use super::mint::MintKey;
use super::money::{Amount, Currency};
use super::reversal::ReversalLink;
use super::wallet::{Wallet, WalletKey};
use crate::instant::Micros;
use std::sync::Arc;

/// The payer and the recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferKind {
    /// From outside.
    Deposit {
        /// The recipient.
        to: MemberId,
    },
    /// To the outside.
    Withdrawal {
        /// The payer.
        from: MemberId,
    },
    /// To the outside, of money that is no promotional credit.
    PlainWithdrawal {
        /// The payer.
        from: MemberId,
    },
    /// Promotional credit.
    Promotion {
        /// The recipient.
        to: MemberId,
        /// When it expires.
        expires_at: Micros,
    },
    /// From one member to another.
    Transfer {
        /// The payer.
        from: MemberId,
        /// The recipient.
        to: MemberId,
    },
    /// To the account `FEES`.
    Fee {
        /// The payer.
        from: MemberId,
    },
    /// From the account `PRIZES`.
    Prize {
        /// The recipient.
        to: MemberId,
    },
    /// The refund of a fee.
    Refund {
        /// The recipient.
        to: MemberId,
    },
    /// A prize of a contest's pool.
    PoolPrize {
        /// The account of the pool.
        pool: MemberId,
        /// The recipient.
        to: MemberId,
    },
    /// The refund of a fee from a contest's pool.
    PoolRefund {
        /// The account of the pool.
        pool: MemberId,
        /// The recipient.
        to: MemberId,
    },
}

impl TransferKind {
    /// The payer and the recipient.
    pub fn sides(self) -> (Option<MemberId>, Option<MemberId>) {
        match self {
            Self::Withdrawal { from } | Self::PlainWithdrawal { from } | Self::Fee { from } => {
                (Some(from), None)
            }
            Self::Promotion { to, .. } => (None, Some(to)),
            Self::Deposit { to } | Self::Prize { to } | Self::Refund { to } => (None, Some(to)),
            Self::Transfer { from, to } => (Some(from), Some(to)),
            Self::PoolPrize { pool, to } | Self::PoolRefund { pool, to } => (Some(pool), Some(to)),
        }
    }

    /// The kind of the debited wallet's entry, or of the credited one's if no wallet is debited.
    pub fn kind(self) -> EntryKind {
        match self {
            Self::Deposit { .. } => EntryKind::Deposit,
            Self::Withdrawal { .. } | Self::PlainWithdrawal { .. } => EntryKind::Withdrawal,
            Self::Promotion { .. } => EntryKind::Promotion,
            Self::Transfer { .. } => EntryKind::TransferOut,
            Self::Fee { .. } => EntryKind::Fee,
            Self::Prize { .. } => EntryKind::Prize,
            Self::Refund { .. } => EntryKind::Refund,
            Self::PoolPrize { .. } => EntryKind::PrizeOut,
            Self::PoolRefund { .. } => EntryKind::RefundOut,
        }
    }

    /// Whether it may debit or credit a closed member.
    pub(super) fn reaches_closed(self) -> bool {
        self.kind() == EntryKind::Withdrawal || self.is_refund()
    }

    /// Whether the recipient had the money before.
    pub(super) fn is_refund(self) -> bool {
        matches!(self, Self::Refund { .. } | Self::PoolRefund { .. })
    }

    /// Whether no caller asks for it, but a contest or a period. Only these reach the accounts of pools.
    pub(super) fn is_of_contest(self) -> bool {
        !matches!(
            self.kind(),
            EntryKind::Deposit | EntryKind::Promotion | EntryKind::Withdrawal | EntryKind::TransferOut
        )
    }
}

/// One transfer that a caller asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferRequest {
    /// The kind, with payer and recipient.
    pub what: TransferKind,
    /// The currency.
    pub currency: Currency,
    /// The amount.
    pub amount: Amount,
    /// The caller's reference.
    pub reference: Option<Arc<str>>,
}

impl TransferRequest {
    /// Every wallet that the request may read or write.
    pub fn wallets(&self, home: Currency) -> impl Iterator<Item = WalletKey> {
        let (from, to) = self.what.sides();
        wallets_of([from, to], self.currency, home)
    }
}

/// The wallets of members in a currency, and their home wallets, which say whether they exist.
pub fn wallets_of(
    members: [Option<MemberId>; 2],
    currency: Currency,
    home: Currency,
) -> impl Iterator<Item = WalletKey> {
    let key = |member, currency| WalletKey { member, currency };
    let homes =
        members.into_iter().flatten().filter(move |_| currency != home).map(move |one| key(one, home));
    members.into_iter().flatten().map(move |one| key(one, currency)).chain(homes)
}

/// A transfer that was made: the entry of the debited wallet, or of the credited one if no wallet is debited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// The key of the entry.
    pub key: EntryKey,
    /// The entry.
    pub entry: Entry,
}

/// The rows to write. Each list is in order of keys.
#[derive(Clone, Debug, Default)]
pub struct LedgerWrites {
    /// Changed wallets.
    pub wallets: Vec<(WalletKey, Wallet)>,
    /// New transfers.
    pub transfers: Vec<(TransferId, Transfer)>,
    /// New entries.
    pub entries: Vec<(EntryKey, Entry)>,
    /// Changed holds.
    pub holds: Vec<(HoldId, Hold)>,
    /// Links between transfers and their reversals.
    pub reversals: Vec<(TransferId, ReversalLink)>,
    /// What keys with a cap have made.
    pub minted: Vec<(MintKey, Spent)>,
    /// What the transfers add to accounts.
    pub totals: Totals,
}
