//! Readings that wait without a thread.
//!
//! The rules of ranks and pages ask when they need to know something, and wait for it. Here such a reading is run on what is
//! known: the first question without an answer ends the run and is sent, and when its answers are there the reading is run
//! again from its beginning, which hears in the same order what it has heard before. Nearly every reading asks once and so
//! runs twice: microseconds, where a thread that waits is put to sleep and woken. What it takes is a reading that asks
//! the same when it hears the same.
//!
//! Who asks is known to the thread, so the rules in between have no parameter for it. Not here: how questions are sent.

use super::RankingError;
use super::client::{Answers, Request};
use std::cell::RefCell;

thread_local! {
    static RUN: RefCell<Option<Run>> = const { RefCell::new(None) };
}

/// A reading and what it has been told so far.
#[derive(Debug, Default)]
pub(super) struct Replay {
    told: Vec<Answers>,
}

/// One run of it.
#[derive(Debug)]
struct Run {
    told: Vec<Answers>,
    /// How many of these it has heard in this run.
    heard: usize,
    /// What it asked next.
    wanted: Option<Vec<Request>>,
}

/// Ends a run, however it ends.
struct End;

impl Replay {
    /// Runs the reading; gives its answer, or what it has to be told first.
    pub(super) fn run<T>(&mut self, reading: impl FnOnce() -> T) -> Result<T, Vec<Request>> {
        let told = std::mem::take(&mut self.told);
        RUN.set(Some(Run { told, heard: 0, wanted: None }));
        let _end = End;
        let answer = reading();
        let run = RUN.take().expect("a reading is not run within another");
        self.told = run.told;
        run.wanted.map_or(Ok(answer), Err)
    }

    /// Takes the answers to what it wanted last.
    pub(super) fn tell(&mut self, answers: Answers) {
        self.told.push(answers);
    }
}

impl Drop for End {
    fn drop(&mut self) {
        RUN.set(None);
    }
}

/// What the reading that is run on this thread hears now; nothing where none is, and who asks may wait.
pub(super) fn hear(requests: &[Request]) -> Option<Answers> {
    RUN.with_borrow_mut(|run| {
        let run = run.as_mut()?;
        if let Some(answers) = run.told.get(run.heard) {
            run.heard += 1;
            return Some(answers.clone());
        }
        run.wanted.get_or_insert_with(|| requests.to_vec());
        // Nobody sees these: the run is not its last.
        Some(requests.iter().map(|_| Err(RankingError::Loading)).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::super::script::Script;
    use super::*;
    use redis::Value;

    fn request(slot: u16) -> Request {
        Request { script: Script::Ask, slot, keys: Vec::new(), args: Vec::new(), entries: 0 }
    }

    fn asked(slot: u16) -> Result<Value, RankingError> {
        hear(&[request(slot)]).expect("a run").pop().expect("an answer for each")
    }

    #[test]
    fn a_reading_hears_again_what_it_has_heard_and_asks_for_the_next() {
        let reading = || {
            let first = asked(1)?;
            let Value::Int(slot) = first else { return Err(RankingError::Lost) };
            Ok((slot, asked(u16::try_from(slot).unwrap())?))
        };
        let mut replay = Replay::default();
        assert_eq!(replay.run(reading).unwrap_err()[0].slot, 1);
        replay.tell(vec![Ok(Value::Int(7))]);
        assert_eq!(replay.run(reading).unwrap_err()[0].slot, 7);
        replay.tell(vec![Ok(Value::Okay)]);
        assert_eq!(replay.run(reading).unwrap(), Ok((7, Value::Okay)));
        assert!(hear(&[request(1)]).is_none(), "the run is over");
    }

    #[test]
    fn an_error_that_was_told_is_an_answer() {
        let mut replay = Replay::default();
        replay.run(|| asked(1)).unwrap_err();
        replay.tell(vec![Err(RankingError::Lost)]);
        assert_eq!(replay.run(|| asked(1)).unwrap(), Err(RankingError::Lost));
    }

    #[test]
    fn a_reading_that_panics_leaves_no_run() {
        let panicked = std::panic::catch_unwind(|| {
            let _ = Replay::default().run(|| panic!("on purpose"));
        });
        assert!(panicked.is_err());
        assert!(hear(&[request(1)]).is_none());
    }
}
