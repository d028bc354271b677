//! `tally verify`: replays the ledger and names every row that disagrees.
//!
//! It reads the store itself, as it was at one moment: a database by a snapshot, a file from a copy, because the server
//! has the file. So it needs no server and is in nobody's way. Not here: what has to agree with what
//! (`tally_service::verify`).

use crate::cli::Cli;
use crate::config::Config;
use crate::copies::Copies;
use crate::data_dir::DataDir;
use crate::store::{Place, connect, options};
use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use tally_service::verify::{Disagreement, Listener, Replayed, home, replay};
use tally_store::Store;
use tally_store::mysql::MySqlStore;
use tally_store::shards::Shards;

/// Rows that are named; of more only the number is told.
const SHOWN_MAX: u64 = 100;

/// Runs the subcommand.
pub(crate) fn run(cli: &Cli) -> Result<ExitCode> {
    let config = Config::load(cli)?;
    let data = DataDir::open(&config)?;
    let started = Instant::now();
    // Kept until the end: then the copy goes.
    let copies = Copies::new(data.path(), "verify");
    let place = data.place(&config)?;
    let of_databases = !matches!(place, Place::Sqlite(_));
    let store: Arc<dyn Store> = match place {
        Place::Sqlite(path) => {
            let bar = bar("copying", "pages")?;
            let store = copies.make(&path, &mut |done, total| {
                bar.set_length(total);
                bar.set_position(done);
            })?;
            bar.finish_and_clear();
            store
        }
        Place::MySql(url) => Arc::<MySqlStore>::clone(&connect(&url, &config, false, None)?),
        Place::Shards(urls) => {
            let store = Shards::observe(&urls, &options(&config, false, None)?);
            Arc::new(store.context("open the store")?)
        }
    };
    let mut replayed = read(&*store, !of_databases)?;
    if of_databases && replayed.disagreements > 0 {
        // A snapshot of MariaDB may have a commit and not the one that it waited for. What is wrong stays wrong.
        eprintln!("note: {} rows disagree; the ledger is read once more", replayed.disagreements);
        replayed = read(&*store, true)?;
    }
    drop(store);
    Ok(told(&replayed, started.elapsed().as_secs_f64()))
}

/// Replays the ledger; where it `tells`, every row that disagrees is named.
fn read(store: &dyn Store, tells: bool) -> Result<Replayed> {
    let home = home(store)?;
    let mut books = store.ledger().books().context("read the ledger")?;
    let bar = bar("replaying", "rows")?;
    bar.set_length(books.rows().context("read the ledger")?);
    let mut shown = 0;
    let listener = Listener {
        found: &mut |one: &Disagreement| {
            shown += 1;
            if tells && shown <= SHOWN_MAX {
                bar.suspend(|| println!("WRONG {one}"));
            }
        },
        read: &mut |rows| bar.inc(rows),
    };
    let replayed = replay(&mut *books, home, listener).context("replay the ledger")?;
    bar.finish_and_clear();
    Ok(replayed)
}

fn told(replayed: &Replayed, seconds: f64) -> ExitCode {
    let Replayed { members, handles, wallets, entries, transfers, holds, contests, totals, disagreements } =
        replayed;
    for (key, total) in totals {
        println!(
            "      {} {}: debits {}, credits {}",
            key.account, key.currency, total.debits, total.credits
        );
    }
    let what = format!(
        "{members} members, {wallets} wallets, {entries} entries, {transfers} movements and {holds} holds, {contests} \
         contests that have started, replayed in {seconds:.1} s"
    );
    if *disagreements == 0 {
        println!(
            "ok    {what}: every balance is that of its entries, debits equal credits, and {handles} logins, numbers and players find their members"
        );
        return ExitCode::SUCCESS;
    }
    let more = disagreements.saturating_sub(SHOWN_MAX);
    if more > 0 {
        println!("WRONG and {more} more");
    }
    println!("WRONG {what}: {disagreements} rows disagree");
    ExitCode::FAILURE
}

/// Progress, on a terminal only.
fn bar(what: &'static str, of: &str) -> Result<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        return Ok(ProgressBar::hidden());
    }
    let template = format!("{{msg}} {{bar:40}} {{human_pos}}/{{human_len}} {of}, {{per_sec}}, {{eta}} left");
    let style = ProgressStyle::with_template(&template).context("show progress")?;
    Ok(ProgressBar::new(0).with_style(style).with_message(what))
}
