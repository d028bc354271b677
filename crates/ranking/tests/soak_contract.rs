//! The suite of orders over memory.

mod contract;

ranking_contract! {
    memory: crate::contract::Memory,
}
