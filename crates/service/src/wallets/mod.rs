//! Wallets: moving money, holding it, and members as far as money concerns them.
//!
//! Everything that changes money goes through one lane per server: hot wallets serialise anyway. [`command`] is what is
//! asked of it, `decide` a batch in memory (by the book of `tally_rules::ledger`), `work` the batch between lane and
//! store, `lane` the queue in front and what ends holds whose time has run out. [`post`], [`holds`], [`members`],
//! [`import`] and [`read`] are the use cases.
//!
//! Not here: signing in, and digests of passwords and PINs (`members`).

pub mod balance;
pub mod command;
pub(crate) mod currencies;
mod decide;
mod decide_members;
mod expiry;
pub mod holds;
pub mod import;
pub(crate) mod lane;
pub mod members;
pub mod pay;
pub mod post;
pub mod read;
mod work;

pub(crate) use work::HOME_META;

use std::collections::BTreeMap;
use tally_lanes::Bounds;
use tally_rules::ledger::limits::Limits;
use tally_rules::ledger::pin::PinRule;
use tally_rules::ledger::{Currencies, Currency};

/// What can be set about money.
#[derive(Clone, Debug, Default)]
pub struct LedgerSettings {
    /// The currencies there are.
    pub currencies: Currencies,
    /// What members may transfer in each currency; without an entry there is no limit.
    pub limits: BTreeMap<Currency, Limits>,
    /// How many wrong PINs lock it, and for how long.
    pub pin: PinRule,
    /// How large contests may be.
    pub contests: tally_rules::contest::definition::Bounds,
    /// Bounds of the lane.
    pub lane: Bounds,
}
