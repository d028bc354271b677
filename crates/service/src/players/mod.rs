//! Players: their profiles, their ranks, finding them, bans on a leaderboard, and erasing them everywhere.

pub mod erase;
pub mod profile;
pub mod ranks;
pub mod search;
mod spellings;
