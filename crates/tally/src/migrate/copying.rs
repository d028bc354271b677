//! `tally migrate --from`: everything of one store into another, which the settings name.
//!
//! The copy is in the store (`tally_store::copy`). Not here: the secret, which is in no store.

use super::{Shown, before};
use crate::cli::MigrateArgs;
use crate::config::{Config, Usage};
use crate::data_dir::DataDir;
use crate::log;
use crate::store::{Opening, StoreAddress, file_options, options, print_notice, writer};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use tally_rules::audit::AuditAction;
use tally_service::{ABOUT_REDIS, audit};
use tally_store::copy::{CopyEnd, CopyReport, copy};
use tally_store::sqlite;

/// Copies the store of `--from` into that of the settings.
pub(super) fn run(config: &Config, args: &MigrateArgs) -> Result<ExitCode> {
    let named = before(args)?;
    let [url] = named.as_slice() else {
        bail!(Usage(
            "--from names the one store that is copied; for several databases there is --reshard".into()
        ));
    };
    let from = StoreAddress::at(url)?;
    if let StoreAddress::Sqlite(path) = &from
        && !sqlite::is_there(path)
    {
        bail!(Usage(format!("--from: no store in {}", path.display())));
    }
    let to = DataDir::of(config).place(config)?;
    if from == to {
        bail!(Usage("--from is the store of `store.url`: that names the store to copy into".into()));
    }
    let data = DataDir::open(config)?;
    let (from, to) = (end(from, config, data.path())?, end(to, config, data.path())?);
    log::start(config)?;
    let act = audit::of_command(AuditAction::StoreMigrated, &detail(&from), args.why.reason.as_deref())?;
    let started = Instant::now();
    let mut shown = Shown::new(started, ("copying", "copied or compared"))?;
    let terms = (&ABOUT_REDIS[..], &act);
    let done = copy(&from, &to, terms, &mut print_notice, &mut |progress| shown.show(progress));
    tell(&done.context("copy the store")?, started.elapsed().as_secs_f64());
    if data.secret_given(config).is_none() {
        let place = data.secret_place(config);
        println!(
            "      the secret is in no store: put that of the old one into {place} before a server starts"
        );
    }
    println!("      next: `tally verify` with the same settings");
    Ok(ExitCode::SUCCESS)
}

/// How a store is opened for a copy.
fn end(address: StoreAddress, config: &Config, data: &Path) -> Result<CopyEnd> {
    match address {
        StoreAddress::Sqlite(path) => Ok(CopyEnd::File(path, file_options(config)?)),
        StoreAddress::MySql(url) => {
            Ok(CopyEnd::Database(url, options(config, Opening::AsItIs, Some(writer(data)))?))
        }
        StoreAddress::Shards(_) => bail!(Usage(
            "a store is copied from and into one database: bring several into one first, or spread it afterwards, with \
             --reshard"
                .into()
        )),
    }
}

/// What the audit log says.
fn detail(from: &CopyEnd) -> String {
    match from {
        CopyEnd::File(..) => "copied from a file".into(),
        CopyEnd::Database(..) => "copied from a database".into(),
    }
}

/// Prints what was copied and compared.
fn tell(report: &CopyReport, seconds: f64) {
    let CopyReport { shown, rows, tables, archives, balances, resumed } = report;
    println!(
        "{shown} has all {rows} rows of {tables} tables{}: their numbers, sums of money and digests agree, {seconds:.1} s",
        if *resumed { "; this went on with what was begun before" } else { "" }
    );
    for (currency, sum) in balances {
        println!("      {currency}: the balances of all wallets are {sum}");
    }
    if *archives > 0 {
        println!("      {archives} files of the ledger's archives are in its folder");
    }
}
