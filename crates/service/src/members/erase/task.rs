//! The background task of erasures: it goes on with those that a request left, or a server that was killed.
//!
//! They are found by their rows in the audit log, which are stored with their first transactions. Any server of a store does the
//! work of all. Not here: the steps.

use super::steps;
use crate::audit;
use crate::background::{Job, Next};
use crate::failure::Failure;
use crate::scan::ListRange;
use crate::tally::Tally;
use std::sync::Arc;
use std::time::Duration;
use tally_rules::audit::AuditAction;
use tally_rules::ledger::{Erasure, MemberId, Uuid};

/// The pause between two rounds. A request that leaves work wakes the task.
const PAUSE: Duration = Duration::from_secs(60);

/// How old an erasure may be to be found without being asked for again.
const KEPT_MICROS: i64 = 7 * 24 * 3_600 * 1_000_000;

/// Erasures of one round.
const MEMBERS: usize = 1_000;

/// Starts the background task.
pub(crate) fn start(tally: &Arc<Tally>) -> Result<(), Failure> {
    let mut job = Job::new("erase what names erased members", Duration::ZERO);
    tally.tasks.erasures.start("erasures", tally, Next::After(Duration::ZERO), move |tally| {
        job.run(|| finish_all(tally));
        Next::After(PAUSE)
    })
}

/// Goes on with all that run; the first failure stops none of the others. Blocks.
pub(crate) fn finish_all(tally: &Tally) -> Result<(), Failure> {
    let mut done = Ok(());
    for member in running(tally)? {
        done = done.and(steps::all(tally, member));
    }
    done
}

/// The members whose erasure runs.
fn running(tally: &Tally) -> Result<Vec<MemberId>, Failure> {
    let filter = audit::Filter { action: Some(AuditAction::MemberErased), ..audit::Filter::default() };
    let from = Some(tally.now().plus(-KEPT_MICROS));
    let page = audit::list(tally, &filter, &ListRange { from, limit: MEMBERS, ..ListRange::default() })?;
    let ids = page.rows.iter().filter_map(|(_, entry)| Uuid::parse(&entry.subject).map(MemberId));
    let ids = tally_lanes::keys_to_load(ids);
    let found = tally.store.ledger().members(&ids)?;
    let is_running = |(id, row): (MemberId, Option<_>)| {
        let row: tally_rules::ledger::Member = row?;
        (row.erasure(id) == Some(Erasure::Running)).then_some(id)
    };
    Ok(ids.into_iter().zip(found).filter_map(is_running).collect())
}
