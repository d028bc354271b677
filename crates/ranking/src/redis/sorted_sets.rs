//! Sorted sets that a studio's own code keeps in a Redis: read for an import and a comparison, never changed.
//!
//! It loads no script and sends no command that writes. Members are read by `ZSCAN`: whatever changes meanwhile, that returns each
//! member that is there all the time. Pages of ranks would miss a player that rises past the present page. `ZSCAN` may return a
//! member twice, so the caller keeps one. The connection is not opened again after a failure: a set that was read in part is read
//! anew. Not here: rankings of tally in Redis (`window`), and several nodes of a cluster, each of which has sets of its own.

use super::address::Address;
use super::claim::Ownership;
use super::node::{Node, NodeFailure, Reach};
use super::{RankingError, reply};
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Pipeline, RedisError, Value, cmd, pipe};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// Timeout of connecting, including the login.
const CONNECT: Duration = Duration::from_secs(5);
/// Timeout of a response: the Redis may be busy with its own work.
const RESPONSE: Duration = Duration::from_secs(60);
/// Keys or members that one command is to return.
const COUNT: usize = 1_000;

/// A member with its score.
pub type Member = (Vec<u8>, f64);

/// A key under a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceKey {
    /// Its name.
    pub key: Vec<u8>,
    /// Its type, as `TYPE` calls it.
    pub kind: String,
    /// Its members, if it is a sorted set.
    pub members: u64,
    /// Whether it is a sorted set with a time to live.
    pub expires: bool,
}

impl SourceKey {
    /// Whether it is a sorted set.
    pub fn is_sorted_set(&self) -> bool {
        self.kind == "zset"
    }
}

/// A connection to a Redis with sorted sets.
#[derive(Debug)]
pub struct SortedSets {
    node: Node,
    connection: MultiplexedConnection,
    name: String,
    runtime: Runtime,
}

impl SortedSets {
    /// Connects to `redis://` or `rediss://`; `password` takes the place of one in the address.
    pub fn open(url: &str, password: Option<String>) -> Result<Self, RankingError> {
        let mut address = Address::parse(url, "the Redis")?;
        if address.cluster {
            let why = "the address of the Redis names a cluster: name one of its masters by `redis://`, and run the command for each";
            return Err(RankingError::Address(why.into()));
        }
        if password.is_some() {
            address.password = password;
        }
        // Its tasks run while a call waits.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(|error| RankingError::Unavailable(format!("no runtime can be started: {error}")))?;
        let tls = address.trust.as_ref().map(tally_tls::Trust::client).transpose();
        let tls = tls.map_err(RankingError::Address)?;
        let name = format!("{address}/{}", address.db);
        let (host, port) = address.hosts[0].clone();
        let ownership = Ownership::default();
        let reach = Arc::new(Reach { address, tls, connect: CONNECT, response: RESPONSE, ownership });
        let node = Node::new(&host, port, &reach);
        let opened = runtime.block_on(async { timeout(CONNECT, node.open()).await });
        let opened = opened.unwrap_or_else(|_| Err(NodeFailure::Unavailable("it does not answer".into())));
        let connection = opened.map_err(|failure| node.error(failure))?;
        Ok(Self { node, connection, name, runtime })
    }

    /// Its address with the number of the database, without the password.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Passes each key under the pattern on, some perhaps twice.
    pub fn keys(&self, pattern: &str, each: &mut dyn FnMut(SourceKey)) -> Result<(), RankingError> {
        let mut cursor = 0;
        loop {
            let mut scan = cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(COUNT);
            let mut page = reply::list(self.ask(&scan)?)?.into_iter();
            cursor = reply::cursor(reply::next(&mut page)?)?;
            let keys = texts(reply::next(&mut page)?)?;
            self.described(keys)?.into_iter().for_each(&mut *each);
            if cursor == 0 {
                return Ok(());
            }
        }
    }

    /// The keys with their types, and what is reported of sorted sets. A key that is gone meanwhile is left out.
    fn described(&self, keys: Vec<Vec<u8>>) -> Result<Vec<SourceKey>, RankingError> {
        let mut kinds = pipe();
        keys.iter().for_each(|key| {
            kinds.cmd("TYPE").arg(key);
        });
        let kinds = self.ask_all(&kinds)?;
        let mut found: Vec<SourceKey> = Vec::with_capacity(keys.len());
        for (key, kind) in keys.into_iter().zip(kinds) {
            let Value::SimpleString(kind) = kind else {
                return Err(reply::strange("a type that is no word"));
            };
            if kind != "none" {
                found.push(SourceKey { key, kind, members: 0, expires: false });
            }
        }
        let sets = || found.iter().filter(|key| key.is_sorted_set());
        let mut about = pipe();
        sets().for_each(|set| {
            about.cmd("ZCARD").arg(&set.key).cmd("PTTL").arg(&set.key);
        });
        let mut answers = self.ask_all(&about)?.into_iter();
        for set in found.iter_mut().filter(|key| key.is_sorted_set()) {
            set.members = reply::number(&reply::next(&mut answers)?)?;
            // Minus one is a key that stays, minus two one that is gone.
            set.expires = reply::signed(&reply::next(&mut answers)?)? >= 0;
        }
        Ok(found)
    }

