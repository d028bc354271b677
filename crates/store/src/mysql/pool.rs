//! A bounded pool of connections. The last returned one is used first, so a lane keeps its own. Some are reserved for
//! transactions, so the ledger finds a connection however many reads run.
//!
//! A new connection first checks that its database has lost no commits (`witness`). Not here: checks of an open connection,
//! which would cost a round trip. A connection that was lost while idle fails at its first message, and `run` and `query`
//! begin again on a new one.

use super::connect::{self, Address, Flavour};
use super::fault::Fault;
use super::link::Link;
use super::row::ResultSets;
use super::stats::Stats;
use super::text::Script;
use super::witness::{CommitStart, Witnesses};
use super::{Options, batches::Batch};
use crate::StoreError;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The age at which an idle connection is closed: the server or a firewall behind it may have dropped it.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// How long an answer may take on a separate connection.
const SEPARATE_QUERY_MAX: Duration = Duration::from_secs(1);

/// The connections of a store.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) address: Address,
    pub(super) options: Options,
    pub(super) stats: Arc<Stats>,
    state: Mutex<State>,
    /// Wakes waiting reads, and waiting transactions.
    freed: [Condvar; 2],
    /// The commits of this process that the database must still have.
    pub(super) witnesses: Witnesses,
}

#[derive(Debug, Default)]
struct State {
    idle: Vec<Link>,
    used: usize,
    /// The number of them that only read.
    reading: usize,
}

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// A read outside of lanes: there may be many, and each may be slow.
    Read,
    /// A transaction, or resolving one.
    Transact,
}

/// A connection that returns to the pool when it is dropped.
#[derive(Debug)]
pub(super) struct Taken<'a> {
    pool: &'a Pool,
    link: Option<Link>,
    of: Use,
    /// Whether it was opened for this use, so that it was not lost while idle.
    pub(super) new: bool,
}

impl Pool {
    pub(super) fn new(address: Address, options: Options) -> Self {
        let stats = Arc::new(Stats::default());
        Self {
            address,
            options,
            stats,
            state: Mutex::default(),
            freed: Default::default(),
            witnesses: Witnesses::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a connection. All are refused once the database has lost commits.
    pub(super) fn connect(&self, options: &Options) -> Result<Link, StoreError> {
        self.witnesses.check()?;
        let mut link = connect::connect(&self.address, options, &self.stats)?;
        self.witnesses.check_all(&mut link, &self.address.shown)?;
        Ok(link)
    }

    /// Takes a connection for a read: an idle one, a new one, or the next one that is returned.
    pub(super) fn take(&self) -> Result<Taken<'_>, StoreError> {
        self.take_for(Use::Read)
    }

    /// Like [`Self::take`], for any purpose.
    pub(super) fn take_for(&self, of: Use) -> Result<Taken<'_>, StoreError> {
        self.witnesses.check()?;
        let idle = self.wait_for_place(of)?;
        let new = idle.is_none();
        // From here on the place is taken, and dropping `taken` gives it back.
        let mut taken = Taken { pool: self, link: idle, of, new };
        if new {
            taken.link = Some(self.connect(&self.options)?);
        }
        Ok(taken)
    }

