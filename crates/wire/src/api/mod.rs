//! The JSON shapes of requests and replies over HTTP, one file per resource.

pub mod archives;
pub mod audit;
pub mod contests;
mod credits;
pub mod currency;
pub mod events;
pub mod holds;
pub mod imports;
pub mod keys;
pub mod leaderboards;
pub mod ledger_imports;
pub mod members;
pub mod metadata;
pub mod players;
pub mod row_key;
pub mod scores;
pub mod wallets;
pub mod webhooks;
