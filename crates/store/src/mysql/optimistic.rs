//! A transaction of the only writer that asks for nothing: it decides on what is nearly always so, and on the rows it knows,
//! and sends everything in one message, which fails where it is not so. To MariaDB it is a block and COMMIT: two answers
//! instead of eight, each of which would wake this side. Not here: what is done then (`run`).

use super::lease::Lease;
use super::link::Link;
use super::load::Absent;
use super::notes::{Decide, Noted};
use super::pool::Pool;
use super::row_cache::Known;
use super::run::{Done, Last, Stop, commit};
use super::text::Script;
use super::{Version, check, meta, revisions, write};
use crate::ledger::LedgerLoaded;
use crate::plan::{Loaded, ReadSet};

/// Whether what the plan reads beside the ledger is nearly always the same: boards are live, and requests are new.
pub(super) fn may_be_guessed(plan: &ReadSet) -> bool {
    let ReadSet { boards, board_names, scores, imports, profiles, ledger, exclusive, outbox, .. } = plan;
    let something = !boards.is_empty() || !ledger.is_empty();
    let others = board_names.is_empty() && scores.is_empty() && imports.is_empty() && profiles.is_empty();
    something && others && !exclusive && !outbox
}

/// Decides on what is nearly always so and sends everything in one message, which fails where it is not so. `None` where
/// there is nothing to send, or where it refers to what must be read.
pub(super) fn guess(
    link: &mut Link,
    (pool, lease): (&Pool, &Lease),
    known: Option<Known>,
    plan: &ReadSet,
    decide: Decide<'_>,
) -> Result<Option<Done>, Stop> {
    let cached = known.as_ref().map_or_else(Vec::new, |known| known.cached_wallets(&plan.ledger));
    let loaded = Loaded {
        // Nobody else writes, so nobody asks for revisions.
        boards: vec![Some(0); plan.boards.len()],
        requests: vec![None; plan.requests.len()],
        ledger: known.map_or_else(LedgerLoaded::default, |known| known.with(LedgerLoaded::default())),
        ..Loaded::default()
    };
    loaded.assert_answers(plan);
    let Noted { changes, notes, version: least } = decide(&loaded, 0);
    changes.assert_sorted();
    let nothing = changes.is_empty() && notes.is_empty();
    if nothing || revisions::touches(&changes) {
        return Ok(None);
    }
    check::changes(&changes).map_err(Stop::Error)?;
    let version = Version::Number(lease.version().max(least));
    let mut script = Script::default();
    script.group(link.server.flavour);
    script.statement("START TRANSACTION");
    let absent = Absent { requests: plan.requests.clone(), ..Absent::default() };
    write::rows(&mut script, &changes, (&absent, &cached), (link.server.flavour, version), link.name[0]);
    meta::note(&mut script, &notes);
    let last = Last { version, revised: false, marks: None, guessed: Some(&plan.boards) };
    let committed = commit(link, (pool, Some(lease)), script, &last)?;
    Ok(Some(Done { committed, loaded: loaded.ledger, changes: changes.ledger }))
}
