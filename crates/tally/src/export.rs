//! `tally export` and `tally audit`: a leaderboard or the audit log on stdout, page by page, in the order of the API.

use crate::cli::{AuditArgs, Cli, ExportArgs, ExportFormat, TargetArgs};
use crate::client::{Client, segment};
use crate::csv_text;
use crate::target::Target;
use anyhow::{Context, Result};
use serde_json::Value;
use std::io::Write;
use std::process::ExitCode;
use ureq::http::Method;

/// A list of the API as lines.
struct List {
    /// The field of a page with its rows.
    rows: &'static str,
    /// The fields of a row that are the columns of a CSV file.
    columns: &'static [&'static str],
    /// Columns with texts of callers; the others never begin a formula of a spreadsheet, even if they begin with a minus.
    texts: &'static [&'static str],
}

const SCORES: List =
    List { rows: "entries", columns: &["rank", "player", "score", "subscore", "at"], texts: &["player"] };

const ACTS: List = List {
    rows: "items",
    columns: &["at", "actor", "action", "subject", "detail", "reason", "id"],
    texts: &["subject", "detail", "reason"],
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
    let mut base = "/v1/audit?limit=1000".to_owned();
    for (name, value) in filters {
        if let Some(value) = value {
            base.push_str(&format!("&{name}={}", segment(value)));
        }
    }
    export(cli, &args.target, (&ACTS, &base), args.format)
}

fn export(cli: &Cli, target: &TargetArgs, list: (&List, &str), format: ExportFormat) -> Result<ExitCode> {
    let target = Target::find(cli, target)?;
    let written = write(&target.client, list, format);
    target.finish();
    written?;
    Ok(ExitCode::SUCCESS)
}

fn write(client: &Client, (list, base): (&List, &str), format: ExportFormat) -> Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut page = client.ask(&Method::GET, base, None)?;
    if format == ExportFormat::Csv {
        writeln!(out, "{}", list.columns.join(","))?;
    }
    loop {
        let rows = page.get(list.rows).and_then(Value::as_array);
        for row in rows.with_context(|| format!("the answer has no {}", list.rows))? {
            match format {
                ExportFormat::Json => writeln!(out, "{row}")?,
                ExportFormat::Csv => write_csv(&mut out, list, row)?,
            }
        }
        let Some(cursor) = page.get("next_cursor").and_then(Value::as_str) else { break };
        page = client.ask(&Method::GET, &format!("{base}&cursor={}", segment(cursor)), None)?;
    }
    out.flush()?;
    Ok(())
}

fn write_csv(out: &mut impl Write, list: &List, row: &Value) -> Result<()> {
    let fields = list.columns.iter().map(|name| match row.get(name) {
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
