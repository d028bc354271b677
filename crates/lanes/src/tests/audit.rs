//! Records the answers of a run and compares them with the store.
//!
//! All replies write into one list, so the order of answers is known across all callers. The audit compares it with the
//! log of the store: acknowledged = applied once, failed = not applied, unknown = either.

use super::Boxed;
use super::model::{Answer, Fault, Request, Store};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

type Outcome = Result<Answer, Fault>;

/// Collects the answers of one run. Clones share the list of answers; each has its own requests.
#[derive(Clone, Default)]
pub(super) struct Recorder {
    /// `std` on purpose: never held across a scheduling point.
    outcomes: Arc<Mutex<Vec<(u32, Outcome)>>>,
    submitted: Vec<Request>,
    refused: Vec<u32>,
    /// Ids that were submitted together.
    groups: Vec<Vec<u32>>,
}

impl Recorder {
    /// A reply for this request.
    pub(super) fn listen(&mut self, request: Request) -> Boxed {
        self.submitted.push(request);
        let outcomes = Arc::clone(&self.outcomes);
        Box::new(move |answer| outcomes.lock().unwrap().push((request.id, answer)))
    }

    /// Records a request that the lane refused.
    pub(super) fn refused(&mut self, id: u32) {
        self.refused.push(id);
    }

    /// Records requests that were submitted together.
    pub(super) fn grouped(&mut self, ids: Vec<u32>) {
        self.groups.push(ids);
    }

    /// Merges what another caller recorded.
    pub(super) fn merge(&mut self, other: Self) {
        assert!(Arc::ptr_eq(&self.outcomes, &other.outcomes));
        self.submitted.extend(other.submitted);
        self.refused.extend(other.refused);
        self.groups.extend(other.groups);
    }

    /// All answers so far, in the order in which they were sent.
    pub(super) fn outcomes(&self) -> Vec<(u32, Outcome)> {
        self.outcomes.lock().unwrap().clone()
    }

    /// The answer of one request.
    pub(super) fn of(&self, id: u32) -> Outcome {
        self.outcomes().iter().find(|(whose, _)| *whose == id).expect("it has an outcome").1
    }

    /// Checks a run whose lane has ended.
    pub(super) fn audit(&self, store: &Store) {
        let outcomes = self.outcomes();
        self.each_answered_once(&outcomes);
        self.in_order(&outcomes);
        self.applied_as_answered(&outcomes, store);
        if !store.left_unresolved() {
            assert_eq!(store.shown, store.stored, "readers see what is stored");
        }
    }

    fn each_answered_once(&self, outcomes: &[(u32, Outcome)]) {
        for request in &self.submitted {
            let times = outcomes.iter().filter(|(id, _)| *id == request.id).count();
            let due = usize::from(!self.refused.contains(&request.id));
            assert_eq!(times, due, "request {} got {times} answers", request.id);
        }
    }

    fn in_order(&self, outcomes: &[(u32, Outcome)]) {
        let ids: Vec<u32> = outcomes.iter().map(|(id, _)| *id).collect();
        let mut last = BTreeMap::new();
        for id in &ids {
            let before = last.insert(id / 100, *id);
            assert!(before.is_none_or(|before| before < *id), "{id} was answered after {before:?}");
        }
        for group in self.groups.iter().filter(|group| !self.refused.contains(&group[0])) {
            let at = ids.iter().position(|id| *id == group[0]).expect("it was answered");
            assert_eq!(&ids[at..at + group.len()], group, "neighbours stay neighbours");
        }
    }

    fn applied_as_answered(&self, outcomes: &[(u32, Outcome)], store: &Store) {
        let answered: BTreeMap<u32, Outcome> = outcomes.iter().copied().collect();
        let requests: BTreeMap<u32, Request> = self.submitted.iter().map(|one| (one.id, *one)).collect();
        let mut expected: BTreeMap<u8, i64> = BTreeMap::new();
        let mut applied: Vec<u32> = Vec::new();
        for id in store.log.iter().flatten() {
            let request = requests[id];
            let value = expected.entry(request.key).or_default();
            let (before, after) = (*value, *value + request.add);
            *value = after;
            match answered[id] {
                Ok(answer) => assert_eq!(answer, Answer { id: *id, before, after }, "as if alone"),
                Err(fault) => assert_eq!(fault, Fault::Unknown, "{id} failed and was applied"),
            }
            applied.push(*id);
        }
        assert_eq!(expected, store.stored);
        let acknowledged: Vec<u32> =
            outcomes.iter().filter(|(_, answer)| answer.is_ok()).map(|(id, _)| *id).collect();
        applied.retain(|id| answered[id].is_ok());
        assert_eq!(applied, acknowledged, "each applied once, answered in the order of the log");
    }
}
