//! Handles against members: each name, login, phone number and player finds the member that has it, and nothing else finds a member.
//!
//! The two tables have different orders, so first only the sums of all pairs are compared: the handles of members, and the
//! members of handles. If they differ, everything is looked up by key to report the rows.

use super::Run;
use super::sorted_rows::{LOOKUP_PAGE, SortedRows};
use super::sum::Sum;
use crate::failure::Failure;
use std::collections::BTreeMap;
use tally_rules::ledger::MemberId;
use tally_rules::ledger::member::{Handle, HandleKind};
use tally_store::{Snapshot, StoreError};

fn kind(handle: &Handle) -> &'static str {
    match handle {
        Handle::Name(_) => "name",
        Handle::Login(_) => "login",
        Handle::Phone(_) => "phone number",
        Handle::Player(_) => "player",
    }
}

/// A handle for people: a player's name may have control characters.
fn name(handle: &Handle) -> String {
    let text = if let Handle::Name(key) = handle { key.name() } else { handle.as_str() };
    format!("{} {}", kind(handle), text.escape_debug())
}

/// Scans handles; `of_members` is the sum of the handles in members. If `names` is false, handles of names may be missing.
pub(super) fn reconcile(
    snapshot: &mut dyn Snapshot,
    (of_members, names): (Sum, bool),
    run: &mut Run<'_>,
) -> Result<(), Failure> {
    let (mut handles, mut sum) = (SortedRows::default(), Sum::default());
    loop {
        let read = handles.fill(|after, limit| snapshot.handles(after, limit))?;
        run.read(read);
        let Some((handle, member)) = handles.next() else { break };
        run.reconciled.handles += 1;
        if matches!(&handle, Handle::Phone(phone) if phone.is_misread()) {
            run.found(
                "handles",
                name(&handle),
                "no request can name it: the next start of the server corrects it",
            );
        }
        sum.add_handle(&run.key, &handle, member);
    }
    if sum != of_members {
        report_members(snapshot, names, run)?;
        report_handles(snapshot, run)?;
    }
    Ok(())
}

/// Checks that all handles of a member find it.
fn report_members(snapshot: &mut dyn Snapshot, names: bool, run: &mut Run<'_>) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let page = snapshot.members(after, LOOKUP_PAGE)?;
        let mut owners: BTreeMap<Handle, Vec<MemberId>> = BTreeMap::new();
        for (id, member) in &page {
            let checked =
                member.handles(*id).into_iter().filter(|one| names || one.kind() != HandleKind::Name);
            checked.for_each(|handle| owners.entry(handle).or_default().push(*id));
        }
        let handles: Vec<Handle> = owners.keys().cloned().collect();
        for (handle, found) in handles.iter().zip(snapshot.handles_of(&handles)?) {
            for id in owners[handle].iter().filter(|id| found != Some(**id)) {
                let finds = found.map_or_else(|| "nobody".into(), |other| format!("another: {}", other.0));
                run.found("members", id.0, format!("its {} finds {finds}", name(handle)));
            }
        }
        match page.last() {
            Some((last, _)) if page.len() == LOOKUP_PAGE => after = Some(*last),
            _ => return Ok(()),
        }
    }
}

/// Checks that the member that a handle finds has it.
fn report_handles(snapshot: &mut dyn Snapshot, run: &mut Run<'_>) -> Result<(), StoreError> {
    let mut after: Option<Handle> = None;
    loop {
        let mut page = snapshot.handles(after.as_ref(), LOOKUP_PAGE)?;
        let mut ids: Vec<MemberId> = page.iter().map(|(_, member)| *member).collect();
        ids.sort_unstable();
        ids.dedup();
        let found = snapshot.members_of(&ids)?;
        for (handle, id) in &page {
            match ids.binary_search(id).ok().and_then(|at| found[at].as_ref()) {
                None => run.found("handles", name(handle), format!("its member is not there: {}", id.0)),
                Some(member) if member.closed_at.is_some() => {
                    let what = format!("its member is closed: {}; close it again, which releases it", id.0);
                    run.found("handles", name(handle), what);
                }
                Some(member) if !member.handles(*id).contains(handle) => {
                    let what = format!("its member has another {} or none: {}", kind(handle), id.0);
                    run.found("handles", name(handle), what);
                }
                Some(_) => {}
            }
        }
        let is_full = page.len() == LOOKUP_PAGE;
        match page.pop() {
            Some((last, _)) if is_full => after = Some(last),
            _ => return Ok(()),
        }
    }
}
