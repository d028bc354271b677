//! What the ledger's lane does with a batch: one transaction, then the answers. Nothing is published: balances are never
//! kept outside of the store. Who listens is woken, and reads there. Only what scores ask about of a contest is known in memory:
//! such an act is a batch of its own, and goes alone through the gate of the scores' lanes.

use super::LedgerSettings;
use super::command::{Done, Request};
use super::decide::{self, Decision};
use crate::clock::Clock;
use crate::contests::command::What;
use crate::contests::play;
use crate::events::hub::{Hub, Touched};
use crate::failure::{Fault, in_lane};
use crate::scores::shared::Shared;
use crate::scores::work::StoreTimes;
use crate::waiting::Teller;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tally_lanes::{BarrierGuard, BatchHandler, Failure, Kind, Resolution, Weight};
use tally_rules::Rejection;
use tally_rules::instant::Instants;
use tally_rules::ledger::Uuid;
use tally_store::{BatchId, Store, StoreError};

/// Bytes a movement holds, with its keys and a reference: for the queue's bound.
const MOVE_BYTES: u32 = 512;

/// The name under which the store remembers which currency every member has a wallet in.
pub(crate) const HOME_META: &str = "wallet_currency";

/// The work of the lane.
pub(super) struct LedgerWork {
    store: Arc<dyn Store>,
    clock: Clock,
    /// The lanes of scores, whose gate a few acts pass.
    scores: Arc<Shared>,
    /// From before the transaction of such an act until its leaderboards know what it did.
    pass: Option<BarrierGuard>,
    /// The callers of a commit in doubt have been told that its outcome is unknown.
    is_unheard: bool,
    settings: LedgerSettings,
    keep_micros: i64,
    times: Arc<StoreTimes>,
    /// When the last attempt had read what it needs.
    read_at: Option<Instant>,
    instants: Instants,
    /// The random part of this server's ids.
    node: u64,
    /// Whether the store knows the home currency.
    remembered: bool,
    /// Those who listen.
    hub: Arc<Hub>,
    /// What the last batch does that somebody may listen to.
    touched: Touched,
    teller: Teller,
    /// The batch that may have been committed, and what it decided.
    open: Option<(BatchId, Vec<Decision>)>,
}

impl LedgerWork {
    pub(super) fn new(
        scores: Arc<Shared>,
        settings: LedgerSettings,
        keep_micros: i64,
        (node, times, hub, teller): (u64, Arc<StoreTimes>, Arc<Hub>, Teller),
    ) -> Self {
        let (instants, touched) = (Instants::default(), Touched::default());
        let (store, clock) = (Arc::clone(&scores.store), scores.clock.clone());
        let remembered = false;
        Self {
            store,
            clock,
            scores,
            pass: None,
            is_unheard: false,
            settings,
            keep_micros,
            times,
            read_at: None,
            instants,
            node,
            remembered,
            hub,
            touched,
            teller,
            open: None,
        }
    }

    /// Members have their first wallet in the home currency, so from the first one on it is fixed.
    fn remember_home(&mut self, batch: &[Request]) -> Result<(), StoreError> {
        if !self.remembered
            && batch.iter().any(|request| matches!(request, Request::Create(..) | Request::Import(_)))
        {
            self.store.set_meta(HOME_META, self.settings.currencies.home().as_str().as_bytes())?;
            self.remembered = true;
        }
        Ok(())
    }
}

impl BatchHandler for LedgerWork {
    type Request = Request;
    type Answer = Result<Done, Rejection>;
    type Fault = Fault;
    type Committed = Vec<Decision>;

    fn weight(request: &Request) -> Weight {
        let rows = match request {
            Request::Chain(moves) => u32::try_from(moves.len()).unwrap_or(u32::MAX),
            Request::Expire(due) => u32::try_from(due.len()).unwrap_or(u32::MAX),
            Request::Import(chunk) => u32::try_from(chunk.rows.len()).unwrap_or(u32::MAX),
            Request::Contest(order) => u32::try_from(order.rows()).unwrap_or(u32::MAX),
            Request::Payment(order) => u32::try_from(order.rows()).unwrap_or(u32::MAX),
            Request::Hold(_)
            | Request::End(_)
            | Request::Create(..)
            | Request::Close(_)
            | Request::Change(_)
            | Request::Series(_)
            | Request::Pay(_) => 1,
        };
        Weight { rows, bytes: rows.saturating_mul(MOVE_BYTES) }
    }

