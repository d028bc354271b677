//! Records the answers of a run and compares them with the store.
//!
//! All replies write into one list, so the order of answers is known across all callers. The audit compares it with the
//! log of the store: acknowledged = applied once, failed = not applied, unknown = either.

use super::Boxed;
use super::model::{Answer, Fault, Request, Store};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

type Heard = Result<Answer, Fault>;

/// Collects the answers of one run. Clones share the list of answers; each has its own requests.
#[derive(Clone, Default)]
pub(super) struct Ears {
    /// `std` on purpose: never held across a scheduling point.
    heard: Arc<Mutex<Vec<(u32, Heard)>>>,
    asked: Vec<Request>,
    refused: Vec<u32>,
    /// Ids that were submitted together.
    groups: Vec<Vec<u32>>,
}

impl Ears {
    /// A reply for this request.
    pub(super) fn listen(&mut self, request: Request) -> Boxed {
        self.asked.push(request);
        let heard = Arc::clone(&self.heard);
        Box::new(move |answer| heard.lock().unwrap().push((request.id, answer)))
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
        assert!(Arc::ptr_eq(&self.heard, &other.heard));
        self.asked.extend(other.asked);
        self.refused.extend(other.refused);
        self.groups.extend(other.groups);
    }

    /// All answers so far, in the order in which they were sent.
    pub(super) fn heard(&self) -> Vec<(u32, Heard)> {
        self.heard.lock().unwrap().clone()
    }

    /// The answer of one request.
    pub(super) fn of(&self, id: u32) -> Heard {
        self.heard().iter().find(|(whose, _)| *whose == id).expect("it heard something").1
    }

    /// Checks a run whose lane has ended.
    pub(super) fn audit(&self, store: &Store) {
        let heard = self.heard();
        self.each_heard_once(&heard);
        self.in_order(&heard);
        self.applied_as_told(&heard, store);
        if !store.left_unresolved() {
            assert_eq!(store.shown, store.truth, "readers see what is stored");
        }
    }

    fn each_heard_once(&self, heard: &[(u32, Heard)]) {
        for request in &self.asked {
            let times = heard.iter().filter(|(id, _)| *id == request.id).count();
            let due = usize::from(!self.refused.contains(&request.id));
            assert_eq!(times, due, "request {} heard {times} answers", request.id);
        }
    }

    fn in_order(&self, heard: &[(u32, Heard)]) {
        let ids: Vec<u32> = heard.iter().map(|(id, _)| *id).collect();
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

    fn applied_as_told(&self, heard: &[(u32, Heard)], store: &Store) {
        let told: BTreeMap<u32, Heard> = heard.iter().copied().collect();
        let requests: BTreeMap<u32, Request> = self.asked.iter().map(|one| (one.id, *one)).collect();
        let mut replayed: BTreeMap<u8, i64> = BTreeMap::new();
        let mut applied: Vec<u32> = Vec::new();
        for id in store.log.iter().flatten() {
            let request = requests[id];
            let value = replayed.entry(request.key).or_default();
            let (before, after) = (*value, *value + request.add);
            *value = after;
            match told[id] {
                Ok(answer) => assert_eq!(answer, Answer { id: *id, before, after }, "as if alone"),
                Err(fault) => assert_eq!(fault, Fault::Unknown, "{id} failed and was applied"),
            }
            applied.push(*id);
        }
        assert_eq!(replayed, store.truth);
        let acknowledged: Vec<u32> =
            heard.iter().filter(|(_, answer)| answer.is_ok()).map(|(id, _)| *id).collect();
        applied.retain(|id| told[id].is_ok());
        assert_eq!(applied, acknowledged, "each applied once, answered in the order of the log");
    }
}
