//! `tally bench`: runs scenarios, prints their tables, writes their reports.

use crate::cli::BenchArgs;
use crate::config::Usage;
use anyhow::{Result, bail};
use std::io::IsTerminal;
use std::process::ExitCode;
use tally_bench::{Options, SCENARIOS, Size};

/// Runs the subcommand.
pub(crate) fn run(args: &BenchArgs) -> Result<ExitCode> {
    let names: Vec<String> = if args.scenario == "all" { Vec::new() } else { vec![args.scenario.clone()] };
    if let Some(unknown) = names.iter().find(|name| SCENARIOS.iter().all(|one| one.name != **name)) {
        let known: Vec<String> =
            SCENARIOS.iter().map(|one| format!("  {:<8} {}", one.name, one.about)).collect();
        bail!(Usage(format!(
            "there is no scenario `{unknown}`; there are, beside `all`:\n{}",
            known.join("\n")
        )));
    }
    let mut options = Options::new(if args.small { Size::Small } else { Size::Full });
    options.seed = args.seed;
    options.rows = args.rows;
    options.report_dir.clone_from(&args.report);
    options.redis.clone_from(&args.redis);
    options.members = args.members;
    options.tally_bin = Some(std::env::current_exe()?);
    // As it would be typed again, without the place of this binary.
    options.command =
        std::iter::once("tally".to_owned()).chain(std::env::args().skip(1)).collect::<Vec<_>>().join(" ");
    if std::io::stderr().is_terminal() {
        options.progress = |what| eprintln!("… {what}");
    }
    for report in tally_bench::run(&names, &options)? {
        println!("{}", report.to_text());
    }
    Ok(ExitCode::SUCCESS)
}
