//! One transaction: read and lock, decide, write and commit, in two messages.
//!
//! A plan that reads nothing is one message. The only writer also sends one message for a plan that needs only live
//! leaderboards, new requests and cached ledger rows (`row_cache`). It assumes the answers, writes the assumption into the
//! commit marker, and reads if the assumption fails. It does so only on a connection that has just answered, because a lost
//! connection cannot say whether the one message arrived.
//!
//! Changes of leaderboards or API keys take one more message. A lost answer to COMMIT is resolved on a new connection; the
//! outcome is unknown only while the database cannot be reached. A transaction that certainly did not run on an idle
//! connection begins again, once. Not here: other retries.

use super::batches::{self, Batch};
use super::fault::{self, Fault};
use super::lease::{self, Lease};
use super::leases;
use super::link::Link;
use super::load::{self, Read};
use super::notes::{Decide, Noted};
use super::pool::{Pool, Use};
use super::row_cache::{CacheAccess, CachedRows, RowCache};
use super::text::Script;
use super::{CLOCK, Version, bans, boards, check, keys, meta, optimistic, outbox, revisions, write};
use crate::StoreError;
use crate::ledger::{LedgerLoaded, LedgerWriteSet};
use crate::plan::{BatchId, BoardNo, Committed, ReadSet, WriteSet};
use crate::slow::{WaitStage, Watch};
use std::sync::atomic::Ordering;

/// The reason why a transaction without any message is refused.
const NOT_RENEWED: &str = "the lease of the one writer is not renewed";

/// Why a transaction failed.
pub(super) enum Stop {
    /// It was not done, and the caller gets the error.
    Error(StoreError),
    /// It was not done, because another transaction held its rows for too long.
    LockWait(StoreError),
    /// The connection was lost before COMMIT was sent.
    Lost(String),
    /// The connection was lost after COMMIT was sent.
    InDoubt(Batch, String),
    /// It was not done, because an assumption was wrong.
    WrongAssumption(Fault),
}

/// See [`crate::Transactions::run`]. `row_cache` is given to the only writer.
pub(super) fn run(
    (pool, lease, row_cache): (&Pool, Option<&Lease>, Option<&RowCache>),
    plan: &ReadSet,
    decide: Decide<'_>,
) -> Result<Committed, StoreError> {
    let mut watch = Watch::start();
    let done = run_with_cache((pool, lease, row_cache), plan, &mut |loaded, version| {
        watch.end_of(WaitStage::Read);
        let noted = decide(loaded, version);
        watch.end_of(WaitStage::Decide);
        noted
    });
    watch.end_of(WaitStage::Sync);
    pool.stats.slows.note(watch, || None);
    done
}

fn run_with_cache(
    (pool, lease, row_cache): (&Pool, Option<&Lease>, Option<&RowCache>),
    plan: &ReadSet,
    decide: Decide<'_>,
) -> Result<Committed, StoreError> {
    plan.assert_sorted();
    lease.map_or(Ok(()), Lease::check)?;
    let mut cache = CacheAccess::new(row_cache, &plan.ledger);
    let done = run_with_retry((pool, lease), &mut cache, plan, decide);
    if !matches!(done, Ok((_, true)))
        && let Some(row_cache) = row_cache
    {
        // The cache has the rows as they were before, which may be outdated.
        drop(cache);
        row_cache.take().forget();
    }
    done.map(|(committed, _)| committed)
}

