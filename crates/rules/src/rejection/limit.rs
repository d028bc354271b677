//! Limits of amounts of money, which a rejection names.

use crate::contest::record::REVERSED_FEES_MAX;
use crate::ledger::money::AMOUNT_MAX;

/// A limit of an amount of money.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// Of one transfer. Contains the amount, unless it is beyond all integers.
    Amount(Option<i64>),
    /// Of one transfer, as configured.
    PerTransfer {
        /// The limit.
        max: i64,
        /// The amount of the transfer.
        amount: i64,
    },
    /// Of the transfers of one day, as configured.
    PerDay {
        /// The limit.
        max: i64,
        /// What is left of it.
        left: i64,
        /// The amount of the transfer.
        amount: i64,
    },
    /// Of the reversals of one transfer.
    Reversals,
    /// Of members of a contest whose fees were reversed.
    ReversedFees,
    /// Of a balance.
    Balance,
    /// Of a balance, as configured. It has no balance, because a payer does not see that of the recipient.
    CurrencyBalance {
        /// The limit.
        max: i64,
    },
    /// Of the open credits of a wallet.
    Credits,
}

impl Limit {
    pub(super) fn detail(self) -> String {
        match self {
            Self::Amount(None) => format!("an amount is at most {AMOUNT_MAX}"),
            Self::Amount(Some(amount)) => {
                format!("an amount is at most {AMOUNT_MAX}, and this one is {amount}")
            }
            Self::PerTransfer { max, amount } => {
                format!(
                    "one transfer is at most {max} (setting `wallet.transfer_max`), and this one is {amount}"
                )
            }
            Self::PerDay { max, left, amount } => format!(
                "the transfers of a wallet on one UTC day are at most {max} (setting `wallet.day_max`): {left} are left, \
                 and this one is {amount}"
            ),
            Self::Reversals => "a transfer has at most 100 reversals, and this one has them".into(),
            Self::ReversedFees => {
                format!(
                    "{REVERSED_FEES_MAX} fees of this contest are reversed, the most there may be: cancel it"
                )
            }
            Self::Balance => "a balance is at most 9000000000000000000".into(),
            Self::Credits => "a wallet has promotional credit of at most 16 expiries".into(),
            Self::CurrencyBalance { max } => format!(
                "a balance of this currency is at most {max} (setting `wallet.balance_max`), and the receiving wallet \
                 would have more"
            ),
        }
    }
}
