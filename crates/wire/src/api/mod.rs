//! The shapes of requests and answers over HTTP, one file per thing.

pub mod holds;
pub mod imports;
pub mod keys;
pub mod leaderboards;
pub mod members;
pub mod players;
pub mod scores;
pub mod wallets;
