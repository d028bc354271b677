//! Contests: use cases around one state machine.
//!
//! The rules are `tally_rules::contest`. Every change of a contest is an action ([`actions`]) in the ledger's lane, because it may
//! move money. [`execute`] reads the contest first, because a transaction reads by key; `decide` decides the action under the
//! contest's lock. [`change`], [`apply`], [`start`], [`finish`], [`settle`], [`ban`], [`correct`] and [`read`] are the use cases, and block.
//! [`series`] makes contests that recur.
//!
//! [`scheduler`] does what is due by the clock, and `bounded_steps` what takes several transactions. `play` checks a score against the
//! contest of its leaderboard. [`counts`] is for monitoring, `erase` for erased players, [`of_player`] for
//! the rows of one player, and `staff` for closed members. [`preview`] is what a settlement would pay now.
//! [`expire`] deletes old leaderboards. [`pay_again`] pays by hand what could not be paid, and `repay` what an earlier release left unpaid.
//!
//! The reply to an action is the contest after it ([`actions::ContestDone`]). The reply to a replay is the present contest, with the
//! rows of a decision on applications. The application store is behind one interface: `application_store`, with
//! `redis_applications` for those in Redis. Not here: prizes of the periods of a leaderboard (`periods::prizes`).

pub mod actions;
mod application_store;
pub mod apply;
pub mod ban;
pub(crate) mod bounded_steps;
pub mod change;
pub mod correct;
pub mod counts;
pub(crate) mod decide;
pub(crate) mod entries;
pub(crate) mod erase;
pub mod execute;
pub mod expire;
pub mod finish;
mod join;
pub mod of_player;
mod pages;
pub mod pay_again;
pub(crate) mod play;
pub mod preview;
pub mod read;
mod redis_applications;
pub(crate) mod repay;
pub mod scheduler;
pub mod series;
pub mod settle;
pub(crate) mod staff;
pub mod start;

use crate::periods::prizes::PaidPeriods;
use counts::ContestCounts;
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, RwLock};

/// What this server has of contests in memory.
#[derive(Default)]
pub(crate) struct Contests {
    /// Periods whose prizes are paid.
    pub(crate) paid: PaidPeriods,
    pub(crate) counts: ContestCounts,
    /// Shared by requests that apply; a renaming holds it alone.
    pub(crate) renaming: RwLock<()>,
    /// One start at a time.
    pub(crate) starting: Mutex<()>,
    /// Leaderboards that this start is about to make. Changed under `changing_boards`, but for the end of a start that failed.
    pub(crate) reserved_boards: AtomicUsize,
}
