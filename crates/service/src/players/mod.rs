//! Players: their profiles, hiding them on a board, and erasing them everywhere.

pub mod erase;
pub mod profile;
