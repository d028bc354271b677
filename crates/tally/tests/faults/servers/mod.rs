//! Several servers on one database and one Redis, or a Redis Cluster: all of them are one service.
//!
//! Three servers of the real binary. Not here: the same on one server (every other test), and the contracts of the store and the
//! ranking (`store/tests`, `ranking/tests`). Nor periods, whose clock a test moves (`service/tests/use_cases/servers.rs`).

mod boards;
mod cluster;
mod contests;
mod disturbed;
mod identity;
mod lost;
mod members;
mod money;
mod secret;
mod series;
mod webhooks;
mod world;
