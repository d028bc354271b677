//! The suite of orders over memory, Redis 7, Valkey 9 and a cluster of three nodes with split boards.

mod contract;

ranking_contract! {
    memory: crate::contract::Memory,
    redis: crate::contract::redis::Redis7,
    valkey: crate::contract::redis::Valkey9,
    cluster: crate::contract::redis::Cluster,
}
