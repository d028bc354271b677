//! The running service: what every use case needs, and its beginning and end.
//!
//! A [`Tally`] exists only once all ranks are exact: [`Tally::start`] loads them first. So no use case must check whether it
//! may respond; before that, the listeners respond that the server is loading.

use crate::activity::Activity;
use crate::background::{self, BackgroundTask, Tasks};
use crate::boards::{Board, Boards, run_once};
use crate::clock::{Clock, ClockReading};
use crate::clock_memory::{ClockMemory, lead};
use crate::contests::{Contests, repay, scheduler as contests};
use crate::events::Events;
use crate::failure::{Failure, Fault, blocking};
use crate::fingerprint::Fingerprints;
use crate::follow::{ChangeRing, Following, Handover};
use crate::keys::Keys;
use crate::ledger::currencies;
use crate::ledger::lane::LedgerLane;
use crate::ledger::trial_balance::Balance;
use crate::members::{Members, correct_names};
use crate::outcomes;
use crate::periods::prizes;
use crate::progress::Progress;
use crate::rebuild;
use crate::redis_health::RedisHealth;
use crate::reply::ReplyDispatcher;
use crate::requests::{InProgress, KeyGuard};
use crate::rotation;
use crate::scores::lane::ScoreLanes;
use crate::scores::shared::Shared;
use crate::scores::unpublished::Unpublished;
use crate::servers::{Followed, Follower, redis_claim};
use crate::settings::{Background, Settings};
use crate::webhooks::Webhooks;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tally_lanes::Barrier;
use tally_ranking::{RankingBackend, RemoteRanking, WindowRanking};
use tally_rules::clock::DecisionTime;
use tally_rules::idempotency::{Fingerprint, IdempotencyKey, RequestKey, Stored};
use tally_rules::instant::Instants;
use tally_rules::outcome::Outcome;
use tally_rules::{BoardId, Micros, Rejection};
use tally_store::{BoardNo, Loaded, ReadSet, Store, WriteSet};

/// The running service.
pub struct Tally {
    /// The durable state; everything else is derived from it.
    pub store: Arc<dyn Store>,
    /// API keys.
    pub keys: Arc<Keys>,
    /// Live leaderboards with their rankings.
    pub boards: Arc<Boards>,
    /// What members need beside the store.
    pub members: Members,
    /// Digests of requests.
    pub fingerprints: Fingerprints,
    /// What can be set.
    pub settings: Settings,
    pub(crate) clock: Clock,
    clock_memory: ClockMemory,
    newest_ahead: i64,
    pub(crate) running: InProgress,
    pub(crate) changing_boards: Mutex<()>,
    /// One writer of closed periods at a time.
    pub(crate) closing: Mutex<()>,
    pub(crate) tasks: Tasks,
    pub(crate) contests: Contests,
    /// Whether the ledger balances.
    pub balance: Balance,
    /// Event streams.
    pub events: Events,
    /// Receivers of events over HTTP.
    pub webhooks: Webhooks,
    /// How often the Redis of applications was unavailable.
    pub applications_faults: AtomicU64,
    /// What the Redis servers reported last.
    pub redis: RedisHealth,
    pub(crate) lane: ScoreLanes,
    pub(crate) ledger: LedgerLane,
    /// Follows other servers, if there may be any that write.
    pub(crate) follower: Option<Follower>,
    /// The last changes, if other servers may follow this one.
    pub changes: Option<Arc<ChangeRing>>,
    /// What is known of the leader, if this server follows one.
    pub following: Option<Arc<Following>>,
}

