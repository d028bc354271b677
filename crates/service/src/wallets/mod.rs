//! Wallets: moving money, holding it, and members as far as money concerns them.
//!
//! Everything that changes money goes through one lane per server: hot wallets serialise anyway. [`command`] is what is
//! asked of it, `decide` a batch in memory (by the book of `tally_rules::ledger`), `work` the batch between lane and
//! store, `lane` the queue in front and what ends holds whose time has run out. [`post`], [`holds`], [`members`],
//! [`import`] and [`read`] are the use cases.
//!
//! Not here: signing in, and comparing PINs: whoever adds them reads the member's row in the same transaction (it is in
//! the plan of a store) and judges the attempt by `tally_rules::ledger::pin` before the book is asked.

pub mod command;
mod decide;
mod expiry;
pub mod holds;
pub mod import;
pub(crate) mod lane;
pub mod members;
pub mod post;
pub mod read;
mod work;

pub(crate) use work::HOME_META;

use tally_lanes::Bounds;
use tally_rules::ledger::Currencies;
use tally_rules::ledger::limits::Limits;

/// What can be set about money.
#[derive(Clone, Debug, Default)]
pub struct LedgerSettings {
    /// The currencies there are.
    pub currencies: Currencies,
    /// What members may transfer.
    pub limits: Limits,
    /// Bounds of the lane.
    pub lane: Bounds,
}
