//! Re-executed reads: they wait without blocking a thread.
//!
//! The rules of ranks and pages query what they need, and wait for it. Here such a read runs with the answers that have
//! arrived. The first query without an answer ends the run and is sent. When its answers are there, the read runs again
//! from its beginning, and gets the same answers in the same order. Nearly every read has one query and so runs twice.
//! That takes microseconds, where a blocked thread would sleep and be woken. A read must be deterministic: with the
//! same answers it sends the same queries.
//!
//! The run is thread-local, so the rules in between have no parameter for it. Not here: how queries are sent.

use super::RankingError;
use super::client::{Answers, Request};
use std::cell::RefCell;

thread_local! {
    static RUN: RefCell<Option<Run>> = const { RefCell::new(None) };
}

/// A read and its answers so far.
#[derive(Debug, Default)]
pub(super) struct ReexecutedRead {
    answered: Vec<Answers>,
}

#[derive(Debug)]
struct Run {
    answered: Vec<Answers>,
    /// The number of answers that this run has used.
    used: usize,
    /// The first query without an answer.
    wanted: Option<Vec<Request>>,
}

/// Ends a run, also after a panic.
struct End;

impl ReexecutedRead {
    /// Runs the read. Returns its result, or the requests whose answers it needs.
    pub(super) fn run<T>(&mut self, reading: impl FnOnce() -> T) -> Result<T, Vec<Request>> {
        let answered = std::mem::take(&mut self.answered);
        RUN.set(Some(Run { answered, used: 0, wanted: None }));
        let _end = End;
        let answer = reading();
        let run = RUN.take().expect("a reading is not run within another");
        self.answered = run.answered;
        run.wanted.map_or(Ok(answer), Err)
    }

    /// Adds the answers to the last requests.
    pub(super) fn add(&mut self, answers: Answers) {
        self.answered.push(answers);
    }
}

impl Drop for End {
    fn drop(&mut self) {
        RUN.set(None);
    }
}

/// The next answers of the read that runs on this thread. `None` outside of a run, where the caller may block.
pub(super) fn next_answers(requests: &[Request]) -> Option<Answers> {
    RUN.with_borrow_mut(|run| {
        let run = run.as_mut()?;
        if let Some(answers) = run.answered.get(run.used) {
            run.used += 1;
            return Some(answers.clone());
        }
        run.wanted.get_or_insert_with(|| requests.to_vec());
        // No caller sees these: the read runs again.
        Some(requests.iter().map(|_| Err(RankingError::Loading)).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::super::script::Script;
    use super::*;
    use redis::Value;

    fn request(slot: u16) -> Request {
        Request { script: Script::PartitionQuery, slot, keys: Vec::new(), args: Vec::new(), entries: 0 }
    }

    fn query(slot: u16) -> Result<Value, RankingError> {
        next_answers(&[request(slot)]).expect("a run").pop().expect("an answer for each")
    }

    #[test]
    fn a_reading_hears_again_what_it_has_heard_and_asks_for_the_next() {
        let reading = || {
            let first = query(1)?;
            let Value::Int(slot) = first else { return Err(RankingError::Lost) };
            Ok((slot, query(u16::try_from(slot).unwrap())?))
        };
        let mut reexecuted = ReexecutedRead::default();
        assert_eq!(reexecuted.run(reading).unwrap_err()[0].slot, 1);
        reexecuted.add(vec![Ok(Value::Int(7))]);
        assert_eq!(reexecuted.run(reading).unwrap_err()[0].slot, 7);
        reexecuted.add(vec![Ok(Value::Okay)]);
        assert_eq!(reexecuted.run(reading).unwrap(), Ok((7, Value::Okay)));
        assert!(next_answers(&[request(1)]).is_none(), "the run is over");
    }

    #[test]
    fn an_error_that_was_told_is_an_answer() {
        let mut reexecuted = ReexecutedRead::default();
        reexecuted.run(|| query(1)).unwrap_err();
        reexecuted.add(vec![Err(RankingError::Lost)]);
        assert_eq!(reexecuted.run(|| query(1)).unwrap(), Err(RankingError::Lost));
    }

    #[test]
    fn a_reading_that_panics_leaves_no_run() {
        let panicked = std::panic::catch_unwind(|| {
            let _ = ReexecutedRead::default().run(|| panic!("on purpose"));
        });
        assert!(panicked.is_err());
        assert!(next_answers(&[request(1)]).is_none());
    }
}
