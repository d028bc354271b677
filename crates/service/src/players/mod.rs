//! Players: their profiles, bans on a leaderboard, and erasing them everywhere.

pub mod erase;
pub mod profile;
