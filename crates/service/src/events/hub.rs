//! Streams of stored events: each is woken when there may be something new, and reads it from the store.
//!
//! So a lost or repeated wake does no harm, and nothing is copied into queues. The ledger's lane wakes the streams that its
//! batches touch, and searches them only while there is one. The background task of events finds what other servers write, by
//! one query for all. Not here: reading events (`log`), and watched leaderboards (`live`).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tally_rules::ledger::{Currency, MemberId, Uuid};
use tally_store::{LedgerWriteSet, Topic};
use tokio::sync::watch;

/// What a stream can be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// A contest, by the number that it was given once.
    Contest(Uuid),
    /// A member's money.
    Member(MemberId),
}

/// The last observed position of a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ObservedPosition {
    Event(u64),
    Entries(Vec<(Currency, u64)>),
}

/// The subjects that have streams.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    listeners: AtomicUsize,
    subjects: Mutex<BTreeMap<Subject, Subscribers>>,
}

#[derive(Debug)]
struct Subscribers {
    wake: watch::Sender<()>,
    listeners: usize,
    known: Option<ObservedPosition>,
}

/// The subjects of a batch that have streams.
pub(crate) type Touched = Vec<Subject>;

/// A stream's subscription, until it is dropped.
#[derive(Debug)]
pub struct Listener {
    hub: Arc<Hub>,
    subject: Subject,
    woken: watch::Receiver<()>,
}

impl Listener {
    pub(super) fn new(hub: &Arc<Hub>, subject: Subject) -> Self {
        hub.listeners.fetch_add(1, Ordering::SeqCst);
        let mut subjects = hub.subjects();
        let fresh = || Subscribers { wake: watch::Sender::new(()), listeners: 0, known: None };
        let subscribers = subjects.entry(subject).or_insert_with(fresh);
        subscribers.listeners += 1;
        let woken = subscribers.wake.subscribe();
        drop(subjects);
        Self { hub: Arc::clone(hub), subject, woken }
    }

    /// Waits until there may be something new.
    pub(super) async fn woken(&mut self) {
        // The hub lives as long as its streams.
        drop(self.woken.changed().await);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Entry::Occupied(mut subscribers) = self.hub.subjects().entry(self.subject) {
            subscribers.get_mut().listeners -= 1;
            if subscribers.get().listeners == 0 {
                subscribers.remove();
            }
        }
        self.hub.listeners.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Hub {
    /// Whether there is a stream.
    pub(super) fn is_heard(&self) -> bool {
        self.listeners.load(Ordering::SeqCst) > 0
    }

    /// The subjects that changes touch, if there is a stream.
    pub(crate) fn touched(&self, changes: &LedgerWriteSet) -> Touched {
        if !self.is_heard() {
            return Touched::new();
        }
        let subjects = self.subjects();
        let members = changes.entries.iter().map(|(key, _)| Subject::Member(key.wallet.member));
        let contests = changes.events.iter().filter_map(|(topic, _)| match topic {
            Topic::Contest(no) => Some(Subject::Contest(*no)),
            _ => None,
        });
        members.chain(contests).filter(|subject| subjects.contains_key(subject)).collect()
    }

    /// Wakes the streams of these subjects.
    pub(crate) fn wake(&self, touched: Touched) {
        if touched.is_empty() {
            return;
        }
        let subjects = self.subjects();
        touched.iter().filter_map(|subject| subjects.get(subject)).for_each(Subscribers::wake);
    }

    /// Every subject that has a stream.
    pub(super) fn all(&self) -> Vec<Subject> {
        self.subjects().keys().copied().collect()
    }

    /// Wakes the streams of subjects that are further than was observed.
    pub(super) fn compare(&self, present: impl Iterator<Item = (Subject, ObservedPosition)>) {
        let mut subjects = self.subjects();
        for (subject, present) in present {
            let Some(subscribers) = subjects.get_mut(&subject) else { continue };
            if subscribers.known.as_ref() != Some(&present) {
                subscribers.known = Some(present);
                subscribers.wake();
            }
        }
    }

    fn subjects(&self) -> MutexGuard<'_, BTreeMap<Subject, Subscribers>> {
        self.subjects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscribers {
    fn wake(&self) {
        self.wake.send_replace(());
    }
}
