//! Reads that wait for the store or for Redis: asked on threads that may wait, many at once, answered in order.
//!
//! A pipeline of reads costs little more than one of them: what asks Redis shares one connection. Not here: which reads
//! wait, see `target.rs`.

use super::error;
use std::collections::VecDeque;
use tally_service::Failure;
use tally_service::scores::orders::Orders;
use tally_service::scores::steps::ReadStep;
use tally_wire::resp::{Encoder, Protocol};
use tokio::task::JoinHandle;

/// Reads of one pipeline that are under way.
const AT_ONCE: usize = 32;

/// Reads, and the replies of those that have come back.
#[derive(Default)]
pub(super) struct Elsewhere {
    under_way: VecDeque<JoinHandle<Result<Vec<u8>, Failure>>>,
    replies: VecDeque<Vec<u8>>,
}

impl Elsewhere {
    /// Asks one more; waits for the oldest where too many are under way.
    pub(super) async fn ask(&mut self, mut question: ReadStep, protocol: Protocol) {
        if self.under_way.len() >= AT_ONCE {
            self.wait(protocol).await;
        }
        let ask = move || Ok(question.ask(&Orders::FREE));
        self.under_way.push_back(tokio::spawn(tally_service::blocking(ask)));
    }

    /// Waits for all.
    pub(super) async fn settle(&mut self, protocol: Protocol) {
        while !self.under_way.is_empty() {
            self.wait(protocol).await;
        }
    }

    /// The reply of the next one, in the order of asking.
    pub(super) fn next(&mut self) -> Vec<u8> {
        self.replies.pop_front().expect("it was settled")
    }

    async fn wait(&mut self, protocol: Protocol) {
        let Some(oldest) = self.under_way.pop_front() else { return };
        let failure = match oldest.await {
            Ok(Ok(reply)) => return self.replies.push_back(reply),
            Ok(Err(failure)) => failure,
            Err(panicked) => tally_service::Fault::Broken(panicked.to_string()).into(),
        };
        let mut out = Vec::new();
        Encoder::new(&mut out, protocol).error(error::of_failure(&failure).as_bytes());
        self.replies.push_back(out);
    }
}
