//! The check at the end of a run: it reads acknowledged scores back.
//!
//! Players are drawn at random; each must have exactly its last acknowledged score. Not here: whether the score is on the
//! disk, for which the server would have to be killed.

use crate::acknowledged::Acknowledged;
use crate::connection::Connection;
use crate::fill::expect;
use crate::random::Random;
use crate::run::runtime;
use crate::workload::{LoadTarget, player};
use serde_json::Value;
use std::io;

/// The result of reading back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// Players with the acknowledged score.
    pub right: u64,
    /// Players with another score, one sentence each.
    pub wrong: Vec<String>,
    /// Drawn players whose expected score is unknown.
    pub unknown: u64,
}

/// Reads back this many random players.
///
/// # Errors
///
/// If a request fails, or a response breaks the interface.
pub fn verify(
    target: &LoadTarget,
    acknowledged: &Acknowledged,
    samples: u64,
    seed: u64,
) -> io::Result<Proof> {
    runtime()?.block_on(read_back(target, acknowledged, samples, seed))
}

async fn read_back(
    target: &LoadTarget,
    acknowledged: &Acknowledged,
    samples: u64,
    seed: u64,
) -> io::Result<Proof> {
    let mut connection = Connection::open(target.address).await?;
    let (common, mut random, mut request) = (target.common(), Random::new(seed), Vec::new());
    let mut proof = Proof::default();
    for _ in 0..samples {
        let number = random.below(acknowledged.players());
        let Some(expected) = acknowledged.score(number) else {
            proof.unknown += 1;
            continue;
        };
        let name = player(number);
        common.get(&mut request, format_args!("/v1/leaderboards/{}/players/{name}", target.board));
        let answer = connection.call(&request).await?;
        expect(&answer, "reading a score back")?;
        let body: Value = serde_json::from_slice(answer.body)?;
        if body["score"].as_i64() == Some(expected) {
            proof.right += 1;
        } else {
            proof.wrong.push(format!("{name} should have {expected} and has {}", body["score"]));
        }
    }
    Ok(proof)
}
