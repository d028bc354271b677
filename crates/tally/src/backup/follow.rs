//! `tally backup --follow`, and `tally restore` of its directory to an instant.
//!
//! The process has no end of its own: whatever ends it, the next one goes on. Its log is on stderr, a line where something
//! changes. Not here: what is copied (`tally_store::sqlite::Follower`).

use crate::cli::{BackupArgs, RestoreArgs};
use crate::config::{Config, Usage};
use crate::data_dir::DataDir;
use crate::store;
use anyhow::{Result, bail};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tally_rules::Micros;
use tally_store::StoreError;
use tally_store::sqlite::{FollowEvent, FollowOptions, Follower, Options, Restorable, RestorePlan};
use tally_wire::time;

/// How often the journal is looked at: the age of what a lost disk takes with it.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The pause after an error.
const REST: Duration = Duration::from_secs(1);

/// A copy that lacks something for this long is behind.
const BEHIND: Duration = Duration::from_secs(10);

/// Follows the store until the process ends.
pub(super) fn run(
    config: &Config,
    data: &DataDir,
    store: &Path,
    folder: &Path,
    args: &BackupArgs,
) -> Result<ExitCode> {
    let how = FollowOptions { keep: args.keep, base_every: args.base_every };
    let mut follower =
        Follower::start(&store::file_options(config)?, store, folder, how).map_err(super::plain)?;
    eprintln!("Keep the secret as well, apart from it: a store cannot be served without its own secret.");
    let mut log = Log { gap: None, failing: None, whole_at: Instant::now(), is_behind: false };
    loop {
        let rest = match follower.step() {
            Ok(step) => {
                log.works();
                for event in &step.events {
                    log.event(event, data, folder);
                }
                log.caught_up(step.caught_up || step.until.is_none());
                if step.caught_up || step.until.is_none() { LOOK_EVERY } else { Duration::ZERO }
            }
            Err(error @ (StoreError::TooNew { .. } | StoreError::NotOurs(_))) => return Err(error.into()),
            Err(error) => {
                log.fails(error.to_string());
                log.caught_up(false);
                REST
            }
        };
        std::thread::sleep(rest);
    }
}

/// The lines of the process: one when something begins, and one when it is over.
struct Log {
    /// Why a base is being made.
    gap: Option<String>,
    failing: Option<String>,
    /// When the copy last had everything.
    whole_at: Instant,
    is_behind: bool,
}

impl Log {
    fn line(text: &str) {
        let now = time::format(tally_service::clock::system().now());
        // The copy goes on without a reader of its log.
        drop(writeln!(std::io::stderr(), "{now} {text}"));
    }

    fn event(&mut self, event: &FollowEvent, data: &DataDir, folder: &Path) {
        match event {
            FollowEvent::Gap(why) => {
                // A base that fails is begun again for the same reason.
                if self.gap.as_ref() != Some(why) {
                    Self::line(&format!("a new base is made: {why}"));
                }
                self.gap = Some(why.clone());
            }
            FollowEvent::Removed(bases) => {
                Self::line(&format!("removed what is older than --keep: {bases} bases"))
            }
            FollowEvent::Base { path, bytes } => {
                self.gap = None;
                let (folder, path) = (folder.display(), path.display());
                let line = format!("{folder} follows from {path} on, of {bytes} bytes, checked\n");
                drop(std::io::stdout().write_all(line.as_bytes()).and_then(|()| std::io::stdout().flush()));
                if let Err(error) = data.note_backup() {
                    Self::line(&format!("the server does not know of this backup: {error:#}"));
                }
            }
        }
    }

    fn fails(&mut self, why: String) {
        if self.failing.as_ref() != Some(&why) {
            Self::line(&format!("it is tried again until it works: {why}"));
            self.failing = Some(why);
        }
    }

    fn works(&mut self) {
        if self.failing.take().is_some() {
            Self::line("it works again");
        }
    }

    fn caught_up(&mut self, whole: bool) {
        if whole {
            self.whole_at = Instant::now();
            if std::mem::take(&mut self.is_behind) {
                Self::line("the copy has everything again");
            }
        } else if !self.is_behind && self.whole_at.elapsed() > BEHIND {
            self.is_behind = true;
            Self::line(&format!("the copy is {} s behind the store", self.whole_at.elapsed().as_secs()));
        }
    }
}

/// What a restore takes of a followed copy; `None` for a file.
pub(super) fn plan(args: &RestoreArgs) -> Result<Option<RestorePlan>> {
    let folder = &args.file;
    if !folder.is_dir() {
        return match args.at {
            Some(_) => Err(Usage("--at needs the directory of `tally backup --follow`".into()).into()),
            None => Ok(None),
        };
    }
    match RestorePlan::find(&Options::default(), folder, args.at).map_err(super::plain)? {
        Restorable::Plan(plan) => Ok(Some(plan)),
        Restorable::TooEarly(Some(first)) => {
            bail!("the first instant in {} is {}; choose a later one", folder.display(), time::format(first))
        }
        Restorable::TooEarly(None) => {
            bail!("{} has no complete base of `tally backup --follow`", folder.display())
        }
        Restorable::Damaged { why, until: Some(until) } => {
            let until = time::format(until);
            bail!("the copy is damaged: {why}; --at {until} restores what is before that")
        }
        Restorable::Damaged { why, until: None } => bail!("the copy is damaged: {why}"),
    }
}

/// Says which instant a restore has reached, and what it left out.
pub(super) fn report(plan: &RestorePlan) {
    println!("restored up to {}", time::format(plan.reached));
    let batches = |count: u64| format!("{count} batch{}", if count == 1 { "" } else { "es" });
    match (plan.next, plan.gap_until) {
        (Some(next), _) => {
            println!("left out {} from {} on", batches(plan.left_out), time::format(next));
        }
        (None, Some(from)) => {
            let from: Micros = from;
            println!("what came after that is in no file, up to the next base of {}", time::format(from));
        }
        (None, None) => println!("nothing that was copied is left out"),
    }
}
