//! Bursts: one kind of command in one pipeline against one server, and its processor time.
//!
//! The servers alternate, Redis, tally twice, Redis, so that a machine that slows down slows both alike. A burst ends
//! only when its server is idle. So deferred work counts for the right server, and does not disturb the other one. Not
//! here: what the figures mean.

use super::commands::{BenchCommand, Commands};
use crate::error::{During, Error, prove};
use crate::options::Options;
use crate::process::Process;
use std::cell::Cell as Counter;
use std::net::SocketAddr;
use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tally_load::{Latencies, Pipelines, Replied, run_pipelines};

/// Connections that send commands.
pub(super) const CONNECTIONS: usize = 50;
/// How long a server may work on after a burst.
pub(super) const SETTLE_MAX: Duration = Duration::from_secs(10);
/// How long so many commands may take.
const COUNTED_MAX: Duration = Duration::from_secs(3_600);
/// A server that uses less than this part of a core is idle.
const IDLE_CORES: f64 = 0.11;

/// One of the two servers.
pub(super) struct Side<'s> {
    pub(super) process: &'s Process,
    pub(super) address: SocketAddr,
    /// The first commands of each connection.
    pub(super) opening: Vec<Vec<u8>>,
    /// How long after the last command it begins with deferred work.
    pub(super) puts_off: Duration,
}

/// The commands of a cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommandLoad {
    pub(super) kind: BenchCommand,
    pub(super) pipeline: u64,
    pub(super) members: u64,
}

/// The figures of one server in a cell.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    rates: Vec<f64>,
    pub(super) latencies: Latencies,
    commands: u64,
    cpu_s: Option<f64>,
    /// Bursts after which it did not become idle in time.
    pub(super) restless: u64,
}

impl Figures {
    /// The median rate of its bursts.
    pub(super) fn rate(&self) -> f64 {
        let mut rates = self.rates.clone();
        rates.sort_unstable_by(f64::total_cmp);
        let middle = rates.len() / 2;
        if rates.len() % 2 == 1 { rates[middle] } else { rates[middle - 1].midpoint(rates[middle]) }
    }

    /// Processor time of one command in microseconds.
    pub(super) fn cpu_us(&self) -> Option<f64> {
        self.cpu_s.map(|seconds| seconds * 1e6 / self.commands as f64)
    }
}

/// Runs the bursts of a cell: one of Redis, two of tally, one of Redis.
pub(super) fn measure(
    [redis, tally]: [&Side; 2],
    load: CommandLoad,
    options: &Options,
) -> Result<[Figures; 2], Error> {
    let mut theirs = Figures { cpu_s: Some(0.0), ..Figures::default() };
    let mut ours = theirs.clone();
    turn(redis, load, options, 0..1, &mut theirs)?;
    turn(tally, load, options, 0..2, &mut ours)?;
    turn(redis, load, options, 1..2, &mut theirs)?;
    Ok([theirs, ours])
}

/// The bursts of these numbers, until the server is idle again. Both servers get the same commands in bursts of one
/// number.
fn turn(
    side: &Side,
    load: CommandLoad,
    options: &Options,
    bursts: Range<u64>,
    figures: &mut Figures,
) -> Result<(), Error> {
    let before = side.process.cpu_s();
    for number in bursts {
        burst(side, load, options, number, figures)?;
    }
    figures.restless += u64::from(!settle(side, options));
    let used = side.process.cpu_s().zip(before).map(|(after, before)| after - before);
    figures.cpu_s = figures.cpu_s.zip(used).map(|(all, used)| all + used);
    Ok(())
}

fn burst(
    side: &Side,
    load: CommandLoad,
    options: &Options,
    number: u64,
    figures: &mut Figures,
) -> Result<(), Error> {
    let plan = Pipelines {
        connections: CONNECTIONS,
        opening: side.opening.clone(),
        // With small numbers a burst ends by count, so even a slow machine has replies.
        warm_up: options.pick(Duration::ZERO, Duration::from_millis(200)),
        duration: options.pick(COUNTED_MAX, options.duration().mul_f64(0.1)),
        commands_max: options.pick(4 * CONNECTIONS as u64 * load.pipeline, u64::MAX),
    };
    let mut commands = Commands::new(load.kind, load.members, options.seed ^ (number << 32));
    let sent = Rc::new(Counter::new(0));
    let count = Rc::clone(&sent);
    let replied = run_pipelines(side.address, &plan, move |_, out| {
        (0..load.pipeline).for_each(|_| commands.append(out));
        count.set(count.get() + load.pipeline);
        load.pipeline
    });
    let replied = replied.during("load the server")?;
    prove_answered(&replied, load.kind.name())?;
    figures.commands += sent.get();
    figures.rates.push(replied.rate());
    figures.latencies.merge(&replied.latencies);
    Ok(())
}

/// Gives every member a score; returns the rate.
pub(super) fn fill(side: &Side, members: u64, options: &Options) -> Result<f64, Error> {
    const PIPELINE: u64 = 256;
    let plan = Pipelines {
        connections: CONNECTIONS,
        opening: side.opening.clone(),
        warm_up: Duration::ZERO,
        duration: COUNTED_MAX,
        commands_max: members,
    };
    let mut commands = Commands::new(BenchCommand::Zadd, members, options.seed);
    let mut next = 0;
    let replied = run_pipelines(side.address, &plan, move |_, out| {
        let end = members.min(next + PIPELINE);
        let count = end - next;
        (next..end).for_each(|number| commands.append_first(number, out));
        next = end;
        count
    });
    let replied = replied.during("fill the board")?;
    prove_answered(&replied, "filling")?;
    settle(side, options);
    Ok(replied.rate())
}

fn prove_answered(replied: &Replied, what: &str) -> Result<(), Error> {
    let good = replied.refused == 0 && replied.broken == 0 && replied.succeeded > 0;
    prove(good, || {
        let Replied { succeeded, refused, broken, first_fault, .. } = replied;
        let fault = first_fault.as_deref().unwrap_or("none");
        format!("{what}: {succeeded} answers, {refused} refused, {broken} connections broke, first: {fault}")
    })
}

/// Waits until it is idle; false after the timeout, and true if the system does not report it.
fn settle(side: &Side, options: &Options) -> bool {
    // Figures of small numbers are not quoted, so the run does not wait.
    std::thread::sleep(options.pick(Duration::ZERO, side.puts_off));
    let interval = Duration::from_millis(options.pick(50, 200));
    let deadline = Instant::now() + SETTLE_MAX;
    let mut before = side.process.cpu_s();
    while Instant::now() < deadline {
        let began = Instant::now();
        std::thread::sleep(interval);
        let now = side.process.cpu_s();
        let Some((now, then)) = now.zip(std::mem::replace(&mut before, now)) else { return true };
        if now - then < IDLE_CORES * began.elapsed().as_secs_f64().max(0.1) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_the_median_of_bursts() {
        let rates = |rates: &[f64]| Figures { rates: rates.to_vec(), ..Figures::default() }.rate();
        assert_eq!(rates(&[5.0, 1.0]), 3.0);
        assert_eq!(rates(&[5.0, 9.0, 1.0]), 5.0);
    }

    #[test]
    fn processor_time_is_told_for_one_command() {
        let figures = Figures { commands: 4_000, cpu_s: Some(0.02), ..Figures::default() };
        assert_eq!(figures.cpu_us(), Some(5.0));
        assert_eq!(Figures::default().cpu_us(), None);
    }
}