    /// Takes a new connection: the idle ones may all be lost for the same reason.
    pub(super) fn take_new(&self, of: Use) -> Result<Taken<'_>, StoreError> {
        let mut taken = Taken { pool: self, link: self.wait_for_place(of)?, of, new: true };
        drop(taken.link.take());
        taken.link = Some(self.connect(&self.options)?);
        Ok(taken)
    }

    fn wait_for_place(&self, of: Use) -> Result<Option<Link>, StoreError> {
        let max = self.options.pool_max.max(1);
        // A quarter of them is for transactions only.
        let reading_max = (max * 3 / 4).max(1);
        let full = |state: &mut State| state.used == max || of == Use::Read && state.reading == reading_max;
        let began = Instant::now();
        let mut state = self.state();
        if full(&mut state) {
            self.stats.waits.fetch_add(1, Ordering::Relaxed);
            state = self.freed[of as usize]
                .wait_timeout_while(state, self.options.query_timeout, full)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
            self.stats.wait_micros.fetch_add(micros, Ordering::Relaxed);
            if full(&mut state) {
                let max = if of == Use::Read { reading_max } else { max };
                return Err(StoreError::Unavailable(format!(
                    "all {max} connections were in use for {micros} µs"
                )));
            }
        }
        state.used += 1;
        state.reading += usize::from(of == Use::Read);
        let idle = state.idle.pop();
        let is_old = |link: &Link| link.idle_since.is_some_and(|since| since.elapsed() > IDLE_MAX);
        if !idle.as_ref().is_some_and(is_old) {
            return Ok(idle);
        }
        // The youngest is too old, so all are.
        let old = std::mem::take(&mut state.idle);
        drop(state);
        drop((idle, old));
        Ok(None)
    }

    /// Sends on any connection, and once more on a new one if that was lost. Only for statements that can be repeated.
    pub(super) fn query(&self, script: &Script) -> Result<ResultSets, StoreError> {
        let mut link = self.take()?;
        match link.get().send(script) {
            Err(Fault::Lost(_)) if !link.new => {
                drop(link);
                self.stats.again.fetch_add(1, Ordering::Relaxed);
                self.query_new(script, Use::Read)
            }
            answered => link.after(answered),
        }
    }

    /// Like [`Self::query`], for a script that is a transaction. If a statement fails, the connection is closed, and the open
    /// transaction with it.
    pub(super) fn query_transaction(&self, script: &Script) -> Result<ResultSets, StoreError> {
        let mut link = self.take()?;
        let mut answered = link.get().send(script);
        if matches!(answered, Err(Fault::Lost(_))) && !link.new {
            drop(link);
            self.stats.again.fetch_add(1, Ordering::Relaxed);
            link = self.take_new(Use::Read)?;
            answered = link.get().send(script);
        }
        answered.map_err(|fault| {
            link.get().give_up();
            fault.into()
        })
    }

    /// Sends on a new connection.
    fn query_new(&self, script: &Script, of: Use) -> Result<ResultSets, StoreError> {
        let mut link = self.take_new(of)?;
        let answered = link.get().send(script);
        link.after(answered)
    }

    /// Sends on a connection that the caller keeps, and once more if that was lost.
    pub(super) fn query_separately(
        &self,
        kept: &mut Option<Link>,
        script: &Script,
    ) -> Result<ResultSets, StoreError> {
        let query_timeout = self.options.query_timeout.min(SEPARATE_QUERY_MAX);
        let options = Options { query_timeout, ..self.options.clone() };
        loop {
            let new = kept.is_none();
            let link = match kept {
                Some(link) => link,
                None => kept.insert(self.connect(&options)?),
            };
            match link.send(script) {
                Ok(results) => return Ok(results),
                Err(fault) => {
                    *kept = None;
                    if new {
                        return Err(fault.into());
                    }
                }
            }
        }
    }

    /// See [`end_silent_transactions`]. If it fails, the next lock wait tries again.
    pub(super) fn end_silent_transactions(&self) {
        if let Ok(mut link) = self.take_for(Use::Transact) {
            end_silent_transactions(link.get());
        }
    }

    /// See [`crate::Transactions::resolve`].
    pub(super) fn resolve(&self, batch: &Batch) -> Result<Option<u64>, StoreError> {
        let version =
            super::batches::read_outcome(self.query_new(&super::batches::resolve(batch), Use::Transact)?)?;
        if let Some(version) = version {
            self.witnesses.answered(*batch, version, CommitStart::UNKNOWN);
        }
        Ok(version)
    }

    pub(super) fn gauges(&self) -> Vec<(&'static str, f64)> {
        let (used, idle) = {
            let state = self.state();
            (state.used, state.idle.len())
        };
        let mut gauges = self.stats.gauges();
        gauges.push(("connections_max", self.options.pool_max as f64));
        gauges.push(("connections_used", used as f64));
        gauges.push(("connections_idle", idle as f64));
        gauges
    }
}

/// Ends connections of this account that were silent for long: the one that locks the rows is among them. Only on MySQL,
/// which does not end such transactions by itself. The pool replaces an idle connection on demand.
pub(super) fn end_silent_transactions(link: &mut Link) {
    if link.server.flavour == Flavour::MariaDb {
        return;
    }
    let mut script = Script::default();
    script.sql("SELECT id FROM information_schema.processlist WHERE command = 'Sleep' AND time >= ");
    script.number(connect::IDLE_TRANSACTION.as_secs()).sql(" AND db = DATABASE() AND id <> CONNECTION_ID()");
    script.sql(" AND user = SUBSTRING_INDEX(USER(), '@', 1)");
    // A snapshot, which locks no rows.
    script.sql(" AND IS_USED_LOCK(CONCAT('tally.snapshot.', id)) IS NULL").end();
    let mut silent: Vec<u64> = Vec::new();
    let found = link.send(&script).map_err(StoreError::from).and_then(|mut results| {
        results.each(1, "the list of connections", |row| {
            silent.push(row.number()?);
            Ok(())
        })
    });
    if found.is_err() {
        return link.give_up();
    }
    for id in silent {
        let mut script = Script::default();
        script.sql("KILL ").number(id).end();
        // The connection may have closed, or sent something, meanwhile.
        drop(link.send(&script));
    }
}

impl Taken<'_> {
    pub(super) fn get(&mut self) -> &mut Link {
        self.link.as_mut().expect("it is there until it is given back")
    }

    /// The result of a statement outside of a transaction. A broken connection is given up.
    fn after(mut self, answered: Result<ResultSets, Fault>) -> Result<ResultSets, StoreError> {
        answered.map_err(|fault| {
            if !fault.spares_link() {
                self.get().give_up();
            }
            fault.into()
        })
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let link = self.link.take().filter(|link| !link.is_broken() && !std::thread::panicking());
        let mut state = self.pool.state();
        state.used -= 1;
        state.reading -= usize::from(self.of == Use::Read);
        if let Some(mut link) = link {
            link.idle_since = Some(Instant::now());
            state.idle.push(link);
        }
        drop(state);
        // Only one of these can take it.
        self.pool.freed.iter().for_each(Condvar::notify_one);
    }
}