impl Tally {
    /// Loads every ranking and starts the lanes. Blocks, as long as that takes; `progress` shows it.
    pub fn start(
        store: Arc<dyn Store>,
        keys: Arc<Keys>,
        clock: Clock,
        settings: Settings,
        progress: &Progress,
    ) -> Result<Arc<Self>, Failure> {
        let follows = settings.role.following();
        let changes = settings.role.leads().then(|| ChangeRing::tap(&*store)).transpose()?;
        // Changes of other servers from here on are followed.
        let is_shared = matches!(settings.ranking, RankingBackend::Redis(_));
        let followed = is_shared.then(|| Followed::begin(&*store, clock.now())).transpose()?;
        clock.begin(settings.clock, &store);
        let clock_memory = ClockMemory::resume(&*store, &clock)?;
        if follows.is_none()
            && let Err(failure) = correct_names::names(&*store, settings.members.phone_country.as_deref())
        {
            tracing::warn!(%failure, "names that earlier versions stored were not corrected; the next start continues");
        }
        let revisions = follows.as_ref().map(|_| store.board_revisions()).transpose()?;
        let time = clock.read();
        let resume = |handover: &Handover| handover.resume(&*store, &settings, time, progress);
        let rebuilt = match settings.role.handover().map(resume).transpose()?.flatten() {
            Some(resumed) => resumed,
            None => rebuild::rebuild(&*store, &settings, time, progress)?,
        };
        if let (Some(following), Some(revisions)) = (&follows, revisions) {
            following.loaded(revisions, rebuilt.newest);
        }
        currencies::check(&*store, &rebuilt.boards, &settings.ledger.currencies)?;
        let newest = rebuilt.newest.max(clock_memory.newest());
        let newest_ahead = lead(newest.since(clock.now()), settings.clock.jump_max);
        let shared = Shared {
            store: Arc::clone(&store),
            clock: clock.clone(),
            activity: Activity::new(clock.now()),
            instants: Mutex::new(Instants::after(newest)),
            keep_micros: settings.idempotency_keep_micros,
            barrier: Barrier::default(),
            lanes: settings.lanes.max(1),
            dispatcher: ReplyDispatcher::default(),
            unpublished: Unpublished::default(),
            started_unheard: AtomicBool::new(false),
            background: settings.background,
        };
        let lane = ScoreLanes::start(shared, settings.lane)
            .map_err(|error| Fault::Broken(format!("no thread for a score lane: {error}")))?;
        let events = Events::default();
        let ledger = LedgerLane::start(lane.shared(), &settings, Arc::clone(&events.hub))?;
        let members = Members::new(Arc::clone(keys.ring()), &settings.members)?;
        let ring = Arc::clone(keys.ring());
        let tally = Arc::new(Self {
            store,
            keys,
            boards: rebuilt.boards,
            members,
            fingerprints: Fingerprints::new(Arc::clone(&ring)),
            settings,
            clock,
            clock_memory,
            newest_ahead,
            running: InProgress::default(),
            changing_boards: Mutex::new(()),
            closing: Mutex::new(()),
            tasks: Tasks::default(),
            contests: Contests::default(),
            balance: Balance::default(),
            events,
            webhooks: Webhooks::new(ring),
            applications_faults: AtomicU64::new(0),
            redis: RedisHealth::default(),
            lane,
            ledger,
            follower: is_shared.then(Follower::new),
            changes,
            following: follows,
        });
        if let (Some(follower), Some(followed)) = (&tally.follower, followed) {
            follower.start(&tally, followed)?;
        }
        redis_claim::start(&tally, rebuilt.claim)?;
        tally.begin_work()?;
        Ok(tally)
    }

    /// Starts the background tasks, and does what is overdue. A server that follows does nothing that changes the store.
    fn begin_work(self: &Arc<Self>) -> Result<(), Failure> {
        let threads = matches!(self.settings.background, Background::Threads);
        if threads {
            rotation::start(self)?;
        }
        if self.following.is_some() {
            return if threads { background::start_following(self) } else { Ok(()) };
        }
        if threads {
            background::start(self)?;
        }
        repay::repay_all(self);
        // Missed acts come before the first request.
        if let Err(failure) = contests::do_due(self).and(prizes::pay_due(self)) {
            tracing::warn!(%failure, "run overdue actions of contests and prizes; it is tried again");
        }
        if threads {
            contests::start(self)?;
        }
        Ok(())
    }

    /// The service's time.
    pub fn now(&self) -> Micros {
        self.clock.now()
    }

    /// The service's time, if it is trusted: what cannot be taken back waits for it.
    pub fn trusted_now(&self) -> Option<Micros> {
        self.clock.trusted()
    }

    /// The service's time, and whether it is trusted.
    pub fn decision_time(&self) -> DecisionTime {
        self.clock.read().into()
    }

    /// By how much the clock has jumped, in microseconds, while that keeps it in doubt.
    pub fn clock_jump(&self) -> Option<i64> {
        self.clock.read().doubt.map(|doubt| doubt.jump)
    }

    /// Notes in the store what a server that starts must know of the clock.
    pub(crate) fn remember_clock(&self) -> Result<(), Failure> {
        self.clock_memory.note(&*self.store, &self.clock)?;
        if self.has_others() {
            self.clock_memory.note_newest(&*self.store, self.lane.newest_instant())?;
        }
        Ok(())
    }

    /// By how much the newest instant that was stored when this server started lay ahead of its clock, in microseconds.
    pub fn newest_ahead(&self) -> i64 {
        self.newest_ahead
    }

    /// Whether the state in memory is current.
    pub fn may_answer(&self) -> bool {
        let open = self.keys.protected_mode();
        let knows = |follower: &Follower| follower.may_answer(open, self.settings.staleness_max);
        self.store.may_answer()
            && self.follower.as_ref().is_none_or(knows)
            && self.following.as_ref().is_none_or(|following| following.may_answer())
    }

    /// Whether other servers may write to the same store.
    pub fn has_others(&self) -> bool {
        self.follower.is_some() || self.following.is_some()
    }

    /// The board of that name, also one that another server has just made. May block on the store.
    pub fn board(&self, id: &BoardId) -> Option<Arc<Board>> {
        self.boards.get(id).or_else(|| {
            self.follower.as_ref()?.refresh_blocking();
            self.boards.get(id)
        })
    }

    /// The board of that name, also one that another server has just made, or a rejection.
    pub async fn find(&self, id: &BoardId) -> Result<Arc<Board>, Rejection> {
        let found = self.boards.find(id);
        if found.is_ok() || !self.has_others() {
            return found;
        }
        self.refresh().await;
        // A leaderboard without players in memory may have some of another server.
        self.counted(self.boards.get(id).into_iter().collect()).await;
        self.boards.find(id)
    }

