//! The listeners: they parse requests, check the caller, apply limits and render answers. No rule lives here.
//!
//! `http/routes.rs` is the one list of what can be asked over HTTP, `resp/spec.rs` over the Redis
//! protocol; each operation or family of commands is one file. [`readiness`] says what the
//! service can do right now (loading, ready, draining), [`limits`] every bound, [`metrics`] what is counted, `traces` what is told of
//! followed requests. Not
//! here: use cases (crate `service`) and shapes of JSON (crate `wire`).

mod accept;
mod faults;
pub mod http;
pub mod limits;
mod listener;
pub mod metrics;
mod progress;
pub mod readiness;
pub mod resp;
mod security;
mod streams;
pub mod tls;
mod traces;
mod transport;
mod way;

pub use accept::ConnectionLimits;
pub use http::listen::{HttpServer, start};
pub use http::proxies::Network;
pub use limits::Limits;
pub use listener::{Listen, SocketFile, UnixSocket};
pub use readiness::{Finding, Readiness};
pub use security::Security;
pub use tls::Tls;
