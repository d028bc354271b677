//! Request coalescing: reads of one partition that wait at the same time become one query.
//!
//! As with writes, reads wait while others are in flight, and go out together when one of those returns. So a query is
//! as large as the load makes it, and no read waits for later ones. Redis checks its data once and runs one script, and
//! one answer is received instead of one for each read. This is not a lane: nothing is committed, order does not matter,
//! and a silent node delays only reads of its own.
//!
//! Only reads of entry ranges are coalesced ([`Script::Page`]). Others that need several answers send one query
//! already.

use super::RankingError;
use super::client::{Redis, Request, Shared};
use super::reply;
use super::script::Script;
use redis::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Queries of one partition in flight: while Redis answers one, the next is on its way.
const IN_FLIGHT_MAX: usize = 2;
/// Reads in one query.
const READS_MAX: usize = 64;
/// Entries in one answer, because Redis does nothing else meanwhile. A larger read goes alone.
const ENTRIES_MAX: usize = 1_000;
/// Arguments before those of each read: the widths of the window.
const COMMON_ARGS: usize = 2;

/// The answer to one read.
type QueryResult = Result<Value, RankingError>;

/// The waiting reads of one partition.
#[derive(Debug, Default)]
pub(super) struct ReadQueue {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<(Request, oneshot::Sender<QueryResult>)>,
    in_flight: usize,
}

impl ReadQueue {
    /// Whether requests of this kind are coalesced.
    pub(super) fn takes(request: &Request) -> bool {
        request.script == Script::Page
    }

    /// Sends a request together with others, without blocking a thread.
    pub(super) async fn read(self: &Arc<Self>, redis: &Redis, request: Request) -> QueryResult {
        let (sender, receiver) = oneshot::channel();
        let starts_query = {
            let mut state = self.state();
            state.waiting.push_back((request, sender));
            let starts_query = state.in_flight < IN_FLIGHT_MAX;
            state.in_flight += usize::from(starts_query);
            starts_query
        };
        if starts_query {
            let (queue, shared) = (Arc::clone(self), Arc::clone(&redis.shared));
            redis.spawn(async move { queue.send_waiting(&shared).await });
        }
        receiver.await.unwrap_or_else(|_| Err(RankingError::Unavailable("the request ended".into())))
    }

    /// Sends waiting requests until there are none.
    async fn send_waiting(&self, shared: &Shared) {
        while let Some((request, readers)) = self.next() {
            let answers = shared.call(&request).await.and_then(|answer| split_answer(answer, readers.len()));
            let answers = answers.unwrap_or_else(|error| vec![Err(error); readers.len()]);
            for (reader, answer) in readers.into_iter().zip(answers) {
                // A reader that was dropped meanwhile gets nothing.
                drop(reader.send(answer));
            }
        }
    }

    /// The waiting requests as one query, with their readers. If there are none, returns `None` and counts one query
    /// less in flight.
    fn next(&self) -> Option<(Request, Vec<oneshot::Sender<QueryResult>>)> {
        let mut state = self.state();
        let Some((mut request, first)) = state.waiting.pop_front() else {
            state.in_flight -= 1;
            return None;
        };
        let mut readers = vec![first];
        while readers.len() < READS_MAX
            && let Some((next, reader)) = state
                .waiting
                .pop_front_if(|(next, _)| request.entries.saturating_add(next.entries) <= ENTRIES_MAX)
        {
            request.entries += next.entries;
            request.args.extend(next.args.into_iter().skip(COMMON_ARGS));
            readers.push(reader);
        }
        Some((request, readers))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer to each read, as if it had been sent alone.
fn split_answer(answer: Value, readers: usize) -> Result<Vec<QueryResult>, RankingError> {
    let answers = reply::list(answer)?;
    if answers.len() != readers {
        return Err(reply::strange("another number of entry ranges than was requested"));
    }
    Ok(answers.into_iter().map(|answer| Ok(Value::Array(vec![answer]))).collect())
}