/// Runs the transaction. Returns whether its commit was answered.
fn run_with_retry(
    (pool, lease): (&Pool, Option<&Lease>),
    cache: &mut CacheAccess<'_>,
    plan: &ReadSet,
    decide: Decide<'_>,
) -> Result<(Committed, bool), StoreError> {
    let mut link = pool.take_for(Use::Transact)?;
    let mut may_begin_again = !link.new;
    loop {
        let done = attempt(link.get(), (pool, lease), cache, plan, decide);
        // Returns the connection, or closes it if it is broken.
        drop(link);
        let why = match done {
            Ok(committed) => return Ok((committed, true)),
            Err(Stop::Error(error)) => return Err(error),
            Err(Stop::LockWait(error)) => {
                pool.end_silent_transactions();
                return Err(error);
            }
            Err(Stop::WrongAssumption(fault)) => return Err(lease::refused(lease, fault)),
            Err(Stop::Lost(why)) => why,
            Err(Stop::InDoubt(batch, why)) => match resolved(pool, batch, &why)? {
                Some(version) => {
                    return Ok((Committed { version, outbox: Some(batch), ..Committed::default() }, false));
                }
                None => why,
            },
        };
        if !std::mem::take(&mut may_begin_again) {
            return Err(StoreError::Unavailable(why));
        }
        pool.stats.again.fetch_add(1, Ordering::Relaxed);
        link = pool.take_new(Use::Transact)?;
    }
}

/// Resolves a commit whose answer was lost, if that is possible at once.
fn resolved(pool: &Pool, batch: BatchId, why: &str) -> Result<Option<u64>, StoreError> {
    pool.stats.lost.fetch_add(1, Ordering::Relaxed);
    pool.resolve(&batch).map_err(|error| {
        pool.stats.unresolved.fetch_add(1, Ordering::Relaxed);
        StoreError::InDoubt { batch, why: format!("{why}; then {error}") }
    })
}

/// Runs the transaction on this connection. Afterwards the connection has no open transaction or is broken.
fn attempt(
    link: &mut Link,
    (pool, lease): (&Pool, Option<&Lease>),
    cache: &mut CacheAccess<'_>,
    plan: &ReadSet,
    decide: Decide<'_>,
) -> Result<Committed, Stop> {
    let mut cached_rows = cache.rows.as_mut().map(|rows| rows.look_up(&plan.ledger));
    let all_cached = cached_rows.as_ref().map_or(plan.ledger.is_empty(), |rows| rows.left.is_empty());
    let may_assume = cache.may_assume() && all_cached && link.is_fresh() && optimistic::applies_to(plan);
    let done = match lease.filter(|_| may_assume) {
        Some(lease) => optimistic::run(link, (pool, lease), cached_rows.take(), plan, decide),
        None => Ok(None),
    };
    let done = match done {
        Ok(Some(done)) => Ok(done),
        // The rows are read instead, all of them if a cached one was wrong.
        Ok(None) | Err(Stop::WrongAssumption(_)) => transact(link, (pool, lease), cached_rows, plan, decide),
        Err(stop) => Err(stop),
    };
    let done = done.map(|done| {
        cache.learn(&plan.ledger, &done.loaded, &done.changes);
        done.committed
    });
    if matches!(done, Err(Stop::Lost(_) | Stop::InDoubt(..))) {
        link.give_up();
    }
    done
}

/// A committed transaction, with its rows of the ledger.
pub(super) struct Done {
    pub(super) committed: Committed,
    pub(super) loaded: LedgerLoaded,
    pub(super) changes: LedgerWriteSet,
}

