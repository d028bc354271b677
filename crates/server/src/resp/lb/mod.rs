//! Commands beyond Redis: leaderboards with ranks from 1, exact integers, periods and retries.

pub(super) mod create;
pub(super) mod read;
pub(super) mod submit;

use super::error;
use tally_wire::resp::number;

/// The maximum number of entries, players or positions of one command.
const COUNT_MAX: i64 = 1_000;

/// A count from 0 to 1000.
fn count(text: &[u8]) -> error::Result<usize> {
    let count = number::integer(text).filter(|count| (0..=COUNT_MAX).contains(count));
    count.and_then(|count| usize::try_from(count).ok()).ok_or_else(|| error::NOT_AN_INTEGER.into())
}
