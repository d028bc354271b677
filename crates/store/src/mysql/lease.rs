//! The lease of the writers. It is a row of the database that one server holds and renews. Servers that write side by side
//! renew another row together.
//!
//! A server that keeps rankings in memory is right only while no other server writes. So it takes the lease when it opens
//! the store, under a fencing token that grows with every holder. A thread with its own connection renews the lease. Neither
//! of the two rules below compares a clock of this machine with the database's:
//!
//! - **Writes are fenced by the token.** The last insert of each transaction reads the lease under a shared lock. It is
//!   null, so refused, if the token is another (`batches`). So nothing is committed after another server took the lease, and
//!   none takes it between that insert and its COMMIT. The check is in the second message and not in the first. A process
//!   that is frozen between the two would hold the lock and block its successor.
//! - **Reads are fenced by time.** [`Lease::may_answer`] is true for the lease time after the last renewal. The time is
//!   measured from before the renewal was sent, on the monotonic clock of this machine, which runs while a process is
//!   frozen. (It stops while the whole machine sleeps: then reads may be old until the next renewal is answered.)
//!
//! An unavailable database does not end the lease. A later renewal finds the same token, so no other server wrote meanwhile,
//! and the rankings in memory are still exact.
//!
//! Servers with rankings elsewhere write side by side ([`LeaseKind::Beside`]). They do not exclude each other, but they exclude a
//! single writer: it does not begin while one of them renews their common row. When it begins, it raises the token that they
//! have read. So one that was frozen meanwhile is fenced as well.
//!
//! Not here: the statements of a renewal (`renewal`), how these servers coordinate (`revisions`), and background deletes
//! (`purge`, `requests`), which any server may run.

use super::fault::Fault;
pub(super) use super::leases::LeaseKind;
use super::leases::{HeldLease, LeaseRow, Tried, short, try_take};
use super::pool::Pool;
use super::renewal::{Renewals, Renewed};
use super::text::Script;
use crate::StoreError;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Renewals within the lease time: four may be lost or late before the lease ends.
const RENEWALS: u32 = 5;

/// A failed renewal, and the wait for a lease, are tried again after this fraction of the lease time.
const RETRIES: u32 = 20;

/// The lease is held until it is released, dropped or taken by another server.
#[derive(Debug)]
pub(super) struct Lease {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    pool: Arc<Pool>,
    kind: LeaseKind,
    token: u64,
    replaced: (u64, u64),
    /// The end of the lease in the database since the last renewal.
    expires_at: AtomicU64,
    generation: u64,
    time: Duration,
    /// The zero of `until`.
    base: Instant,
    /// Reads are answered until then, in microseconds after `base`.
    until: AtomicU64,
    /// How far the wall clock is ahead of the database's, in microseconds.
    ahead: AtomicI64,
    /// The newest version that was given.
    newest: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The lease may be lost: renew at once.
    doubted: bool,
    /// The lease is given back.
    ended: bool,
    /// The present holder, if another server has taken the lease.
    taken: Option<String>,
}

