//! One transaction: read and lock, decide, write and commit, in two messages.
//!
//! A plan that reads nothing is one message. Changes of boards or keys, which are rare, take one more: they refer to what
//! is there. An answer that is lost at COMMIT is looked for at once on a new connection; only when the database cannot
//! be reached does the caller hear that nobody knows. What was certainly not done on a connection that had lain idle is
//! begun again, once, on a new one. A relaxed plan is as durable as any other. Not here: any other retry; the lanes
//! have it.

use super::batches::{self, Batch};
use super::fault::{self, Fault};
use super::lease::Lease;
use super::leases;
use super::link::Link;
use super::load::{self, Read};
use super::pool::Pool;
use super::row::{Answers, Fields};
use super::text::Script;
use super::{CLOCK, Version, boards, check, keys, marks, meta, revisions, write};
use crate::StoreError;
use crate::plan::{BatchId, Changes, Committed, Loaded, Plan};
use std::sync::atomic::Ordering;

/// Why a transaction that would not ask the database cannot be answered.
const NOT_RENEWED: &str = "the lease of the one writer is not renewed";

/// Why a transaction did not end well.
enum Stop {
    /// It was not done, and the caller hears why.
    Error(StoreError),
    /// The connection was lost before COMMIT was sent.
    Lost(String),
    /// The connection was lost when COMMIT was out.
    LostAtCommit(Batch, String),
}

/// See [`crate::Store::run`].
pub(super) fn run(
    (pool, lease): (&Pool, Option<&Lease>),
    plan: &Plan,
    decide: &mut dyn FnMut(&Loaded) -> Changes,
) -> Result<Committed, StoreError> {
    plan.assert_sorted();
    lease.map_or(Ok(()), Lease::check)?;
    let mut link = pool.take()?;
    let mut may_begin_again = !link.new;
    loop {
        let done = attempt(link.get(), (pool, lease), plan, decide);
        // Gives it back, or closes it where it is broken.
        drop(link);
        let why = match done {
            Ok(committed) => return Ok(committed),
            Err(Stop::Error(error)) => return Err(error),
            Err(Stop::Lost(why)) => why,
            Err(Stop::LostAtCommit(batch, why)) => match found_out(pool, batch, &why)? {
                Some(version) => {
                    return Ok(Committed { version, marked: Some(batch), ..Committed::default() });
                }
                None => why,
            },
        };
        if !std::mem::take(&mut may_begin_again) {
            return Err(StoreError::Away(why));
        }
        pool.stats.again.fetch_add(1, Ordering::Relaxed);
        link = pool.take_new()?;
    }
}

/// What became of a commit whose answer was lost, where that can be said at once.
fn found_out(pool: &Pool, batch: BatchId, why: &str) -> Result<Option<u64>, StoreError> {
    pool.stats.lost.fetch_add(1, Ordering::Relaxed);
    pool.became(&batch).map_err(|error| {
        pool.stats.unresolved.fetch_add(1, Ordering::Relaxed);
        StoreError::LostAtCommit { batch, why: format!("{why}; then {error}") }
    })
}

/// Does it on this connection, and leaves the connection without a transaction, or broken.
fn attempt(
    link: &mut Link,
    at: (&Pool, Option<&Lease>),
    plan: &Plan,
    decide: &mut dyn FnMut(&Loaded) -> Changes,
) -> Result<Committed, Stop> {
    let done = transact(link, at, plan, decide);
    if matches!(done, Err(Stop::Lost(_) | Stop::LostAtCommit(..))) {
        link.give_up();
    }
    done
}

fn transact(
    link: &mut Link,
    (pool, lease): (&Pool, Option<&Lease>),
    plan: &Plan,
    decide: &mut dyn FnMut(&Loaded) -> Changes,
) -> Result<Committed, Stop> {
    let mut guarded = false;
    let (mut script, read) = if load::reads(plan) {
        let asked = load::ask(plan);
        let answers = link.send(&asked.script).map_err(|fault| undo(link, fault))?;
        let read = asked.read(answers, plan).map_err(|error| undo_because(link, error))?;
        guarded = asked.in_several_statements();
        (Script::default(), read)
    } else {
        let mut script = Script::default();
        script.statement("START TRANSACTION");
        script.sql("SET @version = ").sql(CLOCK).end();
        (script, Read::default())
    };
    read.loaded.assert_answers(plan);
    let changes = decide(&read.loaded);
    changes.assert_sorted();
    if changes.is_empty() {
        let version = nothing((link, lease), plan, &read, guarded)?;
        return Ok(Committed { version, ..Committed::default() });
    }
    check::changes(&changes).map_err(|error| undo_because(link, error))?;
    let version = read.version.map_or(Version::Session, Version::Number);
    directory(link, &mut script, &changes)?;
    write::rows(&mut script, &changes, &read.absent, (link.server.flavour, version));
    let revised = revisions::bump(&mut script, &changes);
    let marks = plan.marks.then(|| marks::of(&changes)).flatten();
    commit(link, (pool, lease), script, (version, revised, marks.as_deref()))
}

