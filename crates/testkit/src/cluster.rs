//! A private Redis Cluster for a test: three nodes, each with a third of the slots, no replicas.
//!
//! It is set up with the commands that an operator's tool sends. Nodes have no persistence unless the test asks for it, so
//! a killed node comes back with its slots and without its keys. All nodes reject requests while a slot is not covered, as
//! Redis does by default. The argument `--cluster-require-full-coverage no` lets the others serve.
//!
//! Not here: replicas and failover.

use crate::process::free_port;
use crate::redis::{RedisKind, ScratchRedis};
use crate::resp::RespClient;
use crate::tls;
use crate::wait::GIVE_UP;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tally_wire::resp::Reply;

/// The number of slots of a cluster, by its specification.
const SLOTS: usize = 16_384;
const NODES: usize = 3;
/// After this time without a reply the others count a node as failed, in milliseconds: soon, but longer than a pause of a
/// busy machine.
const NODE_TIMEOUT_MS: &str = "2000";

const POLL_PAUSE: Duration = Duration::from_millis(10);

/// Running nodes, numbered from 0.
#[derive(Debug)]
pub struct ScratchCluster {
    nodes: Vec<ScratchRedis>,
    /// The TLS port of each node, if they use TLS.
    tls_ports: Vec<u16>,
}

impl ScratchCluster {
    /// A cluster in which all nodes serve; `args` go to each of them.
    ///
    /// # Panics
    ///
    /// If a node does not start, or they do not agree. All other methods panic if a node does not reply.
    #[track_caller]
    pub fn start(kind: RedisKind, args: &[&str]) -> Self {
        Self::start_on(kind, args, Vec::new())
    }

    /// A cluster whose nodes announce these ports but no host: a client uses the host that it connected to. So every client
    /// can have its own proxy before each node.
    #[track_caller]
    pub fn start_announced(kind: RedisKind, ports: &[u16; NODES]) -> Self {
        Self::start_each(kind, Vec::new(), |at| {
            let port = ports[at].to_string();
            let name = ["--cluster-preferred-endpoint-type", "unknown-endpoint", "--cluster-announce-port"];
            name.into_iter().map(str::to_owned).chain([port]).collect()
        })
    }

    /// A cluster whose nodes use TLS, also among each other. Their plain ports stay open for this kit.
    #[track_caller]
    pub fn start_tls(kind: RedisKind, certificate: &str) -> Self {
        let args = [tls::of_redis(certificate), vec!["--tls-cluster".into(), "yes".into()]].concat();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        Self::start_on(kind, &args, (0..NODES).map(|_| free_port()).collect())
    }

    #[track_caller]
    fn start_on(kind: RedisKind, args: &[&str], tls_ports: Vec<u16>) -> Self {
        Self::start_each(kind, tls_ports, |_| args.iter().map(|arg| (*arg).to_owned()).collect())
    }