impl Lease {
    /// Takes the lease. It waits for a silent holder until its lease ends, and `on_wait` gets a message about that. A lease
    /// that is renewed is refused. Silent servers side by side get the time of a renewal. After a failure of the database they
    /// have lost nothing, and a new generation would make all of them read everything anew.
    pub(super) fn take(
        pool: &Arc<Pool>,
        (kind, holder): (LeaseKind, &str),
        on_wait: &mut dyn FnMut(&str),
    ) -> Result<Self, StoreError> {
        let (time, began) = (pool.options.lease, Instant::now());
        let (mut before, mut silent_since): (Option<LeaseRow>, Option<Instant>) = (None, None);
        let shown = &pool.address.shown;
        loop {
            let may_begin = silent_since.is_some_and(|since| since.elapsed() >= time / RENEWALS);
            let mut link = pool.take()?;
            let tried = try_take(link.get(), (kind, holder), (time, pool.options.anew, may_begin));
            if tried.is_err() {
                // The connection may have an open transaction.
                link.get().give_up();
            }
            drop(link);
            let found = match tried {
                Ok(Tried::Taken(taken)) => return Self::keep((pool, kind), &taken),
                Ok(Tried::Held(found)) => found,
                Ok(Tried::Silent) => {
                    if silent_since.is_none() {
                        let wait = time / RENEWALS;
                        on_wait(&format!(
                            "the servers of `{shown}` are silent: waiting {wait:?} for one to renew its lease"
                        ));
                        silent_since = Some(Instant::now());
                    }
                    std::thread::sleep(time / RETRIES);
                    continue;
                }
                // A transaction of the last holder is about to end, or a server is frozen while it takes the lease.
                Err(StoreError::Conflict(_)) if began.elapsed() < time => {
                    pool.end_silent_transactions();
                    continue;
                }
                Err(error) => return Err(error),
            };
            let renewed = before.as_ref().is_some_and(|before| before.expires_at != found.expires_at);
            // A stopped clock of the database must not block a start forever.
            if renewed || began.elapsed() > time * 2 {
                return Err(StoreError::Locked(format!("`{shown}` is held by {}", found.holder)));
            }
            if before.is_none() {
                let holder = &found.holder;
                on_wait(&format!(
                    "`{shown}` is held by {holder}: waiting up to {time:?} for it to be silent"
                ));
            }
            before = Some(found);
            std::thread::sleep(time / RETRIES);
        }
    }

