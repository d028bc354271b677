//! The proof at the end of a run: what was acknowledged is asked for again.
//!
//! Players are drawn at random; each must have exactly the score that was acknowledged last. Not here: whether it is also
//! on the disk, for which the server would have to be killed.

use crate::acknowledged::Acknowledged;
use crate::connection::Connection;
use crate::fill::expect;
use crate::random::Random;
use crate::run::runtime;
use crate::workload::{Target, player};
use serde_json::Value;
use std::io;

/// What reading back has shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// Players whose score was as acknowledged.
    pub right: u64,
    /// Those whose score was another, one sentence each.
    pub wrong: Vec<String>,
    /// Drawn players whose expected score is not known.
    pub unknown: u64,
}

/// Reads back this many random players.
///
/// # Errors
///
/// If a request fails, or an answer is not what the interface promises.
pub fn verify(target: &Target, acknowledged: &Acknowledged, samples: u64, seed: u64) -> io::Result<Proof> {
    runtime()?.block_on(read_back(target, acknowledged, samples, seed))
}

async fn read_back(
    target: &Target,
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
        let answer = connection.ask(&request).await?;
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
