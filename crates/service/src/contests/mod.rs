//! Contests: use cases around one state machine.
//!
//! The rules are `tally_rules::contest`. Everything that changes a contest is an act ([`command`]) in the ledger's lane, because
//! it may move money: `wallets/decide/contests.rs` decides it under the contest's lock, and [`act`] looks at the contest
//! first, because a transaction reads by key. [`change`], [`apply`], [`start`], [`finish`], [`settle`], [`ban`] and [`read`] are the use
//! cases, and block; `work` is what they set off and takes several transactions, `keeper` what happens by the clock, `play`
//! what a score asks of its contest.
//!
//! What an act answers is the contest after it ([`command::ContestDone`]); a replay shows it as it stands, so a door renders the
//! rows of a replayed decision from the applications.
//!
//! Not here yet: series, prizes of a board's periods, and applications in Redis.

pub mod act;
pub mod apply;
pub mod ban;
pub mod change;
pub mod command;
pub mod finish;
pub mod keeper;
pub(crate) mod play;
pub mod read;
pub mod settle;
pub mod start;
mod work;