    #[track_caller]
    fn start_each(kind: RedisKind, tls_ports: Vec<u16>, args: impl Fn(usize) -> Vec<String>) -> Self {
        let node = |at: usize| {
            let args = args(at);
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            ScratchRedis::start_each(kind, |_| {
                // The nodes talk to each other on a second port.
                let bus = free_port().to_string();
                let own = ["--cluster-enabled", "yes", "--cluster-port", &bus];
                let port = tls_ports.get(at).map(u16::to_string);
                let encrypted = port.as_ref().map_or(Vec::new(), |port| vec!["--tls-port", port]);
                let timeout = ["--cluster-node-timeout", NODE_TIMEOUT_MS];
                let settings = [&own[..], &timeout, &encrypted, &args].concat();
                settings.iter().map(OsString::from).collect()
            })
        };
        let cluster = Self { nodes: (0..NODES).map(node).collect(), tls_ports };
        for at in 0..NODES {
            let mut client = cluster.client(at);
            let (first, last) = (slots_before(at).to_string(), (slots_before(at + 1) - 1).to_string());
            ok(&mut client, &["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
            // Nodes of one epoch would first have to resolve their conflict.
            ok(&mut client, &["CLUSTER", "SET-CONFIG-EPOCH", &(at + 1).to_string()]);
        }
        let mut first = cluster.client(0);
        for other in &cluster.nodes[1..] {
            let (ip, port) = (other.address().ip().to_string(), other.address().port().to_string());
            ok(&mut first, &["CLUSTER", "MEET", &ip, &port, &bus_port(&mut other.client())]);
        }
        cluster.wait_ok();
        cluster
    }

    /// The addresses of the nodes.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(ScratchRedis::address).collect()
    }

    /// The TLS addresses of the nodes, if they use TLS.
    pub fn tls_addresses(&self) -> Vec<SocketAddr> {
        self.tls_ports.iter().map(|port| ([127, 0, 0, 1], *port).into()).collect()
    }

    /// A node.
    pub fn node(&self, at: usize) -> &ScratchRedis {
        &self.nodes[at]
    }

    /// A new connection to a node.
    #[track_caller]
    pub fn client(&self, at: usize) -> RespClient {
        self.nodes[at].client()
    }

    /// The number of the node that has a key at the start. `asked` is any running node.
    #[track_caller]
    pub fn node_of(&self, key: &str, asked: usize) -> usize {
        let Reply::Integer(slot) = self.client(asked).call(&["CLUSTER", "KEYSLOT", key]) else {
            panic!("a slot is a number");
        };
        let slot = usize::try_from(slot).expect("slots count from 0");
        (0..NODES).rfind(|at| slots_before(*at) <= slot).expect("the first node begins at 0")
    }

    /// Moves the slot of a key with all its keys to another node, as an operator's tool does.
    #[track_caller]
    pub fn move_slot(&self, key: &str, (from, to): (usize, usize)) {
        let name = |at: usize| {
            let Reply::Bulk(name) = self.client(at).call(&["CLUSTER", "MYID"]) else {
                panic!("a name is text")
            };
            String::from_utf8(name).expect("a name is plain")
        };
        let Reply::Integer(slot) = self.client(from).call(&["CLUSTER", "KEYSLOT", key]) else {
            panic!("a slot is a number");
        };
        let slot = slot.to_string();
        ok(&mut self.client(to), &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &name(from)]);
        ok(&mut self.client(from), &["CLUSTER", "SETSLOT", &slot, "MIGRATING", &name(to)]);
        let (ip, port) = (self.addresses()[to].ip().to_string(), self.addresses()[to].port().to_string());
        let mut client = self.client(from);
        loop {
            let Reply::Array(keys) = client.call(&["CLUSTER", "GETKEYSINSLOT", &slot, "100"]) else {
                panic!("keys are a list");
            };
            if keys.is_empty() {
                break;
            }
            for key in &keys {
                let Reply::Bulk(key) = key else { panic!("a key is bytes, not {key:?}") };
                let key = std::str::from_utf8(key).expect("keys of tally are text");
                // A key that was removed meanwhile is no error.
                client.call(&["MIGRATE", &ip, &port, key, "0", "5000", "REPLACE"]);
            }
        }
        for at in [to, from].into_iter().chain((0..NODES).filter(|at| *at != to && *at != from)) {
            ok(&mut self.client(at), &["CLUSTER", "SETSLOT", &slot, "NODE", &name(to)]);
        }
    }

    /// Removes every key of every node.
    #[track_caller]
    pub fn flush(&self) {
        (0..NODES).for_each(|at| ok(&mut self.client(at), &["FLUSHALL"]));
    }

    /// Kills a node with SIGKILL.
    #[track_caller]
    pub fn kill(&mut self, at: usize) {
        self.nodes[at].kill();
    }

    /// Starts a killed node on the same port, with its slots; [`Self::wait_ok`] waits until it has rejoined.
    #[track_caller]
    pub fn restart(&mut self, at: usize) {
        self.nodes[at].restart();
    }

    /// Suspends a node; [`Self::wait_not_ok`] waits until the others have noticed.
    #[track_caller]
    pub fn freeze(&self, at: usize) {
        self.nodes[at].freeze();
    }

    /// Resumes a node.
    #[track_caller]
    pub fn thaw(&self, at: usize) {
        self.nodes[at].thaw();
    }

    /// Waits until every node reports that reachable nodes serve all slots.
    #[track_caller]
    pub fn wait_ok(&self) {
        let is_ok = |info: &str| {
            let wanted = [
                "cluster_state:ok".to_owned(),
                format!("cluster_known_nodes:{NODES}"),
                format!("cluster_slots_ok:{SLOTS}"),
            ];
            wanted.iter().all(|line| info.lines().any(|other| other == line))
        };
        (0..NODES).for_each(|at| self.wait_info(at, is_ok));
    }