/// Ends a transaction that changes nothing. What was there was locked while the rest was read; what was not there may
/// have come between two statements, so it is looked at once more. Where the lease is ours afterwards, it was all along.
fn nothing(
    (link, lease): (&mut Link, Option<&Lease>),
    plan: &Plan,
    read: &Read,
    guarded: bool,
) -> Result<u64, Stop> {
    if !load::reads(plan) {
        return match lease {
            Some(lease) if !lease.may_answer() => Err(Stop::Error(StoreError::Away(NOT_RENEWED.into()))),
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
    let mut answers = link.send(&script).map_err(|fault| undo(link, fault))?;
    answers.skip(before);
    match lease {
        Some(lease) if leases::read_fence(&mut answers).map_err(Stop::Error)? != lease.fence() => {
            Err(Stop::Error(lease.refused()))
        }
        _ => Ok(read.version.unwrap_or(0)),
    }
}

/// Reads what changes of boards and keys refer to, and writes them: in a message of its own, and rarely.
fn directory(link: &mut Link, script: &mut Script, changes: &Changes) -> Result<(), Stop> {
    if changes.boards.is_empty() && changes.keys.is_empty() {
        return Ok(());
    }
    // Where nothing was read the transaction begins with this message.
    let mut asking = std::mem::take(script);
    let before = asking.len();
    meta::lock_next_board(&mut asking);
    let of_boards = boards::select_present(&mut asking, &changes.boards);
    let of_keys = keys::select_present(&mut asking, &changes.keys);
    let mut answers = link.send(&asking).map_err(|fault| undo(link, fault))?;
    answers.skip(before);
    let mut write = || {
        let next = meta::read_next_board(&mut answers)?;
        let present = boards::read_present(&mut answers, of_boards)?;
        boards::write(script, &changes.boards, next, present)?;
        let present = keys::read_present(&mut answers, of_keys)?;
        keys::write(script, &changes.keys, present)
    };
    write().map_err(|error| undo_because(link, error))
}

/// Sends everything with COMMIT at its end.
fn commit(
    link: &mut Link,
    (pool, lease): (&Pool, Option<&Lease>),
    mut script: Script,
    (version, revised, marks): (Version, bool, Option<&[u8]>),
) -> Result<Committed, Stop> {
    let batch = BatchId { link: link.name, sequence: link.sequence + 1 };
    let settled = pool.take_settled();
    batches::delete(&mut script, &settled);
    let guard = script.len();
    batches::put(&mut script, &batch, (version, marks), lease.map(Lease::fence));
    script.sql("SELECT ");
    version.put(&mut script);
    script.sql(if revised { ", @revision" } else { ", 0" }).end();
    script.statement("COMMIT");
    let statements = script.len();
    let sent = link.send(&script);
    if sent.is_err() {
        pool.give_back_settled(settled);
    }
    match sent {
        Ok(mut answers) => {
            link.sequence = batch.sequence;
            answers.skip(statements - 2);
            let marked = marks.map(|_| batch);
            if marked.is_none() {
                pool.settled(batch);
            }
            // Done is done, whatever the database says of its clock.
            let (version, revision) = versions(&mut answers).unwrap_or_default();
            Ok(Committed { version, revision, marked })
        }
        Err(Fault::Lost(why)) => Err(Stop::LostAtCommit(batch, why)),
        Err(fault) if leases::is_refusal(&fault, guard) => Err(undo_because(link, refused(lease, fault))),
        // COMMIT itself, or the statement before it: the table of batches knows.
        Err(Fault::Refused { text, answered, code })
            if answered + 2 >= statements && !fault::is_conflict(code) =>
        {
            Err(Stop::LostAtCommit(batch, text))
        }
        Err(fault) => Err(undo(link, fault)),
    }
}

fn versions(answers: &mut Answers) -> Result<(u64, u64), StoreError> {
    let rows = answers.rows();
    let row = rows.first().ok_or_else(|| fault::corrupt("the version", "a row is missing"))?;
    let mut row = Fields::new("the version", row);
    Ok((row.number()?, row.number()?))
}

/// The lease was not ours.
fn refused(lease: Option<&Lease>, fault: Fault) -> StoreError {
    lease.map_or_else(|| fault.into(), Lease::refused)
}

/// Undoes what a fault left open.
fn undo(link: &mut Link, fault: Fault) -> Stop {
    if let Fault::Lost(why) = fault {
        return Stop::Lost(why);
    }
    if !fault.spares_link() && !matches!(fault, Fault::Unsaid(_)) {
        link.give_up();
        return Stop::Error(fault.into());
    }
    undo_because(link, fault.into())
}

fn undo_because(link: &mut Link, error: StoreError) -> Stop {
    let mut script = Script::default();
    script.statement("ROLLBACK");
    if link.send(&script).is_err() {
        link.give_up();
    }
    Stop::Error(error)
}
