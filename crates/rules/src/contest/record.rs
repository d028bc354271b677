//! A contest as it is stored: its definition, its state, and the progress of its tasks.
//!
//! Clearing applications, paying prizes and refunding fees take more than one transaction. Their progress is here, in the
//! row that each of those transactions locks. So each step is done once, whichever server continues after a crash. Reversals of
//! its fees and payouts are counted here too, in the transactions of the reversals.

use super::application::ApplicationCounts;
use super::definition::{Contest, Fee};
use super::division;
use super::due;
use super::pool::PoolResult;
use super::start::InvalidApplication;
use super::state::{ContestState, ContestTrigger};
use crate::ids::PlayerId;
use crate::instant::{Micros, SECOND};
use crate::ledger::{EntryKind, MemberId, Transfer, Uuid};
use crate::rejection::{Limit, Rejection};

/// How many bad applications of a start are kept with the contest. The reply to the start had all of them.
pub const FAILED_KEPT: usize = 100;

/// How many members of a contest may have reversed fees.
pub const REVERSED_FEES_MAX: usize = 500;

/// The result of a start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartReport {
    /// How many applications became members.
    pub enrolled: u32,
    /// How many did not.
    pub failed: u32,
    /// The first of the failed applications.
    pub first_failed: Vec<InvalidApplication>,
}

/// The task in progress; each transaction does a bounded step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ContestTask {
    /// No task.
    #[default]
    None,
    /// Clears applications; the rows that still exist are left to do.
    Clear,
    /// Determines the prizes: the review is closed, and ranks are final.
    Determine,
    /// Pays prizes.
    Pay {
        /// How many are done, of the list that was stored when the task began.
        done: u32,
    },
    /// Refunds fees, in order of players.
    Refund {
        /// The last player that is done; `None` at the beginning.
        after: Option<PlayerId>,
    },
}

/// The location of a contest's applications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApplicationLocation {
    /// In the store, beside the contest. Their counters are [`ContestRecord::applications`].
    #[default]
    Store,
    /// In Redis with their counters, under the number that they got when the contest opened.
    Redis(Uuid),
    /// They were in Redis, which had lost them by the start.
    Lost,
}

/// A contest as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContestRecord {
    /// The key of its other rows: given once, so that only this row is stored under its name.
    pub no: Uuid,
    /// The definition.
    pub contest: Contest,
    /// The series that created it.
    pub series: Option<super::ContestId>,
    /// The state.
    pub state: ContestState,
    /// When it came into the state.
    pub since: Micros,
    /// The location of its applications.
    pub kept: ApplicationLocation,
    /// The counters of its applications, if they are in the store.
    pub applications: ApplicationCounts,
    /// Grows when accepted applications change or a start that had read them is aborted. A start compares it, to see
    /// whether the applications that it read are still current.
    pub revision: u64,
    /// The number of members.
    pub members: u32,
    /// The result of the start.
    pub report: Option<StartReport>,
    /// The task in progress.
    pub work: ContestTask,
    /// The number of prizes to pay, once it is known.
    pub prizes: Option<u32>,
    /// What became of its pool, once the prizes are known.
    pub pool_result: Option<PoolResult>,
    /// What was reversed of the fees of members before the review was closed, in order of members.
    pub reversed_fees: Vec<(MemberId, i64)>,
    /// How often a prize or a refund was reversed.
    pub reversed_payouts: u32,
    /// When it was created.
    pub created_at: Micros,
    /// When anything but its applications last changed.
    pub updated_at: Micros,
}

/// What a background task has to do for a contest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// An event of the clock.
    Event(ContestTrigger),
    /// Continue the task in progress.
    Task,
    /// Remove applications from Redis that are not needed any more.
    Clear,
}

impl ContestRecord {
    /// A new contest.
    pub fn new(no: Uuid, contest: Contest, series: Option<super::ContestId>, now: Micros) -> Self {
        Self {
            no,
            contest,
            series,
            state: ContestState::Draft,
            since: now,
            kept: ApplicationLocation::Store,
            applications: ApplicationCounts::default(),
            revision: 0,
            members: 0,
            report: None,
            work: ContestTask::None,
            prizes: None,
            pool_result: None,
            reversed_fees: Vec::new(),
            reversed_payouts: 0,
            created_at: now,
            updated_at: now,
        }
    }

    /// Changes the state.
    pub fn enter(&mut self, state: ContestState, at: Micros, now: Micros) {
        (self.state, self.since, self.updated_at) = (state, at, now);
    }

    /// Whether it is over, and its prizes are not determined: bans count, and it may be cancelled.
    pub fn is_in_review(&self) -> bool {
        self.state == ContestState::Finished && self.prizes.is_none() && self.work != ContestTask::Determine
    }

    /// Refuses to change the result of a contest that is being settled.
    pub fn check_review(&self) -> Result<(), Rejection> {
        let is_settling = self.state == ContestState::Finished && !self.is_in_review();
        if is_settling { Err(Rejection::ContestState(ContestState::Settled)) } else { Ok(()) }
    }

