//! `tally bench`: runs scenarios, prints their tables, writes their reports.

use crate::cli::BenchArgs;
use crate::config::Usage;
use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::OnceLock;
use tally_bench::{Options, SCENARIOS, Size};

/// Runs the subcommand.
pub(crate) fn run(args: &BenchArgs) -> Result<ExitCode> {
    let names: Vec<String> = if args.scenario == "all" { Vec::new() } else { vec![args.scenario.clone()] };
    if let Some(unknown) = names.iter().find(|name| SCENARIOS.iter().all(|one| one.name != **name)) {
        let known: Vec<String> =
            SCENARIOS.iter().map(|one| format!("  {:<13} {}", one.name, one.about)).collect();
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
    options.mysql.clone_from(&args.mysql);
    options.drivers.clone_from(&args.drivers);
    options.members = args.members;
    options.work.clone_from(&args.work);
    options.tally_bin = Some(std::env::current_exe()?);
    // As it would be typed again, without the place of this binary.
    let words = std::env::args().skip(1).map(|word| without_password(&word));
    options.command = std::iter::once("tally".to_owned()).chain(words).collect::<Vec<_>>().join(" ");
    if std::io::stderr().is_terminal() {
        options.progress = |what| {
            bar().finish_and_clear();
            eprintln!("… {what}");
        };
        options.bar = |what, done, all| {
            let bar = bar();
            if bar.is_finished() {
                bar.reset();
            }
            bar.set_message(what.to_owned());
            bar.set_length(all);
            bar.set_position(done);
        };
    }
    for report in tally_bench::run(&names, &options)? {
        println!("{}", report.to_text());
    }
    Ok(ExitCode::SUCCESS)
}

/// The one bar, for what is long; made when it is first asked for, which is on a terminal only.
fn bar() -> &'static ProgressBar {
    static BAR: OnceLock<ProgressBar> = OnceLock::new();
    BAR.get_or_init(|| {
        let bar = ProgressBar::new(0);
        if let Ok(style) =
            ProgressStyle::with_template("… {msg} {bar:40} {human_pos}/{human_len}, {eta} left")
        {
            bar.set_style(style);
        }
        bar
    })
}

/// A word of the command line as a report may show it: the password of a database's address left out.
fn without_password(word: &str) -> String {
    let hidden = || {
        let (before, address) = word.split_once("mysql://")?;
        // A password may contain anything, so its end is the last sign of that kind.
        let (who, place) = address.rsplit_once('@')?;
        let (user, _) = who.split_once(':')?;
        Some(format!("{before}mysql://{user}:…@{place}"))
    };
    hidden().unwrap_or_else(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_shows_no_password() {
        for (word, shown) in [
            ("mysql://root:a:b@c@db:3306", "mysql://root:…@db:3306"),
            ("--mysql=mysql://root:secret@db", "--mysql=mysql://root:…@db"),
            ("mysql://root@db:3306", "mysql://root@db:3306"),
            ("mariadbd", "mariadbd"),
        ] {
            assert_eq!(without_password(word), shown);
        }
    }
}
