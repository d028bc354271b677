//! Every backend of a ranking under one contract: memory, Redis 7, Valkey 9, and a cluster of three nodes with split boards. Also
//! the tests of a single backend.

mod archive;
mod contract;
mod redis_claims;
mod redis_faults;
mod redis_gather;
mod redis_nodes;
mod redis_scripts;
mod redis_watch;

ranking_contract! {
    memory: crate::contract::Memory,
    redis: crate::contract::redis::Redis7,
    valkey: crate::contract::redis::Valkey9,
    cluster: crate::contract::redis::Cluster,
}
