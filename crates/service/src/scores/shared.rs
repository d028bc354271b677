//! What all score lanes share: the store, the clock, and the barrier of their batches.
//!
//! A request of one player at a time goes through any lane of the player's database. A request of several players goes through
//! a separate lane, and passes the barrier alone at its databases. Not here: which lane that is (`lane`), and what a batch
//! does.

use super::unpublished::Unpublished;
use crate::activity::Activity;
use crate::clock::Clock;
use crate::failure::Fault;
use crate::reply::ReplyDispatcher;
use crate::settings::Background;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tally_lanes::{Barrier, BarrierGuard, Blocked};
use tally_rules::instant::Instants;
use tally_store::{ShardSet, Store};

/// How long a batch waits for those of other lanes, which take as long only if a database does not respond.
const PATIENCE: Duration = Duration::from_secs(10);

/// The same if transfers wait for it.
const LEDGER_PATIENCE: Duration = Duration::from_secs(2);

/// What all lanes of scores share.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Clock,
    pub(crate) activity: Activity,
    pub(crate) instants: Mutex<Instants>,
    pub(crate) keep_micros: i64,
    pub(crate) barrier: Barrier,
    /// How many there are for each database that the store is spread over.
    pub(crate) lanes: usize,
    pub(crate) dispatcher: ReplyDispatcher,
    pub(crate) unpublished: Unpublished,
    /// A contest has started, and its caller got no reply: its leaderboards are stored and not in memory here.
    pub(crate) started_unheard: AtomicBool,
    pub(crate) background: Background,
}

impl Shared {
    /// How many there are for players.
    pub(super) fn lanes_in_all(&self) -> usize {
        self.lanes * self.store.shards()
    }

    /// The lane of requests of several players: a separate one if players have more than one lane. So its waits do not delay
    /// the others.
    pub(super) fn lane_of_several(&self) -> usize {
        if self.lanes_in_all() == 1 { 0 } else { self.lanes_in_all() }
    }

    /// Whether a lane is of what concerns several, and not of one player after the other.
    pub(super) fn is_of_several(&self, lane: usize) -> bool {
        lane == self.lanes_in_all()
    }

    /// Passes beside the batches of other lanes on these databases, or alone, after they have ended. The error has the
    /// databases whose batches are in doubt, if it is those.
    pub(crate) fn pass(&self, of: ShardSet, alone: bool) -> Result<BarrierGuard, (ShardSet, Fault)> {
        self.pass_within(PATIENCE, of, alone)
    }

    fn pass_within(
        &self,
        patience: Duration,
        of: ShardSet,
        alone: bool,
    ) -> Result<BarrierGuard, (ShardSet, Fault)> {
        self.barrier.pass(of.bits(), alone, patience).map_err(|blocked| {
            let why = "the outcome of an earlier batch is not known yet";
            let Blocked::Stuck(bits) = blocked else {
                return (ShardSet::default(), Fault::Contention("an earlier batch takes too long".into()));
            };
            let stuck: ShardSet = of.iter().filter(|shard| bits & 1 << shard != 0).collect();
            let fault = stuck
                .lowest()
                .map_or_else(|| Fault::StoreUnavailable(why.into()), |shard| self.unavailable(shard, why));
            (stuck, fault)
        })
    }

    /// That nothing can be done on a database now.
    pub(super) fn unavailable(&self, shard: usize, why: &str) -> Fault {
        match self.store.shards() {
            1 => Fault::StoreUnavailable(why.into()),
            shards => {
                Fault::ShardUnavailable { shard: format!("shard {} of {shards}", shard + 1), why: why.into() }
            }
        }
    }

    /// The same, alone with all of them.
    pub(crate) fn pass_alone(&self) -> Result<BarrierGuard, (ShardSet, Fault)> {
        self.pass(ShardSet::first(self.store.shards()), true)
    }

    /// The same for the ledger's lane, with the shorter wait.
    pub(crate) fn pass_alone_soon(&self) -> Result<BarrierGuard, Fault> {
        let all = ShardSet::first(self.store.shards());
        self.pass_within(LEDGER_PATIENCE, all, true).map_err(|(_, fault)| fault)
    }
}
