//! The shapes of requests and answers over HTTP, one file per thing.

pub mod contests;
pub mod events;
pub mod holds;
pub mod imports;
pub mod keys;
pub mod leaderboards;
pub mod ledger_imports;
pub mod members;
pub mod players;
pub mod scores;
pub mod wallets;
