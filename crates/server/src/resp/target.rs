//! The target of a key: a board, one of its periods, or nothing; and reads of it.

use super::args::Args;
use super::error::{self, ErrorReply};
use super::session::READ_ATTEMPTS;
use std::sync::Arc;
use tally_rules::definition::ScoreType;
use tally_rules::score::{from_f64, to_f64};
use tally_rules::{BoardId, Definition, PlayerId};
use tally_service::boards::Board;
use tally_service::periods::view::View;
use tally_service::scores::rankings::Rankings;
use tally_service::{ALL_TIME, Reads, Tally, damaged};
use tally_wire::resp::{Encoder, Protocol, Quota, number};
use tally_wire::time;

/// Separates a board from a period.
const PERIOD: u8 = b'@';
/// Above it not every integer is a double, so a text with a point or an exponent may mean another integer.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// The range of int64 as doubles.
const INT64: std::ops::Range<f64> = -9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0;

/// The target of a key.
#[derive(Debug)]
pub(super) enum KeyTarget {
    /// No board: it reads as an empty key.
    Missing,
    /// The all-time window of a board.
    Board(Arc<Board>),
    /// Another window of a board.
    View(View),
}

/// The context of the reads of one command.
pub(super) struct ReadContext<'a> {
    pub(super) tally: &'a Tally,
    pub(super) rankings: &'a Rankings<'a>,
    pub(super) protocol: Protocol,
    /// Whether this thread serves connections: a read that would block is [refused](error::WAITS) here.
    pub(super) serving: bool,
}

impl KeyTarget {
    /// The board of any window.
    pub(super) fn board(&self) -> Option<&Arc<Board>> {
        match self {
            Self::Missing => None,
            Self::Board(board) => Some(board),
            Self::View(view) => Some(&view.board),
        }
    }
}

/// A command that reads.
pub(super) type ReadCommand = fn(&ReadContext<'_>, Args<'_>, &mut Encoder<'_>) -> error::Result;

impl ReadContext<'_> {
    /// Runs a read and writes its reply or its error. Returns whether it could without waiting.
    pub(super) fn answer(&self, read: ReadCommand, args: Args<'_>, out: &mut Vec<u8>, quota: &Quota) -> bool {
        answer(out, self.protocol, quota, |to| read(self, args, to))
    }

    /// The target of a key.
    pub(super) fn target(&self, key: &[u8]) -> error::Result<KeyTarget> {
        let (name, period) = split(key)?;
        let found = name.map_or(Ok(None), |name| self.find(name))?;
        let Some(board) = found else { return Ok(KeyTarget::Missing) };
        if period.is_none() && board.definition.all_time {
            return Ok(KeyTarget::Board(board));
        }
        let view = View::find(&board, period, self.tally.now(), time::parse);
        Ok(view.map_or(KeyTarget::Missing, KeyTarget::View))
    }

    /// The board with this name. Another server may have created it a moment ago.
    fn find(&self, name: &str) -> error::Result<Option<Arc<Board>>> {
        let found = self.tally.boards.get(name);
        if found.is_none() {
            self.tally.boards.check_damaged(name).map_err(|rejection| error::of_rejection(&rejection))?;
        }
        let (None, true, Ok(id)) = (&found, self.tally.has_others(), BoardId::new(name)) else {
            return Ok(found);
        };
        if self.serving { Err(error::WAITS.into()) } else { Ok(self.tally.board(&id)) }
    }

    /// Reads the target of a key; `None` if there is none.
    pub(super) fn read_key<T>(
        &self,
        key: &[u8],
        with: impl FnOnce(&Definition, &dyn Reads) -> T,
    ) -> error::Result<Option<T>> {
        let target = self.target(key)?;
        self.read(&target, with)
    }

    pub(super) fn read<T>(
        &self,
        target: &KeyTarget,
        with: impl FnOnce(&Definition, &dyn Reads) -> T,
    ) -> error::Result<Option<T>> {
        match target {
            KeyTarget::Missing => Ok(None),
            KeyTarget::Board(board) => {
                if self.serving && board.ranking.waits() {
                    return Err(error::WAITS.into());
                }
                let read = self.rankings.read_board(board, |ranking| with(&board.definition, ranking));
                read.map(Some).map_err(|failure| match failure {
                    // The board was deleted during the read. A retry sees the current state.
                    _ if !self.tally.boards.has(board) => error::AGAIN.into(),
                    failure => error::of_failure(&failure),
                })
            }
            KeyTarget::View(view) => {
                let store = &*self.tally.store;
                if self.serving && view.blocks() {
                    return Err(error::WAITS.into());
                }
                let read = self.rankings.read(view, store, |ranking| with(&view.board.definition, ranking));
                read.map(Some).map_err(|failure| match failure {
                    _ if view.is_stale(store) || !self.tally.boards.has(&view.board) => error::AGAIN.into(),
                    failure => error::of_failure(&failure),
                })
            }
        }
    }

    /// Refuses a missing member if its stored row is corrupt.
    pub(super) fn check_missed(&self, key: &[u8], member: &[u8]) -> error::Result {
        let store = &*self.tally.store;
        let (true, Ok(player)) = (store.corrupt_row_count() > 0, player(member)) else { return Ok(()) };
        let target = self.target(key)?;
        let window = match &target {
            KeyTarget::View(view) => view.window(),
            _ => Some(ALL_TIME),
        };
        let noted = target.board().and_then(|board| damaged::noted(store, board, window, &player));
        match noted {
            None => Ok(()),
            Some(_) if self.serving => Err(error::WAITS.into()),
            Some(key) => damaged::check(store, key).map_err(|failure| error::of_failure(&failure)),
        }
    }

    /// Whether a key exists. A board that its first score created exists as long as it has players.
    pub(super) fn exists(&self, key: &[u8]) -> error::Result<bool> {
        Ok(match self.target(key)? {
            KeyTarget::Missing => false,
            KeyTarget::Board(board) => self.is_there(&board),
            KeyTarget::View(_) => true,
        })
    }

    /// The same for a board.
    pub(super) fn is_there(&self, board: &Board) -> bool {
        !board.is_implicit() || self.rankings.total_of_board(board) > 0
    }
}

