//! Rows that still name an erased person: words in transfers and holds from before the erasure, and its player in contests.
//!
//! Erased members are collected with the members. Where there is none, nothing is read. The audit log is not part of a snapshot, so
//! it is not checked. Not here: members whose erasure still runs, which are counted only.

use super::Run;
use super::contests::{each_member, each_payout};
use super::sorted_rows::{PAGE_ROWS, SortedRows};
use crate::contests::of_player::is_final;
use crate::failure::Failure;
use std::collections::BTreeMap;
use std::fmt::Display;
use tally_rules::contest::ContestId;
use tally_rules::ledger::erasure::pseudonym;
use tally_rules::ledger::{Erasure, HoldId, Member, MemberId, Transfer, TransferId, Uuid};
use tally_rules::{Micros, PlayerId};
use tally_store::{Snapshot, StoreError};

/// Erased members whose rows are checked; of more there is no memory.
const KNOWN_MAX: usize = 1_000_000;

const AGAIN: &str = "erase the member again";

/// Erased members, with the instants of their erasures.
#[derive(Debug, Default)]
pub(super) struct Erased(BTreeMap<MemberId, Micros>);

impl Erased {
    /// Whether the member was erased after this instant.
    fn covers(&self, member: MemberId, at: Micros) -> bool {
        self.0.get(&member).is_some_and(|erased| at < *erased)
    }
}

/// Takes a member as it passes.
pub(super) fn note(run: &mut Run<'_>, id: MemberId, member: &Member) {
    match member.erasure(id) {
        None => return,
        Some(Erasure::Running) => run.reconciled.being_erased += 1,
        Some(Erasure::Done) => {
            run.reconciled.erased += 1;
            if run.erased.0.len() < KNOWN_MAX {
                run.erased.0.insert(id, member.tokens_from);
            }
            if *member != member.erased(id) {
                run.found("members", id.0, format!("it is erased, and its row names a person: {AGAIN}"));
            }
        }
    }
    if member.phone.is_some() || member.password.is_some() || member.pin.is_some() {
        run.found(
            "members",
            id.0,
            format!("it is erased, and has a phone number, a password or a PIN: {AGAIN}"),
        );
    }
}

/// A transfer as it passes.
pub(super) fn check_transfer(run: &mut Run<'_>, id: TransferId, transfer: &Transfer) {
    let mut sides = [transfer.debit, transfer.credit].into_iter().flatten();
    if transfer.origin.has_words() && sides.any(|(member, _)| run.erased.covers(member, id.0.at())) {
        let what = "it has a reason or metadata from before the erasure of its member";
        run.found("transfers", id.0, format!("{what}: {AGAIN}"));
    }
}

/// Holds, and rows of contests and of periods.
pub(super) fn reconcile(snapshot: &mut dyn Snapshot, run: &mut Run<'_>) -> Result<(), Failure> {
    if run.erased.0.is_empty() {
        return Ok(());
    }
    let mut after: Option<HoldId> = None;
    loop {
        let page = snapshot.holds(after, PAGE_ROWS)?;
        for (id, hold) in &page {
            let has_words = hold.origin.has_words() || hold.ended_by.has_words();
            if has_words && run.erased.covers(hold.wallet.member, id.0.at()) {
                let what = "it has a reason or metadata from before the erasure of its member";
                run.found("holds", id.0, format!("{what}: {AGAIN}"));
            }
        }
        match page.last() {
            Some((last, _)) if page.len() == PAGE_ROWS => after = Some(*last),
            _ => break,
        }
    }
    let mut contests = SortedRows::default();
    loop {
        contests.fill(|after: Option<&ContestId>, limit| snapshot.contests(after, limit))?;
        let Some((id, record)) = contests.next() else { break };
        each_member(snapshot, &record, |player, member| {
            if let Some(member) = member {
                check_name(run, "contest_members", id.as_str(), (&player, member));
            }
        })?;
        payouts(snapshot, record.no, run)?;
    }
    super::periods::each(snapshot, |snapshot, payment| payouts(snapshot, payment.no, run))?;
    Ok(())
}

fn payouts(snapshot: &mut dyn Snapshot, no: Uuid, run: &mut Run<'_>) -> Result<(), StoreError> {
    each_payout(snapshot, no, |number, payout| {
        if is_final(&payout) {
            check_name(run, "contest_prizes", format!("{no}/{number}"), (&payout.player, payout.member));
        }
    })
}

fn check_name(
    run: &mut Run<'_>,
    table: &'static str,
    row: impl Display,
    (player, member): (&PlayerId, MemberId),
) {
    if run.erased.0.contains_key(&member) && *player != pseudonym(member) {
        run.found(table, row, format!("it names the player of the erased member {}: {AGAIN}", member.0));
    }
}
