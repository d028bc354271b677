//! What a Redis says of itself, for whoever looks whether it may be trusted with something.
//!
//! All of it is in `INFO`, which managed ones answer too, where `CONFIG` is often refused. Not here: what of it is good.

use super::{RankingError, RedisApplications, reply};
use redis::{Value, cmd};
use std::collections::BTreeMap;

/// One node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// Where it is.
    pub node: String,
    /// What it says, by name.
    pub says: BTreeMap<String, String>,
}

impl RedisApplications {
    /// Asks every node that has some of the applications.
    pub fn survey(&self) -> Result<Vec<Probe>, RankingError> {
        let answers = self.redis().each_node(&cmd("INFO"))?;
        answers.into_iter().map(|(node, answer)| Ok(Probe { node, says: read(answer)? })).collect()
    }
}

fn read(answer: Value) -> Result<BTreeMap<String, String>, RankingError> {
    let text = match answer {
        Value::VerbatimString { text, .. } => text,
        answer => String::from_utf8_lossy(&reply::bytes(answer)?).into_owned(),
    };
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    Ok(lines.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect())
}