    fn kind(request: &Request) -> Kind {
        if holds_scores(request) { Kind::Alone } else { Kind::Group(0) }
    }

    fn tell(&mut self, callers: usize, telling: Box<dyn Send>) {
        self.teller.tell(callers, telling);
    }

    fn commit(&mut self, batch: &[Request]) -> Result<Vec<Decision>, Failure<Fault>> {
        self.remember_home(batch).map_err(in_lane)?;
        // From an attempt before, that is known to have done nothing.
        self.pass = None;
        if batch.iter().any(holds_scores) {
            self.pass = Some(self.scores.pass_alone_soon().map_err(Failure::Piece)?);
        }
        let time = self.clock.judge();
        let now = time.now;
        let count = batch.iter().map(decide::ids_of).sum();
        let id = |_| Uuid::new(self.instants.next(now), self.node);
        let ids: Vec<Uuid> = std::iter::repeat_n((), count).map(id).collect();
        let plan = decide::read(batch, &ids, &self.settings);
        let mut decisions = Vec::new();
        let mut since = Instant::now();
        let done = self.store.run(&plan, &mut |loaded| {
            let read_at = Instant::now();
            self.times.read.record(read_at.duration_since(since));
            self.read_at = Some(read_at);
            let when = (now, time.keep(self.keep_micros));
            let (changes, decided) = decide::decide(batch, &ids, (&plan, loaded), &self.settings, when);
            decisions = decided;
            self.touched = self.hub.touched(&changes.ledger);
            since = Instant::now();
            changes
        });
        self.times.commit.record(since.elapsed());
        match done {
            Ok(_) => Ok(decisions),
            Err(error) => {
                if let StoreError::LostAtCommit { batch, .. } = &error {
                    self.open = Some((*batch, decisions));
                } else {
                    self.pass = None;
                }
                Err(in_lane(error))
            }
        }
    }

    fn read_at(&self) -> Option<Instant> {
        self.read_at
    }

    /// The store knows by the name of the batch; what it decided was kept, because it must not be decided again.
    fn resolve(&mut self, _batch: &[Request]) -> Result<Resolution<Vec<Decision>, Fault>, Fault> {
        let (batch, _) = self.open.as_ref().expect("a commit was lost");
        let done = self.store.became(batch).inspect_err(|_| {
            self.is_unheard = true;
            self.pass.iter().for_each(BarrierGuard::mark_stuck);
        })?;
        let (_, decisions) = self.open.take().expect("a commit was lost");
        let is_unheard = std::mem::take(&mut self.is_unheard);
        Ok(match done {
            Some(_) => {
                if is_unheard && decisions.iter().any(has_started) {
                    self.scores.started_unheard.store(true, Ordering::SeqCst);
                }
                Resolution::Committed(decisions)
            }
            None => {
                self.pass = None;
                Resolution::NotCommitted(Fault::StoreAway("the connection was lost before the commit".into()))
            }
        })
    }

    fn publish(&mut self, batch: Vec<Request>, decisions: Vec<Decision>) -> Vec<Result<Done, Rejection>> {
        self.hub.wake(std::mem::take(&mut self.touched));
        for (request, decision) in batch.iter().zip(&decisions) {
            if let (Request::Contest(order), Ok(Done::Contest(done))) = (request, decision) {
                order.boards.iter().for_each(|board| play::tell(board, &done.record));
            }
        }
        self.pass = None;
        decisions
    }
}

/// Whether a contest has started, with leaderboards.
fn has_started(decision: &Decision) -> bool {
    matches!(decision, Ok(Done::Contest(done)) if matches!(&done.what, What::Started(_, boards) if !boards.is_empty()))
}

/// Whether no score may be decided while it is done.
fn holds_scores(request: &Request) -> bool {
    matches!(request, Request::Contest(order) if order.holds_scores())
}
