//! What may be true: of each subject all states in order, and what is known of the position at which each was committed.
//!
//! One caller alone changes a subject, and goes on once its change is acknowledged. So the states of a subject are a list, of which
//! the last one may not be true yet. A change has a position after that of the acknowledgement before it, and at most that of its
//! own. An exact read narrows this further. Each answer must be one of the states that its position and its age leave.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tally_testkit::Response;
use tally_testkit::model::{Board, Definition, Range, Record};

/// What a subject shows: a score, or nothing.
pub(super) type Shown = Option<i64>;

/// The number of changing callers, each with a subject of each kind.
pub(super) const WRITERS: usize = 3;

/// The leaderboards, with their update rule and the kinds of players on them. A `pair` is written to two of them in one transaction.
pub(super) const BOARDS: [(&str, &str, &[&str]); 4] = [
    ("sum", "sum", &["sum", "ban"]),
    ("best", "best", &["best"]),
    ("left", "best", &["pair"]),
    ("right", "sum", &["pair"]),
];

/// Kinds of subjects. A `made` one is a leaderboard that is made and deleted.
pub(super) const KINDS: [&str; 5] = ["sum", "ban", "best", "pair", "made"];

/// Ages are rounded to milliseconds.
const ROUNDED: Duration = Duration::from_millis(1);

/// The number of a leader and that of its last change, as `Tally-As-Of` has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    token: u64,
    number: u64,
}

impl Display for Position {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.token, self.number)
    }
}

const LAST: Position = Position { token: u64::MAX, number: u64::MAX };

/// What an answer says of its state.
#[derive(Clone, Copy, Debug)]
pub(super) struct AsOf {
    pub(super) at: Position,
    pub(super) age: Duration,
    /// Whether it is of exactly this position, and has nothing newer.
    pub(super) is_exact: bool,
}

impl AsOf {
    pub(super) fn of(answer: &Response) -> Option<Self> {
        let mut parts = answer.header("tally-as-of")?.split("; ");
        let (token, number) = parts.next()?.split_once('.')?;
        let at = Position { token: token.parse().ok()?, number: number.parse().ok()? };
        let age = parts.next()?.strip_prefix("age=")?.parse().ok()?;
        Some(Self { at, age: Duration::from_secs_f64(age), is_exact: parts.next().is_none() })
    }
}

/// A state of a subject.
#[derive(Debug)]
struct State {
    shown: Shown,
    acknowledged: Option<Instant>,
    /// The newest known position that has it not, and the oldest that has it.
    without: Position,
    with: Position,
}

/// The states of a subject, oldest first.
#[derive(Debug)]
struct Subject {
    states: Vec<State>,
}

impl Subject {
    fn new() -> Self {
        let first = Position::default();
        let nothing = State { shown: None, acknowledged: Some(Instant::now()), without: first, with: first };
        Self { states: vec![nothing] }
    }

    fn attempt(&mut self, shown: Shown, after: Position) {
        // What changes nothing gets no position of its own.
        let last = self.states.last().filter(|last| last.shown == shown);
        let after = last.map_or(after, |last| last.without);
        let state = State { shown, acknowledged: None, without: after, with: LAST };
        self.states.push(state);
    }

    fn acknowledge(&mut self, at: Option<Position>) {
        let last = self.states.last_mut().expect("there is a state");
        last.acknowledged = Some(Instant::now());
        last.with = at.map_or(last.with, |at| last.with.min(at));
    }