    /// What was reversed of a member's fee.
    pub fn reversed_fee(&self, member: MemberId) -> i64 {
        let found = self.reversed_fees.binary_search_by_key(&member, |(member, _)| *member);
        found.map_or(0, |at| self.reversed_fees[at].1)
    }

    /// The member whose fee of this contest a transfer is, unless the contest cannot be cancelled any more: then it pays no fee back.
    fn payer_of(&self, transfer: &Transfer) -> Option<MemberId> {
        if self.state == ContestState::Settled || self.check_review().is_err() {
            return None;
        }
        let to = transfer.credit.map(|(member, _)| member);
        let of_kind =
            matches!(transfer.kind, EntryKind::Fee | EntryKind::Capture) && to == self.pool_account();
        let is_fee = |fee: Fee| (fee.currency, fee.amount.units()) == (transfer.currency, transfer.amount);
        let (payer, _) = transfer.debit.filter(|_| of_kind && self.contest.entry_fee.is_some_and(is_fee))?;
        Some(payer)
    }

    /// Refuses to reverse the fee of a cancelled contest, because the contest pays it back itself.
    pub fn check_reversal(&self, original: &Transfer) -> Result<(), Rejection> {
        self.check_pool_reversal(original)?;
        let Some(payer) = self.payer_of(original) else { return Ok(()) };
        if self.state == ContestState::Cancelled {
            return Err(Rejection::ContestState(self.state));
        }
        let is_full = self.reversed_fees.len() >= REVERSED_FEES_MAX && self.reversed_fee(payer) == 0;
        if is_full { Err(Rejection::LimitExceeded(Limit::ReversedFees)) } else { Ok(()) }
    }

    /// Notes the reversal of a transfer that refers to this contest: of a fee, a prize or a refund.
    pub fn note_reversal(&mut self, original: &Transfer, amount: i64) {
        if let Some(payer) = self.payer_of(original) {
            match self.reversed_fees.binary_search_by_key(&payer, |(member, _)| *member) {
                Ok(at) => self.reversed_fees[at].1 += amount,
                Err(at) => self.reversed_fees.insert(at, (payer, amount)),
            }
        } else if matches!(
            original.kind,
            EntryKind::Prize | EntryKind::Refund | EntryKind::PrizeOut | EntryKind::RefundOut
        ) {
            self.reversed_payouts = self.reversed_payouts.saturating_add(1);
        }
    }

    /// Whether its applications are in Redis and are not needed any more.
    pub fn is_to_be_cleared(&self) -> bool {
        matches!(self.kept, ApplicationLocation::Redis(_))
            && !matches!(self.state, ContestState::Draft | ContestState::Open)
    }

    /// Where the refunds continue: after a player, or at the first member. `None` if no refunds are due.
    pub fn fees_due(&self) -> Option<Option<&PlayerId>> {
        match &self.work {
            ContestTask::Refund { after } => Some(after.as_ref()),
            // It was cancelled; the applications that its start left are cleared first.
            ContestTask::Clear if self.state == ContestState::Cancelled => Some(None),
            _ => None,
        }
    }

    /// Refuses applications from its scheduled start on, even if that start is late. While it runs, from the end of the time to join on.
    pub fn check_may_apply(&self, now: Micros) -> Result<(), Rejection> {
        let next = due::next(self.state, self.since, &self.contest, false);
        let is_over = next.is_some_and(|(at, _)| at <= now);
        match self.state {
            ContestState::Open if is_over => Err(Rejection::ContestState(ContestState::Running)),
            ContestState::Running if is_over => Err(Rejection::ContestState(ContestState::Finished)),
            ContestState::Running if self.joins_until().is_none_or(|until| until <= now) => {
                Err(Rejection::ContestState(ContestState::Running))
            }
            _ => Ok(()),
        }
    }

    /// The division that has no leaderboard yet: that of the next member, if it is the first one there.
    pub fn new_division(&self) -> Option<u32> {
        let size = self.contest.division_size?;
        division::of(self.members, Some(size)).filter(|_| self.members.is_multiple_of(size.get()))
    }

    /// Until when players may join it, if it runs and they may.
    pub fn joins_until(&self) -> Option<Micros> {
        let seconds = self.contest.join_s.filter(|_| self.state == ContestState::Running)?;
        Some(self.since.plus(i64::from(seconds.get()) * SECOND))
    }

    /// What is due next without a request, and when. A task in progress comes before anything else and waits for no
    /// instant, because the state may have begun by a clock that was ahead.
    pub fn due(&self) -> Option<(Micros, Due)> {
        if self.work != ContestTask::None {
            return Some((Micros(0), Due::Task));
        }
        if self.is_to_be_cleared() {
            return Some((Micros(0), Due::Clear));
        }
        self.next_event().map(|(at, event)| (at, Due::Event(event)))
    }

