//! Applications: their order, their status, and their counters.
//!
//! Each method of [`ApplicationCounts`] is one change of one application. It returns the application afterwards, and the
//! hold to release, if any. A withdrawn application no longer exists, so the player may apply again. A rejected one stays, so
//! the player may not. A [`Rejection`] changes nothing. Not here: money, and the contest's state.

use crate::instant::Micros;
use crate::ledger::{HoldId, MemberId};
use crate::named;
use crate::rejection::Rejection;

named! {
    /// The status of an application.
    pub enum Status { /// Not decided.
        Pending = "pending", /// Becomes a member at the start.
        Accepted = "accepted", /// Does not become a member.
        Rejected = "rejected" }
}

/// One player's application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Application {
    /// The status.
    pub status: Status,
    /// The sequence number of its last change of status, counted over the contest from 1.
    pub place: u64,
    /// When the player applied.
    pub applied_at: Micros,
    /// The member that pays and is paid, if there is a fee or a prize.
    pub member: Option<MemberId>,
    /// The hold of the fee.
    pub hold: Option<HoldId>,
}

/// A contest's counters of applications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApplicationCounts {
    /// Not decided.
    pub pending: u32,
    /// Accepted.
    pub accepted: u32,
    /// Rejected.
    pub rejected: u32,
    /// The last sequence number given, see [`Application::place`].
    pub places: u64,
}

/// How many applications may be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// The limit of the contest.
    pub capacity: u32,
    /// The limit by the leaderboards that may still be made.
    pub boards: u32,
}

/// The result of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApplicationChange {
    /// The application; `None` if it was withdrawn.
    pub now: Option<Application>,
    /// The hold to release.
    pub release: Option<HoldId>,
}

impl ApplicationCounts {
    /// The number of all applications.
    pub fn all(&self) -> u32 {
        self.pending + self.accepted + self.rejected
    }

    fn count(&mut self, status: Status) -> &mut u32 {
        match status {
            Status::Pending => &mut self.pending,
            Status::Accepted => &mut self.accepted,
            Status::Rejected => &mut self.rejected,
        }
    }

    fn next_place(&mut self) -> u64 {
        self.places += 1;
        self.places
    }

    fn moved(&mut self, old: Application, status: Status) -> Application {
        *self.count(old.status) -= 1;
        *self.count(status) += 1;
        Application { status, place: self.next_place(), ..old }
    }

    /// Whether a player may apply; `most` is the limit of applications.
    pub fn may_apply(
        &self,
        present: Option<&Application>,
        is_staff: bool,
        most: u32,
    ) -> Result<(), Rejection> {
        match present.map(|present| present.status) {
            Some(Status::Rejected) => Err(Rejection::AlreadyRejected),
            Some(status) => Err(Rejection::AlreadyApplied(status)),
            None if is_staff => Err(Rejection::StaffCannotApply),
            None if self.all() >= most => Err(Rejection::ContestTooLarge(most)),
            None => Ok(()),
        }
    }

    /// Adds the application of a player that [may apply](Self::may_apply).
    pub fn apply(&mut self, now: Micros, member: Option<MemberId>, hold: Option<HoldId>) -> Application {
        self.pending += 1;
        Application { status: Status::Pending, place: self.next_place(), applied_at: now, member, hold }
    }

    /// Accepts an application. Repeating it changes nothing.
    pub fn accept(
        &mut self,
        present: Option<&Application>,
        is_staff: bool,
        room: Capacity,
    ) -> Result<ApplicationChange, Rejection> {
        let old = *present.ok_or(Rejection::NotApplied)?;
        match old.status {
            Status::Accepted => Ok(ApplicationChange { now: Some(old), release: None }),
            // The rejection released its hold, so there is nothing to accept.
            Status::Rejected => Err(Rejection::NotApplied),
            Status::Pending if is_staff => Err(Rejection::StaffCannotApply),
            Status::Pending if self.accepted >= room.capacity => Err(Rejection::ContestFull(room.capacity)),
            Status::Pending if self.accepted >= room.boards => Err(Rejection::TooManyBoards),
            Status::Pending => {
                Ok(ApplicationChange { now: Some(self.moved(old, Status::Accepted)), release: None })
            }
        }
    }

    /// Rejects an application, even an accepted one. Repeating it changes nothing.
    pub fn reject(&mut self, present: Option<&Application>) -> Result<ApplicationChange, Rejection> {
        let old = *present.ok_or(Rejection::NotApplied)?;
        if old.status == Status::Rejected {
            return Ok(ApplicationChange { now: Some(old), release: None });
        }
        let now = Application { hold: None, ..self.moved(old, Status::Rejected) };
        Ok(ApplicationChange { now: Some(now), release: old.hold })
    }

    /// Withdraws an application.
    pub fn withdraw(&mut self, present: Option<&Application>) -> Result<ApplicationChange, Rejection> {
        let old = *present.ok_or(Rejection::NotApplied)?;
        if old.status == Status::Rejected {
            return Err(Rejection::AlreadyRejected);
        }
        *self.count(old.status) -= 1;
        Ok(ApplicationChange { now: None, release: old.hold })
    }

