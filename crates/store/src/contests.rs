//! Contests in a store: what a transaction reads and writes of them.
//!
//! A contest is found by its name; its rows by a number of 16 bytes that is given once. A transaction that changes an
//! application reads its contest, so the row of the contest serializes them and has their counts. Contests are stored beside
//! members and money, not beside scores: a fee and an application are one transaction of one database.
//!
//! Not here: rules, the tables, and reads without a transaction (`contest_reads`).

use crate::WindowKey;
use tally_rules::PlayerId;
use tally_rules::contest::{Application, ContestId, ContestPlayer, ContestRecord, Payout, SeriesRecord};
use tally_rules::ledger::Uuid;
use tally_rules::period::PeriodPayment;

/// A player of a contest. The contest is given by its number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntrantKey {
    /// The contest.
    pub contest: Uuid,
    /// The player.
    pub player: PlayerId,
}

/// A prize of a contest that is being settled, or a fee that a cancelled contest refunds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PayoutKey {
    /// The contest.
    pub contest: Uuid,
    /// From 0, best rank first; for a fee, the place of its member.
    pub no: u32,
}

/// What a transaction reads of contests. Each list is sorted and has no key twice.
#[derive(Clone, Debug, Default)]
pub struct ContestReadSet {
    /// Contests.
    pub contests: Vec<ContestId>,
    /// Applications, each with its contest in the list.
    pub applications: Vec<EntrantKey>,
    /// Members of contests, each with its contest in the list.
    pub members: Vec<EntrantKey>,
    /// Series.
    pub series: Vec<ContestId>,
    /// Payments of closed periods.
    pub payments: Vec<WindowKey>,
}

/// The rows that were read. Each list has the length and the order of its list in the plan.
#[derive(Clone, Debug, Default)]
pub struct ContestLoaded {
    /// The contest.
    pub contests: Vec<Option<ContestRecord>>,
    /// The application.
    pub applications: Vec<Option<Application>>,
    /// The member.
    pub members: Vec<Option<ContestPlayer>>,
    /// The series.
    pub series: Vec<Option<SeriesRecord>>,
    /// The payment.
    pub payments: Vec<Option<PeriodPayment>>,
}

/// What a transaction writes of contests. Each list is sorted by key and has no key twice.
#[derive(Clone, Debug, Default)]
pub struct ContestWriteSet {
    /// Contests.
    pub contests: Vec<(ContestId, ContestRecord)>,
    /// Applications; `None` removes one.
    pub applications: Vec<(EntrantKey, Option<Application>)>,
    /// New members.
    pub members: Vec<(EntrantKey, ContestPlayer)>,
    /// Prizes.
    pub payouts: Vec<(PayoutKey, Payout)>,
    /// Series; `None` removes one.
    pub series: Vec<(ContestId, Option<SeriesRecord>)>,
    /// Payments of closed periods.
    pub payments: Vec<(WindowKey, PeriodPayment)>,
}

impl ContestReadSet {
    /// Whether nothing is read.
    pub fn is_empty(&self) -> bool {
        let Self { contests, applications, members, series, payments } = self;
        let keys = [contests.len(), applications.len(), members.len(), series.len(), payments.len()];
        keys.iter().all(|keys| *keys == 0)
    }

    pub(crate) fn assert_sorted(&self) {
        assert!(self.contests.is_sorted_by(|a, b| a < b), "contests of a plan ascend");
        assert!(self.applications.is_sorted_by(|a, b| a < b), "applications of a plan ascend");
        assert!(self.members.is_sorted_by(|a, b| a < b), "members of a plan ascend");
        assert!(self.series.is_sorted_by(|a, b| a < b), "series of a plan ascend");
        assert!(self.payments.is_sorted_by(|a, b| a < b), "payments of a plan ascend");
    }
}

impl ContestLoaded {
    pub(crate) fn assert_answers(&self, plan: &ContestReadSet) {
        assert_eq!(self.contests.len(), plan.contests.len());
        assert_eq!(self.applications.len(), plan.applications.len());
        assert_eq!(self.members.len(), plan.members.len());
        assert_eq!(self.series.len(), plan.series.len());
        assert_eq!(self.payments.len(), plan.payments.len());
    }
}

impl ContestWriteSet {
    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        let Self { contests, applications, members, payouts, series, payments } = self;
        let rows = [contests.len(), applications.len(), members.len(), payouts.len(), series.len()];
        rows.iter().all(|rows| *rows == 0) && payments.is_empty()
    }

    pub(crate) fn assert_sorted(&self) {
        assert!(self.contests.is_sorted_by(|a, b| a.0 < b.0), "changed contests ascend");
        assert!(self.applications.is_sorted_by(|a, b| a.0 < b.0), "changed applications ascend");
        assert!(self.members.is_sorted_by(|a, b| a.0 < b.0), "new members ascend");
        assert!(self.payouts.is_sorted_by(|a, b| a.0 < b.0), "changed prizes ascend");
        assert!(self.series.is_sorted_by(|a, b| a.0 < b.0), "changed series ascend");
        assert!(self.payments.is_sorted_by(|a, b| a.0 < b.0), "changed payments ascend");
    }
}