    fn keep((pool, kind): (&Arc<Pool>, LeaseKind), taken: &HeldLease) -> Result<Self, StoreError> {
        let HeldLease { token, replaced, generation, sent } = *taken;
        let shared = Arc::new(Shared {
            pool: Arc::clone(pool),
            kind,
            token,
            replaced,
            expires_at: AtomicU64::new(0),
            generation,
            time: pool.options.lease,
            base: sent,
            until: AtomicU64::new(0),
            ahead: AtomicI64::new(0),
            newest: AtomicU64::new(0),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        shared.extend(sent);
        // From now on, reads are of a history that contains a marker.
        let mut renewals = Renewals::new(pool, (kind, token), shared.time)?;
        shared.note(&renewals.renew()?);
        let thread = std::thread::Builder::new().name("tally-lease".into()).spawn({
            let shared = Arc::clone(&shared);
            move || shared.renew_until_the_end(renewals)
        });
        let thread =
            thread.map_err(|error| StoreError::Unavailable(format!("no thread for the lease: {error}")))?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// The fencing token that the last insert of a transaction must find.
    pub(super) fn token(&self) -> u64 {
        self.shared.token
    }

    /// The token of the single writer before this one, and the end of its lease: nothing was written under another one in between.
    pub(super) fn replaced(&self) -> (u64, u64) {
        self.shared.replaced
    }

    /// The end of the lease in the database since the last renewal.
    pub(super) fn expires_at(&self) -> u64 {
        self.shared.expires_at.load(Ordering::Acquire)
    }

    /// A version for a transaction that reads no rows: greater than any that was given here, and near the present time. A
    /// row may have a greater one from a clock that was ahead; its version still grows.
    pub(super) fn version(&self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
        let next = |newest: u64| now.max(newest.saturating_add(1));
        let given =
            self.shared.newest.fetch_update(Ordering::AcqRel, Ordering::Acquire, |old| Some(next(old)));
        given.map_or(now, next)
    }

    /// A number that grows when servers side by side begin while none was there. For the only writer, it grows when the
    /// lease is taken.
    pub(super) fn generation(&self) -> u64 {
        match self.shared.kind {
            LeaseKind::Alone => self.shared.token | 1 << 63,
            LeaseKind::Beside => self.shared.generation,
        }
    }

    /// Whether no other server writes.
    pub(super) fn is_alone(&self) -> bool {
        self.shared.kind == LeaseKind::Alone
    }

    /// Whether the state in memory is still current.
    pub(super) fn may_answer(&self) -> bool {
        self.shared.left() > 0
    }

    /// How long the lease lasts without another renewal.
    pub(super) fn seconds_left(&self) -> f64 {
        self.shared.left() as f64 / 1e6
    }

    /// The gauges for metrics.
    pub(super) fn gauges(&self) -> [(&'static str, f64); 2] {
        [("lease_seconds", self.seconds_left()), ("clock_ahead_seconds", self.clock_ahead() as f64 / 1e6)]
    }

    /// By how much the wall clock of this machine is at least ahead of the database's, in microseconds, at the last renewal.
    pub(super) fn clock_ahead(&self) -> i64 {
        self.shared.ahead.load(Ordering::Relaxed)
    }

    /// The server that has taken the lease, once it is known.
    pub(super) fn taken(&self) -> Option<String> {
        self.shared.state().taken.clone()
    }

    /// Returns an error once another server is known to hold the lease.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let state = self.shared.state();
        match (&state.taken, state.ended) {
            (Some(holder), _) => Err(self.shared.locked(holder)),
            (None, true) => Err(self.shared.locked("nobody: this process has given it back")),
            (None, false) => Ok(()),
        }
    }

    /// A transaction found another token: starts a renewal at once, which finds the new holder.
    pub(super) fn refused(&self) -> StoreError {
        self.shared.state().doubted = true;
        self.shared.changed.notify_all();
        self.shared.locked("another server, which has taken over")
    }

    /// Adds to the name of the holder, for servers that find the lease taken.
    pub(super) fn announce(&self, holder: &str) -> Result<(), StoreError> {
        let mut script = Script::default();
        script.sql("UPDATE leases SET holder = ").bytes(short(holder));
        self.shared.kind.put_row(&mut script, self.shared.token);
        self.shared.pool.query(&script).map(drop)
    }

    /// Gives the lease back, so that the next server need not wait. Afterwards nothing is answered or written.
    pub(super) fn release(&self) {
        self.shared.state().ended = true;
        self.shared.changed.notify_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A thread that panicked has nothing to give back.
            let _ = thread.join();
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.release();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn locked(&self, holder: &str) -> StoreError {
        StoreError::Locked(format!("`{}` is held by {holder}", self.pool.address.shown))
    }

    fn micros(&self, at: Instant) -> u64 {
        u64::try_from(at.duration_since(self.base).as_micros()).unwrap_or(u64::MAX)
    }

    fn left(&self) -> u64 {
        self.until.load(Ordering::Acquire).saturating_sub(self.micros(Instant::now()))
    }

    fn extend(&self, sent: Instant) {
        self.until.store(self.micros(sent + self.time), Ordering::Release);
    }

    fn note(&self, renewed: &Renewed) {
        self.ahead.store(renewed.ahead, Ordering::Relaxed);
        if renewed.found.token == self.token {
            self.expires_at.store(renewed.found.expires_at, Ordering::Release);
        }
    }

    /// The loop of the lease thread.
    fn renew_until_the_end(&self, mut renewals: Renewals) {
        let mut pause = self.time / RENEWALS;
        while !self.sleep(pause) {
            let sent = Instant::now();
            match renewals.renew().inspect(|renewed| self.note(renewed)) {
                Ok(Renewed { found, .. }) if found.token == self.token => {
                    self.extend(sent);
                    pause = self.time / RENEWALS;
                }
                Ok(Renewed { found, .. }) => {
                    self.until.store(0, Ordering::Release);
                    self.state().taken = Some(found.holder);
                    return;
                }
                // Gives the lease back, for the store that is opened next.
                Err(_) if !self.pool.witnesses.is_intact() => break,
                // The database is unavailable or read-only; the lease stays ours.
                Err(_) => pause = self.time / RETRIES,
            }
        }
        self.until.store(0, Ordering::Release);
        // Other servers side by side may still hold it.
        if self.kind == LeaseKind::Alone {
            renewals.release();
        }
    }

    /// Sleeps for `pause`, or until the lease is doubted or ended. Returns whether it ended.
    fn sleep(&self, pause: Duration) -> bool {
        let calm = |state: &mut State| !state.doubted && !state.ended;
        let waited = self.changed.wait_timeout_while(self.state(), pause, calm);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.doubted = false;
        state.ended
    }
}

/// The error of a refused transaction: the lease was lost, if there is one.
pub(super) fn refused(lease: Option<&Lease>, fault: Fault) -> StoreError {
    lease.map_or_else(|| fault.into(), Lease::refused)
}
