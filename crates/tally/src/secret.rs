//! `tally secret`: replaces the secret of a store, and makes a new one when it is lost.
//!
//! It works on the store, not on a server: a server without its secret does not start. Each command says what is lost before
//! anything is. With ranks in Redis it runs beside servers, which object to a secret that they do not have. Not here: the row of
//! the store and what depends on a secret (`tally_service::rotation`).

use crate::cli::{Cli, ReasonArgs, SecretArgs, SecretWhat};
use crate::config::{Config, Usage};
use crate::copies::Copies;
use crate::data_dir::{DataDir, SecretPlace, write_secrets};
use crate::store::{Opened, Opening, StoreAddress, connect, options, ranks_in_memory};
use anyhow::{Context, Result, bail};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tally_rules::Micros;
use tally_rules::audit::AuditAction;
use tally_service::rotation::{self, OBJECTION_TIME, RotationRow};
use tally_service::secret::Secret;
use tally_service::{audit, clock, secret_loss};
use tally_store::Store;
use tally_store::shards::Shards;
use tally_wire::time;

/// The pause between two checks for an objection.
const CHECK_PAUSE: Duration = Duration::from_millis(200);

/// Runs the subcommand.
pub(crate) fn run(cli: &Cli, args: &SecretArgs) -> Result<ExitCode> {
    let config = Config::load(cli)?;
    let data = DataDir::with_store(&config)?;
    match &args.what {
        SecretWhat::Status => status(&config, &data),
        SecretWhat::Rotate(why) => Work::begin(config, data)?.rotate(why),
        SecretWhat::Drop { yes, why } => Work::begin(config, data)?.drop_other(*yes, why),
        SecretWhat::Reset { yes, why } => Work::begin(config, data)?.reset(*yes, why),
    }
}

/// A store, and the secrets that are given for it.
struct Work {
    config: Config,
    data: DataDir,
    opened: Opened,
    /// Servers may be running on it.
    is_shared: bool,
    row: RotationRow,
    given: Option<Vec<Secret>>,
}

impl Work {
    fn begin(config: Config, data: DataDir) -> Result<Self> {
        let given = data.secrets_given(&config)?;
        let place = data.place(&config)?;
        let is_shared = !matches!(place, StoreAddress::Sqlite(_)) && !ranks_in_memory(&config);
        let opened = place.open(&config, data.path(), Opening::AsItIs);
        let opened = if is_shared { opened } else { opened.context("stop the server of this store first") }?;
        let row = row(&*opened.store)?;
        Ok(Self { config, data, opened, is_shared, row, given })
    }

    /// The given secret that makes.
    fn active(&self) -> Result<&Secret> {
        let found = self.given.iter().flatten().find(|secret| self.row.active.is(secret));
        found.with_context(|| {
            format!(
                "the secret {} of the store is not given: {}. Give the file that belongs to the store; if it is lost for \
                 good, use `tally secret reset`",
                self.row.active.shown(),
                self.data.secret_place(&self.config)
            )
        })
    }

    fn rotate(self, why: &ReasonArgs) -> Result<ExitCode> {
        let active = self.active()?.clone();
        if let Some(previous) = self.row.previous() {
            bail!(
                "the secret {} is still accepted since the last rotation: end it with `tally secret drop` first",
                previous.shown()
            );
        }
        println!("rotate: nothing is lost. The old secret is accepted until `tally secret drop`.");
        let new = self.given.iter().flatten().find(|secret| !self.row.active.is(secret));
        let new = match (new, self.data.secret_place(&self.config)) {
            (Some(new), _) if self.row.dropped == Some(fingerprint(new)) => bail!(
                "the second secret in {} is the one that was dropped: remove it, and run this again",
                self.data.secret_place(&self.config)
            ),
            (Some(new), _) => new.clone(),
            (None, SecretPlace::Variable) => bail!(Usage(
                "TALLY_SECRET has one secret: add a new one after a comma (`openssl rand -hex 32`), restart every server \
                 with both, one after the other, and run this again"
                    .into()
            )),
            (None, SecretPlace::File(path)) => {
                let new = Secret::random().context("make a secret")?;
                write_secrets(&path, &[&active, &new])?;
                println!("{} has the old and a new secret now.", path.display());
                if self.is_shared {
                    println!(
                        "The old one makes until all servers have both. Give this file to every server, restart them one \
                         after the other, and run `tally secret rotate` again."
                    );
                    return Ok(ExitCode::SUCCESS);
                }
                new
            }
        };
        let store = &*self.opened.store;
        self.announce(&new)?;
        let now = clock::system().now();
        let row = rotation::change(store, |row| row.rotated(now).filter(|_| !row.objected))?;
        if !row.active.is(&new) {
            self.withdraw()?;
            bail!(LACKING);
        }
        self.note(AuditAction::SecretRotated, &row.active.shown(), why)?;
        println!("{} makes from now on. Next steps:", row.active.shown());
        println!(
            "  - `tally secret status` counts what only the old one can check; PINs are made anew at their next use"
        );
        println!(
            "  - POST /v1/webhooks/{{webhook}}/secret gives a webhook a new secret; its old one signs for 24 hours more"
        );
        println!("  - `tally secret drop` ends the old one");
        Ok(ExitCode::SUCCESS)
    }

