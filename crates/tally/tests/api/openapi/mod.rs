//! The OpenAPI document against the real binary: every documented answer is given, and no other.
//!
//! `schema` checks values, `document` responses. `operations`, `players`, `members`, `money`, `contests` and `webhooks` make every operation give every
//! documented answer. `random` sends requests made from the document, whole and spoilt. The list of routes is compared with the
//! document in `crates/server`.

mod contests;
mod document;
mod members;
mod money;
mod operations;
mod players;
mod random;
mod schema;
mod webhooks;
