//! Plain values, as a web service keeps them: `GET` one by one, `MGET`, and `GET`s in a pipeline.
//!
//! Keys of a cluster lie in different slots, and a cluster rejects an `MGET` of those. So the `MGET` has keys with one
//! hash tag, on one node; pipelines go to all nodes at once. One thread sends everything.

use super::{LOOKUPS, Pages, Way, prove_page};
use crate::error::{During, Error, prove};
use crate::redis::client::Client;
use crate::redis::cluster::Cluster;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tally_wire::resp::Reply;

/// The size of a value.
const BYTES: usize = 100;

/// A key with the number of its node.
type Key = (String, usize);

/// Values in a single server, or in a cluster.
pub(super) struct Gets {
    clients: Vec<Client>,
    /// The keys of a page.
    spread: Vec<Key>,
    /// The keys of a page in one slot.
    together: Vec<Key>,
    values: Vec<Reply>,
}

impl Gets {
    /// Connects to all nodes and sets every value.
    pub(super) fn fill(nodes: &[SocketAddr]) -> Result<Self, Error> {
        Self::try_fill(nodes).during("set values in Redis")
    }

    fn try_fill(nodes: &[SocketAddr]) -> io::Result<Self> {
        let mut clients: Vec<Client> =
            nodes.iter().map(|node| Client::open(*node)).collect::<Result<_, _>>()?;
        let mut keys = |prefix: &str| {
            let place = |number| {
                let key = format!("{prefix}{number}");
                let node = if nodes.len() == 1 { 0 } else { node_of(&mut clients[0], &key)? };
                Ok((key, node))
            };
            (0..LOOKUPS).map(place).collect::<io::Result<Vec<Key>>>()
        };
        let (spread, together) = (keys("item:")?, keys("{page}item:")?);
        let value = |number: usize| format!("{number:0BYTES$}").into_bytes();
        for keys in [&spread, &together] {
            for (number, (key, node)) in keys.iter().enumerate() {
                clients[*node].call(&[b"SET", key.as_bytes(), &value(number)])?;
            }
        }
        let values = (0..LOOKUPS).map(|number| Reply::Bulk(value(number))).collect();
        Ok(Self { clients, spread, together, values })
    }

    fn try_read(&mut self, way: Way, lookups: usize) -> io::Result<Vec<Reply>> {
        match way {
            Way::Loop => {
                let mut got = Vec::with_capacity(lookups);
                for (key, node) in &self.spread[..lookups] {
                    got.push(self.clients[*node].call(&["GET", key])?);
                }
                Ok(got)
            }
            Way::Command => {
                let (keys, node) = (&self.together[..lookups], self.together[0].1);
                let command: Vec<&str> =
                    ["MGET"].into_iter().chain(keys.iter().map(|(key, _)| key.as_str())).collect();
                match self.clients[node].call(&command)? {
                    Reply::Array(got) => Ok(got),
                    other => Err(io::Error::other(format!("not a list: {other:?}"))),
                }
            }
            Way::Pipeline => pipeline(&mut self.clients, &self.spread[..lookups]),
        }
    }
}

/// Sends all, then reads all.
fn pipeline(clients: &mut [Client], keys: &[Key]) -> io::Result<Vec<Reply>> {
    for (key, node) in keys {
        clients[*node].add(&["GET", key]);
    }
    for client in clients.iter_mut() {
        client.send()?;
    }
    keys.iter().map(|(_, node)| clients[*node].receive()).collect()
}

impl Pages for Gets {
    fn read(&mut self, way: Way, lookups: usize) -> Result<Duration, Error> {
        let sent_at = Instant::now();
        let got = self.try_read(way, lookups).during("ask for a page of values")?;
        let took = sent_at.elapsed();
        prove_page(&got, &self.values[..lookups], way)?;
        Ok(took)
    }

    fn prove_alone(&mut self) -> Result<(), Error> {
        let (key, node) = self.spread[LOOKUPS / 2].clone();
        let mut other_type = |commands: &[&[&str]]| {
            commands.iter().try_for_each(|command| self.clients[node].call(command).map(drop))
        };
        other_type(&[&["DEL", &key], &["RPUSH", &key, "no value"]]).during("put a list in the place")?;
        let got = pipeline(&mut self.clients, &self.spread).during("ask for a page of values")?;
        let failed = |(at, got): (usize, &Reply)| (got != &self.values[at]).then_some(at);
        let failed: Vec<usize> = got.iter().enumerate().filter_map(failed).collect();
        prove(failed == [LOOKUPS / 2], || format!("not one look-up failed, but {failed:?}"))?;
        let Reply::Bulk(value) = &self.values[LOOKUPS / 2] else { unreachable!("values are bytes") };
        let command = [b"SET", key.as_bytes(), value];
        self.clients[node].call(&command).during("set the value again")?;
        if self.clients.len() == 1 {
            return Ok(());
        }
        let keys = self.spread.iter().map(|(key, _)| key.as_str());
        let command: Vec<&str> = ["MGET"].into_iter().chain(keys).collect();
        let refused = self.clients[0].call(&command).map_err(|error| error.to_string());
        prove(refused.as_ref().is_err_and(|why| why.starts_with("CROSSSLOT")), || {
            format!("a cluster takes an MGET of many slots: {refused:?}")
        })
    }
}

fn node_of(client: &mut Client, key: &str) -> io::Result<usize> {
    let slot = client.integer(&["CLUSTER", "KEYSLOT", key])?;
    usize::try_from(slot).map(Cluster::node_of).map_err(io::Error::other)
}