    /// Announces a secret, and waits whether a running server lacks it.
    fn announce(&self, new: &Secret) -> Result<()> {
        let store = &*self.opened.store;
        rotation::change(store, |row| Some(row.announcing(new)))?;
        if !self.is_shared {
            return Ok(());
        }
        eprintln!("waiting {} s, whether a running server does not have it", OBJECTION_TIME.as_secs());
        let begun = Instant::now();
        while begun.elapsed() < OBJECTION_TIME {
            if row(store)?.objected {
                self.withdraw()?;
                bail!(LACKING);
            }
            std::thread::sleep(CHECK_PAUSE);
        }
        Ok(())
    }

    /// Restores the second secret that was there before.
    fn withdraw(&self) -> Result<()> {
        let before = &self.row;
        let restored = |row: &RotationRow| {
            Some(RotationRow { other: before.previous().cloned(), objected: false, ..row.clone() })
        };
        rotation::change(&*self.opened.store, restored).map(drop).map_err(Into::into)
    }

    fn drop_other(self, yes: bool, why: &ReasonArgs) -> Result<ExitCode> {
        let active = self.active()?.clone();
        let Some(other) = self.row.other.clone() else {
            println!("nothing to drop: the store has one secret, {}", self.row.active.shown());
            return Ok(ExitCode::SUCCESS);
        };
        let lost = match self.row.previous() {
            Some(previous) => self.lost(|number| number == previous.number, self.row.since)?,
            // It has made nothing yet.
            None => Vec::new(),
        };
        println!("drop {}:", other.shown());
        if !may(&lost, yes, "drop") {
            return Ok(ExitCode::FAILURE);
        }
        let is_it = |row: &RotationRow| row.other.as_ref() == Some(&other);
        rotation::change(&*self.opened.store, |row| is_it(row).then(|| row.dropping()))?;
        self.note(AuditAction::SecretDropped, &other.shown(), why)?;
        println!("{} is dropped.", other.shown());
        match self.data.secret_place(&self.config) {
            SecretPlace::File(path) => {
                write_secrets(&path, &[&active])?;
                println!("{} has the other one alone; give it to every server.", path.display());
            }
            SecretPlace::Variable => println!("Remove it from TALLY_SECRET of every server."),
        }
        println!("No restart is needed. Keep it as long as backups that were made with it.");
        Ok(ExitCode::SUCCESS)
    }

    fn reset(self, yes: bool, why: &ReasonArgs) -> Result<ExitCode> {
        if self.active().is_ok() {
            bail!("the secret {} is not lost: `tally secret rotate` replaces it", self.row.active.shown());
        }
        // PINs of secrets before these were lost already.
        let accepted = [Some(&self.row.active), self.row.previous()];
        let is_lost = |number| accepted.iter().flatten().any(|known| known.number == number);
        let lost = self.lost(is_lost, clock::system().now())?;
        println!(
            "reset: {} is replaced by a new secret. API keys and passwords stay.",
            self.row.active.shown()
        );
        if !may(&lost, yes, "reset") {
            return Ok(ExitCode::FAILURE);
        }
        let new = match self.given.iter().flatten().next() {
            Some(given) => given.clone(),
            None => Secret::random().context("make a secret")?,
        };
        if self.is_shared {
            // A server that runs has the secret, and would go on with it.
            self.announce(&new).context("stop all servers of this store")?;
        }
        if let SecretPlace::File(path) = self.data.secret_place(&self.config) {
            write_secrets(&path, &[&new])?;
            println!("{} has the new secret; give it to every server.", path.display());
        }
        let now = clock::system().now();
        let row = rotation::change(&*self.opened.store, |row| Some(row.reset(&new, now)))?;
        self.note(AuditAction::SecretReset, &row.active.shown(), why)?;
        println!("{} is the secret of the store now. Start the servers.", row.active.shown());
        Ok(ExitCode::SUCCESS)
    }

