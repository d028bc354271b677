//! `tally compare redis`: sorted sets beside the leaderboards that are to replace them, again and again while a game writes to both.
//!
//! Both change while they are read, so a difference counts only if it is there a second later, too. Not here: how a round reads
//! (`round`), and what is a difference (`difference`).

mod difference;
mod round;

use crate::cli::{Cli, CompareArgs, CompareRedisArgs, CompareWhat};
use crate::client::Client;
use crate::target::TargetServer;
use anyhow::Result;
use round::Round;
use std::process::ExitCode;
use std::time::Instant;
use tally_service::clock;
use tally_wire::time;

/// Runs the subcommand.
pub(crate) fn run(cli: &Cli, args: &CompareArgs) -> Result<ExitCode> {
    let CompareWhat::Redis(args) = &args.what;
    let target = TargetServer::find(cli, &args.target)?;
    let compared = rounds(&target.client, args);
    target.finish();
    Ok(ExitCode::from(u8::from(!compared?)))
}

/// Compares once, or for a time; returns whether the last round found no difference.
fn rounds(client: &Client, args: &CompareRedisArgs) -> Result<bool> {
    let started = Instant::now();
    let mut number = 1;
    loop {
        let is_equal = match Round::compare(client, args) {
            Ok(round) => {
                let at = time::format(clock::system().now());
                println!("{at} round {number}: {}", round.told(args.ranks));
                round.is_equal()
            }
            // The first round shows a mistake in the command.
            Err(error) if number == 1 => return Err(error),
            Err(error) => {
                eprintln!("round {number}: {error:#}");
                false
            }
        };
        if args.duration.is_none_or(|duration| started.elapsed() + args.every > duration) {
            return Ok(is_equal);
        }
        std::thread::sleep(args.every);
        number += 1;
    }
}
