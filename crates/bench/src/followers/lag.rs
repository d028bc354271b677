//! How far a follower is behind: the time from the leader's answer to a submit until the follower shows it, beside a steady load.

use super::place::Place;
use super::{BOARD, PATIENCE, load};
use crate::error::{During, Error, prove};
use crate::server::Server;
use crate::set_at_end::SetAtEnd;
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tally_load::open::OpenOutcome;
use tally_load::{Client, Latencies};

/// Between two samples.
const PAUSE: Duration = Duration::from_millis(5);
/// Between two reads of one sample.
const POLL_PAUSE: Duration = Duration::from_micros(200);

/// The figures of one rate.
pub(super) struct Lag {
    /// The submits a second that were offered.
    pub(super) rate: u32,
    pub(super) outcome: OpenOutcome,
    pub(super) samples: Samples,
}

/// Sampled submits.
#[derive(Default)]
pub(super) struct Samples {
    /// From the leader's answer until the follower showed the record.
    pub(super) follower: Latencies,
    /// One read at the leader, which has the record: what such a look takes by itself.
    pub(super) leader: Latencies,
    /// `age_s` of the follower's `/readyz`.
    pub(super) age: Latencies,
}

/// Measures one rate.
pub(super) fn measure(
    place: &Place<'_>,
    (leader, follower): (&Server, &Server),
    rate: u32,
) -> Result<Lag, Error> {
    place.options.say(&format!("lag at {rate} submits a second"));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let end = SetAtEnd(&over);
        let samples = scope.spawn(|| sample((leader, follower), &format!("lag-{rate}"), &over));
        let outcome = load(place, leader, rate);
        drop(end);
        let samples = samples.join().expect("sampling does not panic")?;
        Ok(Lag { rate, outcome: outcome?, samples })
    })
}

/// Samples until the flag is set, and one after it.
fn sample((leader, follower): (&Server, &Server), player: &str, over: &AtomicBool) -> Result<Samples, Error> {
    let client = |server: &Server| Client::new(server.listens.http, PATIENCE).during("make a client");
    let (mut leader, mut follower) = (client(leader)?, client(follower)?);
    let mut samples = Samples::default();
    for score in 1.. {
        let last = over.load(Ordering::SeqCst);
        let (path, body) =
            (format!("/v1/leaderboards/{BOARD}/scores"), json!({"player": player, "score": score}));
        let (status, body) = leader.send("POST", &path, None, &body).during("submit a sample")?;
        prove(status == 200, || format!("a submit was answered with {status}: {body}"))?;
        let answered = Instant::now();
        wait_for(&mut follower, player, score)?;
        samples.follower.record(answered.elapsed());
        let began = Instant::now();
        wait_for(&mut leader, player, score)?;
        samples.leader.record(began.elapsed());
        let (_, ready) = follower.get("/readyz").during("ask the follower how old its ranks are")?;
        let age = ready["follows"]["age_s"].as_f64().or(ready["age_s"].as_f64());
        samples.age.extend(age.map(Duration::from_secs_f64));
        if last {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    Ok(samples)
}

/// Asks until the server shows this score of a player.
fn wait_for(client: &mut Client, player: &str, score: i64) -> Result<(), Error> {
    let (path, began) = (format!("/v1/leaderboards/{BOARD}/players/{player}"), Instant::now());
    loop {
        let (status, body) = client.get(&path).during("read a sample")?;
        if status == 200 && body["score"] == score {
            return Ok(());
        }
        prove(began.elapsed() < PATIENCE, || format!("{player} should have {score}: {status}, {body}"))?;
        std::thread::sleep(POLL_PAUSE);
    }
}