    /// Checks what an answer shows to a request of that time.
    fn check(&mut self, asked: Instant, as_of: AsOf, shown: Shown) -> Result<(), String> {
        let known = asked.checked_sub(as_of.age + ROUNDED);
        let is_in = |state: &State| {
            state.with <= as_of.at
                || state.acknowledged.is_some_and(|at| known.is_some_and(|known| at < known))
        };
        // Any answer has the first one.
        let oldest = self.states.iter().rposition(is_in).unwrap_or(0);
        let may_be = |state: &State| state.shown == shown && (!as_of.is_exact || state.without < as_of.at);
        let fit: Vec<usize> = (oldest..self.states.len()).filter(|nth| may_be(&self.states[*nth])).collect();
        match fit[..] {
            [] => Err(self.wrong(oldest, as_of, shown)),
            [only] if as_of.is_exact => {
                let state = &mut self.states[only];
                state.with = state.with.min(as_of.at);
                if let Some(next) = self.states.get_mut(only + 1) {
                    next.without = next.without.max(as_of.at);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn wrong(&self, oldest: usize, as_of: AsOf, shown: Shown) -> String {
        let around = &self.states[oldest.saturating_sub(2)..];
        let states: Vec<String> = around
            .iter()
            .map(|state| {
                let age = state.acknowledged.map(|at| at.elapsed());
                format!(
                    "{:?} after {}, by {}, acknowledged {age:?} ago",
                    state.shown, state.without, state.with
                )
            })
            .collect();
        format!(
            "{shown:?} is none of its states since number {oldest}, for {as_of:?}; the last ones: {states:#?}"
        )
    }
}

/// All subjects by their names: the kind and the number of the caller.
#[derive(Debug)]
pub(super) struct Truth {
    subjects: BTreeMap<String, Mutex<Subject>>,
}

/// The name of a subject.
pub(super) fn subject(kind: &str, nth: usize) -> String {
    format!("{kind}-{nth}")
}

impl Truth {
    pub(super) fn new() -> Self {
        let of_kind = |kind: &&str| {
            let kind = (*kind).to_owned();
            (0..WRITERS).map(move |nth| (subject(&kind, nth), Mutex::new(Subject::new())))
        };
        Self { subjects: KINDS.iter().flat_map(of_kind).collect() }
    }

    fn with<T>(&self, name: &str, then: impl FnOnce(&mut Subject) -> Result<T, String>) -> Result<T, String> {
        let subject = self.subjects.get(name).ok_or_else(|| format!("there is no {name}"))?;
        then(&mut subject.lock().unwrap_or_else(PoisonError::into_inner))
            .map_err(|why| format!("{name}: {why}"))
    }

    /// A change is sent from now on, after an answer of that position.
    pub(super) fn attempt(&self, name: &str, shown: Shown, after: Position) -> Result<(), String> {
        self.with(name, |subject| {
            subject.attempt(shown, after);
            Ok(())
        })
    }

    /// It was acknowledged. The Redis protocol does not say the position.
    pub(super) fn acknowledge(&self, name: &str, at: Option<Position>) -> Result<(), String> {
        self.with(name, |subject| {
            subject.acknowledge(at);
            Ok(())
        })
    }

    /// What a subject shows in the end.
    pub(super) fn last(&self, name: &str) -> Shown {
        let last = self.with(name, |subject| Ok(subject.states.last().expect("there is a state").shown));
        last.expect("there is such a subject")
    }

    /// Checks one subject of an answer.
    pub(super) fn check(&self, name: &str, asked: Instant, as_of: AsOf, shown: Shown) -> Result<(), String> {
        self.with(name, |subject| subject.check(asked, as_of, shown))
    }

    /// Checks a whole leaderboard: its order and ranks are those of its own records, and each player is as it may be.
    pub(super) fn check_page(
        &self,
        (board, update, kinds): (&str, &'static str, &[&str]),
        asked: Instant,
        as_of: AsOf,
        page: &Value,
    ) -> Result<(), String> {
        let shown = read_page(update, page).map_err(|why| format!("{board}: {why}"))?;
        let names: Vec<String> =
            kinds.iter().flat_map(|kind| (0..WRITERS).map(|nth| subject(kind, nth))).collect();
        if let Some(foreign) = shown.keys().find(|player| !names.contains(player)) {
            return Err(format!("{board} has a player {foreign}"));
        }
        for name in names {
            let check = self.check(&name, asked, as_of, shown.get(&name).copied());
            check.map_err(|why| format!("{board}: {why}\n{page}"))?;
        }
        Ok(())
    }
}

/// The scores of a page with the whole leaderboard, by player.
pub(super) fn read_page(update: &'static str, page: &Value) -> Result<BTreeMap<String, i64>, String> {
    let definition = Definition { update, ..Definition::default() };
    let entries = page["entries"].as_array().ok_or("no entries")?;
    let records = entries.iter().map(|entry| Record::of_json(&definition, entry)).collect();
    if Board::of(definition, records).entries(&Range::default()) != *entries || page["total"] != entries.len()
    {
        return Err(format!("not a sort of its own records: {page}"));
    }
    let score = |entry: &Value| Some((entry["player"].as_str()?.to_owned(), entry["score"].as_i64()?));
    entries.iter().map(|entry| score(entry).ok_or_else(|| format!("no score in {entry}"))).collect()
}

/// What a leaderboard that is made and deleted shows: its best score, 0 without any, or nothing if it is not there.
pub(super) fn shown_at_top(page: &Value) -> Shown {
    match page["entries"].as_array()?.first() {
        None => Some(0),
        Some(top) => top["score"].as_i64(),
    }
}
