//! Sorted sets of a Redis and the leaderboards that they become: for `tally import redis` and `tally compare redis`.
//!
//! Not here: the protocol (`tally_ranking::redis::SortedSets`), and what becomes of keys, scores and members (`rules`).

pub(crate) mod rules;

use crate::cli::SortedSetArgs;
use crate::client::{Client, explain, segment};
use crate::config::{Usage, without_password};
use crate::sources::secret_of;
use anyhow::{Context, Result, bail};
use rules::BoardRule;
use serde_json::Value;
use std::collections::BTreeMap;
use tally_ranking::redis::{SortedSets, SourceKey};
use tally_rules::BoardId;
use tally_rules::definition::ScoreType;
use ureq::http::Method;

/// More sorted sets than this are no leaderboards of a studio.
const SETS_MAX: usize = 10_000;

/// What is under a pattern.
pub(crate) struct Found {
    /// The sorted sets, each with its leaderboard.
    pub(crate) sets: Vec<(SourceKey, BoardId)>,
    /// Other keys, by type.
    pub(crate) others: BTreeMap<String, u64>,
}

/// A leaderboard of the server.
pub(crate) struct TargetBoard(Value);

impl SortedSetArgs {
    /// Connects. A password comes from a file, because every account of the machine sees the command line.
    pub(crate) fn open(&self) -> Result<SortedSets> {
        let password = match &self.redis_password_file {
            Some(path) => Some(secret_of("--redis-password-file", path)?),
            None => None,
        };
        let url = match (&self.redis_url_file, &self.redis) {
            (Some(path), _) => secret_of("--redis-url-file", path)?,
            (None, Some(url)) if has_password(url) => {
                let shown = without_password(url);
                let why = "has a password, which every account of this machine sees: put that into a file";
                bail!(Usage(format!("the address {shown} {why} for --redis-password-file")))
            }
            (None, url) => url.clone().context("the address of the Redis")?,
        };
        if password.is_some() && has_password(&url) {
            bail!(Usage(
                "--redis-password-file and the address in --redis-url-file both have a password".into()
            ));
        }
        Ok(SortedSets::open(&url, password)?)
    }

    /// The keys under the pattern. A key that can be no leaderboard is an error that names it.
    pub(crate) fn find(&self, sets: &SortedSets) -> Result<Found> {
        let rule = self.board_from.clone().unwrap_or_else(|| BoardRule::of_pattern(&self.pattern));
        let mut keys = BTreeMap::new();
        let mut others = BTreeMap::<Vec<u8>, String>::new();
        let mut is_too_many = false;
        sets.keys(&self.pattern, &mut |found| {
            is_too_many |= keys.len() >= SETS_MAX || others.len() >= SETS_MAX * 100;
            match found.is_sorted_set() {
                _ if is_too_many => {}
                true => drop(keys.insert(found.key.clone(), found)),
                false => drop(others.insert(found.key, found.kind)),
            }
        })?;
        if is_too_many {
            bail!(
                "more than {SETS_MAX} sorted sets or {} other keys are under `{}`: give a narrower --pattern",
                SETS_MAX * 100,
                self.pattern
            );
        }
        if keys.is_empty() {
            bail!(
                "{} has no sorted set under `{}`: look at --pattern and the number of the database",
                sets.name(),
                self.pattern
            );
        }
        let mut found = Found { sets: Vec::with_capacity(keys.len()), others: BTreeMap::new() };
        others.into_values().for_each(|kind| *found.others.entry(kind).or_default() += 1);
        for key in keys.into_values() {
            let board = rule.board(&key.key).map_err(|why| {
                Usage(format!(
                    "{why}: give a --board-from, or a --pattern without that key; nothing was changed"
                ))
            })?;
            found.sets.push((key, board));
        }
        Ok(found)
    }
}

/// Whether an address has a password.
fn has_password(url: &str) -> bool {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    authority.rsplit_once('@').is_some_and(|(login, _)| login.contains(':'))
}

impl Found {
    /// What was found, in one line.
    pub(crate) fn told(&self, sets: &SortedSets, pattern: &str) -> String {
        let kinds = self.others.iter().map(|(kind, count)| format!("{count} of type {kind}"));
        let others: Vec<String> = kinds.collect();
        let others = match others.as_slice() {
            [] => "no other keys".to_owned(),
            others => format!("other keys that stay there: {}", others.join(", ")),
        };
        format!("{}: {} sorted sets under `{pattern}`; {others}", sets.name(), self.sets.len())
    }
}

impl TargetBoard {
    /// The leaderboard, if the server has it.
    pub(crate) fn find(client: &Client, board: &BoardId) -> Result<Option<Self>> {
        let path = format!("/v1/leaderboards/{}", segment(board.as_str()));
        let answer = client.send(&Method::GET, &path, None)?;
        match answer.status {
            200 => Ok(Some(Self(answer.body))),
            404 => Ok(None),
            _ => bail!("ask for the leaderboard `{}`: {}", board.as_str(), explain(&answer)),
        }
    }

    /// What the leaderboard of this definition will be.
    pub(crate) fn of(definition: Value) -> Self {
        Self(definition)
    }

    /// A field of its definition.
    pub(crate) fn field(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// The first value that is wanted otherwise, as `--create` has it.
    pub(crate) fn difference<'w>(&self, wanted: &'w Value) -> Option<&'w str> {
        let mut fields = wanted.as_object()?.iter();
        let (name, _) = fields.find(|(name, value)| self.0.get(*name) != Some(*value))?;
        Some(name)
    }

    /// Its scores.
    pub(crate) fn scores(&self) -> ScoreType {
        if self.field("score") == "float64" { ScoreType::Float64 } else { ScoreType::Int64 }
    }

    /// Whether its first ranks have the highest scores.
    pub(crate) fn is_descending(&self) -> bool {
        self.field("order") != "ascending"
    }

    /// Whether equal scores are in the order of Redis: by name, from either end.
    pub(crate) fn ties_like_redis(&self) -> bool {
        self.field("ties") == if self.is_descending() { "player_reversed" } else { "player" }
    }

    /// Its definition in a few words.
    pub(crate) fn told(&self) -> String {
        ["order", "update", "score", "ties"].map(|name| format!("{name} {}", self.field(name))).join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_an_address_is_seen() {
        for url in ["redis://:secret@a", "redis://me:secret@a:1/2", "rediss://u:p@w@b"] {
            assert!(has_password(url), "{url}");
        }
        for url in ["redis://a:6379/1", "redis://me@a:1", "redis://[::1]:7000"] {
            assert!(!has_password(url), "{url}");
        }
    }
}