    fn lost(&self, is_lost: impl Fn(u8) -> bool, since: Micros) -> Result<Vec<String>> {
        lost(&*self.opened.store, &self.config, is_lost, since)
    }

    /// Leaves the row of the command in the audit log.
    fn note(&self, action: AuditAction, detail: &str, why: &ReasonArgs) -> Result<()> {
        let row = audit::of_command(action, detail, why.reason.as_deref())?;
        audit::append(&*self.opened.store, row).context("it is done; the audit log has no row of it")
    }
}

const LACKING: &str = "a running server does not have this secret, and nothing was changed: give every server of the store the same \
     file, restart those that were not restarted since, and run this again";

fn fingerprint(secret: &Secret) -> [u8; 32] {
    secret.derive(tally_service::secret::Use::Fingerprint)
}

fn row(store: &dyn Store) -> Result<RotationRow> {
    rotation::read(store)?.context("the store has no secret yet: a server makes one at its first start")
}

/// Prints what is lost; whether it may be.
fn may(lost: &[String], yes: bool, command: &str) -> bool {
    if lost.is_empty() {
        println!("nothing is lost with it");
        return true;
    }
    lost.iter().for_each(|line| println!("lost: {line}"));
    if !yes {
        eprintln!("nothing was changed; `tally secret {command} --yes` does it");
    }
    yes
}

/// What is lost with secrets of which the last made until then.
fn lost(
    store: &dyn Store,
    config: &Config,
    is_lost: impl Fn(u8) -> bool,
    since: Micros,
) -> Result<Vec<String>> {
    let now = clock::system().now();
    let made = secret_loss::made_by(store, is_lost, now).context("count what depends on the secret")?;
    let lasts = |name| -> Result<bool> {
        let time = i64::try_from(config.duration(name)?.as_micros()).unwrap_or(i64::MAX);
        Ok(now < Micros(since.0.saturating_add(time)))
    };
    let (until, mut lost) = (time::format(since), Vec::new());
    if made.pins > 0 {
        lost.push(format!("the PINs of {} members: each needs a new one", made.pins));
    }
    if !made.webhooks.is_empty() {
        let (count, urls) = (made.webhooks.len(), made.webhooks.join(" "));
        lost.push(format!(
            "the secrets of {count} webhooks: each needs a new one, and so does its receiver: {urls}"
        ));
    }
    if lasts("auth.token_ttl")? {
        lost.push(format!("tokens from before {until}: members sign in again"));
    }
    if lasts("idempotency.keep")? {
        lost.push(format!("retries of requests from before {until} are refused: 422 idempotency_key_reused"));
    }
    Ok(lost)
}

fn status(config: &Config, data: &DataDir) -> Result<ExitCode> {
    let given = data.secrets_given(config)?;
    // Kept until the end, because its drop deletes the copy.
    let copies = Copies::new(data.path(), "secret");
    let store: Arc<dyn Store> = match data.place(config)? {
        StoreAddress::Sqlite(path) => copies.make(&path, None, &mut |_, _| ())?,
        StoreAddress::MySql(url) => {
            Arc::<tally_store::mysql::MySqlStore>::clone(&connect(&url, config, Opening::AsItIs, None)?)
        }
        StoreAddress::Shards(urls) => {
            let store = Shards::observe(&urls, &options(config, Opening::AsItIs, None)?);
            Arc::new(store.context("open the store")?)
        }
    };
    let row = row(&*store)?;
    let place = data.secret_place(config);
    let is_given = |known: &rotation::Known| {
        let found = given.iter().flatten().any(|secret| known.is(secret));
        if found { format!("given by {place}") } else { format!("NOT given by {place}") }
    };
    let since = match row.since {
        Micros(0) => "from the first start on".to_owned(),
        at => format!("since {}", time::format(at)),
    };
    println!("{} makes, {since}; {}", row.active.shown(), is_given(&row.active));
    if let Some(next) = row.next() {
        println!("{} is announced, and makes nothing yet; {}", next.shown(), is_given(next));
    }
    if let Some(previous) = row.previous() {
        println!("{} is accepted, too; {}", previous.shown(), is_given(previous));
        let lost = lost(&*store, config, |number| number == previous.number, row.since)?;
        println!("`tally secret drop` ends it:");
        may(&lost, true, "drop");
    }
    Ok(ExitCode::SUCCESS)
}
