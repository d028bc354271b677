//! The working set of a batch of the ledger: every request changes it in turn, and each row is written once.
//!
//! Pure: loaded rows, ids and the time are arguments. Not here: what a request does with them (its own file).

use super::LedgerSettings;
use crate::clock::ClockReading;
use crate::outcomes::{Outcomes, Retention};
use std::collections::BTreeMap;
use tally_lanes::WorkingSet;
use tally_rules::Micros;
use tally_rules::audit::{AuditEntry, AuditId};
use tally_rules::clock::DecisionTime;
use tally_rules::contest::{Application, ContestId, ContestPlayer, ContestRecord, Payout, SeriesRecord};
use tally_rules::event::Event;
use tally_rules::ledger::member::Handle;
use tally_rules::ledger::transfer_request::LedgerWrites;
use tally_rules::ledger::working_set::LedgerWorkingSet;
use tally_rules::ledger::{Member, MemberId};
use tally_rules::period::PeriodPayment;
use tally_store::{
    Archived, BoardChange, BoardNo, ContestWriteSet, EntrantKey, ImportKey, ImportRow, LedgerWriteSet,
    Loaded, PayoutKey, ReadSet, Topic, WindowKey, WriteSet,
};

/// Rows that a batch adds beside those that it changes.
#[derive(Debug, Default)]
pub(crate) struct Added {
    pub(crate) members: Vec<(EntrantKey, ContestPlayer)>,
    pub(crate) payouts: BTreeMap<PayoutKey, Payout>,
    pub(crate) boards: Vec<BoardChange>,
    /// The number of the next leaderboard.
    pub(crate) next_board: BoardNo,
    pub(crate) events: Vec<(Topic, Event)>,
    /// New rows of the audit log.
    pub(crate) audit: Vec<(AuditId, AuditEntry)>,
}

/// What a batch has read, as changed so far.
pub(crate) struct BatchState<'a> {
    pub(crate) time: DecisionTime,
    /// The time without the known error of the clock, for days of limits, locks of PINs and the end of applications. A jump in
    /// doubt neither ends nor repeats one. Expiries of holds and of credit go by `time`.
    pub(crate) expected: Micros,
    pub(crate) settings: &'a LedgerSettings,
    pub(crate) book: LedgerWorkingSet<'a>,
    pub(crate) outcomes: Outcomes,
    pub(crate) handles: WorkingSet<Handle, MemberId>,
    pub(crate) members: WorkingSet<MemberId, Member>,
    pub(crate) imports: WorkingSet<ImportKey, ImportRow>,
    pub(crate) contests: WorkingSet<ContestId, ContestRecord>,
    pub(crate) applications: WorkingSet<EntrantKey, Application>,
    /// Members of contests that join after the start.
    pub(crate) joined: WorkingSet<EntrantKey, ContestPlayer>,
    pub(crate) series: WorkingSet<ContestId, SeriesRecord>,
    pub(crate) payments: WorkingSet<WindowKey, PeriodPayment>,
    pub(crate) added: Added,
}

impl<'a> BatchState<'a> {
    pub(super) fn new(
        plan: &ReadSet,
        loaded: &Loaded,
        settings: &'a LedgerSettings,
        (reading, retention): (ClockReading, Retention),
    ) -> Self {
        let mut state = Self {
            time: reading.into(),
            expected: reading.expected(),
            settings,
            book: LedgerWorkingSet::new(&settings.currencies, &settings.limits),
            outcomes: Outcomes::new(&plan.requests, &loaded.requests, retention),
            handles: WorkingSet::new(),
            members: WorkingSet::new(),
            imports: WorkingSet::new(),
            contests: WorkingSet::new(),
            applications: WorkingSet::new(),
            joined: WorkingSet::new(),
            series: WorkingSet::new(),
            payments: WorkingSet::new(),
            added: Added { next_board: loaded.next_board, ..Added::default() },
        };
        // What has lapsed does not come back, so a clock in doubt expires no credit, as it expires no holds.
        state.book.set_now(if state.time.is_trusted { state.time.now } else { Micros(i64::MIN) });
        for (key, row) in plan.imports.iter().zip(&loaded.imports) {
            state.imports.load(key.clone(), *row);
        }
        let (plan, loaded) = (&plan.ledger, &loaded.ledger);
        for (handle, member) in plan.handles.iter().zip(&loaded.handles) {
            state.handles.load(handle.clone(), *member);
        }
        for (id, member) in plan.members.iter().zip(&loaded.members) {
            state.members.load(*id, member.clone());
        }
        for (key, wallet) in plan.wallets.iter().zip(&loaded.wallets) {
            state.book.load_wallet(*key, wallet.clone());
        }
        for (id, hold) in plan.holds.iter().zip(&loaded.holds) {
            state.book.load_hold(*id, hold.clone());
        }
        for (id, link) in plan.reversals.iter().zip(&loaded.reversals) {
            state.book.load_reversal(*id, link.clone());
        }
        for (key, minted) in plan.minted.iter().zip(&loaded.minted) {
            state.book.load_minted(*key, *minted);
        }
        let (plan, loaded) = (&plan.contests, &loaded.contests);
        for (id, record) in plan.contests.iter().zip(&loaded.contests) {
            state.contests.load(id.clone(), record.clone());
        }
        for (key, application) in plan.applications.iter().zip(&loaded.applications) {
            state.applications.load(key.clone(), *application);
        }
        for (key, member) in plan.members.iter().zip(&loaded.members) {
            state.joined.load(key.clone(), *member);
        }
        for (id, record) in plan.series.iter().zip(&loaded.series) {
            state.series.load(id.clone(), record.clone());
        }
        for (key, payment) in plan.payments.iter().zip(&loaded.payments) {
            state.payments.load(*key, payment.clone());
        }
        state
    }

    pub(super) fn into_changes(self) -> WriteSet {
        fn present<K, V>(rows: Vec<(K, Option<V>)>) -> Vec<(K, V)> {
            rows.into_iter().map(|(key, row)| (key, row.expect("nothing is removed here"))).collect()
        }
        let LedgerWrites { wallets, transfers, entries, holds, reversals, minted, totals } =
            self.book.into_writes();
        let (handles, members) = (self.handles.into_writes(), present(self.members.into_writes()));
        let totals = totals.into_rows();
        let mut added = self.added;
        added.members.extend(present(self.joined.into_writes()));
        added.members.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        added.boards.sort_unstable_by_key(BoardChange::no);
        added.audit.sort_unstable_by_key(|(id, _)| *id);
        let contests = ContestWriteSet {
            contests: present(self.contests.into_writes()),
            applications: self.applications.into_writes(),
            members: added.members,
            payouts: added.payouts.into_iter().collect(),
            series: self.series.into_writes(),
            payments: present(self.payments.into_writes()),
        };
        WriteSet {
            requests: self.outcomes.into_writes(),
            imports: present(self.imports.into_writes()),
            ledger: LedgerWriteSet {
                webhooks: Vec::new(),
                archives: Vec::new(),
                archived: Archived::default(),
                handles,
                members,
                wallets,
                holds,
                reversals,
                minted,
                transfers,
                entries,
                totals,
                contests,
                events: added.events,
            },
            boards: added.boards,
            audit: added.audit,
            ..WriteSet::default()
        }
    }
}