    /// The next event of the clock.
    pub fn next_event(&self) -> Option<(Micros, ContestTrigger)> {
        // The applications that would start are not known any more.
        let starts = |event: &(Micros, ContestTrigger)| event.1 == ContestTrigger::Start;
        let next = due::next(self.state, self.since, &self.contest, self.series.is_some());
        next.filter(|event| !(self.kept == ApplicationLocation::Lost && starts(event)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::Origin;
    use crate::ledger::{Amount, Currency};

    fn contest() -> Contest {
        let [opens_at, starts_at, ends_at] = [10, 20, 30].map(|at| Some(Micros(at)));
        Contest { opens_at, starts_at, ends_at, ..Contest::default() }
    }

    #[test]
    fn what_is_left_in_redis_is_cleared_first_and_what_was_lost_does_not_start() {
        let mut record = ContestRecord::new(Uuid([1; 16]), contest(), None, Micros(1));
        record.enter(ContestState::Open, Micros(10), Micros(10));
        record.kept = ApplicationLocation::Redis(Uuid([2; 16]));
        let start = (Micros(20), ContestTrigger::Start);
        assert_eq!((record.due(), record.is_to_be_cleared()), (Some((start.0, Due::Event(start.1))), false));
        record.kept = ApplicationLocation::Lost;
        assert_eq!(record.due(), None);
        record.kept = ApplicationLocation::Redis(Uuid([3; 16]));
        record.enter(ContestState::Running, Micros(20), Micros(20));
        assert_eq!(record.due(), Some((Micros(0), Due::Clear)));
        assert_eq!(record.next_event(), Some((Micros(30), ContestTrigger::Finish)));
        record.kept = ApplicationLocation::Store;
        assert_eq!(record.due(), Some((Micros(30), Due::Event(ContestTrigger::Finish))));
        record.work = ContestTask::Pay { done: 1 };
        assert_eq!(record.due(), Some((Micros(0), Due::Task)));
    }

    #[test]
    fn reversed_fees_add_up_until_the_contest_is_cancelled() {
        let (member, krw) = (|n: u128| MemberId(Uuid(n.to_be_bytes())), Currency::parse("KRW").unwrap());
        let transfer = |kind, n, amount| {
            let (debit, credit, origin) = (Some((member(n), 1)), None, Origin::default());
            Transfer { kind, reverses: None, currency: krw, amount, debit, credit, origin }
        };
        let entry_fee = Some(Fee { currency: krw, amount: Amount::new(9).unwrap() });
        let contest = Contest { entry_fee, ..contest() };
        let mut record = ContestRecord::new(Uuid([1; 16]), contest, None, Micros(1));
        record.enter(ContestState::Running, Micros(20), Micros(20));
        let fee = |n| transfer(EntryKind::Fee, n, 9);
        for (n, amount) in [(2, 5), (1, 7), (2, 1)] {
            assert_eq!(record.check_reversal(&fee(n)), Ok(()));
            record.note_reversal(&fee(n), amount);
        }
        // Not the fee: another amount, and another kind.
        record.note_reversal(&transfer(EntryKind::Fee, 3, 8), 1);
        record.note_reversal(&transfer(EntryKind::Withdrawal, 3, 9), 1);
        record.note_reversal(&Transfer { debit: None, ..transfer(EntryKind::Prize, 3, 9) }, 9);
        assert_eq!([1, 2, 3].map(|n| record.reversed_fee(member(n))), [7, 6, 0]);
        assert_eq!(record.reversed_payouts, 1);
        let others = REVERSED_FEES_MAX as u128 - 2;
        (0..others).for_each(|n| record.note_reversal(&fee(n + 10), 1));
        let full = Err(Rejection::LimitExceeded(Limit::ReversedFees));
        assert_eq!((record.check_reversal(&fee(9)), record.check_reversal(&fee(1))), (full, Ok(())));
        // A contest that cannot be cancelled pays no fee back.
        let mut settled = record.clone();
        settled.enter(ContestState::Settled, Micros(30), Micros(30));
        assert_eq!(settled.check_reversal(&fee(9)), Ok(()));
        settled.note_reversal(&fee(9), 9);
        assert_eq!((settled.reversed_fee(member(9)), settled.reversed_payouts), (0, 1));
        record.enter(ContestState::Cancelled, Micros(30), Micros(30));
        assert_eq!(record.check_reversal(&fee(1)), Err(Rejection::ContestState(ContestState::Cancelled)));
        assert_eq!(record.check_reversal(&transfer(EntryKind::Refund, 1, 9)), Ok(()));
    }

    #[test]
    fn the_review_is_over_once_the_prizes_are_determined() {
        let mut record = ContestRecord::new(Uuid([1; 16]), contest(), None, Micros(1));
        let settling = Err(Rejection::ContestState(ContestState::Settled));
        assert_eq!((record.is_in_review(), record.check_review()), (false, Ok(())));
        record.enter(ContestState::Finished, Micros(30), Micros(30));
        assert_eq!((record.is_in_review(), record.check_review()), (true, Ok(())));
        record.work = ContestTask::Determine;
        assert_eq!((record.is_in_review(), record.check_review()), (false, settling.clone()));
        (record.work, record.prizes) = (ContestTask::Pay { done: 0 }, Some(1));
        assert_eq!((record.is_in_review(), record.check_review()), (false, settling));
    }
}
