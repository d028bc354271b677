//! Keys: `EXISTS`, `TYPE`, `DEL`, `UNLINK`, `KEYS`, `SCAN`, `DBSIZE`.

use super::args::Args;
use super::error;
use super::pattern::Pattern;
use super::run::{Prepared, StepBuilder};
use super::session::Session;
use super::shape::Shape;
use super::target::{ReadContext, board_id};
use std::sync::Arc;
use tally_rules::{Origin, Rejection};
use tally_service::boards::{self, Board};
use tally_service::scores::select::RankSelection;
use tally_service::scores::steps::{PipelineStep, TAKE_ALL_MAX};
use tally_service::{BoardNo, Failure, blocking};
use tally_wire::resp::{Encoder, number};

/// The number of boards that `SCAN` reads without `COUNT`, as in Redis.
const COUNT_DEFAULT: usize = 10;
/// The maximum number of boards or members that one call reads.
const COUNT_MAX: usize = 100_000;
/// The maximum number of names that `KEYS` returns; `SCAN` has no such limit.
const KEYS_MAX: usize = 1_000_000;
/// The work of visiting a board or a member, see [`Encoder::work`].
pub(super) const VISIT_BYTES: usize = 32;

/// `EXISTS key [key …]`
pub(super) fn exists(context: &ReadContext<'_>, args: Args<'_>, to: &mut Encoder<'_>) -> error::Result {
    let mut count = 0;
    for key in args.from(1) {
        count += i64::from(context.exists(key)?);
    }
    to.integer(count);
    Ok(())
}

/// `TYPE key`
pub(super) fn kind(context: &ReadContext<'_>, args: Args<'_>, to: &mut Encoder<'_>) -> error::Result {
    to.simple(if context.exists(args.get(1))? { "zset" } else { "none" });
    Ok(())
}

/// `DBSIZE`
pub(super) fn dbsize(context: &ReadContext<'_>, _: Args<'_>, to: &mut Encoder<'_>) -> error::Result {
    let boards = context.tally.boards.from_no(BoardNo(0), usize::MAX);
    to.work(boards.len() * VISIT_BYTES);
    to.integer(boards.iter().filter(|board| context.is_there(board)).count() as i64);
    Ok(())
}

/// `KEYS pattern`
pub(super) fn keys(context: &ReadContext<'_>, args: Args<'_>, to: &mut Encoder<'_>) -> error::Result {
    let boards = context.tally.boards.from_no(BoardNo(0), usize::MAX);
    to.work(boards.len() * VISIT_BYTES);
    let pattern = Pattern::new(args.get(1));
    let meant = |board: &&Arc<Board>| pattern.fits(board.id.as_str().as_bytes());
    let names: Vec<&Arc<Board>> =
        boards.iter().filter(meant).filter(|board| context.is_there(board)).take(KEYS_MAX).collect();
    to.array(names.len());
    names.iter().for_each(|board| to.bulk(board.id.as_str()));
    Ok(())
}

/// `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`
pub(super) fn scan(context: &ReadContext<'_>, args: Args<'_>, to: &mut Encoder<'_>) -> error::Result {
    let scan = Scan::read(args, 1)?;
    let from = u32::try_from(scan.cursor).map(BoardNo);
    let boards = from.map_or_else(|_| Vec::new(), |from| context.tally.boards.from_no(from, scan.count));
    to.work(boards.len() * VISIT_BYTES);
    let next =
        boards.last().filter(|_| boards.len() == scan.count).map_or(0, |last| u64::from(last.no.0) + 1);
    let meant = |board: &&Arc<Board>| {
        let name = board.id.as_str().as_bytes();
        scan.sorted_sets && scan.pattern.as_ref().is_none_or(|pattern| pattern.fits(name))
    };
    let names: Vec<&Arc<Board>> =
        boards.iter().filter(meant).filter(|board| context.is_there(board)).collect();
    to.array(2);
    to.bulk(next.to_string());
    to.array(names.len());
    names.iter().for_each(|board| to.bulk(board.id.as_str()));
    Ok(())
}

/// The options of `SCAN` and `ZSCAN`.
pub(super) struct Scan {
    pub(super) cursor: u64,
    pub(super) pattern: Option<Pattern>,
    pub(super) count: usize,
    /// Whether `TYPE` matches sorted sets, the only type here.
    sorted_sets: bool,
}

impl Scan {
    /// Reads the cursor at an argument, and the options after it.
    pub(super) fn read(args: Args<'_>, at: usize) -> error::Result<Self> {
        let cursor = std::str::from_utf8(args.get(at)).ok().and_then(|text| text.parse().ok());
        let cursor = cursor.ok_or("ERR invalid cursor")?;
        let mut scan = Self { cursor, pattern: None, count: COUNT_DEFAULT, sorted_sets: true };
        for word in (at + 1..args.len()).step_by(2) {
            if word + 1 >= args.len() {
                return Err(error::SYNTAX.into());
            }
            let value = args.get(word + 1);
            if args.is(word, "match") {
                scan.pattern = Some(Pattern::new(value));
            } else if args.is(word, "count") {
                let count = number::integer(value).ok_or(error::NOT_AN_INTEGER)?;
                let count = usize::try_from(count).ok().filter(|count| *count > 0).ok_or(error::SYNTAX)?;
                scan.count = count.min(COUNT_MAX);
            } else if at == 1 && args.is(word, "type") {
                scan.sorted_sets = value.eq_ignore_ascii_case(b"zset");
            } else {
                return Err(error::SYNTAX.into());
            }
        }
        Ok(scan)
    }
}

/// Deletes boards as over HTTP, and replies with their number.
pub(super) async fn delete(session: &Session, args: Args<'_>, to: &mut Encoder<'_>) -> error::Result {
    let tally = session.tally()?;
    let by = Origin::from(session.require_caller()?.actor);
    let mut count = 0;
    for key in args.from(1) {
        let id = match board_id(key) {
            Ok(id) => id,
            Err(error) if key.contains(&b'@') => return Err(error),
            Err(_) => continue,
        };
        let (owner, origin) = (Arc::clone(tally), by.clone());
        match blocking(move || boards::delete(&owner, &id, &origin, None)).await {
            Ok(_) => count += 1,
            Err(Failure::Rejected(Rejection::LeaderboardNotFound(_))) => {}
            Err(failure) => return Err(error::of_failure(&failure)),
        }
    }
    to.integer(count);
    Ok(())
}

/// The same within a transaction. A board that a score has created is deleted with its last member.
pub(super) fn delete_in_transaction(
    builder: &mut StepBuilder<'_>,
    args: Args<'_>,
) -> error::Result<Prepared> {
    let mut steps = Vec::new();
    for key in args.from(1) {
        let id = match board_id(key) {
            Ok(id) => id,
            Err(error) if key.contains(&b'@') => return Err(error),
            Err(_) => continue,
        };
        let Some(board) = builder.tally.board(&id) else { continue };
        if !board.is_implicit() {
            return Err(
                "ERR a leaderboard made by PUT or LB.CREATE cannot be deleted in a transaction".into()
            );
        }
        let which = RankSelection::Places(0, -1, TAKE_ALL_MAX + 1);
        steps.push(PipelineStep::Take { board, which, all: true });
    }
    if steps.is_empty() {
        return Ok(Prepared::Reply(|to| to.integer(0)));
    }
    Ok(Prepared::Steps(steps, Shape::Deleted))
}
