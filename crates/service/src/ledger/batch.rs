//! What the ledger's lane does with a batch: one transaction, then the replies.
//!
//! Balances are never kept outside of the store, so only the state of contests is published, on which scores depend. A request
//! that changes it is its own batch, and passes the barrier of the score lanes alone. Event streams are woken and read the
//! store.

use super::LedgerSettings;
use super::request::{AnyRequest, Decision, Needs};
use super::state::BatchState;
use crate::activity::TransferSums;
use crate::clock::{Clock, ClockReading};
use crate::events::hub::{Hub, Touched};
use crate::failure::{Fault, in_lane};
use crate::outcomes::Retention;
use crate::reply::ReplyDispatcher;
use crate::scores::StoreTimes;
use crate::scores::shared::Shared;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tally_lanes::{BarrierGuard, BatchFailure, BatchHandler, BatchSharing, Resolution, Weight, keys_to_load};
use tally_rules::instant::Instants;
use tally_rules::ledger::Uuid;
use tally_store::{BatchId, Loaded, ReadSet, ShardSet, Store, StoreError, WriteSet};

/// Bytes of a transfer, with its keys, a reference and a reason: for the queue's bound.
const TRANSFER_BYTES: u32 = 768;

/// The shard that has all members and money.
const FIRST: usize = 0;

/// The name under which the store remembers which currency every member has a wallet in.
pub(crate) const HOME_META: &str = "wallet_currency";

/// The batch handler of the ledger's lane.
pub(super) struct LedgerBatchHandler {
    store: Arc<dyn Store>,
    clock: Clock,
    /// The lanes of scores: some requests pass their barrier.
    scores: Arc<Shared>,
    /// From before the transaction of such a request until its leaderboards have its result.
    pass: Option<BarrierGuard>,
    /// The callers of an in-doubt commit got the reply that its outcome is unknown.
    is_unheard: bool,
    settings: LedgerSettings,
    keep_micros: i64,
    times: Arc<StoreTimes>,
    /// When the last attempt had read its rows.
    read_at: Option<Instant>,
    instants: Instants,
    /// The random part of this server's ids.
    node: u64,
    /// Whether the home currency was stored.
    remembered: bool,
    /// Event streams.
    hub: Arc<Hub>,
    /// The subjects of the last batch that have streams.
    touched: Touched,
    /// The transfers of the last batch.
    transfers: TransferSums,
    dispatcher: ReplyDispatcher,
    /// The in-doubt batch with its decisions.
    unresolved: Option<(BatchId, Vec<Decision>)>,
}

impl LedgerBatchHandler {
    pub(super) fn new(
        scores: Arc<Shared>,
        settings: LedgerSettings,
        keep_micros: i64,
        (node, times, hub, dispatcher): (u64, Arc<StoreTimes>, Arc<Hub>, ReplyDispatcher),
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
            transfers: TransferSums::default(),
            dispatcher,
            unresolved: None,
        }
    }

    /// Members have their first wallet in the home currency, so from the first one on it is fixed.
    fn remember_home(&mut self, batch: &[Box<dyn AnyRequest>]) -> Result<(), StoreError> {
        if !self.remembered && batch.iter().any(|request| request.needs().makes_members) {
            self.store.set_meta(HOME_META, self.settings.currencies.home().as_str().as_bytes())?;
            self.remembered = true;
        }
        Ok(())
    }
}

impl BatchHandler for LedgerBatchHandler {
    type Request = Box<dyn AnyRequest>;
    type Answer = Decision;
    type Fault = Fault;
    type Committed = Vec<Decision>;

    fn weight(request: &Self::Request) -> Weight {
        let Needs { rows, bytes, .. } = request.needs();
        let [rows, bytes] = [rows, bytes].map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        Weight { rows, bytes: rows.saturating_mul(TRANSFER_BYTES).saturating_add(bytes) }
    }

    fn kind(request: &Self::Request) -> BatchSharing {
        if request.needs().excludes_scores { BatchSharing::Alone } else { BatchSharing::Group(0) }
    }

    fn dispatch(&mut self, callers: usize, replies: Box<dyn Send>) {
        self.dispatcher.dispatch(callers, replies);
    }

