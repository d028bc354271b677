//! `tally export`, `tally audit` and `tally ledger`: a leaderboard, the audit log or transfers on stdout, page by page, in the
//! order of the API.

mod totals;

use crate::cli::{AuditArgs, Cli, ExportArgs, ExportFormat, LedgerArgs, TargetArgs};
use crate::client::{Client, segment};
use crate::csv_text;
use crate::printing::{is_broken_pipe, stdout};
use crate::target::TargetServer;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;
use tally_rules::ledger::Uuid;
use tally_wire::cursor::{self, Names};
use totals::Totals;
use ureq::http::Method;

/// A list of the API as lines.
struct List {
    /// The field of a page with its rows.
    rows: &'static str,
    /// The fields of a row that are the columns of a CSV file; a slash precedes a field within a field.
    columns: &'static [&'static str],
    /// Columns with texts of callers; the others never begin a formula of a spreadsheet, even if they begin with a minus.
    texts: &'static [&'static str],
    /// Whether `--after` goes on after the id of a row.
    is_resumable: bool,
}

impl List {
    /// What an export says that ends before its list does. `last` is the id of its last row.
    fn interrupted(&self, last: Option<&str>) -> String {
        let last = last.filter(|_| self.is_resumable);
        last.map_or("the export is not whole".into(), |id| {
            format!("the export is not whole; --after {id} goes on behind its last line")
        })
    }
}

const SCORES: List = List {
    rows: "entries",
    columns: &["rank", "player", "score", "subscore", "at"],
    texts: &["player"],
    is_resumable: false,
};

const ACTS: List = List {
    rows: "items",
    columns: &["at", "actor", "action", "subject", "detail", "reason", "id"],
    texts: &["subject", "detail", "reason"],
    is_resumable: false,
};

const TRANSFERS: List = List {
    rows: "items",
    columns: &[
        "at",
        "id",
        "type",
        "currency",
        "amount",
        "debit/account",
        "debit/member",
        "debit/name",
        "credit/account",
        "credit/member",
        "credit/name",
        "reference",
        "actor",
        "reason",
        "metadata",
    ],
    texts: &["debit/name", "credit/name", "reference", "reason"],
    is_resumable: true,
};

/// Runs `tally export`.
pub(crate) fn run(cli: &Cli, args: &ExportArgs) -> Result<ExitCode> {
    let base = format!("/v1/leaderboards/{}/scores?limit=1000", segment(&args.board));
    let base = match &args.period {
        Some(period) => format!("{base}&period={}", segment(period)),
        None => base,
    };
    export(cli, &args.target, (&SCORES, &base), args.format)
}

/// Runs `tally audit`.
pub(crate) fn audit(cli: &Cli, args: &AuditArgs) -> Result<ExitCode> {
    let filters = [
        ("actor", &args.actor),
        ("action", &args.action),
        ("subject", &args.subject),
        ("from", &args.from),
        ("until", &args.until),
    ];
    export(cli, &args.target, (&ACTS, &with_filters("/v1/audit", &filters)), args.format)
}

/// Runs `tally ledger`.
pub(crate) fn ledger(cli: &Cli, args: &LedgerArgs) -> Result<ExitCode> {
    let after = match &args.after {
        Some(id) if Uuid::parse(id).is_none() => bail!("--after must be the id of a transfer, not {id:?}"),
        Some(id) => Some(cursor::encode_name(Names::Transactions, id)),
        None => None,
    };
    let base = with_filters("/v1/ledger/transactions", &[("from", &args.from), ("until", &args.until)]);
    let target = TargetServer::find(cli, &args.target)?;
    let written = write_ledger(&target.client, args, &base, after);
    target.finish();
    written?;
    Ok(ExitCode::SUCCESS)
}

/// Writes transfers, and their totals. Those of all transfers are between the trial balances before and after.
fn write_ledger(client: &Client, args: &LedgerArgs, base: &str, after: Option<String>) -> Result<()> {
    let is_whole = args.from.is_none() && args.until.is_none() && after.is_none();
    let before = is_whole.then(|| Totals::of_trial_balance(client)).transpose()?;
    let mut totals = Totals::default();
    let written = write(client, (&TRANSFERS, base), after, args.format, &mut |row| totals.add(row));
    // The totals of a part count, too: those of the rest add up with them. A reader that has left wants neither.
    if !written.as_ref().is_err_and(is_broken_pipe) {
        eprint!("{totals}");
    }
    written?;
    if let Some(before) = before {
        totals.check_between(&before, &Totals::of_trial_balance(client)?)?;
        eprintln!("The totals agree with the trial balance.");
    }
    Ok(())
}

/// The path of a list with the filters that are given.
fn with_filters(path: &str, filters: &[(&str, &Option<String>)]) -> String {
    let given = filters.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    given
        .fold(format!("{path}?limit=1000"), |base, (name, value)| format!("{base}&{name}={}", segment(value)))
}

fn export(cli: &Cli, target: &TargetArgs, list: (&List, &str), format: ExportFormat) -> Result<ExitCode> {
    let target = TargetServer::find(cli, target)?;
    let written = write(&target.client, list, None, format, &mut |_| Ok(()));
    target.finish();
    written?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a list from its beginning, or from a cursor on without a header, and passes each row to `each`. Fails at the end if the
/// server left out corrupt rows.
fn write(
    client: &Client,
    (list, base): (&List, &str),
    from: Option<String>,
    format: ExportFormat,
    each: &mut dyn FnMut(&Value) -> Result<()>,
) -> Result<()> {
    let mut out = std::io::BufWriter::new(stdout());
    let has_head = from.is_none() && format == ExportFormat::Csv;
    let at = |cursor: &str| format!("{base}&cursor={}", segment(cursor));
    let mut page = client.ask(&Method::GET, &from.map_or_else(|| base.to_owned(), |from| at(&from)), None)?;
    if has_head {
        writeln!(out, "{}", list.columns.join(",").replace('/', "_"))?;
    }
    let (mut last, mut corrupt) = (None, BTreeSet::new());
    loop {
        let rows = page.get(list.rows).and_then(Value::as_array);
        let rows = rows.with_context(|| format!("the answer has no {}", list.rows))?;
        for row in rows {
            each(row)?;
            match format {
                ExportFormat::Json => writeln!(out, "{row}")?,
                ExportFormat::Csv => write_csv(&mut out, list, row)?,
            }
        }
        out.flush()?;
        last = rows.last().and_then(|row| row.get("id")?.as_str()).map(str::to_owned).or(last);
        corrupt.extend(
            page.get("damaged").and_then(Value::as_array).into_iter().flatten().map(Value::to_string),
        );
        let Some(cursor) = page.get("next_cursor").and_then(Value::as_str) else { break };
        page =
            client.ask(&Method::GET, &at(cursor), None).with_context(|| list.interrupted(last.as_deref()))?;
    }
    match corrupt.first() {
        Some(row) => {
            bail!("corrupt rows were left out: {}, such as {row}; `tally verify` reports each", corrupt.len())
        }
        None => Ok(()),
    }
}

fn write_csv(out: &mut impl Write, list: &List, row: &Value) -> Result<()> {
    let fields = list.columns.iter().map(|name| match row.pointer(&format!("/{name}")) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) if list.texts.contains(name) => csv_text::escape(text).into_owned(),
        // Scores are numbers that are sent as texts.
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    });
    let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
    writer.write_record(fields)?;
    out.write_all(&writer.into_inner().context("write a line")?)?;
    Ok(())
}
