//! The rules of money: stories in words, and random operations against a simple model.

mod credit;
mod origins;
mod reversals;
mod soak_model;
mod stories;
mod world;