    fn commit(&mut self, batch: &[Self::Request]) -> Result<Vec<Decision>, BatchFailure<Fault>> {
        self.remember_home(batch).map_err(in_lane)?;
        // From an attempt before, which has done nothing.
        self.pass = None;
        if batch.iter().any(|request| request.needs().excludes_scores) {
            self.pass = Some(self.scores.pass_alone_soon().map_err(BatchFailure::Piece)?);
        }
        let time = self.clock.read();
        let now = time.now;
        let count = batch.iter().map(|request| request.needs().ids).sum();
        let id = |_| Uuid::new(self.instants.next(now), self.node);
        let ids: Vec<Uuid> = std::iter::repeat_n((), count).map(id).collect();
        let plan = read(batch, &ids, &self.settings);
        let imported = imported(batch, &ids);
        let mut decisions = Vec::new();
        let mut since = Instant::now();
        let done = self.store.run(&plan, &mut |loaded| {
            let read_at = Instant::now();
            self.times.read.record(read_at.duration_since(since));
            self.read_at = Some(read_at);
            let when = (time, time.retention(self.keep_micros));
            let (changes, decided) = decide(batch, &ids, (&plan, loaded), &self.settings, when);
            decisions = decided;
            self.touched = self.hub.touched(&changes.ledger);
            let counted = changes.ledger.transfers.iter().filter(|(id, _)| !imported.contains(&id.0));
            self.transfers = TransferSums::of(counted.map(|(_, transfer)| transfer));
            since = Instant::now();
            changes
        });
        self.times.commit.record(since.elapsed());
        match done {
            Ok(_) => Ok(decisions),
            Err(error) => {
                if let StoreError::InDoubt { batch, .. } = &error {
                    self.unresolved = Some((*batch, decisions));
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

    /// The store resolves the batch by its name. The decisions were kept, because they must not be made again.
    fn resolve(&mut self, requests: &[Self::Request]) -> Result<Resolution<Vec<Decision>, Fault>, Fault> {
        let (batch, _) = self.unresolved.as_ref().expect("a commit was lost");
        let done = self.store.resolve(batch).inspect_err(|_| {
            self.is_unheard = true;
            self.pass.iter().for_each(BarrierGuard::mark_stuck);
        })?;
        let (_, decisions) = self.unresolved.take().expect("a commit was lost");
        let is_unheard = std::mem::take(&mut self.is_unheard);
        Ok(match done {
            Some(_) => {
                if is_unheard && requests.iter().any(|request| request.needs().makes_boards) {
                    self.scores.started_unheard.store(true, Ordering::SeqCst);
                }
                Resolution::Committed(decisions)
            }
            None => {
                self.pass = None;
                Resolution::NotCommitted(Fault::StoreUnavailable(
                    "the connection was lost before the commit".into(),
                ))
            }
        })
    }

    fn publish(&mut self, batch: Vec<Self::Request>, decisions: Vec<Decision>) -> Vec<Decision> {
        self.hub.wake(std::mem::take(&mut self.touched));
        self.scores.activity.add_transfers(self.clock.now(), std::mem::take(&mut self.transfers));
        batch.iter().zip(&decisions).for_each(|(request, decision)| request.publish(decision));
        self.pass = None;
        decisions
    }
}

/// The ids of imports. Their transfers are copies of earlier ones of another system, so they are no activity of today.
fn imported(batch: &[Box<dyn AnyRequest>], mut ids: &[Uuid]) -> BTreeSet<Uuid> {
    let is_import: Vec<bool> = batch.iter().map(|request| request.needs().is_import).collect();
    if !is_import.contains(&true) {
        return BTreeSet::new();
    }
    let own = batch.iter().zip(is_import).map(|(request, is)| (is, take(&mut ids, &**request)));
    own.filter(|(is_import, _)| *is_import).flat_map(|(_, ids)| ids).copied().collect()
}

/// Everything that a batch reads; `ids` are those of its requests, one after the other.
pub(super) fn read(batch: &[Box<dyn AnyRequest>], mut ids: &[Uuid], settings: &LedgerSettings) -> ReadSet {
    let mut plan = ReadSet { shards: ShardSet::of(FIRST), ..ReadSet::default() };
    for request in batch {
        request.read(&mut plan, take(&mut ids, &**request), settings);
    }
    fn sort<K: Ord>(keys: &mut Vec<K>) {
        *keys = keys_to_load(std::mem::take(keys));
    }
    sort(&mut plan.requests);
    sort(&mut plan.imports);
    sort(&mut plan.boards);
    sort(&mut plan.board_names);
    sort(&mut plan.ledger.handles);
    sort(&mut plan.ledger.members);
    sort(&mut plan.ledger.wallets);
    sort(&mut plan.ledger.holds);
    sort(&mut plan.ledger.reversals);
    sort(&mut plan.ledger.minted);
    sort(&mut plan.ledger.contests.contests);
    sort(&mut plan.ledger.contests.applications);
    sort(&mut plan.ledger.contests.members);
    sort(&mut plan.ledger.contests.series);
    sort(&mut plan.ledger.contests.payments);
    plan
}

/// Applies a batch to what its plan loaded.
pub(super) fn decide(
    batch: &[Box<dyn AnyRequest>],
    mut ids: &[Uuid],
    (plan, loaded): (&ReadSet, &Loaded),
    settings: &LedgerSettings,
    when: (ClockReading, Retention),
) -> (WriteSet, Vec<Decision>) {
    let mut state = BatchState::new(plan, loaded, settings, when);
    let mut decide = |request: &dyn AnyRequest| {
        state.book.set_origin(request.origin());
        request.decide(&mut state, take(&mut ids, request))
    };
    let decisions = batch.iter().map(|request| decide(&**request)).collect();
    (state.into_changes(), decisions)
}

/// The ids of a request, off the front of those of its batch.
fn take<'i>(ids: &mut &'i [Uuid], request: &dyn AnyRequest) -> &'i [Uuid] {
    let (own, rest) = ids.split_at(request.needs().ids);
    *ids = rest;
    own
}
