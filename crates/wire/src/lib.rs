//! The wire formats: JSON shapes, times, scores, cursors and problems, and the Redis protocol.
//!
//! These types are separate from those of the domain: clients depend on a shape, so it may not change because a rule did.
//! Everything works on bytes and values, so listeners, clients and tests share it. Not here: a runtime, sockets, permissions
//! and domain logic.

pub mod api;
pub mod cursor;
pub mod fields;
pub mod host;
pub mod numbers;
pub mod problem;
pub mod query;
pub mod resp;
pub mod time;

pub use fields::{FieldError, Fields};
pub use problem::Problem;
pub use query::Query;