    /// Waits until a node reports slots that are not served.
    #[track_caller]
    pub fn wait_not_ok(&self, at: usize) {
        self.wait_info(at, |info| info.lines().any(|line| line == "cluster_state:fail"));
    }

    #[track_caller]
    fn wait_info(&self, at: usize, is_so: impl Fn(&str) -> bool) {
        let started = Instant::now();
        let mut client = self.client(at);
        loop {
            let Reply::Bulk(info) = client.call(&["CLUSTER", "INFO"]) else { panic!("the state is text") };
            let info = String::from_utf8_lossy(&info);
            if is_so(&info) {
                return;
            }
            assert!(started.elapsed() < GIVE_UP, "node {at} says for long:\n{info}");
            std::thread::sleep(POLL_PAUSE);
        }
    }
}

/// Slots of the nodes before one.
fn slots_before(at: usize) -> usize {
    SLOTS * at / NODES
}

#[track_caller]
fn ok(client: &mut RespClient, command: &[&str]) {
    let reply = client.call(command);
    assert_eq!(reply, Reply::Simple(b"OK".into()), "{command:?}");
}

/// The port on which a node listens for other nodes.
#[track_caller]
fn bus_port(client: &mut RespClient) -> String {
    let reply = client.call(&["CONFIG", "GET", "cluster-port"]);
    let Reply::Array(pair) = &reply else { panic!("a setting is a pair, not {reply:?}") };
    let [_, Reply::Bulk(port)] = &pair[..] else { panic!("a setting is a pair, not {pair:?}") };
    String::from_utf8_lossy(port).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(reply: &Reply) -> String {
        let Reply::Error(words) = reply else { panic!("refused, not {reply:?}") };
        String::from_utf8_lossy(words).into_owned()
    }

    #[test]
    fn keys_are_on_the_node_that_is_named_and_others_point_there() {
        for kind in [RedisKind::Redis7, RedisKind::Valkey9] {
            let cluster = ScratchCluster::start(kind, &[]);
            let mut seen = [false; NODES];
            for key in (0..50).map(|number| format!("key{number}")) {
                let owner = cluster.node_of(&key, 0);
                seen[owner] = true;
                ok(&mut cluster.client(owner), &["SET", &key, "1"]);
                let other = cluster.client((owner + 1) % NODES).call(&["GET", &key]);
                let words = error_of(&other);
                let address = cluster.addresses()[owner].to_string();
                assert!(words.starts_with("MOVED ") && words.ends_with(&address), "{words}");
            }
            assert_eq!(seen, [true; NODES]);
            cluster.flush();
            for at in 0..NODES {
                assert_eq!(cluster.client(at).call(&["DBSIZE"]), Reply::Integer(0));
            }
        }
    }

    #[test]
    fn a_node_that_is_lost_is_noticed_and_comes_back() {
        let mut cluster = ScratchCluster::start(RedisKind::Valkey9, &[]);
        let (lost, addresses) = (cluster.node_of("key", 0), cluster.addresses());
        ok(&mut cluster.client(lost), &["SET", "key", "1"]);
        let other = (lost + 1) % NODES;
        cluster.freeze(lost);
        cluster.wait_not_ok(other);
        assert!(error_of(&cluster.client(other).call(&["GET", "key"])).starts_with("CLUSTERDOWN"));
        cluster.thaw(lost);
        cluster.wait_ok();
        assert_eq!(cluster.client(lost).call(&["GET", "key"]), Reply::Bulk(b"1".into()));
        cluster.kill(lost);
        cluster.restart(lost);
        cluster.wait_ok();
        assert_eq!(cluster.addresses(), addresses);
        assert_eq!(cluster.client(lost).call(&["GET", "key"]), Reply::Null, "it kept nothing");
    }

    #[test]
    fn arguments_of_the_test_win() {
        let settings = ["--cluster-require-full-coverage", "no", "--cluster-node-timeout", "1000"];
        let mut cluster = ScratchCluster::start(RedisKind::Redis7, &settings);
        let lost = cluster.node_of("key", 0);
        let mut keys = (0..).map(|number| format!("key{number}"));
        let kept_key = keys.find(|key| cluster.node_of(key, 0) != lost).expect("there are many");
        let kept = cluster.node_of(&kept_key, 0);
        cluster.kill(lost);
        // The node has failed, and is not only slow.
        cluster.wait_info(kept, |info| !info.lines().any(|line| line == "cluster_slots_fail:0"));
        ok(&mut cluster.client(kept), &["SET", &kept_key, "1"]);
    }
}
