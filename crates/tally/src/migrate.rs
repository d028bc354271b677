//! `tally migrate`: brings the store to this version's schema, its records to another number of databases, or everything of
//! it into another store (`copying`).
//!
//! Opening an embedded store migrates it, after keeping a copy. Only this command migrates a database on a server,
//! because other servers may use it. Resharding is in the store (`tally_store::shards`); this shows its progress.

mod copying;

use crate::cli::{Cli, MigrateArgs, ReasonArgs};
use crate::config::{Config, Usage, list};
use crate::data_dir::DataDir;
use crate::log;
use crate::sources::secret_of;
use crate::store::{Opening, StoreAddress, options, print_notice, writer};
use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tally_rules::audit::AuditAction;
use tally_service::audit;
use tally_store::Store;
use tally_store::shards::{MoveProgress, Resharded, reshard};

/// The interval of log lines.
const LINE_PAUSE: Duration = Duration::from_secs(10);

/// Runs the subcommand.
pub(crate) fn run(cli: &Cli, args: &MigrateArgs) -> Result<ExitCode> {
    let config = Config::load(cli)?;
    if !args.reshard && (!args.from.is_empty() || args.from_file.is_some()) {
        return copying::run(&config, args);
    }
    let data = DataDir::with_store(&config)?;
    let place = data.place(&config)?;
    if args.reshard {
        return spread(&config, &data, place, args);
    }
    let opened = place.open(&config, data.path(), Opening::Migrate)?;
    note(&*opened.store, &format!("schema of release {}", env!("CARGO_PKG_VERSION")), &args.why)?;
    println!("the store {} has the schema of this version", opened.shown);
    Ok(ExitCode::SUCCESS)
}

/// Leaves the row of the command in the audit log.
fn note(store: &dyn Store, detail: &str, why: &ReasonArgs) -> Result<()> {
    let row = audit::of_command(AuditAction::StoreMigrated, detail, why.reason.as_deref())?;
    audit::append(store, row).context("the store is migrated; its audit log has no row of that")
}

/// The databases that have the records now, if they are named.
fn before(args: &MigrateArgs) -> Result<Vec<String>, Usage> {
    let Some(path) = &args.from_file else { return Ok(args.from.clone()) };
    Ok(list(&secret_of("--from-file", path)?))
}

fn spread(config: &Config, data: &DataDir, place: StoreAddress, args: &MigrateArgs) -> Result<ExitCode> {
    let to = match place.clone() {
        StoreAddress::MySql(url) => vec![url],
        StoreAddress::Shards(urls) => urls,
        StoreAddress::Sqlite(_) => bail!(Usage(
            "--reshard is for databases mysql://…, in `store.url`; an embedded store is one file".into()
        )),
    };
    let from = before(args)?;
    log::start(config)?;
    let options = options(config, Opening::Migrate, Some(writer(data.path())))?;
    let started = Instant::now();
    let mut shown = Shown::new(started, ("moving", "where they belong"))?;
    let done = reshard(&from, &to, &options, &mut print_notice, &mut |progress| shown.show(progress));
    let Resharded { rows, shards: (before, after), resumed } = done.context("move the records")?;
    let (scanned, seconds) = (shown.scanned(), started.elapsed().as_secs_f64());
    let opened = place.open(config, data.path(), Opening::AsItIs)?;
    note(&*opened.store, &format!("from {before} to {after} databases"), &args.why)?;
    println!(
        "{rows} records are on {after} databases now and were on {before}{}: looked at {scanned} in {seconds:.1} s, {:.0} a second",
        if resumed { "; this went on with what was begun before" } else { "" },
        scanned as f64 / seconds.max(0.001)
    );
    Ok(ExitCode::SUCCESS)
}

/// Shows the progress: a bar on a terminal, otherwise a line now and then.
struct Shown {
    bar: Option<ProgressBar>,
    /// What records are when they are done.
    done: &'static str,
    line: Instant,
    /// The time of the first records, and how many were done before.
    first: Option<(Instant, u64)>,
    last: MoveProgress,
}

impl Shown {
    /// `doing` is the work, and what records are when they are done.
    fn new(started: Instant, (doing, done): (&'static str, &'static str)) -> Result<Self> {
        let template = "{msg} {bar:40} {human_pos}/{human_len} records, {per_sec}, {eta} left";
        let style = ProgressStyle::with_template(template).context("show progress")?;
        let bar = std::io::stderr()
            .is_terminal()
            .then(|| ProgressBar::new(0).with_style(style).with_message(doing));
        Ok(Self { bar, done, line: started, first: None, last: MoveProgress::default() })
    }

    fn show(&mut self, progress: MoveProgress) {
        let (began, before) = *self.first.get_or_insert((Instant::now(), progress.done));
        self.last = progress;
        if let Some(bar) = &self.bar {
            bar.set_length(progress.total);
            bar.set_position(progress.done);
        } else if self.line.elapsed() > LINE_PAUSE {
            self.line = Instant::now();
            let rate = (progress.done - before) as f64 / began.elapsed().as_secs_f64().max(0.001);
            let left = (progress.total - progress.done) as f64 / rate.max(1.0);
            let (MoveProgress { done, total }, are) = (progress, self.done);
            tracing::info!("{done} of {total} records are {are}, {rate:.0} a second, {left:.0} s left");
        }
    }

    /// Records that this run has read.
    fn scanned(&self) -> u64 {
        self.last.done - self.first.map_or(0, |(_, before)| before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn the_databases_before_are_named_by_flags_or_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("before");
        std::fs::write(&file, "mysql://a/x, mysql://tally:b%2Cc@b/x\n").unwrap();
        let urls = vec!["mysql://a/x".to_owned(), "mysql://tally:b%2Cc@b/x".to_owned()];
        let named = |from: &[String], from_file: Option<PathBuf>| {
            let why = ReasonArgs { reason: None };
            before(&MigrateArgs { reshard: true, from: from.to_vec(), from_file, why })
        };
        assert_eq!(named(&urls, None).unwrap(), urls);
        assert_eq!(named(&[], Some(file)).unwrap(), urls);
        assert!(named(&[], None).unwrap().is_empty());
        let missing = named(&[], Some(folder.path().join("none"))).unwrap_err();
        assert!(missing.0.starts_with("--from-file is `") && missing.0.contains("cannot be read"));
    }
}