    /// Passes all members of a set on, page by page, some perhaps twice.
    pub fn members<E: From<RankingError>>(
        &self,
        key: &[u8],
        each: &mut dyn FnMut(Vec<Member>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut cursor = 0;
        loop {
            let mut scan = cmd("ZSCAN");
            scan.arg(key).arg(cursor).arg("COUNT").arg(COUNT);
            let mut page = reply::list(self.ask(&scan)?)?.into_iter();
            cursor = reply::cursor(reply::next(&mut page)?)?;
            each(pairs(reply::next(&mut page)?)?)?;
            if cursor == 0 {
                return Ok(());
            }
        }
    }

    /// The first members by score, the highest first or the lowest.
    pub fn first(&self, key: &[u8], descending: bool, count: usize) -> Result<Vec<Member>, RankingError> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut range = cmd(if descending { "ZREVRANGE" } else { "ZRANGE" });
        range.arg(key).arg(0).arg(count - 1).arg("WITHSCORES");
        pairs(self.ask(&range)?)
    }

    /// The score of each of these members, if the set has it.
    pub fn scores<M: AsRef<[u8]>>(
        &self,
        key: &[u8],
        members: &[M],
    ) -> Result<Vec<Option<f64>>, RankingError> {
        let mut scores = pipe();
        members.iter().for_each(|member| {
            scores.cmd("ZSCORE").arg(key).arg(member.as_ref());
        });
        let read = |value| match value {
            Value::Nil => Ok(None),
            value => score(value).map(Some),
        };
        self.ask_all(&scores)?.into_iter().map(read).collect()
    }

    /// The number of members.
    pub fn count(&self, key: &[u8]) -> Result<u64, RankingError> {
        reply::number(&self.ask(cmd("ZCARD").arg(key))?)
    }

    fn ask(&self, command: &Cmd) -> Result<Value, RankingError> {
        let answer = self.runtime.block_on(command.query_async(&mut self.connection.clone()));
        answer.map_err(|error: RedisError| self.node.error(error.into()))
    }

    fn ask_all(&self, commands: &Pipeline) -> Result<Vec<Value>, RankingError> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let answers = self.runtime.block_on(commands.query_async(&mut self.connection.clone()));
        answers.map_err(|error: RedisError| self.node.error(error.into()))
    }
}

fn texts(value: Value) -> Result<Vec<Vec<u8>>, RankingError> {
    reply::list(value)?.into_iter().map(reply::bytes).collect()
}

/// Members and scores in turn.
fn pairs(value: Value) -> Result<Vec<Member>, RankingError> {
    let mut values = reply::list(value)?.into_iter();
    let mut pairs = Vec::with_capacity(values.len() / 2);
    while let Some(member) = values.next() {
        pairs.push((reply::bytes(member)?, score(reply::next(&mut values)?)?));
    }
    Ok(pairs)
}

/// The score that a text stands for; Redis prints each double so that it is read back exactly.
fn score(value: Value) -> Result<f64, RankingError> {
    let text = String::from_utf8(reply::bytes(value)?).ok();
    let score = text.and_then(|text| text.parse::<f64>().ok()).filter(|score| !score.is_nan());
    score.ok_or_else(|| reply::strange("a score that is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    #[test]
    fn members_and_scores_come_in_turn() {
        let texts = ["a", "1e+20", "b", "-inf", "c", "20.5"].map(bulk);
        let expected = [(b"a".to_vec(), 1e20), (b"b".to_vec(), f64::NEG_INFINITY), (b"c".to_vec(), 20.5)];
        assert_eq!(pairs(Value::Array(texts.into())).unwrap(), expected);
        for wrong in [vec![bulk("a")], vec![bulk("a"), bulk("x")], vec![bulk("a"), bulk("nan")]] {
            assert!(pairs(Value::Array(wrong)).is_err());
        }
    }

    #[test]
    fn a_cluster_is_named_by_one_master() {
        let refused = SortedSets::open("redis-cluster://a:1,b:2", None).unwrap_err().to_string();
        assert!(refused.contains("run the command for each"), "{refused}");
    }
}
