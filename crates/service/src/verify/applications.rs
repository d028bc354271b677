//! Applications against holds. An application for a contest with a fee has a hold of that fee on its member's wallet, no two
//! have the same, and other applications have none. An open hold of a fee has its application. Each contest counts its
//! applications.
//!
//! Applications are collected in the order of holds, in rounds of bounded size. A hold may have ended in another way than by
//! its contest, which the start of the contest notices, so its state is not checked. Not here: applications in Redis.

use super::Run;
use super::ahead::{Ahead, Put};
use super::sorted_rows::SortedRows;
use super::wallets;
use crate::failure::Failure;
use tally_rules::PlayerId;
use tally_rules::contest::application::Status;
use tally_rules::contest::record::ContestTask;
use tally_rules::contest::{Application, ContestId, ContestRecord, ContestState};
use tally_rules::ledger::{HoldId, WalletKey};
use tally_store::{Snapshot, StoreError};

/// Applications that are kept in memory.
const IN_MEMORY_MAX: usize = 200_000;

/// The hold in an application.
#[derive(Clone, Debug)]
struct RecordedHold {
    /// Contest and player.
    row: String,
    wallet: Option<WalletKey>,
    amount: i64,
    /// How many applications name this hold.
    times: u32,
}

/// Compares both.
pub(super) fn reconcile(snapshot: &mut dyn Snapshot, run: &mut Run<'_>) -> Result<(), Failure> {
    let has_any = check(snapshot, run)?;
    if !has_any && run.reconciled.holds == 0 {
        return Ok(());
    }
    let again = |known: &mut RecordedHold, _more: RecordedHold| known.times += 1;
    let mut recorded = Ahead::collect(IN_MEMORY_MAX, again, |put| collect(snapshot, put))?;
    let mut holds = SortedRows::default();
    let no_hold = |run: &mut Run<'_>, id: HoldId, recorded: &RecordedHold| {
        run.found("contest_applications", &recorded.row, format!("its hold {} is not there", id.0));
    };
    loop {
        holds.fill(|after: Option<&HoldId>, limit| snapshot.holds(after.copied(), limit))?;
        let Some((id, hold)) = holds.next() else { break };
        let passed = &mut |id, recorded| no_hold(run, id, &recorded);
        let Some(recorded) = recorded.at(&id, |put| collect(snapshot, put), passed)? else {
            if hold.is_open() && id.is_of_fee() {
                let what = "it holds the fee of a contest, and no application has it";
                run.found("holds", id.0, what);
            }
            continue;
        };
        if recorded.times > 1 {
            let what = format!("{} applications have its hold {}", recorded.times, id.0);
            run.found("contest_applications", &recorded.row, what);
        }
        if Some(hold.wallet) != recorded.wallet {
            let what = format!("its hold {} is of the wallet {}", id.0, wallets::name(&hold.wallet));
            run.found("contest_applications", &recorded.row, what);
        }
        if hold.amount != recorded.amount {
            let what = format!("its hold {} is {}, and the fee {}", id.0, hold.amount, recorded.amount);
            run.found("contest_applications", &recorded.row, what);
        }
    }
    recorded.rest(|put| collect(snapshot, put), &mut |id, recorded| no_hold(run, id, &recorded))?;
    Ok(())
}

/// Each application that is in the store.
fn each(
    snapshot: &mut dyn Snapshot,
    mut with: impl FnMut(&ContestId, &ContestRecord, &PlayerId, &Application),
    mut after_all: impl FnMut(&ContestId, &ContestRecord),
) -> Result<(), StoreError> {
    let mut contests = SortedRows::default();
    loop {
        contests.fill(|after: Option<&ContestId>, limit| snapshot.contests(after, limit))?;
        let Some((id, record)) = contests.next() else { return Ok(()) };
        let mut applications = SortedRows::default();
        loop {
            applications
                .fill(|after: Option<&PlayerId>, limit| snapshot.applications(record.no, after, limit))?;
            let Some((player, application)) = applications.next() else { break };
            with(&id, &record, &player, &application);
        }
        after_all(&id, &record);
    }
}

fn row_name(contest: &ContestId, player: &PlayerId) -> String {
    format!("{}/{}", contest.as_str(), player.as_str().escape_debug())
}

/// Checks that each application has a hold if it needs one; returns whether any has.
fn check(snapshot: &mut dyn Snapshot, run: &mut Run<'_>) -> Result<bool, StoreError> {
    let (mut any, mut rows) = (false, 0);
    let mut wrong: Vec<(&'static str, String, String)> = Vec::new();
    let counts = std::cell::Cell::new([0_u32; 3]);
    let found = std::cell::RefCell::new(&mut wrong);
    let say = |table, row, what: String| found.borrow_mut().push((table, row, what));
    each(
        snapshot,
        |contest, record, player, application| {
            rows += 1;
            any |= application.hold.is_some();
            let mut seen = counts.get();
            seen[application.status as usize] += 1;
            counts.set(seen);
            let wants = record.contest.entry_fee.is_some() && application.status != Status::Rejected;
            let what = match (wants, application.hold) {
                (true, None) => "it has no hold, and the contest has a fee",
                (false, Some(_)) => "it has a hold, and owes no fee",
                _ => return,
            };
            say("contest_applications", row_name(contest, player), what.into());
        },
        |contest, record| {
            let seen = counts.replace([0; 3]);
            let counts = record.applications;
            let counted = [counts.pending, counts.accepted, counts.rejected];
            // Other applications are being cleared, or may be in Redis.
            let is_here =
                record.contest.needs_members() && record.report.is_none() && record.work == ContestTask::None;
            if is_here && record.state != ContestState::Cancelled && counted != seen {
                let what = format!(
                    "it counts {counted:?} applications pending, accepted and rejected, and there are {seen:?}"
                );
                found.borrow_mut().push(("contests", contest.as_str().to_owned(), what));
            }
        },
    )?;
    run.reconciled.applications = rows;
    for (table, row, what) in wrong {
        run.found(table, row, what);
    }
    Ok(any)
}

/// Passes the holds of applications.
fn collect(snapshot: &mut dyn Snapshot, put: &mut Put<'_, HoldId, RecordedHold>) -> Result<(), StoreError> {
    let with = |contest: &ContestId, record: &ContestRecord, player: &PlayerId, application: &Application| {
        let (Some(hold), Some(fee)) = (application.hold, record.contest.entry_fee) else { return };
        let wallet = application.member.map(|member| WalletKey { member, currency: fee.currency });
        put(
            hold,
            RecordedHold { row: row_name(contest, player), wallet, amount: fee.amount.units(), times: 1 },
        );
    };
    each(snapshot, with, |_, _| ())
}
