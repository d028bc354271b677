//! What the generator itself can carry: PING against a running server of the Redis protocol on this machine.
//!
//! `cargo run --release -p tally-load --example ping -- PORT [CONNECTIONS [PIPELINE [SECONDS]]]`, to be read beside
//! `redis-benchmark -p PORT -c CONNECTIONS -P PIPELINE -n … PING`. Not here: commands that cost the server anything.
#![expect(clippy::print_stdout, reason = "an example that measures prints what it measured")]

use std::time::Duration;
use tally_load::{Pipelines, run_pipelines};
use tally_wire::resp::command;

fn main() {
    let argument =
        |number, usual| std::env::args().nth(number).map_or(usual, |text| text.parse().expect("a number"));
    let address = ([127, 0, 0, 1], u16::try_from(argument(1, 6379)).expect("a port")).into();
    let (connections, pipeline) = (argument(2, 50), argument(3, 16));
    let plan = Pipelines {
        connections: usize::try_from(connections).expect("a number of connections"),
        opening: Vec::new(),
        warm_up: Duration::from_millis(500),
        duration: Duration::from_secs(argument(4, 5)),
        commands_max: u64::MAX,
    };
    let ping = move |_, out: &mut Vec<u8>| {
        (0..pipeline).for_each(|_| command(&["PING"], out));
        pipeline
    };
    let replied = run_pipelines(address, &plan, ping).expect("the server answers");
    let p = |percent| replied.latencies.percentile_ms(percent);
    println!(
        "{connections} connections, P={pipeline}: {:.0} commands/s; chunks: p50 {:.3} ms, p99 {:.3}, p99.9 {:.3}, max {:.3}; {} refused, {} broken",
        replied.rate(),
        p(50.0),
        p(99.0),
        p(99.9),
        replied.latencies.max_ms(),
        replied.refused,
        replied.broken
    );
}
