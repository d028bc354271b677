//! The ledger: transfers and holds, and the lane that every change of money goes through.
//!
//! A server has one lane, because hot wallets serialise anyway. `request` is the trait of all kinds of requests. Each kind has a
//! file with what it reads, decides and replies: `transfers`, `reversals`, `holds`, `expiry` and `import` here, the others beside their use
//! cases in `members`, `contests` and `periods`. `batch` is the batch handler, `state` the working set, and `lane` the queue.
//! `archive` moves past months into files. `read`, `lists`, `trial_balance` and `currencies` read.
//!
//! Not here: signing in, and digests of passwords and PINs (`members`).

mod acts;
pub mod archive;
mod batch;
pub(crate) mod currencies;
pub(crate) mod expiry;
pub mod holds;
pub mod import;
pub(crate) mod lane;
pub mod lists;
pub mod read;
pub(crate) mod request;
pub mod reversals;
pub(crate) mod state;
#[cfg(test)]
mod tests;
pub mod transfers;
pub mod trial_balance;

pub(crate) use batch::HOME_META;

use std::collections::BTreeMap;
use tally_lanes::LaneLimits;
use tally_rules::ledger::limits::CurrencyLimits;
use tally_rules::ledger::pin::PinRule;
use tally_rules::ledger::{Currencies, Currency};

/// What can be set about money.
#[derive(Clone, Debug, Default)]
pub struct LedgerSettings {
    /// The currencies there are.
    pub currencies: Currencies,
    /// The rules of each currency; one without an entry has none.
    pub limits: BTreeMap<Currency, CurrencyLimits>,
    /// How many wrong PINs lock it, and for how long.
    pub pin: PinRule,
    /// How large contests may be.
    pub contests: tally_rules::contest::definition::ContestLimits,
    /// Bounds of the lane.
    pub lane: LaneLimits,
}
