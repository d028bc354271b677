//! What goes over the wire: JSON shapes, times, scores, cursors and problems, and the Redis protocol.
//!
//! Types that users see are here and are not the types of the domain: a shape is a promise to strangers and may not
//! change because a rule did. Everything works on bytes and values, so doors, clients and tests share it. Not here: a
//! runtime, sockets, rights and domain logic.

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