/// Writes the reply of a command within a quota, and retries if an archive was rewritten during the read. Returns whether
/// it could without waiting.
pub(super) fn answer(
    out: &mut Vec<u8>,
    protocol: Protocol,
    quota: &Quota,
    mut run: impl FnMut(&mut Encoder<'_>) -> error::Result,
) -> bool {
    let start = out.len();
    for attempt in 1.. {
        let mut to = Encoder::within(out, protocol, quota);
        let done = if quota.is_used_up() { Err(error::TOO_LARGE.into()) } else { run(&mut to) };
        let whole = to.finish(done.is_ok());
        let Err(error) = done.and_then(|()| if whole { Ok(()) } else { Err(error::TOO_LARGE.into()) }) else {
            break;
        };
        out.truncate(start);
        if error == error::WAITS {
            return false;
        }
        if error != error::AGAIN || attempt == READ_ATTEMPTS {
            Encoder::new(out, protocol).error(error.as_bytes());
            break;
        }
    }
    true
}

/// Splits a key into the name of a board, if it can be one, and that of a period.
pub(super) fn split(key: &[u8]) -> error::Result<(Option<&str>, Option<&str>)> {
    let Ok(text) = std::str::from_utf8(key) else { return Ok((None, None)) };
    let Some(at) = key.iter().position(|byte| *byte == PERIOD) else { return Ok((Some(text), None)) };
    let (name, period) = (&text[..at], &text[at + 1..]);
    let (rule, which) = period.split_once(':').map_or((period, None), |(rule, which)| (rule, Some(which)));
    let word = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    let instant = |text: &str| {
        text == "previous"
            || text.starts_with(|first: char| first.is_ascii_digit())
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-:.+".contains(&byte))
    };
    if !word(rule) || !which.is_none_or(instant) {
        return Err(error::invalid_period(period));
    }
    Ok((Some(name), Some(period)))
}

/// The board id in a key, for writing.
pub(super) fn board_id(key: &[u8]) -> error::Result<BoardId> {
    if key.contains(&PERIOD) {
        split(key)?;
        return Err(error::READ_ONLY.into());
    }
    let text = std::str::from_utf8(key).map_err(|_| ErrorReply::from("ERR key must be UTF-8"))?;
    BoardId::new(text).map_err(|bad| format!("ERR key {}", bad.0).into())
}

/// The player id in a member.
pub(super) fn player(member: &[u8]) -> error::Result<PlayerId> {
    let text = std::str::from_utf8(member).map_err(|_| ErrorReply::from("ERR member must be UTF-8"))?;
    PlayerId::new(text).map_err(|bad| format!("ERR member {}", bad.0).into())
}

/// Parses a score into the stored form of this type.
pub(super) fn score(kind: ScoreType, text: &[u8]) -> error::Result<i64> {
    match kind {
        ScoreType::Float64 => number::score(text).and_then(from_f64).ok_or_else(|| error::NOT_A_FLOAT.into()),
        ScoreType::Int64 => number::integer(text)
            .or_else(|| {
                let value = number::score(text)?;
                (value.fract() == 0.0 && value.abs() <= EXACT_MAX).then_some(value as i64)
            })
            .ok_or_else(|| error::NOT_AN_INTEGER.into()),
    }
}

/// Writes a stored score of this type.
pub(super) fn write_score(to: &mut Encoder<'_>, kind: ScoreType, score: i64) {
    match kind {
        ScoreType::Float64 => to.double(to_f64(score)),
        ScoreType::Int64 => to.exact(score),
    }
}

/// A range of scores as an inclusive range of stored scores; `None` if it is empty.
pub(super) fn score_range(kind: ScoreType, min: &[u8], max: &[u8]) -> error::Result<Option<(i64, i64)>> {
    let error = || ErrorReply::from(error::NOT_A_RANGE);
    let low = bound(kind, min, false).ok_or_else(error)?;
    let high = bound(kind, max, true).ok_or_else(error)?;
    Ok(low.zip(high).filter(|(low, high)| low <= high))
}

/// One bound as the first or last stored score within it; the inner `None` if there is none.
fn bound(kind: ScoreType, text: &[u8], upper: bool) -> Option<Option<i64>> {
    let step = |value: i64, exclusive: bool| match (exclusive, upper) {
        (false, _) => Some(value),
        (true, false) => value.checked_add(1),
        (true, true) => value.checked_sub(1),
    };
    if kind == ScoreType::Float64 {
        let bound = number::bound(text)?;
        return Some(step(from_f64(bound.score)?, bound.exclusive));
    }
    let (exclusive, digits) = text.strip_prefix(b"(").map_or((false, text), |digits| (true, digits));
    if let Some(value) = number::integer(digits) {
        return Some(step(value, exclusive));
    }
    let bound = number::bound(text)?;
    // Rounded toward the inside. A bound outside int64 becomes the end of int64.
    let whole = if upper { bound.score.floor() } else { bound.score.ceil() };
    if !INT64.contains(&whole) {
        let outside = (whole > 0.0) != upper;
        return Some((!outside).then_some(if upper { i64::MAX } else { i64::MIN }));
    }
    Some(step(whole as i64, bound.exclusive && whole == bound.score))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_told_from_boards() {
        assert_eq!(split(b"goals"), Ok((Some("goals"), None)));
        assert_eq!(split(b"goals@weekly"), Ok((Some("goals"), Some("weekly"))));
        assert_eq!(split(b"goals@weekly:2026-11-16"), Ok((Some("goals"), Some("weekly:2026-11-16"))));
        for bad in ["goals@", "goals@weekly:", "goals@weekly:x y", "goals@a@b"] {
            let (_, period) = bad.split_once('@').unwrap();
            assert_eq!(split(bad.as_bytes()), Err(error::invalid_period(period)));
        }
        assert_eq!(board_id(b"goals@weekly"), Err(error::READ_ONLY.into()));
    }

    #[test]
    fn ranges_of_integers_are_exact() {
        let range = |min: &[u8], max: &[u8]| score_range(ScoreType::Int64, min, max).unwrap();
        assert_eq!(range(b"-inf", b"+inf"), Some((i64::MIN, i64::MAX)));
        assert_eq!(range(b"(9223372036854775806", b"inf"), Some((i64::MAX, i64::MAX)));
        assert_eq!(range(b"(9223372036854775807", b"inf"), None);
        assert_eq!(range(b"1.5", b"(4"), Some((2, 3)));
        assert_eq!(range(b"(1.5", b"3.5"), Some((2, 3)));
        assert_eq!(range(b"inf", b"inf"), None);
        assert_eq!(range(b"-1e30", b"1e30"), Some((i64::MIN, i64::MAX)));
        assert!(score_range(ScoreType::Int64, b"a", b"3").is_err());
    }
}
