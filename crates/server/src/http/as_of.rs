//! Which state an answer is of: the headers `Tally-As-Of` and `Tally-At-Least`.
//!
//! Only servers that lead or follow others have them. A position is the fencing token of a leader and the number of a change of it.
//! An answer has everything up to its position. A read at a follower is of exactly that state, unless the answer says `newer`: then
//! it may have some later changes, too. A client that sends the position of its own write reads it at any server.

use super::call::bad_parameter;
use super::problem;
use crate::readiness::{NotReady, Readiness};
use hyper::HeaderMap;
use hyper::header::HeaderValue;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tally_service::follow::{ChangeRing, Following, Position};
use tally_wire::Problem;
use tokio::time::timeout;

const AS_OF: &str = "tally-as-of";
const AT_LEAST: &str = "tally-at-least";

/// How long a read waits for the position that it asks for, before it is sent to the leader.
const WAIT: Duration = Duration::from_millis(250);
/// How long a read waits for the leader's answer if the state here is older than it may be.
pub(crate) const BEHIND_MAX: Duration = Duration::from_secs(1);
/// A read that took no longer is repeated if a change came in between, so often in all.
const REPEATED_MAX: Duration = Duration::from_millis(2);
const TRIES: usize = 3;

/// The state that a request sees.
pub(super) enum State {
    /// No other server follows or is followed.
    Alone,
    /// This server leads, and its state when the request began was this.
    Leads(Arc<ChangeRing>, Position),
    /// This server follows.
    Follows(Arc<Following>),
}

impl State {
    pub(super) fn of(readiness: &Readiness) -> Self {
        let Some(tally) = readiness.loaded() else { return Self::Alone };
        match (&tally.following, &tally.changes) {
            (Some(following), _) => Self::Follows(Arc::clone(following)),
            (None, Some(changes)) => Self::Leads(Arc::clone(changes), changes.position()),
            (None, None) => Self::Alone,
        }
    }

    /// Writes the header of an answer that was made here: of a read, or of a change.
    pub(super) fn tell(&self, reading: Option<Reading>, headers: &mut HeaderMap) {
        let (position, newer, age) = match (self, reading) {
            (_, Some(Reading { at, age, is_exact, .. })) => (at, !is_exact, age),
            // The change itself is among those.
            (Self::Leads(changes, _), None) => (changes.position(), false, Duration::ZERO),
            // A change is not done here.
            (Self::Alone | Self::Follows(_), None) => return,
        };
        let newer = if newer { "; newer" } else { "" };
        let text = format!("{position}; age={:.3}{newer}", age.as_secs_f64());
        if let Ok(value) = HeaderValue::from_str(&text) {
            headers.insert(AS_OF, value);
        }
    }
}

/// A read at a server that leads or follows.
pub(super) struct Reading {
    following: Option<Arc<Following>>,
    /// How old the state may be. It is looked at before the state, so it is never that of an earlier one.
    age: Duration,
    at: Position,
    began: Instant,
    tries: usize,
    is_exact: bool,
}

impl Reading {
    /// Begins a read.
    pub(super) fn begin(state: &State) -> Option<Self> {
        let (following, age, at) = match state {
            State::Alone => return None,
            State::Leads(_, position) => (None, Duration::ZERO, *position),
            State::Follows(following) => (Some(Arc::clone(following)), following.age(), following.position()),
        };
        Some(Self { following, age, at, began: Instant::now(), tries: 0, is_exact: false })
    }

    /// Whether an attempt can be one of several.
    pub(super) fn may_repeat(&self) -> bool {
        self.following.is_some()
    }

    /// Ends an attempt; whether it is to be repeated, because a change came in between.
    pub(super) fn again(&mut self) -> bool {
        let Some(following) = &self.following else { return false };
        self.tries += 1;
        self.is_exact = following.is_still(self.at);
        if self.is_exact || self.tries == TRIES || self.began.elapsed() > REPEATED_MAX {
            return false;
        }
        (self.age, self.at) = (following.age(), following.position());
        true
    }
}

/// Waits until the state here is what a read asks for; whether it is. One that is older than it may be is not.
pub(super) async fn wait(state: &State, headers: &HeaderMap) -> Result<bool, Problem> {
    let wanted = headers.get(AT_LEAST).map(position).transpose()?;
    match (state, wanted) {
        (State::Follows(following), None) => Ok(following.may_answer()),
        (State::Follows(following), Some(position)) => {
            Ok(following.contains(position, WAIT).await && following.may_answer())
        }
        (State::Alone, _) | (State::Leads(..), None) => Ok(true),
        (State::Leads(_, own), Some(position)) if position <= *own => Ok(true),
        // Another server leads by now, or it never was.
        (State::Leads(..), Some(_)) => Err(problem::of_not_ready(&NotReady::Unsure)),
    }
}

fn position(value: &HeaderValue) -> Result<Position, Problem> {
    let position = value.to_str().ok().and_then(|text| text.split(';').next()?.trim().parse().ok());
    let detail = "must be a position as `Tally-As-Of` has it, such as `1795940339535874.42`";
    position.ok_or_else(|| bad_parameter("Tally-At-Least", detail))
}

/// The leader's answer to a read. If the state here is too old to answer from, the leader may be gone: then the wait is short.
pub(super) async fn in_time<T>(
    state: &State,
    answer: impl Future<Output = Result<T, Problem>>,
) -> Result<T, Problem> {
    match state {
        State::Follows(following) if !following.may_answer() => {
            let late = |_| Err(problem::of_not_ready(&NotReady::Behind(following.age())));
            timeout(BEHIND_MAX, answer).await.unwrap_or_else(late)
        }
        State::Alone | State::Leads(..) | State::Follows(_) => answer.await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_the_age_of_its_own_state() {
        let pause = Duration::from_millis(20);
        let position = Position { token: 7, number: 3 };
        let following = Arc::new(Following::new("http://leader", position, pause));
        let state = State::Follows(Arc::clone(&following));
        std::thread::sleep(pause);
        let mut reading = Reading::begin(&state).unwrap();
        // The leader says meanwhile that there was nothing newer until now.
        following.reached(Instant::now());
        assert!(!reading.again(), "nothing came in between");
        let mut headers = HeaderMap::new();
        state.tell(Some(reading), &mut headers);
        let (at, age) = headers[AS_OF].to_str().unwrap().split_once("; age=").unwrap();
        assert_eq!(at, "7.3");
        assert!(age.parse::<f64>().unwrap() >= 0.02, "{age}");
    }
}
