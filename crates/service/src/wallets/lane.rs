//! The queue in front of the ledger's work, and its beginning and end.

use super::command::{Done, Request};
use super::expiry::{self, Expiry};
use super::work::{HOME_META, LedgerWork};
use crate::clock::Clock;
use crate::events::hub::Hub;
use crate::failure::{Failure, Fault};
use crate::requests::Running;
use crate::scores::StoreTimes;
use crate::scores::shared::Shared;
use crate::settings::{Background, Settings};
use crate::waiting::{self, Entry, Teller, Told};
use std::sync::{Arc, Mutex, PoisonError};
use tally_lanes::{Lane, LaneThread, Stats, Times};
use tally_store::Store;

/// A lane of the ledger, for whoever puts something in.
pub(super) type Handle = Lane<LedgerWork, waiting::Waiter<Done>>;

/// The one lane that moves money.
pub(crate) struct LedgerLane {
    lane: Handle,
    thread: Mutex<Option<LaneThread<LedgerWork>>>,
    expiry: Expiry,
    times: Arc<StoreTimes>,
    teller: Teller,
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
        let teller = Teller::default();
        let told = (node, Arc::clone(&times), hub, teller.clone());
        let work = LedgerWork::new(Arc::clone(scores), settings.clone(), *keep_micros, told);
        let no_thread = |error| Fault::Broken(format!("no thread for the ledger's lane: {error}"));
        let (lane, thread) = match background {
            Background::Threads => {
                let (lane, thread) = Lane::start("ledger", settings.lane, work).map_err(no_thread)?;
                (lane, Some(thread))
            }
            Background::ByHand(_) => (Lane::by_hand("ledger", settings.lane, work), None),
        };
        let (thread, expiry) = (Mutex::new(thread), Expiry::default());
        Ok(Self { lane, thread, expiry, times, teller, background: *background })
    }

    /// Starts the thread that ends holds whose time has run out.
    pub(crate) fn start_expiry(&self, store: &Arc<dyn Store>, clock: &Clock) -> std::io::Result<()> {
        self.expiry.start(Arc::clone(store), clock.clone(), self.lane.clone())
    }

    /// One look of that thread. Blocks.
    pub(crate) fn expire_due(&self, store: &dyn Store, clock: &Clock) -> Result<(), Failure> {
        expiry::look(store, clock, (&self.lane, self.background)).map(drop)
    }

    /// One request; the caller waits, the lane does not.
    pub(crate) async fn ask(&self, request: Request, running: Vec<Running>) -> Result<Done, Failure> {
        self.teller.meet();
        waiting::ask(&self.lane, request, running, None).await
    }

    /// The same on a thread that may block.
    pub(crate) fn ask_blocking(&self, request: Request) -> Result<Done, Failure> {
        waiting::ask_blocking(&self.lane, Entry::of(request), self.background)
    }

    /// One turn, where it has no thread; whether there was anything to do.
    pub(crate) fn step(&self) -> bool {
        self.lane.step()
    }

    /// Neighbours in the lane, or none of them; answers in order.
    pub(crate) async fn ask_all(
        &self,
        requests: Vec<(Request, Vec<Running>)>,
    ) -> Result<Vec<Told<Done>>, Failure> {
        self.teller.meet();
        let many = requests.into_iter().map(|(request, running)| Entry { request, running, seat: None });
        waiting::ask_all(&self.lane, many.collect()).await
    }

    pub(crate) fn stats(&self) -> Stats {
        self.lane.stats()
    }

    /// How long the store took to read and lock, and to write and commit.
    pub(crate) fn times(&self) -> (Times, Times) {
        (self.times.read.read(), self.times.commit.read())
    }

    /// Completes what was accepted. Blocks.
    pub(crate) fn drain(&self) {
        self.expiry.stop();
        self.lane.drain();
        while self.lane.step() {}
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the ledger's lane panicked");
        }
    }
}
