//! Sends requests to the Redis node that has the slot, many at once.
//!
//! A single server is handled as a cluster of one node, so there is one path. The crate `redis` speaks the protocol on
//! one connection. Its cluster client is not used, because it hides reconnects: a server that came back with old data
//! would go unnoticed (see `node`). The rest is short. Any node is queried for slots, `MOVED` repeats the query, and
//! every caller gets the error of the node that its request needed.
//!
//! Callers are threads that may block, and reads that do not (`reexecute`). All requests of a query go out together and
//! cost one round trip, whatever the nodes (`pipeline`). A slot that is moving to another node is unavailable until it
//! has arrived.

use super::address::Address;
use super::claim::Ownership;
use super::node::{Live, Node, NodeFailure, Reach};
use super::script::Script;
use super::{Options, RankingError, keys, reexecute, reply};
use redis::{Value, cmd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::Mutex;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::timeout;

/// Maximum attempts of a request.
const TRIES: usize = 4;
/// Minimum time between queries for slots.
const SLOTS_AGAIN: Duration = Duration::from_millis(100);

/// The answers to requests, in their order.
pub(super) type Answers = Vec<Result<Value, RankingError>>;

/// One script on one partition.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) script: Script,
    pub(super) slot: u16,
    pub(super) keys: Vec<String>,
    pub(super) args: Vec<Vec<u8>>,
    /// Maximum entries in its answer.
    pub(super) entries: usize,
}

/// The state that all requests share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) reach: Arc<Reach>,
    map: RwLock<Arc<Map>>,
    /// When the slots were last fetched.
    slots_at: Mutex<Option<Instant>>,
}

/// The nodes by slot.
#[derive(Debug, Default)]
pub(super) struct Map {
    nodes: Vec<Arc<Node>>,
    /// First slot, last slot, node. The first range that has a slot counts.
    ranges: Vec<(u16, u16, Arc<Node>)>,
}

/// The client with its threads.
#[derive(Debug)]
pub(super) struct Redis {
    pub(super) shared: Arc<Shared>,
    pub(super) handle: Handle,
    runtime: Option<Runtime>,
}

