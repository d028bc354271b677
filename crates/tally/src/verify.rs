//! `tally verify`: checks ledger, scores, periods and applications against the stored rows, and reports every row that
//! disagrees.
//!
//! It reads the store as of one moment: a database by a snapshot, a file from a copy, because the server has the file. So it
//! needs no server and blocks none. With `--ranks` it also compares the ranks of a server. Not here: what must agree
//! (`tally_service::verify`), and that comparison (`doctor`).

use crate::cli::Cli;
use crate::colours;
use crate::config::{Config, Usage};
use crate::copies::Copies;
use crate::data_dir::DataDir;
use crate::doctor;
use crate::store::{Opening, StoreAddress, archives, connect, options};
use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tally_rules::Micros;
use tally_rules::ledger::Month;
use tally_service::secret::hex;
use tally_service::verify::{
    CLOCKS_APART_MICROS, Checkpoint, Disagreement, Expected, Listener, MonthCheckpoint, Owed, Reconciled,
    ScoreCounts, reconcile,
};
use tally_store::archive::{CheckpointFile, CheckpointWriter, Summary, check_replaceable};
use tally_store::mysql::MySqlStore;
use tally_store::shards::Shards;
use tally_store::{Snapshot, Store, StoreError};

/// Rows that are reported; further ones are only counted.
const SHOWN_MAX: u64 = 100;

/// `tally verify`
#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    /// Also compare the ranks that a server gives with a sort of the stored rows, as `tally doctor` does
    #[arg(long)]
    ranks: bool,

    /// Check only what came after a checkpoint: the end of an archived month such as 2026-01, `latest` for the last of them,
    /// or a file of --checkpoint
    #[arg(long, value_name = "CHECKPOINT")]
    since: Option<String>,

    /// Write into this file what was proved, for --since of the next verification: a new file, or an earlier checkpoint. With
    /// findings it stays as it is
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
}

/// Where to begin, as it was given.
enum Since {
    Latest,
    Month(Month),
    File(Arc<CheckpointFile>),
}

impl Since {
    /// Opens the file, before anything of the store is read.
    fn of(given: &str) -> Result<Self> {
        if given == "latest" {
            return Ok(Self::Latest);
        }
        if let Some(month) = Month::parse(given) {
            return Ok(Self::Month(month));
        }
        let refused = |error: StoreError| match error {
            StoreError::Archive { what, .. } => Usage(format!(
                "--since {given}: not `latest`, no month such as 2026-01, and no file with a checkpoint: {what}"
            )),
            error => Usage(format!("--since {given}: {error}")),
        };
        Ok(Self::File(Arc::new(CheckpointFile::open(Path::new(given)).map_err(refused)?)))
    }
}

/// Refuses a file that --since could not read, and one that is no checkpoint: that of the store, say.
fn check_target(file: &Path) -> Result<()> {
    let given = file.display();
    let is_word = file.to_str().is_some_and(|name| name == "latest" || Month::parse(name).is_some());
    if is_word {
        let what = "--since reads this as an archived month and not as a file";
        return Err(Usage(format!("--checkpoint {given}: {what}; write ./{given}")).into());
    }
    check_replaceable(file).map_err(|error| match error {
        StoreError::Archive { what, .. } => {
            let what =
                format!("this file is not replaced: {what}; name a new file, or an earlier checkpoint");
            Usage(format!("--checkpoint {given}: {what}")).into()
        }
        error => error.into(),
    })
}

