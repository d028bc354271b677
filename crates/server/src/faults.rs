//! Where a fault that ends a request or a command is logged, whichever door it came through.
//!
//! Not here: what the client is told, see `http/problem.rs` and `resp/error.rs`.

use tally_service::{Failure, Fault, damaged};

/// What a fault says inside is for the log.
pub(crate) fn log(failure: &Failure) {
    match failure {
        Failure::Refused(_) => {}
        // One for each request: a log that floods helps nobody, and both are counted.
        Failure::Fault(fault @ (Fault::Overloaded | Fault::Draining)) => {
            tracing::debug!(%fault, "a request was turned away");
        }
        // A damaged row is named once, however often it is asked for.
        Failure::Fault(Fault::Damaged(row)) => damaged::log(row),
        Failure::Fault(fault) => tracing::warn!(%fault, "a request met a fault"),
    }
}
