//! Redis' own commands on sorted sets.
//!
//! Members ascend by score, whatever the order of the board: place 0 is the lowest score, and on an ascending board that
//! is the best. One score has its members in the order of its ties: by their bytes on a board that a score has made.

pub(super) mod add;
pub(super) mod range;
pub(super) mod remove;
pub(super) mod scan;
pub(super) mod score;

use tally_rules::definition::{Definition, Order};

/// The place from the best that is this place from the lowest score, or the other way round.
fn turned(definition: &Definition, place: u64, total: u64) -> u64 {
    match definition.order {
        Order::Ascending => place,
        Order::Descending => total - 1 - place,
    }
}
