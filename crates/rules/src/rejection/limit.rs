//! Limits of amounts of money, which a rejection names.

/// A limit of an amount of money.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// Of one transfer.
    Amount,
    /// Of one transfer, as configured.
    PerTransfer,
    /// Of the transfers of one day, as configured.
    PerDay,
    /// Of the reversals of one transfer.
    Reversals,
    /// Of members of a contest whose fees were reversed.
    ReversedFees,
    /// Of a balance.
    Balance,
    /// Of a balance, as configured.
    CurrencyBalance,
    /// Of the open credits of a wallet.
    Credits,
}

impl Limit {
    pub(super) fn detail(self) -> &'static str {
        match self {
            Self::Amount => "an amount is at most 1000000000000000",
            Self::PerTransfer => {
                "the amount exceeds the limit of one transfer (setting `wallet.transfer_max`)"
            }
            Self::PerDay => "the amount exceeds what is left of the daily limit (setting `wallet.day_max`)",
            Self::Reversals => "a transfer has at most 100 reversals",
            Self::ReversedFees => "a contest has at most 500 members with reversed fees: cancel it",
            Self::Balance => "a balance is at most 9000000000000000000",
            Self::Credits => "a wallet has promotional credit of at most 16 expiries",
            Self::CurrencyBalance => {
                "the balance would exceed the largest one of the currency (setting `wallet.balance_max`)"
            }
        }
    }
}
