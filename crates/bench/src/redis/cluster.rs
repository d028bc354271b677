//! A private Redis Cluster of a run: three nodes, each with a third of the slots, no replicas.
//!
//! It is set up with the commands that an operator's tool sends. With a round trip each node has a relay ([`Delay`]) before
//! it and announces the relay's address; nodes talk to each other directly. Not here: failover, and moving slots.

use super::Redis;
use super::client::Client;
use crate::delay::Delay;
use crate::error::{During, Error};
use crate::process::free_port;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};
use tally_wire::resp::Reply;

/// The number of slots of a cluster, by its specification.
const SLOTS: usize = 16_384;
const NODES: usize = 3;
/// How long the nodes may take to agree.
const PATIENCE: Duration = Duration::from_secs(60);
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// One node, and its address for clients.
#[derive(Debug)]
struct Node {
    redis: Redis,
    delay: Option<Delay>,
}

/// Nodes of one cluster; they end with the value.
#[derive(Debug)]
pub(crate) struct Cluster(Vec<Node>);

impl Cluster {
    /// Starts it and waits until every node knows all nodes.
    pub(crate) fn start(program: &Path, round_trip: Duration) -> Result<Self, Error> {
        let nodes = (0..NODES).map(|_| Node::start(program, round_trip)).collect::<Result<_, _>>()?;
        let cluster = Self(nodes);
        cluster.meet().during("put a cluster together")?;
        Ok(cluster)
    }

    /// The addresses for clients, in the order of the nodes' slots.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.0.iter().map(Node::address).collect()
    }

    /// The number of the node that has a slot.
    pub(crate) fn node_of(slot: usize) -> usize {
        (0..NODES).rfind(|at| slots_before(*at) <= slot).expect("the first node begins at 0")
    }

    fn meet(&self) -> io::Result<()> {
        let mut clients: Vec<Client> =
            self.0.iter().map(|node| Client::open(node.redis.address())).collect::<Result<_, _>>()?;
        for (at, client) in clients.iter_mut().enumerate() {
            let (first, last) = (slots_before(at).to_string(), (slots_before(at + 1) - 1).to_string());
            client.call(&["CLUSTER", "ADDSLOTSRANGE", &first, &last])?;
            // Nodes of one epoch would first have to resolve their conflict.
            client.call(&["CLUSTER", "SET-CONFIG-EPOCH", &(at + 1).to_string()])?;
        }
        for at in 1..NODES {
            let bus = match clients[at].call(&["CONFIG", "GET", "cluster-port"])? {
                Reply::Array(pair) => match pair.into_iter().nth(1) {
                    Some(Reply::Bulk(port)) => String::from_utf8_lossy(&port).into_owned(),
                    other => return Err(io::Error::other(format!("an unexpected port: {other:?}"))),
                },
                other => return Err(io::Error::other(format!("an unexpected setting: {other:?}"))),
            };
            let address = self.0[at].redis.address();
            let (ip, port) = (address.ip().to_string(), address.port().to_string());
            clients[0].call(&["CLUSTER", "MEET", &ip, &port, &bus])?;
        }
        let deadline = Instant::now() + PATIENCE;
        for client in &mut clients {
            while !is_whole(client)? {
                if Instant::now() > deadline {
                    return Err(io::Error::other("the nodes do not agree"));
                }
                std::thread::sleep(RETRY_PAUSE);
            }
        }
        Ok(())
    }
}

impl Node {
    fn start(program: &Path, round_trip: Duration) -> Result<Self, Error> {
        let delay = (!round_trip.is_zero()).then(|| Delay::listen(round_trip)).transpose();
        let delay = delay.during("listen in front of a node")?;
        let redis = Redis::start_with(program, || {
            // The nodes talk to each other on a second port.
            let bus = free_port()?.to_string();
            let mut args = vec!["--cluster-enabled".to_owned(), "yes".to_owned()];
            args.extend(["--cluster-port".to_owned(), bus]);
            if let Some(delay) = &delay {
                args.extend(["--cluster-announce-ip".to_owned(), delay.address.ip().to_string()]);
                args.extend(["--cluster-announce-port".to_owned(), delay.address.port().to_string()]);
            }
            Ok(args)
        })?;
        if let Some(delay) = &delay {
            delay.lead_to(redis.address());
        }
        Ok(Self { redis, delay })
    }

    fn address(&self) -> SocketAddr {
        self.delay.as_ref().map_or_else(|| self.redis.address(), |delay| delay.address)
    }
}

/// Whether this node reports that reachable nodes serve all slots.
fn is_whole(client: &mut Client) -> io::Result<bool> {
    let Reply::Bulk(info) = client.call(&["CLUSTER", "INFO"])? else { return Ok(false) };
    let info = String::from_utf8_lossy(&info).into_owned();
    let wanted = [format!("cluster_known_nodes:{NODES}"), format!("cluster_slots_ok:{SLOTS}")];
    let says = |line: &str| info.lines().any(|other| other == line);
    Ok(says("cluster_state:ok") && wanted.iter().all(|line| says(line)))
}

/// Slots of the nodes before one.
fn slots_before(at: usize) -> usize {
    SLOTS * at / NODES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_has_its_node() {
        assert_eq!([0, 5_460, 5_461, 10_921, 10_922, 16_383].map(Cluster::node_of), [0, 0, 1, 1, 2, 2]);
    }
}
