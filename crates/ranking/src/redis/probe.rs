//! What a Redis reports of itself, for a check whether it is safe to use.
//!
//! All of it is in `INFO`, which managed services answer too, where `CONFIG` is often refused. Not here: which values
//! are good.

use super::client::Redis;
use super::{RankingError, RedisApplications, RedisBackend, reply};
use redis::{Value, cmd};
use std::collections::BTreeMap;

/// The report of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// The address of the node.
    pub node: String,
    /// The values by name.
    pub says: BTreeMap<String, String>,
}

impl RedisApplications {
    /// Queries every node that has some of the applications.
    pub fn probe(&self) -> Result<Vec<Probe>, RankingError> {
        probe(self.redis())
    }
}

impl RedisBackend {
    /// Queries every node that has some of the rankings.
    pub fn probe(&self) -> Result<Vec<Probe>, RankingError> {
        probe(self.redis())
    }
}

impl Probe {
    /// A value, if it is a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.says.get(name)?.parse().ok()
    }
}

fn probe(redis: &Redis) -> Result<Vec<Probe>, RankingError> {
    let answers = redis.each_node(&cmd("INFO"))?;
    answers.into_iter().map(|(node, answer)| Ok(Probe { node, says: read(answer)? })).collect()
}

fn read(answer: Value) -> Result<BTreeMap<String, String>, RankingError> {
    let text = match answer {
        Value::VerbatimString { text, .. } => text,
        answer => String::from_utf8_lossy(&reply::bytes(answer)?).into_owned(),
    };
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    Ok(lines.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect())
}
