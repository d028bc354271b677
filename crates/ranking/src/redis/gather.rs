//! Readings of one partition that wait at the same time go out as one question.
//!
//! The same as with writes: what is asked while others are under way gathers, and goes when one of them is back. So a question
//! is as large as the load makes it, and nobody waits for others to come. Redis looks once whether its data is what we think
//! and runs one script, and here one answer is received, where there were as many as readers. Not a lane: nothing is committed,
//! any order will do, and a node that is silent holds up nobody but those who ask it.
//!
//! Only stretches gather ([`Script::Page`]): what asks for more at once asks for all of it already.

use super::RankingError;
use super::client::{Redis, Request, Shared};
use super::reply;
use super::script::Script;
use redis::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Questions under way at once: while one is answered the next is on its way.
const FLYING: usize = 2;
/// Readings in one question.
const READINGS: usize = 64;
/// Entries in one answer: Redis does nothing else meanwhile. One that asks for more goes alone.
const ENTRIES: usize = 1_000;
/// Arguments of a stretch in front of those that each reading has: widths of the part.
const COMMON: usize = 2;

/// What one reading hears.
type Heard = Result<Value, RankingError>;

/// The readings of one partition.
#[derive(Debug, Default)]
pub(super) struct Line {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<(Request, oneshot::Sender<Heard>)>,
    flying: usize,
}

impl Line {
    /// Whether requests of this kind can go together.
    pub(super) fn takes(request: &Request) -> bool {
        request.script == Script::Page
    }

    /// Asks one together with others. Without a thread that waits.
    pub(super) async fn ask(self: &Arc<Self>, redis: &Redis, request: Request) -> Heard {
        let (sender, receiver) = oneshot::channel();
        let sets_out = {
            let mut state = self.state();
            state.waiting.push_back((request, sender));
            let sets_out = state.flying < FLYING;
            state.flying += usize::from(sets_out);
            sets_out
        };
        if sets_out {
            let (line, shared) = (Arc::clone(self), Arc::clone(&redis.shared));
            redis.spawn(async move { line.fly(&shared).await });
        }
        receiver.await.unwrap_or_else(|_| Err(RankingError::Away("the request ended".into())))
    }

    /// Asks what waits, again and again, until nothing does.
    async fn fly(&self, shared: &Shared) {
        while let Some((request, readers)) = self.next() {
            let answers = shared.call(&request).await.and_then(|answer| each(answer, readers.len()));
            let answers = answers.unwrap_or_else(|error| vec![Err(error); readers.len()]);
            for (reader, answer) in readers.into_iter().zip(answers) {
                // Whoever has gone meanwhile hears nothing.
                drop(reader.send(answer));
            }
        }
    }

    /// What waits, as one question, and who hears the answers; nothing where nobody waits, and then one flies less.
    fn next(&self) -> Option<(Request, Vec<oneshot::Sender<Heard>>)> {
        let mut state = self.state();
        let Some((mut request, first)) = state.waiting.pop_front() else {
            state.flying -= 1;
            return None;
        };
        let mut readers = vec![first];
        while readers.len() < READINGS
            && let Some((next, reader)) = state
                .waiting
                .pop_front_if(|(next, _)| request.entries.saturating_add(next.entries) <= ENTRIES)
        {
            request.entries += next.entries;
            request.args.extend(next.args.into_iter().skip(COMMON));
            readers.push(reader);
        }
        Some((request, readers))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer of each reading, as if it had asked alone.
fn each(answer: Value, readers: usize) -> Result<Vec<Heard>, RankingError> {
    let answers = reply::list(answer)?;
    if answers.len() != readers {
        return Err(reply::strange("another number of stretches than was asked for"));
    }
    Ok(answers.into_iter().map(|answer| Ok(Value::Array(vec![answer]))).collect())
}