    /// Reads the numbers of players and the periods of leaderboards, if other servers change them.
    pub async fn counted(&self, boards: Vec<Arc<Board>>) {
        if boards.is_empty() || !self.has_others() {
            return;
        }
        self.refresh().await;
        let count = move || {
            let counted = |ranking: &WindowRanking| ranking.remote().map_or((), RemoteRanking::count);
            boards.iter().for_each(|board| board.each_ranking(|_, ranking| counted(ranking)));
            Ok(())
        };
        // It cannot fail.
        drop(blocking(count).await);
    }

    /// Calls something for the leaderboard of that name, and once more if it was deleted and another server has made it again.
    pub(crate) async fn of_present<T, F: Future<Output = Result<T, Failure>>>(
        &self,
        id: &BoardId,
        ask: impl Fn() -> F,
    ) -> Result<T, Failure> {
        let known = self.has_others().then(|| self.boards.get(id).map(|board| board.no)).flatten();
        match ask().await {
            Err(Failure::Rejected(Rejection::LeaderboardNotFound(_))) if self.is_another(id, known).await => {
                ask().await
            }
            done => done,
        }
    }

    /// Whether a name is now another leaderboard than `known`, which was deleted.
    async fn is_another(&self, id: &BoardId, known: Option<BoardNo>) -> bool {
        if !self.has_others() {
            return false;
        }
        self.refresh().await;
        self.boards.get(id).is_some_and(|board| Some(board.no) != known)
    }

    /// Reads the changes of other servers up to now. May block on the store.
    pub(crate) fn refresh_blocking(&self) {
        if let Some(follower) = &self.follower {
            follower.refresh_blocking();
        }
    }

    /// The same for a caller that must not block.
    pub async fn refresh(&self) {
        if let Some(follower) = &self.follower {
            follower.refresh().await;
        }
    }

    /// The stored outcome of a request, without doing it.
    pub(crate) async fn stored(&self, idempotency: &IdempotencyKey) -> Result<Option<Outcome>, Failure> {
        let (store, idempotency) = (Arc::clone(&self.store), idempotency.clone());
        let retention = self.clock.read().retention(self.settings.idempotency_keep_micros);
        let read = move || -> Result<Option<Outcome>, Failure> {
            let stored = outcomes::stored(&*store, &idempotency)?;
            Ok(outcomes::replay(Some(&idempotency), stored.as_ref(), retention)?)
        };
        blocking(read).await
    }

    /// The fingerprint under which a request was done first, or is done now, and the number of its secret. What is derived from that
    /// is the same for every retry. Blocks on the store while a secret is replaced.
    pub(crate) fn first_fingerprint(&self, key: &IdempotencyKey) -> Result<(Fingerprint, u8), Failure> {
        let now = key.fingerprint;
        if now.other.is_none() {
            return Ok((now.made, now.made_by));
        }
        let stored = outcomes::stored(&*self.store, key)?.map(|stored| stored.fingerprint);
        let first = stored.and_then(|print| Some((print, now.maker_of(print)?)));
        Ok(first.unwrap_or((now.made, now.made_by)))
    }

    /// What a request names, as it was looked up. If that is not there, an idempotency key that another request has used is rejected
    /// first.
    pub(crate) async fn named<T>(
        &self,
        found: Result<T, Failure>,
        idempotency: Option<&IdempotencyKey>,
    ) -> Result<T, Failure> {
        if let (Err(Failure::Rejected(_)), Some(idempotency)) = (&found, idempotency) {
            self.stored(idempotency).await?;
        }
        found
    }

    /// Begins a request with an idempotency key; rejected while one with the same key is running.
    pub fn begin(&self, key: &RequestKey) -> Result<KeyGuard, Rejection> {
        self.running.begin(key)
    }

    /// Ends it: it takes no new work, makes everything accepted durable and sends the replies. Blocks until then.
    pub fn drain(&self) {
        let Tasks {
            contests,
            periods,
            holds,
            erasures,
            archives,
            names,
            stops,
            maintenance,
            redis,
            redis_claim,
            secret,
            noted: _,
        } = &self.tasks;
        stops.store(true, Ordering::Relaxed);
        [contests, periods, holds, erasures, archives, names].into_iter().for_each(BackgroundTask::stop);
        self.events.stop();
        self.webhooks.stop();
        self.lane.drain();
        self.ledger.drain();
        if let Some(follower) = &self.follower {
            follower.stop();
        }
        [redis, maintenance, redis_claim, secret].into_iter().for_each(BackgroundTask::stop);
    }

    /// See [`run_once`].
    pub(crate) fn once(
        &self,
        plan: &ReadSet,
        idempotency: Option<&IdempotencyKey>,
        time: ClockReading,
        change: impl FnMut(&Loaded, &mut WriteSet) -> Result<Outcome, Rejection>,
    ) -> Result<Option<Stored>, Failure> {
        let retention = time.retention(self.settings.idempotency_keep_micros);
        run_once((&*self.store, &self.keys.in_doubt), plan, idempotency, retention, change)
    }
}
