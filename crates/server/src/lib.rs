//! The listeners: they parse requests, check the caller, apply limits and render responses. No rule lives here.
//!
//! `http/routes.rs` is the only list of HTTP routes, and `resp/spec.rs` the only list of commands of the Redis protocol.
//! Each operation or family of commands is one file. [`readiness`] is the readiness gate, [`limits`] has every limit,
//! [`metrics`] the metrics, `traces` the spans of sampled requests. Not here: use cases (crate `service`) and shapes of
//! JSON (crate `wire`).

mod accept;
mod faults;
pub mod http;
pub mod limits;
mod listener;
mod log_lines;
mod machine;
pub mod metrics;
mod progress;
pub mod readiness;
pub mod resp;
mod responses;
mod security;
mod slow_requests;
mod streams;
pub mod tls;
mod traces;
mod transport;
mod trust;
mod webhooks;

pub use accept::ConnectionLimits;
pub use http::follow::CHANGES_PATH;
pub use http::forward::{Forwarder, ForwarderSettings};
pub use http::listen::{HttpServer, OperatorServer, start, start_for_operators};
pub use http::proxies::Network;
pub use limits::{HttpLimits, KeysRequired};
pub use listener::{Listen, SocketFile, UnixSocket};
pub use log_lines::{LOG_LINES, LogLines};
pub use machine::Machine;
pub use readiness::{Finding, Readiness};
pub use security::Security;
pub use tls::Tls;
pub use webhooks::{WebhookClient, WebhookSettings};
