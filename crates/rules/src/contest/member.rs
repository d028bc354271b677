//! Members of a contest that has started, and their payouts or refunds: rows that are written once.
//!
//! A member never changes and never leaves; the board stores whether it is banned. Not here: which applications become members
//! (`start`), and the prize of a rank (`prize`).

use crate::ids::PlayerId;
use crate::ledger::{Amount, Currency, MemberId, TransferId, Uuid};
use crate::named;

/// A player of a contest that has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContestPlayer {
    /// The number in the order of acceptance among the players of the start, from 0.
    pub place: u32,
    /// The division, if there are divisions.
    pub division: Option<u32>,
    /// The member that paid and is paid, if there is a fee or a prize.
    pub member: Option<MemberId>,
}

named! {
    /// Why a prize could not be paid, or a fee not refunded. Stored by name.
    pub enum UnpaidReason { /// The member was closed.
        MemberClosed = "member_closed", /// The balance would be too large.
        LimitExceeded = "limit_exceeded", /// The fee was reversed whole: nothing is owed.
        Reversed = "reversed", /// The winner of a period was no member: nothing is owed before it is one.
        NoMember = "no_member" }
}

/// A prize of a contest that is being settled, or a fee that a cancelled contest refunds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payout {
    /// The player that gets it.
    pub player: PlayerId,
    /// The member that gets it; [`Payout::NO_MEMBER`] if the player was none.
    pub member: MemberId,
    /// The division whose rank it is for.
    pub division: Option<u32>,
    /// The rank; 0 for a fee.
    pub rank: u32,
    /// The currency.
    pub currency: Currency,
    /// The amount.
    pub amount: Amount,
    /// The transfer, or why there is none; `None` until it was tried.
    pub paid: Option<Result<TransferId, UnpaidReason>>,
}

impl Payout {
    /// Stands for the member of a player that was none when its period was closed. No member has this id.
    pub const NO_MEMBER: MemberId = MemberId(Uuid([0; 16]));

    /// Whether there is a member to pay it to.
    pub fn has_member(&self) -> bool {
        self.member != Self::NO_MEMBER
    }
}
