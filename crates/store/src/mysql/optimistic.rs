//! An optimistic transaction of the only writer. It reads nothing: it assumes the usual answers and uses cached rows. It
//! sends everything in one message, which fails if the assumption is wrong. To MariaDB it is a block and COMMIT: two answers
//! instead of eight, each of which would wake this side. Not here: what happens after a failure (`run`).

use super::lease::Lease;
use super::link::Link;
use super::load::Absent;
use super::notes::{Decide, Noted};
use super::pool::Pool;
use super::row_cache::CachedRows;
use super::run::{Done, FinalMessage, Stop, commit};
use super::text::Script;
use super::{Version, check, meta, outbox, revisions, write};
use crate::ledger::LedgerLoaded;
use crate::plan::{Loaded, ReadSet};

/// Whether the answers to a plan can be assumed: boards are live, requests are new, and the rest is of the ledger.
pub(super) fn applies_to(plan: &ReadSet) -> bool {
    let ReadSet { boards, board_names, scores, imports, profiles, ledger, exclusive, outbox, .. } = plan;
    let something = !boards.is_empty() || !ledger.is_empty();
    let others = board_names.is_empty() && scores.is_empty() && imports.is_empty() && profiles.is_empty();
    something && others && !exclusive && !outbox
}

/// Decides on the assumed answers and sends everything in one message, which fails if they are wrong. `None` if there is
/// nothing to send, or if the changes refer to rows that must be read.
pub(super) fn run(
    link: &mut Link,
    (pool, lease): (&Pool, &Lease),
    cached_rows: Option<CachedRows>,
    plan: &ReadSet,
    decide: Decide<'_>,
) -> Result<Option<Done>, Stop> {
    let cached_wallets = cached_rows.as_ref().map_or_else(Vec::new, |rows| rows.cached_wallets(&plan.ledger));
    let loaded = Loaded {
        // No other server writes, so no reader needs revisions.
        boards: vec![Some(0); plan.boards.len()],
        requests: vec![None; plan.requests.len()],
        ledger: cached_rows.map_or_else(LedgerLoaded::default, |rows| rows.with(LedgerLoaded::default())),
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
    write::rows(
        &mut script,
        &changes,
        (&absent, &cached_wallets),
        (link.server.flavour, version),
        link.name[0],
    );
    meta::note(&mut script, &notes);
    let unpublished = pool.options.marks.and_then(|_| outbox::of(&changes, true));
    let unpublished = unpublished.as_deref();
    let last = FinalMessage { version, revised: false, unpublished, assumed_live: Some(&plan.boards) };
    let committed = commit(link, (pool, Some(lease)), script, &last)?;
    Ok(Some(Done { committed, loaded: loaded.ledger, changes: changes.ledger }))
}
