//! The ledger's lane: the queue in front of its batch handler, its start and its end.

use super::batch::{HOME_META, LedgerBatchHandler};
use super::request::{Answer, LedgerRequest, typed};
use crate::events::hub::Hub;
use crate::failure::{Failure, Fault};
use crate::reply::{self, GuardedRequest, LaneReply, ReplyDispatcher};
use crate::requests::KeyGuard;
use crate::scores::StoreTimes;
use crate::scores::shared::Shared;
use crate::settings::{Background, Settings};
use std::sync::{Arc, Mutex, PoisonError};
use tally_lanes::{Lane, LaneThread, Stats, Times};

/// The one lane that moves money.
pub(crate) struct LedgerLane {
    lane: Lane<LedgerBatchHandler, reply::PendingReply<Answer>>,
    thread: Mutex<Option<LaneThread<LedgerBatchHandler>>>,
    times: Arc<StoreTimes>,
    dispatcher: ReplyDispatcher,
    background: Background,
}

impl LedgerLane {
    /// Starts it, if members have their wallets in the home currency of the settings.
    pub(crate) fn start(scores: &Arc<Shared>, settings: &Settings, hub: Arc<Hub>) -> Result<Self, Failure> {
        let Settings { ledger: settings, background, idempotency_keep_micros: keep_micros, .. } = settings;
        let home = settings.currencies.home();
        if let Some(known) = scores.store.meta(HOME_META)?.filter(|known| known != home.as_str().as_bytes()) {
            let known = String::from_utf8_lossy(&known).into_owned();
            return Err(Fault::Broken(format!(
                "the members of this store have their first wallets in {known}: set `wallet.currency` to that, and {home} \
                 among `currencies`"
            ))
            .into());
        }
        let mut node = [0; 8];
        getrandom::fill(&mut node).map_err(|error| Fault::Broken(format!("no random numbers: {error}")))?;
        let node = u64::from_le_bytes(node);
        let times = Arc::<StoreTimes>::default();
        let dispatcher = ReplyDispatcher::default();
        let shared = (node, Arc::clone(&times), hub, dispatcher.clone());
        let handler = LedgerBatchHandler::new(Arc::clone(scores), settings.clone(), *keep_micros, shared);
        let no_thread = |error| Fault::Broken(format!("no thread for the ledger's lane: {error}"));
        let (lane, thread) = match background {
            Background::Threads => {
                let (lane, thread) = Lane::start("ledger", settings.lane, handler).map_err(no_thread)?;
                (lane, Some(thread))
            }
            Background::ByHand(_) => (Lane::by_hand("ledger", settings.lane, handler), None),
        };
        Ok(Self { lane, thread: Mutex::new(thread), times, dispatcher, background: *background })
    }

    /// One request; the caller waits, the lane does not.
    pub(crate) async fn ask<R: LedgerRequest>(
        &self,
        request: R,
        running: Vec<KeyGuard>,
    ) -> Result<R::Answer, Failure> {
        self.dispatcher.learn_runtime();
        reply::ask(&self.lane, Box::new(request), running, None).await.map(typed::<R>)
    }

    /// The same on a thread that may block.
    pub(crate) fn ask_blocking<R: LedgerRequest>(&self, request: R) -> Result<R::Answer, Failure> {
        reply::ask_blocking(&self.lane, GuardedRequest::of(Box::new(request)), self.background)
            .map(typed::<R>)
    }

    /// One step of a lane without a thread; returns whether there was anything to do.
    pub(crate) fn step(&self) -> bool {
        self.lane.step()
    }

    /// Neighbours in the lane, or none of them; replies in order.
    pub(crate) async fn ask_all<R: LedgerRequest>(
        &self,
        requests: Vec<(R, Vec<KeyGuard>)>,
    ) -> Result<Vec<LaneReply<R::Answer>>, Failure> {
        self.dispatcher.learn_runtime();
        let entry =
            |(request, running)| GuardedRequest { request: Box::new(request) as _, running, guard: None };
        let answers = reply::ask_all(&self.lane, requests.into_iter().map(entry).collect()).await?;
        Ok(answers.into_iter().map(|told| told.map(|answer| answer.map(typed::<R>))).collect())
    }

    pub(crate) fn stats(&self) -> Stats {
        self.lane.stats()
    }

    /// How long the store took to read and lock, and to write and commit.
    pub(crate) fn times(&self) -> (Times, Times) {
        (self.times.read.read(), self.times.commit.read())
    }

    /// Completes all accepted requests. Blocks.
    pub(crate) fn drain(&self) {
        self.lane.drain();
        while self.lane.step() {}
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the ledger's lane panicked");
        }
    }
}
