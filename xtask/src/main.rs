//! The project's own tasks: `cargo xtask test | check | soak | simulate | packages | bench | drivers | deny | advisories | docs | readme | dist | ci`.
//!
//! One small binary instead of shell scripts, because each task is then tested like the rest and works the same on every machine.
//! It depends on `anyhow` and `serde_json` alone: a fresh clone compiles it in seconds, before anything else.
//!
//! Not here: anything for users of `tally` (that is the `tally` binary), publishing, and fixing what a check finds.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool talks through its two streams"
)]

mod bench;
mod check;
mod ci;
mod clients;
mod deny;
mod dist;
mod docs;
mod drivers;
mod fresh_data;
mod help;
mod packages;
mod process;
mod programs;
mod readme;
mod simulate;
mod soak;
mod testing;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the task with the rest of the arguments.
fn run(args: &[String]) -> anyhow::Result<()> {
    let Some((task, rest)) = args.split_first() else {
        print!("{}", help::OVERVIEW);
        return Ok(());
    };
    if matches!(task.as_str(), "help" | "--help" | "-h") {
        print!("{}", rest.first().and_then(|name| help::of(name)).unwrap_or(help::OVERVIEW));
        return Ok(());
    }
    let Some(text) = help::of(task) else {
        anyhow::bail!("there is no task `{task}`; `cargo xtask --help` lists them");
    };
    // Arguments after `--` go to the tests: `cargo xtask test -- --help` shows the help of the test harness.
    if rest.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--help" || arg == "-h") {
        print!("{text}");
        return Ok(());
    }
    match task.as_str() {
        "test" => testing::main(rest),
        "check" => no_arguments(task, rest).and_then(|()| check::main()),
        "soak" => soak::main(rest),
        "simulate" => simulate::main(rest),
        "packages" => no_arguments(task, rest).and_then(|()| packages::ensure()),
        "bench" => bench::main(rest),
        "drivers" => no_arguments(task, rest).and_then(|()| drivers::main()),
        "deny" => no_arguments(task, rest).and_then(|()| deny::main()),
        "advisories" => deny::update(rest),
        "docs" => no_arguments(task, rest).and_then(|()| docs::main()),
        "readme" => no_arguments(task, rest).and_then(|()| readme::main()),
        "dist" => no_arguments(task, rest).and_then(|()| dist::main()),
        "ci" => no_arguments(task, rest).and_then(|()| ci::main()),
        other => anyhow::bail!("`{other}` has a help text and no task behind it"),
    }
}

fn no_arguments(task: &str, rest: &[String]) -> anyhow::Result<()> {
    match rest.first() {
        None => Ok(()),
        Some(extra) => anyhow::bail!("`{task}` takes no argument, and was given `{extra}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(line: &str) -> Result<(), String> {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        run(&args).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn unknown_tasks_and_arguments_are_refused_by_name() {
        assert!(call("deploy").unwrap_err().contains("no task `deploy`"));
        assert!(call("check --fix").unwrap_err().contains("given `--fix`"));
        assert!(call("ci now").unwrap_err().contains("given `now`"));
    }

    #[test]
    fn every_task_answers_help_without_running() {
        for task in help::TASKS {
            call(&format!("{task} --help")).unwrap();
            call(&format!("help {task}")).unwrap();
        }
    }
}
