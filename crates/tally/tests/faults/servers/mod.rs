//! Several servers on one database and one Redis, or a Redis Cluster: whoever is asked, it is one service.
//!
//! Three servers of the real binary. Not here: the same on one server (every other test), what the store and the order
//! promise each other (`store/tests`, `ranking/tests`), and periods, whose clock a test moves (`service/tests/use_cases/servers.rs`).

mod boards;
mod cluster;
mod contests;
mod disturbed;
mod lost;
mod members;
mod money;
mod series;
mod world;
