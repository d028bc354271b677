//! `cargo xtask bench`: builds the server and `tally-bench`, and runs a scenario in the folder of its caller.
//!
//! Both are built with the profile `dist`, so that figures are of the shipped binary. Not here: what a scenario
//! is.

use std::process::{Command, Stdio};

use anyhow::Result;

use crate::process;

pub(crate) fn main(args: &[String]) -> Result<()> {
    // Arguments after `--` go to `tally-bench`: `cargo xtask bench -- --help` lists its options.
    let args = args.strip_prefix(&["--".to_owned()]).unwrap_or(args);
    process::run(command("dist")?.args(args))
}

/// The command that runs scenarios, built with this profile.
pub(crate) fn command(profile: &str) -> Result<Command> {
    let mut build = process::cargo(&["build", "--package", "tally", "--package", "tally-bench"])?;
    process::run(build.args(["--profile", profile]).args(process::locked()))?;
    let mut command = Command::new(process::target_folder()?.join(profile).join("tally-bench"));
    command.stdin(Stdio::null());
    Ok(command)
}