impl Redis {
    /// A client that is not connected yet.
    pub(super) fn new(address: Address, options: &Options) -> Result<Self, RankingError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(options.threads.max(1))
            .thread_name("tally-redis")
            .enable_io()
            .enable_time()
            .build()
            .map_err(|error| RankingError::Unavailable(format!("no thread can be started: {error}")))?;
        let cluster = address.cluster;
        let hosts = address.hosts.clone();
        let tls = address.trust.as_ref().map(tally_tls::Trust::client).transpose();
        let tls = tls.map_err(RankingError::Address)?;
        let (connect, response) = (options.connect_timeout, options.response_timeout);
        let reach = Arc::new(Reach { address, tls, connect, response, ownership: Ownership::default() });
        let nodes: Vec<_> =
            hosts.iter().map(|(host, port)| Arc::new(Node::new(host, *port, &reach))).collect();
        let ranges = if cluster { Vec::new() } else { vec![(0, keys::SLOTS - 1, Arc::clone(&nodes[0]))] };
        let map = RwLock::new(Arc::new(Map { nodes, ranges }));
        let shared = Arc::new(Shared { reach, map, slots_at: Mutex::default() });
        let handle = runtime.handle().clone();
        Ok(Self { shared, handle, runtime: Some(runtime) })
    }

    /// Connects; fails if no node answers.
    pub(super) fn connect(&self) -> Result<(), RankingError> {
        self.handle.block_on(self.shared.reach_any_node())
    }

    /// Like [`Self::connect`]. A server that does not answer now is connected to when it is needed.
    pub(super) fn connect_or_later(&self) -> Result<(), RankingError> {
        match self.connect() {
            Ok(()) | Err(RankingError::Unavailable(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(super) fn address(&self) -> &Address {
        &self.shared.reach.address
    }

    /// Sends all requests at once and waits for the answers.
    pub(super) fn all(&self, requests: &[Request]) -> Answers {
        reexecute::next_answers(requests).unwrap_or_else(|| self.handle.block_on(self.shared.all(requests)))
    }

    /// Like [`Self::all`], without blocking a thread. It runs on the client's own threads, so its connections belong to
    /// them.
    pub(super) async fn all_later(&self, requests: Vec<Request>) -> Answers {
        let (shared, count) = (Arc::clone(&self.shared), requests.len());
        let answers = self.handle.spawn(async move { shared.all(&requests).await }).await;
        answers.unwrap_or_else(|error| vec![Err(ended(&error)); count])
    }

    /// Sends a change. The error says if the outcome is in doubt.
    pub(super) fn change(&self, request: &Request) -> Result<Value, RankingError> {
        let sent = AtomicBool::new(false);
        let answer = self.handle.block_on(self.shared.call_telling(request, &sent));
        answer.map_err(|error| match error {
            RankingError::Unavailable(why) | RankingError::Untrusted(why) if sent.load(Ordering::Relaxed) => {
                RankingError::Unknown(why)
            }
            error => error,
        })
    }

    /// Sends a command to every node that has slots. Returns the name and the answer of each.
    pub(super) fn each_node(&self, command: &redis::Cmd) -> Result<Vec<(String, Value)>, RankingError> {
        self.handle.block_on(self.shared.each_node(command))
    }

    /// Runs a task on the client's own threads.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(task);
    }

    /// Sends a request without waiting.
    pub(super) fn start(&self, request: Request) -> JoinHandle<Result<Value, RankingError>> {
        let shared = Arc::clone(&self.shared);
        self.handle.spawn(async move { shared.call(&request).await })
    }

    /// Waits for a request that was started.
    pub(super) fn wait(
        &self,
        started: JoinHandle<Result<Value, RankingError>>,
    ) -> Result<Value, RankingError> {
        self.handle.block_on(started).unwrap_or_else(|error| Err(ended(&error)))
    }
}

fn ended(error: &JoinError) -> RankingError {
    RankingError::Unavailable(format!("the request ended: {error}"))
}

impl Drop for Redis {
    fn drop(&mut self) {
        // The thread that drops it may be one that must not block.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Shared {
    async fn reach_any_node(&self) -> Result<(), RankingError> {
        if self.reach.address.cluster {
            return self.fetch_slots().await;
        }
        let node = Arc::clone(&self.map().nodes[0]);
        node.live().await.map(drop)
    }

    async fn each_node(&self, command: &redis::Cmd) -> Result<Vec<(String, Value)>, RankingError> {
        self.reach_any_node().await?;
        let map = self.map();
        let mut answers = Vec::new();
        for node in map.nodes.iter().filter(|node| map.ranges.iter().any(|range| Arc::ptr_eq(&range.2, node)))
        {
            answers.push((node.name(), self.call_node(node, command).await?));
        }
        Ok(answers)
    }

    /// Sends a command to a node. A connection that broke since it was used last is opened again: a repeated check must see
    /// a node that is back.
    async fn call_node(&self, node: &Arc<Node>, command: &redis::Cmd) -> Result<Value, RankingError> {
        let mut last = RankingError::Unavailable(String::new());
        for _ in 0..TRIES {
            let live = node.live().await?;
            let failure = match live.call(command).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            last = node.unavailable(&failure.to_string());
            // A command without a key is never answered with the owner of a slot.
            self.repair(node, &live, failure, 0).await?;
        }
        Err(last)
    }

    /// Sends a request. It takes at most the sum of both timeouts.
    pub(super) async fn call(&self, request: &Request) -> Result<Value, RankingError> {
        self.call_telling(request, &AtomicBool::new(false)).await
    }

    /// Like [`Self::call`]. In the end `sent` says whether the request may have run without an answer.
    async fn call_telling(&self, request: &Request, sent: &AtomicBool) -> Result<Value, RankingError> {
        self.ownership().check()?;
        self.in_time(self.try_often(request, sent)).await?.and_then(reply::status)
    }

    /// Fails after the sum of both timeouts.
    pub(super) async fn in_time<T>(&self, answer: impl Future<Output = T>) -> Result<T, RankingError> {
        let most = self.reach.connect + self.reach.response;
        let late = |_| RankingError::Unavailable(format!("{} did not answer in time", self.reach.address));
        timeout(most, answer).await.map_err(late)
    }

    async fn try_often(&self, request: &Request, sent: &AtomicBool) -> Result<Value, RankingError> {
        let mut unanswered = false;
        let mut last = RankingError::Unavailable("no node has the slot".into());
        for _ in 0..TRIES {
            let Some(node) = self.map().node(request.slot) else {
                self.fetch_slots().await?;
                continue;
            };
            let live = match node.live().await {
                Ok(live) => live,
                // Another node may have the slot by now. If not, the caller gets the error without waiting.
                Err(error) => {
                    self.fetch_slots_unless(&node).await;
                    if self.map().node(request.slot).is_some_and(|now| Arc::ptr_eq(&now, &node)) {
                        return Err(error);
                    }
                    last = error;
                    continue;
                }
            };
            sent.store(true, Ordering::Relaxed);
            let failure = match live.run(request).await {
                Ok(value) => return Ok(value),
                Err(failure) => failure,
            };
            last = node.unavailable(&failure.to_string());
            // All other failures are refusals of the node.
            unanswered |= matches!(failure, NodeFailure::Broken(_) | NodeFailure::Unavailable(_));
            sent.store(unanswered, Ordering::Relaxed);
            self.repair(&node, &live, failure, request.slot).await?;
        }
        Err(last)
    }

    /// Prepares another attempt, or returns the error if there is none.
    pub(super) async fn repair(
        &self,
        node: &Arc<Node>,
        live: &Arc<Live>,
        failure: NodeFailure,
        slot: u16,
    ) -> Result<(), RankingError> {
        let why = failure.to_string();
        match failure {
            NodeFailure::Scripts => {
                live.load_scripts().await.map_err(|failure| node.unavailable(&failure.to_string()))
            }
            NodeFailure::Moved(owner) => self.follow(node, slot, &owner).await,
            NodeFailure::Broken(_) => {
                node.fail(live, &why).await;
                Ok(())
            }
            NodeFailure::Demoted(_) => {
                node.rest(live, &why).await;
                self.fetch_slots_unless(node).await;
                Err(node.unavailable(&why))
            }
            NodeFailure::Unavailable(_) => {
                node.rest(live, &why).await;
                Err(node.unavailable(&why))
            }
            NodeFailure::Moving(_) => Err(node.unavailable(&why)),
            NodeFailure::Refused(why) => Err(RankingError::Refused(why)),
            // Occurs only while connecting.
            NodeFailure::Untrusted(why) => Err(RankingError::Untrusted(why)),
        }
    }

    /// Queries the slots, and takes the owner of this one from `MOVED`: other nodes may learn of it later.
    async fn follow(&self, answered: &Arc<Node>, slot: u16, owner: &str) -> Result<(), RankingError> {
        self.fetch_slots().await?;
        // An empty host is that of the node that answered.
        let (host, port) = owner.rsplit_once(':').unwrap_or_default();
        let host = if host.is_empty() { answered.host() } else { host };
        let Ok(port) = port.parse() else { return Err(RankingError::Refused(format!("MOVED to {owner}"))) };
        let present = self.map();
        if present.node(slot).is_some_and(|node| node.is(host, port)) {
            return Ok(());
        }
        let known = present.nodes.iter().find(|node| node.is(host, port)).cloned();
        let owner = known.unwrap_or_else(|| Arc::new(Node::new(host, port, &self.reach)));
        let mut map = Map { nodes: present.nodes.clone(), ranges: vec![(slot, slot, Arc::clone(&owner))] };
        map.add(&owner);
        map.ranges.extend(present.ranges.iter().filter(|range| (range.0, range.1) != (slot, slot)).cloned());
        *self.map.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(map);
        Ok(())
    }

    /// Queries the other nodes for slots. If none answers, that is not an error of the caller.
    async fn fetch_slots_unless(&self, failed: &Arc<Node>) {
        if self.reach.address.cluster && self.map().nodes.iter().any(|node| !Arc::ptr_eq(node, failed)) {
            drop(self.fetch_slots().await);
        }
    }

    /// Queries one node after another for the slots.
    pub(super) async fn fetch_slots(&self) -> Result<(), RankingError> {
        if !self.reach.address.cluster {
            return Err(RankingError::Refused("it belongs to a cluster: use `redis-cluster://`".into()));
        }
        let mut slots_at = self.slots_at.lock().await;
        if slots_at.is_some_and(|at| at.elapsed() < SLOTS_AGAIN) {
            return Ok(());
        }
        let present = self.map();
        let mut last = RankingError::Unavailable("no node is known".into());
        for node in &present.nodes {
            match self.slots_of(node, &present).await {
                Ok(map) => {
                    *self.map.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(map);
                    *slots_at = Some(Instant::now());
                    return Ok(());
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    async fn slots_of(&self, node: &Arc<Node>, present: &Map) -> Result<Map, RankingError> {
        let live = node.live().await?;
        let answer = match live.call(cmd("CLUSTER").arg("SLOTS")).await {
            Ok(answer) => answer,
            Err(failure) => {
                node.rest(&live, &failure.to_string()).await;
                return Err(node.unavailable(&failure.to_string()));
            }
        };
        let mut map = Map::default();
        for (first, last, host, port) in reply::slots(answer)? {
            // A node that does not know its own name has the one under which it was reached.
            let host = if host.is_empty() { node.host() } else { &host };
            let known = map.nodes.iter().chain(&present.nodes).find(|one| one.is(host, port)).cloned();
            let owner = known.unwrap_or_else(|| Arc::new(Node::new(host, port, &self.reach)));
            map.add(&owner);
            map.ranges.push((first, last, owner));
        }
        if map.ranges.is_empty() {
            return Err(node.unavailable("it knows no slots"));
        }
        // The nodes of the address stay: all others may disappear one day.
        for (host, port) in &self.reach.address.hosts {
            let seed = present.nodes.iter().find(|one| one.is(host, *port)).cloned();
            map.add(&seed.unwrap_or_else(|| Arc::new(Node::new(host, *port, &self.reach))));
        }
        Ok(map)
    }

    pub(super) fn map(&self) -> Arc<Map> {
        Arc::clone(&self.map.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Map {
    pub(super) fn nodes(&self) -> &[Arc<Node>] {
        &self.nodes
    }

    pub(super) fn node(&self, slot: u16) -> Option<Arc<Node>> {
        let has = |range: &&(u16, u16, Arc<Node>)| (range.0..=range.1).contains(&slot);
        self.ranges.iter().find(has).map(|range| Arc::clone(&range.2))
    }

    fn add(&mut self, node: &Arc<Node>) {
        if !self.nodes.iter().any(|one| Arc::ptr_eq(one, node)) {
            self.nodes.push(Arc::clone(node));
        }
    }
}
