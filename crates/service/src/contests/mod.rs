//! Contests: use cases around one state machine.
//!
//! The rules are `tally_rules::contest`. Everything that changes a contest is an act ([`command`]) in the ledger's lane, because
//! it may move money: `wallets/decide/contests.rs` decides it under the contest's lock, and [`act`] looks at the contest
//! first, because a transaction reads by key. [`change`], [`apply`], [`start`], [`finish`], [`settle`], [`ban`] and [`read`] are the use
//! cases, and block; [`series`] makes contests that come again;
//! `work` is what they set off and takes several transactions, `keeper` what happens by the clock, `play`
//! what a score asks of its contest, [`counts`] what is counted for whoever watches, `erase` what becomes of a player's
//! applications, [`expire`] how long leaderboards stay,
//! `staff` what a closed member leaves.
//!
//! What an act answers is the contest after it ([`command::ContestDone`]); a replay shows it as it stands, and the rows of a
//! decision on applications with it.
//!
//! Where applications are is behind one interface: `desk`, and `redis` for those that are not in the store. Prizes of a board's
//! periods are of its periods (`periods::prizes`).

pub mod act;
pub mod apply;
pub mod ban;
pub mod change;
pub mod command;
pub mod counts;
mod desk;
pub(crate) mod entries;
pub(crate) mod erase;
pub mod expire;
pub mod finish;
pub mod keeper;
pub(crate) mod play;
pub mod read;
mod redis;
pub(crate) mod repay;
pub mod series;
pub mod settle;
pub(crate) mod staff;
pub mod start;
pub(crate) mod work;
