//! A transfer request: one movement of money that a caller asks for, and the results of such requests.
//!
//! Not here: whether it is done (`book`).

use super::account::Totals;
use super::entry::{Entry, EntryKey, Kind, Transfer};
use super::hold::Hold;
use super::id::{HoldId, MemberId, TransferId};
use super::money::{Amount, Currency};
use super::wallet::{Wallet, WalletKey};
use std::sync::Arc;

/// The payer and the recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferKind {
    /// Money from outside.
    Deposit {
        /// The recipient.
        to: MemberId,
    },
    /// Money to the outside.
    Withdrawal {
        /// The payer.
        from: MemberId,
    },
    /// From one member to another.
    Transfer {
        /// The payer.
        from: MemberId,
        /// The recipient.
        to: MemberId,
    },
    /// To the house.
    Fee {
        /// The payer.
        from: MemberId,
    },
    /// From the prizes.
    Prize {
        /// The recipient.
        to: MemberId,
    },
    /// Of a fee.
    Refund {
        /// The recipient.
        to: MemberId,
    },
}

impl TransferKind {
    /// The payer and the recipient.
    pub fn sides(self) -> (Option<MemberId>, Option<MemberId>) {
        match self {
            Self::Withdrawal { from } | Self::Fee { from } => (Some(from), None),
            Self::Deposit { to } | Self::Prize { to } | Self::Refund { to } => (None, Some(to)),
            Self::Transfer { from, to } => (Some(from), Some(to)),
        }
    }

    /// What it is on the side where the money leaves a wallet; where it leaves none, on the other.
    pub fn kind(self) -> Kind {
        match self {
            Self::Deposit { .. } => Kind::Deposit,
            Self::Withdrawal { .. } => Kind::Withdrawal,
            Self::Transfer { .. } => Kind::TransferOut,
            Self::Fee { .. } => Kind::Fee,
            Self::Prize { .. } => Kind::Prize,
            Self::Refund { .. } => Kind::Refund,
        }
    }

    /// Whether it may concern a closed member.
    pub(super) fn reaches_closed(self) -> bool {
        matches!(self, Self::Withdrawal { .. } | Self::Refund { .. })
    }
}

/// One movement of money that a caller asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferRequest {
    /// From where to where.
    pub what: TransferKind,
    /// In what.
    pub currency: Currency,
    /// How much.
    pub amount: Amount,
    /// What the caller writes to it.
    pub reference: Option<Arc<str>>,
}

impl TransferRequest {
    /// Every wallet that it may read or write.
    pub fn wallets(&self, home: Currency) -> impl Iterator<Item = WalletKey> {
        let (from, to) = self.what.sides();
        wallets_of([from, to], self.currency, home)
    }
}

/// The wallets of some members in a currency, and those that say whether they are there.
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

/// An order that was done: its entry, on the side where the money leaves a wallet if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// Where the entry is.
    pub key: EntryKey,
    /// The entry.
    pub entry: Entry,
}

/// What is to be written. Each list is in order of keys.
#[derive(Clone, Debug, Default)]
pub struct LedgerWrites {
    /// Wallets that changed, as they are now.
    pub wallets: Vec<(WalletKey, Wallet)>,
    /// New movements.
    pub transfers: Vec<(TransferId, Transfer)>,
    /// New entries.
    pub entries: Vec<(EntryKey, Entry)>,
    /// Holds that changed, as they are now.
    pub holds: Vec<(HoldId, Hold)>,
    /// What is added to accounts.
    pub totals: Totals,
}
