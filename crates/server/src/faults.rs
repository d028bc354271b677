//! The log of a fault that ends a request or a command of any protocol.
//!
//! Not here: what the client gets, see `http/problem.rs` and `resp/error.rs`.

use tally_service::{Failure, Fault, damaged};

/// Logs a fault. Its internal details are only for the log.
pub(crate) fn log(failure: &Failure) {
    match failure {
        Failure::Rejected(_) => {}
        // A warning for each request would flood the log, and both are counted.
        Failure::Fault(fault @ (Fault::Overloaded | Fault::Draining)) => {
            tracing::debug!(%fault, "a request was refused");
        }
        // A corrupt row is logged once, however often it is read.
        Failure::Fault(Fault::Damaged(row)) => damaged::log(row),
        Failure::Fault(fault) => tracing::warn!(%fault, "a request met a fault"),
    }
}