/// Runs the subcommand.
pub(crate) fn run(cli: &Cli, args: &VerifyArgs) -> Result<ExitCode> {
    let config = Config::load(cli)?;
    let data = DataDir::with_store(&config)?;
    args.checkpoint.as_deref().map_or(Ok(()), check_target)?;
    let since = args.since.as_deref().map(Since::of).transpose()?;
    let terms = (since.as_ref(), args.checkpoint.as_deref());
    let started = Instant::now();
    // Kept until the end, because its drop deletes the copy.
    let copies = Copies::new(data.path(), "verify");
    let place = data.place(&config)?;
    let of_databases = !matches!(place, StoreAddress::Sqlite(_));
    let store: Arc<dyn Store> = match place {
        StoreAddress::Sqlite(path) => {
            let bar = bar("copying", "pages")?;
            let store = copies.make(&path, archives(&config), &mut |done, total| {
                bar.set_length(total);
                bar.set_position(done);
            })?;
            bar.finish_and_clear();
            store
        }
        StoreAddress::MySql(url) => Arc::<MySqlStore>::clone(&connect(&url, &config, Opening::AsItIs, None)?),
        StoreAddress::Shards(urls) => {
            let store = Shards::observe(&urls, &options(&config, Opening::AsItIs, None)?);
            Arc::new(store.context("open the store")?)
        }
    };
    let mut verified = read(&*store, terms, !of_databases)?;
    let disagreements = verified.reconciled.disagreements;
    if of_databases && disagreements > 0 {
        // A snapshot of MariaDB may have a commit without one that it depends on. A real error remains.
        eprintln!("note: {disagreements} rows disagree; the store is read once more");
        verified = read(&*store, terms, true)?;
    }
    drop(store);
    drop(copies);
    let begun = since.as_ref().map(|_| verified.since.as_ref());
    let agrees = told(&verified.reconciled, begun, started.elapsed().as_secs_f64());
    let kept = keep(verified, args.checkpoint.as_deref(), agrees)?;
    let ranked = if args.ranks { doctor::ranks_agree(cli)? } else { true };
    if !args.ranks {
        colours::print("note  ranks in a server's memory are not compared; `tally verify --ranks` does it");
    }
    Ok(if agrees && kept && ranked { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Now, by this machine's clock.
fn now() -> Micros {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// A verification.
struct Verified {
    reconciled: Reconciled,
    /// Where it began.
    since: Option<Checkpoint>,
    /// The moment of it.
    at: Micros,
    /// The checkpoint with all wallets, which has no name yet.
    writer: Option<CheckpointWriter>,
}

/// Verifies the store, and writes the wallets of a checkpoint; with `tells`, it reports every row that disagrees.
fn read(store: &dyn Store, (since, file): (Option<&Since>, Option<&Path>), tells: bool) -> Result<Verified> {
    let expected = Expected::of(store)?;
    let mut books = store.ledger().snapshot().context("read the store")?;
    let at = now();
    let since = since.map(|since| find(&mut *books, since)).transpose()?.flatten();
    let mut writer = file.map(CheckpointWriter::create).transpose().context("write the checkpoint")?;
    let bar = bar("verifying", "rows")?;
    bar.set_length(books.rows().context("read the ledger")?);
    let mut shown = 0;
    let listener = Listener {
        found: &mut |one: &Disagreement| {
            shown += 1;
            if tells && shown <= SHOWN_MAX {
                bar.suspend(|| colours::print(&format!("WRONG {one}")));
            }
        },
        read: &mut |rows| bar.inc(rows),
        proved: &mut |wallet, proved| writer.as_mut().map_or(Ok(()), |writer| writer.add(wallet, proved)),
    };
    // Clocks of other servers may be ahead.
    let terms = (expected, at.plus(CLOCKS_APART_MICROS), since.clone());
    let reconciled = reconcile(store, &mut *books, terms, listener).context("verify the store")?;
    bar.finish_and_clear();
    Ok(Verified { reconciled, since, at, writer })
}

/// The checkpoint to begin at. None is the latest one of a ledger without archives.
fn find(books: &mut dyn Snapshot, since: &Since) -> Result<Option<Checkpoint>> {
    let month = match since {
        Since::Latest => return Ok(MonthCheckpoint::find(books, None)?.map(Checkpoint::Month)),
        Since::Month(month) => *month,
        Since::File(file) => {
            let checkpoint = Checkpoint::File(Arc::clone(file));
            return match checkpoint.refused(books)? {
                None => Ok(Some(checkpoint)),
                Some(why) => {
                    Err(Usage(format!("--since: this checkpoint is not of this store: {why}")).into())
                }
            };
        }
    };
    if let Some(found) = MonthCheckpoint::find(books, Some(month))? {
        return Ok(Some(Checkpoint::Month(found)));
    }
    let latest = match MonthCheckpoint::find(books, None)? {
        Some(latest) => format!("the latest checkpoint is {}", latest.month),
        None => "no month is archived".into(),
    };
    Err(Usage(format!("--since {month}: this month is not archived, or not all of it; {latest}")).into())
}

/// Gives the checkpoint its name, if everything agrees; returns false if it gets none.
fn keep(verified: Verified, file: Option<&Path>, agrees: bool) -> Result<bool> {
    let Verified { reconciled, since, at, writer } = verified;
    let (Some(writer), Some(file)) = (writer, file) else { return Ok(true) };
    let file = file.display();
    if !agrees {
        println!("      no checkpoint is written: {file} is as it was");
        return Ok(false);
    }
    let summary = match Checkpoint::proved(since.as_ref(), &reconciled, at) {
        Ok(summary) => summary,
        Err(why) => {
            colours::print(&format!("WRONG no checkpoint is written, and {file} is as it was: {why}"));
            return Ok(false);
        }
    };
    let digest = writer.finish(&summary).context("write the checkpoint")?;
    println!("      checkpoint: {file}, digest {}", hex(&digest));
    Ok(true)
}

/// Prints what was checked; returns whether all of it agrees.
fn told(reconciled: &Reconciled, since: Option<Option<&Checkpoint>>, seconds: f64) -> bool {
    let Reconciled { members, handles, wallets, entries, transfers, holds, contests, .. } = reconciled;
    let Reconciled { applications, scores, totals, late, owed, disagreements, erased, being_erased, .. } =
        reconciled;
    for (key, total) in totals {
        println!(
            "      {} {}: debits {}, credits {}",
            key.account, key.currency, total.debits, total.credits
        );
    }
    let ScoreCounts { boards, records, periods, earlier_schedule, archives, entries: archived, .. } = scores;
    let ScoreCounts { unwritten, to_purge, .. } = scores;
    let ledger = format!(
        "ledger: {members} members, {wallets} wallets, {entries} entries, {transfers} movements and {holds} holds, \
         {contests} contests that have started"
    );
    let score = format!(
        "scores: {records} records of {boards} leaderboards; {archives} archives with {archived} entries, {unwritten} \
         not written yet; {to_purge} records of deleted leaderboards and periods"
    );
    let period = format!("periods: {periods}, of them {earlier_schedule} by an earlier schedule");
    let application = format!("applications: {applications}");
    tell_since(since);
    if *late > 0 {
        println!(
            "      {late} late movements were looked up by key; not checked against holds, reversals and contests"
        );
    }
    let agrees = *disagreements == 0;
    if agrees {
        let ok = |text: String| colours::print(&format!("ok    {text}"));
        ok(format!(
            "{ledger}: every balance is that of its entries, debits equal credits, and {handles} names, logins, numbers \
             and players find their members"
        ));
        ok(format!(
            "{score}: every record has its part, archives are their records in order, and each is of a period"
        ));
        ok(format!("{period}: every span is one that a schedule gives, and none overlaps another"));
        ok(format!(
            "{application}: each has its fee's hold, or owes none, and each open hold of a fee has its application"
        ));
    } else {
        let more = disagreements.saturating_sub(SHOWN_MAX);
        if more > 0 {
            colours::print(&format!("WRONG and {more} more"));
        }
        [ledger, score, period, application].iter().for_each(|checked| println!("      {checked}"));
        colours::print(&format!("WRONG {disagreements} rows disagree"));
    }
    if erased + being_erased > 0 {
        println!(
            "      {erased} members are erased; of {being_erased} rows are left to erase, by the server or by another request"
        );
    }
    list(owed);
    println!("      verified in {seconds:.1} s");
    agrees
}

/// Says what was not checked.
fn tell_since(since: Option<Option<&Checkpoint>>) {
    match since {
        None => {}
        Some(None) => println!("since no month is archived: all of the ledger is checked"),
        Some(Some(Checkpoint::Month(MonthCheckpoint { month, months, transfers, entries, .. }))) => println!(
            "since the end of {month}. Not read: {months} archived months with {transfers} movements and {entries} \
             entries; `tally verify` without --since reads them. Checked of them: that the catalog's chain of digests is \
             whole, that each file is there with its length, and that the balances and numbers of entries with which \
             wallets begin come to the sums of the catalog"
        ),
        Some(Some(Checkpoint::File(file))) => tell_since_file(file),
    }
}

/// The same of a file.
fn tell_since_file(file: &CheckpointFile) {
    let Summary { at, whole, transfers, entries, .. } = file.summary();
    let first = match whole {
        Some(whole) => format!("the whole verification of {whole}"),
        None => "one that began at an archived month".into(),
    };
    println!(
        "since the checkpoint of {at} with digest {}. Not read: {transfers} movements and {entries} entries of before; \
         `tally verify` without --since reads them. It follows from {first}. Checked of them: that each wallet goes on \
         from the balance and the number of entries that were proved, and accounts from their sums",
        hex(&file.digest())
    );
}

/// Lists the payouts that contests and periods still owe.
fn list(Owed { count, sums, first }: &Owed) {
    if *count == 0 {
        colours::print(
            "ok    owed: every stored prize is paid, and every fee of a cancelled contest is paid back",
        );
        return;
    }
    first.iter().for_each(|debt| colours::print(&format!("owed  {debt}")));
    let sums: Vec<String> = sums.iter().map(|(currency, sum)| format!("{sum} {currency}")).collect();
    let (listed, sums) = (first.len(), sums.join(", "));
    colours::print(&format!("owed  {count} payments, {listed} of them listed: {sums}"));
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
