//! Who takes part in a contest that has started, and what each is paid, or paid back: rows that are made once.
//!
//! A member is never changed and never leaves; whether it is hidden is its board's business. Not here: who becomes one
//! (`start`), and what a rank gets (`prize`).

use crate::ids::PlayerId;
use crate::ledger::{Amount, Currency, MemberId, TransferId};
use crate::named;

/// A member of a contest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContestMember {
    /// The how manieth of those that started it was to be accepted, from 0.
    pub place: u32,
    /// Its division, where there are divisions.
    pub division: Option<u32>,
    /// Whose wallet paid and is paid, where there is a fee or a prize.
    pub member: Option<MemberId>,
}

named! {
    /// Why a prize could not be paid, or a fee not be paid back.
    pub enum UnpaidReason { /// Its member was closed.
        MemberClosed = "member_closed", /// Its balance would be too large.
        LimitExceeded = "limit_exceeded" }
}

/// A prize of a contest that is being settled; or a fee that one which was called off pays back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payout {
    /// The player that gets it.
    pub player: PlayerId,
    /// Whose wallet.
    pub member: MemberId,
    /// The division whose rank it is for.
    pub division: Option<u32>,
    /// The rank; 0 where it is a fee.
    pub rank: u32,
    /// In what.
    pub currency: Currency,
    /// How much.
    pub amount: Amount,
    /// The movement, or why there is none; nothing until its turn came.
    pub paid: Option<Result<TransferId, UnpaidReason>>,
}