fn transact(
    link: &mut Link,
    (pool, lease): (&Pool, Option<&Lease>),
    cached_rows: Option<CachedRows>,
    plan: &ReadSet,
    decide: Decide<'_>,
) -> Result<Done, Stop> {
    let mut guarded = false;
    let (mut script, mut read) = if load::reads(plan) {
        let of_ledger = cached_rows.as_ref().map_or(&plan.ledger, |rows| &rows.left);
        let message = load::message(plan, of_ledger);
        let results = link.send(&message.script).map_err(|fault| undo(link, fault))?;
        let read = message.read(results, (plan, of_ledger)).map_err(|error| undo_because(link, error))?;
        guarded = message.in_several_statements();
        (Script::default(), read)
    } else {
        let mut script = Script::default();
        script.statement("START TRANSACTION");
        script.sql("SET @version = ").sql(CLOCK).end();
        (script, Read::default())
    };
    let cached_wallets = cached_rows.as_ref().map_or_else(Vec::new, |rows| rows.cached_wallets(&plan.ledger));
    if let Some(cached_rows) = cached_rows {
        read.loaded.ledger = cached_rows.with(read.loaded.ledger);
    }
    read.loaded.assert_answers(plan);
    let Noted { changes, notes, version: least } = decide(&read.loaded, read.version.unwrap_or(0));
    changes.assert_sorted();
    if changes.is_empty() && notes.is_empty() {
        let version = end_unchanged((link, lease), plan, &read, guarded)?;
        let committed = Committed { version, ..Committed::default() };
        return Ok(Done { committed, loaded: read.loaded.ledger, changes: changes.ledger });
    }
    check::changes(&changes).map_err(|error| undo_because(link, error))?;
    let version = match (read.version, least) {
        (None, 0) => Version::Session,
        (version, least) => Version::Number(version.unwrap_or(0).max(least)),
    };
    write_boards_and_keys(link, &mut script, &changes)?;
    write::rows(
        &mut script,
        &changes,
        (&read.absent, &cached_wallets),
        (link.server.flavour, version),
        link.name[0],
    );
    meta::note(&mut script, &notes);
    let revised = revisions::bump(&mut script, &changes);
    bans::write(&mut script, &changes.bans);
    let is_marked = plan.outbox || pool.options.marks.is_some();
    let unpublished = is_marked.then(|| outbox::of(&changes, pool.options.marks.is_some())).flatten();
    let last = FinalMessage { version, revised, unpublished: unpublished.as_deref(), assumed_live: None };
    let committed = commit(link, (pool, lease), script, &last)?;
    Ok(Done { committed, loaded: read.loaded.ledger, changes: changes.ledger })
}

/// Ends a transaction that changes nothing. Existing rows were locked while the rest was read. Missing rows may have
/// appeared between two statements, so they are checked once more. If the lease is ours afterwards, it was ours all along.
fn end_unchanged(
    (link, lease): (&mut Link, Option<&Lease>),
    plan: &ReadSet,
    read: &Read,
    guarded: bool,
) -> Result<u64, Stop> {
    if !load::reads(plan) {
        return match lease {
            Some(lease) if !lease.may_answer() => {
                Err(Stop::Error(StoreError::Unavailable(NOT_RENEWED.into())))
            }
            _ => Ok(0),
        };
    }
    let mut script = Script::default();
    if guarded && !read.absent.is_empty() {
        write::guard(&mut script, None, &read.absent);
    }
    script.statement("ROLLBACK");
    let before = script.len();
    if lease.is_some() {
        leases::select(&mut script);
    }
    let mut results = link.send(&script).map_err(|fault| undo(link, fault))?;
    results.skip(before);
    match lease {
        Some(lease) if leases::read_token(&mut results).map_err(Stop::Error)? != lease.token() => {
            Err(Stop::Error(lease.refused()))
        }
        _ => Ok(read.version.unwrap_or(0)),
    }
}

/// Reads what changes of boards and keys refer to, and writes them: in a separate message, because they are rare.
fn write_boards_and_keys(link: &mut Link, script: &mut Script, changes: &WriteSet) -> Result<(), Stop> {
    if changes.boards.is_empty() && changes.keys.is_empty() {
        return Ok(());
    }
    // The transaction begins with this message if nothing was read.
    let mut reads = std::mem::take(script);
    let before = reads.len();
    meta::lock_next_board(&mut reads);
    let of_boards = boards::select_present(&mut reads, &changes.boards);
    let of_keys = keys::select_present(&mut reads, &changes.keys);
    let mut results = link.send(&reads).map_err(|fault| undo(link, fault))?;
    results.skip(before);
    let mut write = || {
        let next = meta::read_next_board(&mut results)?;
        let present = boards::read_present(&mut results, of_boards)?;
        boards::write(script, &changes.boards, next, present)?;
        let present = keys::read_present(&mut results, of_keys)?;
        keys::write(script, &changes.keys, present)
    };
    write().map_err(|error| undo_because(link, error))
}