    /// Clears all applications.
    pub fn clear(&mut self) {
        (self.pending, self.accepted, self.rejected) = (0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Uuid;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const MOST: u32 = 6;

    /// Became staff after it had applied.
    const STAFF: u8 = 1;

    #[derive(Clone, Copy, Debug)]
    enum Op {
        Apply(u8),
        Accept(u8),
        Reject(u8),
        Withdraw(u8),
    }

    fn any_op() -> impl Strategy<Value = Op> {
        (0_u8..4, 0_u8..9).prop_map(|(kind, player)| match kind {
            0 => Op::Apply(player),
            1 => Op::Accept(player),
            2 => Op::Reject(player),
            _ => Op::Withdraw(player),
        })
    }

    /// The model: three lists of players.
    #[derive(Default)]
    struct Paper {
        pending: Vec<u8>,
        accepted: Vec<u8>,
        rejected: Vec<u8>,
        free: Vec<u8>,
    }

    impl Paper {
        fn take(list: &mut Vec<u8>, player: u8) -> bool {
            let found = list.iter().position(|one| *one == player);
            found.map(|at| list.remove(at)).is_some()
        }

        /// The result by the contract; player 0 is staff.
        fn act(&mut self, op: Op, Capacity { capacity, boards }: Capacity) -> Result<(), &'static str> {
            match op {
                Op::Apply(player) => {
                    if self.rejected.contains(&player) {
                        return Err("already_rejected");
                    }
                    if self.pending.contains(&player) || self.accepted.contains(&player) {
                        return Err("already_applied");
                    }
                    if player == 0 {
                        return Err("staff_cannot_apply");
                    }
                    if self.pending.len() + self.accepted.len() + self.rejected.len() >= MOST as usize {
                        return Err("contest_too_large");
                    }
                    self.pending.push(player);
                }
                Op::Accept(player) if self.pending.contains(&player) => {
                    if player == STAFF {
                        return Err("staff_cannot_apply");
                    }
                    if self.accepted.len() >= capacity as usize {
                        return Err("contest_full");
                    }
                    if self.accepted.len() >= boards as usize {
                        return Err("too_many_boards");
                    }
                    Self::take(&mut self.pending, player);
                    self.accepted.push(player);
                }
                Op::Accept(player) if self.accepted.contains(&player) => {}
                Op::Reject(player) if self.rejected.contains(&player) => {}
                Op::Reject(player)
                    if Self::take(&mut self.pending, player) || Self::take(&mut self.accepted, player) =>
                {
                    self.rejected.push(player);
                    self.free.push(player);
                }
                Op::Withdraw(player) if self.rejected.contains(&player) => return Err("already_rejected"),
                Op::Withdraw(player)
                    if Self::take(&mut self.pending, player) || Self::take(&mut self.accepted, player) =>
                {
                    self.free.push(player);
                }
                Op::Accept(_) | Op::Reject(_) | Op::Withdraw(_) => return Err("not_applied"),
            }
            Ok(())
        }
    }

    proptest! {
        #[test]
        fn applications_are_three_lists(ops in proptest::collection::vec(any_op(), 0..60), capacity in 1_u32..4, boards in 0_u32..6) {
            let (mut counts, mut rows, mut paper) = (ApplicationCounts::default(), BTreeMap::<u8, Application>::new(), Paper::default());
            let mut released = Vec::new();
            for (at, op) in (1_i64..).zip(ops) {
                let before = counts;
                let (player, done) = match op {
                    Op::Apply(player) => {
                        let may = counts.may_apply(rows.get(&player), player == 0, MOST);
                        let hold = HoldId(Uuid([player; 16]));
                        let now = may.map(|()| counts.apply(Micros(at), None, Some(hold)));
                        (player, now.map(|now| ApplicationChange { now: Some(now), release: None }))
                    }
                    Op::Accept(player) => (player, counts.accept(rows.get(&player), player == STAFF, Capacity { capacity, boards })),
                    Op::Reject(player) => (player, counts.reject(rows.get(&player))),
                    Op::Withdraw(player) => (player, counts.withdraw(rows.get(&player))),
                };
                let wanted = paper.act(op, Capacity { capacity, boards });
                match done {
                    Ok(changed) => {
                        prop_assert_eq!(wanted, Ok(()), "{:?}", op);
                        released.extend(changed.release.map(|hold| hold.0.0[0]));
                        match changed.now {
                            Some(now) => drop(rows.insert(player, now)),
                            None => drop(rows.remove(&player)),
                        }
                    }
                    Err(rejection) => {
                        prop_assert_eq!(wanted, Err(rejection.code()), "{:?}", op);
                        prop_assert_eq!(counts, before);
                    }
                }
                let in_order = |status| {
                    let of = rows.iter().filter(|(_, row)| row.status == status);
                    let mut of: Vec<_> = of.map(|(player, row)| (row.place, *player)).collect();
                    of.sort_unstable();
                    of.into_iter().map(|(_, player)| player).collect::<Vec<_>>()
                };
                prop_assert_eq!(in_order(Status::Pending), paper.pending.clone());
                prop_assert_eq!(in_order(Status::Accepted), paper.accepted.clone());
                prop_assert_eq!(in_order(Status::Rejected), paper.rejected.clone());
                let lengths = [&paper.pending, &paper.accepted, &paper.rejected].map(|list| list.len() as u32);
                prop_assert_eq!([counts.pending, counts.accepted, counts.rejected], lengths);
                prop_assert_eq!(&released, &paper.free);
            }
        }
    }
}
