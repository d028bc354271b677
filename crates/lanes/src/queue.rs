//! The queue between callers and a lane: a bounded buffer behind a lock that is held only briefly.
//!
//! The lane takes *all* waiting requests with one exchange of buffers and cuts its batch outside the lock. The rest stays
//! in the lane's inbox. So callers never wait for a long copy. Requests in the inbox still count as queued.
//! A caller wakes the lane only if it sleeps, and of many callers one does: a busy lane costs its callers no system call.
//! Nothing that can panic runs under the lock: weights are computed before it, requests and replies dropped after it.

use crate::batch::{LaneLimits, Waiting};
use crate::stats::Stats;
use crate::sync::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::fmt;

/// Why a lane did not accept a request. Contains the request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SubmitError<T> {
    /// The queue is full. A later attempt may succeed.
    Full(T),
    /// The lane accepts no more requests: it drains, has ended, or its thread has panicked.
    Draining(T),
}

impl<T> SubmitError<T> {
    /// The refused request.
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(given) | Self::Draining(given) => given,
        }
    }

    /// The same refusal with other content.
    pub(crate) fn map<U>(self, with: impl FnOnce(T) -> U) -> SubmitError<U> {
        match self {
            Self::Full(given) => SubmitError::Full(with(given)),
            Self::Draining(given) => SubmitError::Draining(with(given)),
        }
    }
}

impl<T> fmt::Debug for SubmitError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full",
            Self::Draining(_) => "Draining",
        })
    }
}

impl<T> fmt::Display for SubmitError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "the lane's queue is full",
            Self::Draining(_) => "the lane takes no more work",
        })
    }
}

impl<T> std::error::Error for SubmitError<T> {}

/// What the lane finds in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueState {
    /// The inbox has requests, and more may come.
    Requests,
    /// The inbox has the last requests; no more will come.
    LastRequests,
    /// The inbox is empty, for now.
    Nothing,
    /// The inbox is empty, and no more requests will come.
    End,
}

/// The part of a lane that callers and its thread share.
pub(crate) struct Queue<Q, R> {
    state: Mutex<State<Q, R>>,
    requests_came: Condvar,
    requests_max: u64,
    bytes_max: u64,
}

struct State<Q, R> {
    waiting: VecDeque<Waiting<Q, R>>,
    /// In `waiting` and in the lane's inbox.
    queued_requests: u64,
    queued_bytes: u64,
    draining: bool,
    /// The lane sleeps, and no caller has woken it yet.
    asleep: bool,
    refused_full: u64,
    refused_draining: u64,
}

impl<Q, R> Queue<Q, R> {
    pub(crate) fn new(bounds: &LaneLimits) -> Self {
        let state = State {
            waiting: VecDeque::new(),
            queued_requests: 0,
            queued_bytes: 0,
            draining: false,
            asleep: false,
            refused_full: 0,
            refused_draining: 0,
        };
        Self {
            state: Mutex::new(state),
            requests_came: Condvar::new(),
            requests_max: bounds.queue_requests_max as u64,
            bytes_max: bounds.queue_bytes_max as u64,
        }
    }

    /// Adds one request.
    pub(crate) fn push(&self, one: Waiting<Q, R>) -> Result<(), SubmitError<Waiting<Q, R>>> {
        let bytes = u64::from(one.weight.bytes);
        self.admit(1, bytes, one, |state, one| state.waiting.push_back(one))
    }

    /// Adds all of `many` as neighbours, or none.
    pub(crate) fn push_all(&self, many: Vec<Waiting<Q, R>>) -> Result<(), SubmitError<Vec<Waiting<Q, R>>>> {
        let bytes = many.iter().map(|one| u64::from(one.weight.bytes)).sum();
        self.admit(many.len() as u64, bytes, many, |state, many| state.waiting.extend(many))
    }

    /// The only place that adds to the queue.
    fn admit<T>(
        &self,
        requests: u64,
        bytes: u64,
        given: T,
        put: impl FnOnce(&mut State<Q, R>, T),
    ) -> Result<(), SubmitError<T>> {
        let mut state = self.lock();
        if state.draining {
            state.refused_draining += requests;
            return Err(SubmitError::Draining(given));
        }
        // An empty queue accepts a request of any weight: otherwise it could never succeed. The caller bounds its size.
        let over = state.queued_requests + requests > self.requests_max
            || state.queued_bytes + bytes > self.bytes_max;
        if over && state.queued_requests > 0 {
            state.refused_full += requests;
            return Err(SubmitError::Full(given));
        }
        state.queued_requests += requests;
        state.queued_bytes += bytes;
        put(&mut state, given);
        let wake = std::mem::take(&mut state.asleep);
        drop(state);
        if wake {
            self.requests_came.notify_one();
        }
        Ok(())
    }

    /// Moves all waiting requests to the end of `inbox`. Sleeps while there are none and more may come.
    pub(crate) fn collect(&self, inbox: &mut VecDeque<Waiting<Q, R>>) -> QueueState {
        let mut state = self.lock();
        while inbox.is_empty() && state.waiting.is_empty() && !state.draining {
            state.asleep = true;
            state = self.requests_came.wait(state).expect("nothing panics under this lock");
        }
        state.asleep = false;
        state.hand_over(inbox)
    }

    /// Like [`collect`](Self::collect), without sleeping.
    pub(crate) fn collect_now(&self, inbox: &mut VecDeque<Waiting<Q, R>>) -> QueueState {
        self.lock().hand_over(inbox)
    }

    /// Subtracts requests that have left the inbox.
    pub(crate) fn left(&self, requests: usize, bytes: usize) {
        let mut state = self.lock();
        state.queued_requests -= requests as u64;
        state.queued_bytes -= bytes as u64;
    }

    /// Refuses further requests, and wakes the lane.
    pub(crate) fn drain(&self) {
        let mut state = self.lock();
        state.draining = true;
        let wake = std::mem::take(&mut state.asleep);
        drop(state);
        if wake {
            self.requests_came.notify_one();
        }
    }

    /// Refuses further requests and drops the waiting ones, replies unsent. For a lane whose thread has panicked.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.draining = true;
        state.queued_requests = 0;
        state.queued_bytes = 0;
        let orphans = std::mem::take(&mut state.waiting);
        drop(state);
        drop(orphans);
    }

    /// Fills in the counters of the queue.
    pub(crate) fn read_into(&self, stats: &mut Stats) {
        let state = self.lock();
        stats.queued_requests = state.queued_requests;
        stats.queued_bytes = state.queued_bytes;
        stats.refused_full = state.refused_full;
        stats.refused_draining = state.refused_draining;
    }

    fn lock(&self) -> MutexGuard<'_, State<Q, R>> {
        self.state.lock().expect("nothing panics under this lock")
    }
}

impl<Q, R> State<Q, R> {
    fn hand_over(&mut self, inbox: &mut VecDeque<Waiting<Q, R>>) -> QueueState {
        if inbox.is_empty() {
            std::mem::swap(&mut self.waiting, inbox);
        } else {
            inbox.append(&mut self.waiting);
        }
        match (inbox.is_empty(), self.draining) {
            (false, false) => QueueState::Requests,
            (false, true) => QueueState::LastRequests,
            (true, false) => QueueState::Nothing,
            (true, true) => QueueState::End,
        }
    }
}