pub(super) struct FinalMessage<'a> {
    pub(super) version: Version,
    /// Whether it gives a revision.
    pub(super) revised: bool,
    /// What it leaves to publish.
    pub(super) unpublished: Option<&'a [u8]>,
    /// The boards that were assumed to be live without reading them; `Some` if anything is assumed.
    pub(super) assumed_live: Option<&'a [BoardNo]>,
}

/// Sends everything, with COMMIT at its end.
pub(super) fn commit(
    link: &mut Link,
    (pool, lease): (&Pool, Option<&Lease>),
    mut script: Script,
    &FinalMessage { version, revised, unpublished, assumed_live }: &FinalMessage<'_>,
) -> Result<Committed, Stop> {
    let batch = BatchId { link: link.name, sequence: link.sequence + 1, ..BatchId::default() };
    // Other servers treat a remaining row as not yet published.
    let (begun, settled) = pool.witnesses.begin(if lease.is_some() { batches::SETTLED_MIN } else { 1 });
    batches::delete(&mut script, &settled);
    let guard = script.len();
    batches::put(
        &mut script,
        &batch,
        (version, unpublished),
        lease.map(|lease| (lease.token(), assumed_live.unwrap_or_default())),
    );
    script.close();
    let last = script.len();
    let selects = revised || matches!(version, Version::Session);
    if selects {
        script.sql("SELECT ");
        version.put(&mut script);
        script.sql(if revised { ", @revision" } else { ", 0" }).end();
    }
    script.statement("COMMIT");
    let sent = link.send_end(&script);
    if sent.is_err() {
        pool.witnesses.settle(settled);
    }
    match sent {
        Ok(mut results) => {
            link.sequence = batch.sequence;
            results.skip(last);
            let (version, revision) = match version {
                Version::Number(number) if !selects => (number, 0),
                // A committed transaction is done, even if the database's clock cannot be read.
                _ => results.two_numbers("the version").unwrap_or_default(),
            };
            let outbox = unpublished.map(|_| batch);
            if outbox.is_some() {
                pool.witnesses.answered(batch, version, begun);
            } else {
                pool.witnesses.answered_and_settled(batch, version, begun);
            }
            Ok(Committed { version, revision, outbox })
        }
        Err(Fault::Lost(why)) => Err(Stop::InDoubt(batch, why)),
        Err(fault) if leases::is_rejection(&fault, guard) => Err(wrong_assumption(link, fault)),
        // A request that was done before, or a row that differs from its cached state.
        Err(fault @ Fault::Refused { code: fault::DUPLICATE | fault::NULL, .. })
            if assumed_live.is_some() =>
        {
            Err(wrong_assumption(link, fault))
        }
        // COMMIT itself, or a statement between it and the commit marker: the table `batches` has the outcome.
        Err(Fault::Refused { text, answered, code }) if answered >= last && !fault::is_conflict(code) => {
            Err(Stop::InDoubt(batch, text))
        }
        Err(fault) => Err(undo(link, fault)),
    }
}

fn wrong_assumption(link: &mut Link, fault: Fault) -> Stop {
    let mut script = Script::default();
    script.statement("ROLLBACK");
    match link.send(&script) {
        Ok(_) => Stop::WrongAssumption(fault),
        Err(fault) => undo(link, fault),
    }
}

fn undo(link: &mut Link, fault: Fault) -> Stop {
    if let Fault::Lost(why) = fault {
        return Stop::Lost(why);
    }
    if !fault.spares_link() && !matches!(fault, Fault::NotSent(_)) {
        link.give_up();
        return Stop::Error(fault.into());
    }
    let waited = matches!(fault, Fault::Refused { code: fault::LOCK_WAIT, .. });
    match undo_because(link, fault.into()) {
        Stop::Error(error) if waited => Stop::LockWait(error),
        stop => stop,
    }
}

fn undo_because(link: &mut Link, error: StoreError) -> Stop {
    let mut script = Script::default();
    script.statement("ROLLBACK");
    if link.send(&script).is_err() {
        link.give_up();
    }
    Stop::Error(error)
}
