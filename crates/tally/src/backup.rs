//! `tally backup` and `tally restore`: a copy of the embedded store, and its restoration. `follow` has a copy that goes on.
//!
//! Both work on files, not over the wire: a copy would be as slow as its connection, and a restore needs a store
//! without a server. Not here: the secret. A copy may go to places where no reader should be able to forge what the
//! secret signs. So the operator keeps it separately, and both commands say so.

mod follow;

use crate::cli::{BackupArgs, Cli, RestoreArgs};
use crate::config::{Config, Usage};
use crate::data_dir::DataDir;
use crate::store::archives;
use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tally_rules::audit::AuditAction;
use tally_service::audit;
use tally_store::StoreError;
use tally_store::sqlite::{self, Copied};
use tally_wire::time;

/// Runs `tally backup`.
pub(crate) fn backup(cli: &Cli, args: &BackupArgs) -> Result<ExitCode> {
    let config = Config::load(cli)?;
    let data = DataDir::of(&config);
    let store = data.place(&config)?.file("backup")?;
    data.check_store(&config)?;
    let file = match (&args.file, &args.follow) {
        (_, Some(folder)) => return follow::run(&config, &data, &store, folder, args),
        (Some(file), None) => file,
        (None, None) => return Err(Usage("a file, or --follow with a directory".into()).into()),
    };
    let bar = std::io::stderr().is_terminal().then(bar);
    let mut progress = |done, total| {
        if let Some(bar) = &bar {
            bar.set_length(total);
            bar.set_position(done);
        }
    };
    let copied = sqlite::backup(&store, file, &mut progress);
    bar.inspect(ProgressBar::finish_and_clear);
    let copied = copied.map_err(plain).with_context(|| format!("back up {}", store.display()))?;
    println!("{} holds {}, checked", file.display(), holds(&copied));
    let beside = sqlite::archives_beside(file);
    match sqlite::copy_archives(file, &archives_of(&config, &store), &beside)? {
        0 => {}
        files => {
            println!("{} holds {files} files of the ledger's archives: they belong to it", beside.display())
        }
    }
    // The copy is good all the same. The account of a backup may be one that only reads.
    if let Err(error) = data.note_backup() {
        eprintln!("The server does not know of it, so its metric of the last backup stays: {error:#}");
    }
    eprintln!("Keep the secret as well, apart from it: a store cannot be served without its own secret.");
    Ok(ExitCode::SUCCESS)
}

/// Runs `tally restore`.
pub(crate) fn restore(cli: &Cli, args: &RestoreArgs) -> Result<ExitCode> {
    let config = Config::load(cli)?;
    // First, so that a wrong name makes no data directory.
    std::fs::metadata(&args.file).with_context(|| format!("restore {}", args.file.display()))?;
    let data = DataDir::open(&config)?;
    let store = data.place(&config)?.file("restore")?;
    let mut from = format!("from {}", args.file.file_name().unwrap_or_default().to_string_lossy());
    args.at.iter().for_each(|at| from.push_str(&format!(" at {}", time::format(*at))));
    let reason = args.why.reason.as_deref();
    let act = audit::of_command(AuditAction::StoreRestored, &from, reason)?;
    let plan = follow::plan(args)?;
    let restored = match &plan {
        Some(plan) => plan.restore(&sqlite::Options::default(), &store, args.force, Some(&act)),
        None => sqlite::restore(&args.file, &store, args.force, Some(&act)),
    };
    let restored = match restored {
        Err(StoreError::Row(taken)) => anyhow::bail!("{taken}; --force replaces it"),
        done => done.map_err(plain).with_context(|| format!("restore {}", args.file.display()))?,
    };
    let beside = match plan {
        Some(_) => args.file.join(sqlite::ARCHIVES),
        None => sqlite::archives_beside(&args.file),
    };
    let missing = || format!("the store is restored, and its archives must come from {}", beside.display());
    sqlite::copy_archives(&store, &beside, &archives_of(&config, &store)).with_context(missing)?;
    println!("{} holds {}, checked", store.display(), holds(&restored));
    plan.iter().for_each(follow::report);
    match data.secret_given(&config) {
        Some(secret) => eprintln!("It needs the secret it was written with: is that the one in {secret}?"),
        None => eprintln!(
            "It cannot be served before its secret is there: put the one it was written with into {}, or give it as \
             TALLY_SECRET or --secret-file.",
            data.secret_path().display()
        ),
    }
    Ok(ExitCode::SUCCESS)
}

/// The folder of the archives of a store in a file.
fn archives_of(config: &Config, store: &Path) -> PathBuf {
    sqlite::Options { archives: archives(config), ..sqlite::Options::default() }.archives_of(store)
}

fn holds(copied: &Copied) -> String {
    let count = |number: u64, one: &str| format!("{number} {one}{}", if number == 1 { "" } else { "s" });
    format!(
        "{} and {} in {} bytes",
        count(copied.boards, "leaderboard"),
        count(copied.records, "record"),
        copied.bytes
    )
}

/// Reports faults of files as such.
fn plain(error: StoreError) -> anyhow::Error {
    match error {
        StoreError::Row(text) | StoreError::Unavailable(text) => anyhow::Error::msg(text),
        other => other.into(),
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    if let Ok(style) =
        ProgressStyle::with_template("copying {bar:40} {human_pos}/{human_len} pages, {eta} left")
    {
        bar.set_style(style);
    }
    bar
}
