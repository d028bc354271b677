//! The leader goes again and again while clients write: how long they wait, and that nothing is lost or counted twice.

use super::fleet::Fleet;
use super::writers::{Writers, Written};
use super::{PATIENCE, SUMS};
use crate::error::{During, Error, prove};
use std::time::{Duration, Instant};
use tally_load::{Client, Latencies};

/// Between two looks at a follower that is behind.
const PAUSE: Duration = Duration::from_millis(5);

/// How a leader goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// SIGTERM.
    Handover,
    /// SIGKILL.
    Kill,
}

/// Several takeovers of one kind.
pub(super) struct Takeovers {
    pub(super) how: How,
    /// How many servers there were.
    pub(super) servers: usize,
    /// The longest wait of a change in each.
    pub(super) waits: Latencies,
    pub(super) written: Written,
}

impl How {
    const fn name(self) -> &'static str {
        match self {
            Self::Handover => "handover",
            Self::Kill => "kill",
        }
    }
}

/// Lets the leader go as often as the sizes say, or a quarter of that without a follower.
pub(super) fn measure(fleet: &mut Fleet<'_>, how: How) -> Result<Takeovers, Error> {
    let (options, sizes, servers) = (fleet.place.options, fleet.place.sizes, fleet.size());
    let count = match how {
        How::Handover => sizes.handovers,
        How::Kill => sizes.kills,
    };
    let count = if servers == 1 { count.div_ceil(4) } else { count };
    let mut waits = Latencies::default();
    fleet.settle()?;
    let writers = Writers::start(fleet.addresses.clone(), &format!("{}{servers}", how.name()));
    for nth in 1..=count {
        options.say(&format!("{} {nth} of {count}, {servers} servers", how.name()));
        // A server that was started before is now a follower with everything.
        let leader = fleet.settle()?;
        writers.begin();
        fleet.replace(leader, how)?;
        waits.record(writers.longest()?);
    }
    let leader = fleet.settle()?;
    let written = writers.stop()?;
    prove(written.requests > 0, || "no change was acknowledged".to_owned())?;
    let addresses = fleet.addresses.all();
    let mut client = Client::new(addresses[leader], PATIENCE).during("make a client")?;
    let at_leader = read(&mut client, &written)?;
    let (mut lost, mut doubled) = (0, 0);
    for (found, (_, sum)) in at_leader.iter().zip(&written.sums) {
        (lost, doubled) = (lost + (sum - found).max(0), doubled + (found - sum).max(0));
    }
    prove((lost, doubled) == (0, 0), || {
        format!("of {} acknowledged changes {lost} are lost and {doubled} doubled", written.requests)
    })?;
    for address in addresses {
        let mut client = Client::new(address, PATIENCE).during("make a client")?;
        let began = Instant::now();
        while read(&mut client, &written)? != at_leader {
            prove(began.elapsed() < PATIENCE, || {
                "a follower does not have the sums of its leader".to_owned()
            })?;
            std::thread::sleep(PAUSE);
        }
    }
    Ok(Takeovers { how, servers, waits, written })
}

/// The sums of all players at a server.
fn read(client: &mut Client, written: &Written) -> Result<Vec<i64>, Error> {
    let mut sums = Vec::with_capacity(written.sums.len());
    for (player, _) in &written.sums {
        let path = format!("/v1/leaderboards/{SUMS}/players/{player}");
        let (_, body) = client.get(&path).during("read a sum")?;
        // A player that is not there has lost everything.
        sums.push(body["score"].as_i64().unwrap_or_default());
    }
    Ok(sums)
}
