//! The commands of Redis on sorted sets.
//!
//! Members ascend by score on every board: position 0 is the lowest score, which on an ascending board is the best. The tie
//! rule orders equal scores: by the bytes of the members on a board that a score has created.

pub(super) mod add;
pub(super) mod range;
pub(super) mod remove;
pub(super) mod scan;
pub(super) mod score;

use tally_rules::definition::{Definition, Order};

/// Converts a position from the best into one from the lowest score, or back.
fn reversed_position(definition: &Definition, place: u64, total: u64) -> u64 {
    match definition.order {
        Order::Ascending => place,
        Order::Descending => total - 1 - place,
    }
}
