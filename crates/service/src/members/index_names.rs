//! Handles of names for members that earlier versions stored: a background task adds them once, those of the newest members first.
//!
//! A transaction that makes or changes a member writes the handle of its name as well. So only rows of before are left, and the
//! store remembers how far the task is. Each page is a transaction that may be repeated, also by another server. A store without
//! members is done at once. Until the end a search has to say that it may lack some (`players::search`).

use super::erase;
use crate::background::{Job, Next};
use crate::failure::Failure;
use crate::tally::Tally;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tally_rules::ledger::member::{Handle, HandleKind};
use tally_rules::ledger::{Member, MemberId, Uuid};
use tally_store::{LedgerReadSet, LedgerWriteSet, Loaded, ReadSet, Store, Task, WriteSet};

/// The name under which the store remembers the last member of the last page, or that all are done.
const INDEXED_META: &str = "member_names";

/// All are done.
const DONE: &[u8] = b"done";

/// Members of one transaction.
const PAGE: usize = 200;

/// Between two pages: requests come first.
const PAGE_PAUSE: Duration = Duration::from_millis(10);

/// Until this server looks whether another one has done it.
const LOOK_PAUSE: Duration = Duration::from_secs(10);

/// The task lease of a silent server, which is that of maintenance.
const LEASE: Duration = Duration::from_secs(40);

/// What a step has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Page,
    Elsewhere,
    Done,
}

/// Whether every open member has the handle of its name.
pub(crate) fn is_done(store: &dyn Store) -> Result<bool, Failure> {
    Ok(store.meta(INDEXED_META)?.as_deref() == Some(DONE))
}

/// Does the first step, and starts the background task unless it was the last one.
pub(crate) fn start(tally: &Arc<Tally>) -> Result<(), Failure> {
    let mut job = Job::new("index the names of members", Duration::ZERO);
    if job.run(|| step(tally)) == Some(Step::Done) {
        return Ok(());
    }
    tally.tasks.names.start("names", tally, Next::After(PAGE_PAUSE), move |tally| {
        match job.run(|| step(tally)) {
            Some(Step::Done) => Next::WhenWoken,
            Some(Step::Page) => Next::After(PAGE_PAUSE),
            Some(Step::Elsewhere) | None => Next::After(LOOK_PAUSE),
        }
    })
}

/// The next page.
fn step(tally: &Tally) -> Result<Step, Failure> {
    let store = &*tally.store;
    let last = store.meta(INDEXED_META)?;
    let is_done = last.as_deref() == Some(DONE);
    if !is_done {
        let last = last.and_then(|bytes| bytes.try_into().ok());
        let rows = store.ledger().newest_members(MemberId(Uuid(last.unwrap_or([0xff; 16]))), PAGE)?.rows;
        let full = rows.last().filter(|_| rows.len() == PAGE);
        if full.is_some() && !store.lease_task(Task::Clean, LEASE)? {
            return Ok(Step::Elsewhere);
        }
        add(tally, &rows)?;
        store.set_meta(INDEXED_META, full.map_or(DONE, |(id, _)| &id.0.0[..]))?;
        if full.is_some() {
            return Ok(Step::Page);
        }
    }
    tally.members.has_names.store(true, Ordering::Relaxed);
    Ok(Step::Done)
}

/// Adds those that these members lack.
fn add(tally: &Tally, rows: &[(MemberId, Member)]) -> Result<(), Failure> {
    let mut read = LedgerReadSet {
        handles: rows.iter().filter_map(|(id, member)| name(*id, member)).collect(),
        members: rows.iter().map(|(id, _)| *id).collect(),
        ..LedgerReadSet::default()
    };
    if read.handles.is_empty() {
        return Ok(());
    }
    read.handles.sort_unstable();
    read.members.sort_unstable();
    erase::run(tally, read, missing)
}

/// The handle of a member's name. A closed one has none.
fn name(id: MemberId, member: &Member) -> Option<Handle> {
    member.handles(id).into_iter().find(|handle| handle.kind() == HandleKind::Name)
}

/// Those that are missing of members that still have their names. A change of a name has written its own.
fn missing(plan: &ReadSet, loaded: &Loaded) -> WriteSet {
    let (plan, loaded) = (&plan.ledger, &loaded.ledger);
    let lacks =
        |handle: &Handle| plan.handles.binary_search(handle).is_ok_and(|at| loaded.handles[at].is_none());
    let members = plan.members.iter().zip(&loaded.members);
    let names = members.filter_map(|(id, member)| Some((name(*id, member.as_ref()?)?, Some(*id))));
    let mut handles: Vec<_> = names.filter(|(handle, _)| lacks(handle)).collect();
    handles.sort_unstable();
    WriteSet { ledger: LedgerWriteSet { handles, ..LedgerWriteSet::default() }, ..WriteSet::default() }
}
