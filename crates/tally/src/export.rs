//! `tally export`: a leaderboard on stdout, best first, page by page.

use crate::cli::{Cli, ExportArgs, ExportFormat};
use crate::client::{Client, segment};
use crate::csv_text;
use crate::target::Target;
use anyhow::{Context, Result};
use serde_json::Value;
use std::io::Write;
use std::process::ExitCode;
use ureq::http::Method;

const COLUMNS: [&str; 5] = ["rank", "player", "score", "subscore", "at"];

/// Runs the subcommand.
pub(crate) fn run(cli: &Cli, args: &ExportArgs) -> Result<ExitCode> {
    let target = Target::find(cli, &args.target)?;
    let written = write(&target.client, args);
    target.finish();
    written?;
    Ok(ExitCode::SUCCESS)
}

fn write(client: &Client, args: &ExportArgs) -> Result<()> {
    let base = format!("/v1/leaderboards/{}/scores?limit=1000", segment(&args.board));
    let base = match &args.period {
        Some(period) => format!("{base}&period={}", segment(period)),
        None => base,
    };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut page = client.ask(&Method::GET, &base, None)?;
    if args.format == ExportFormat::Csv {
        writeln!(out, "{}", COLUMNS.join(","))?;
    }
    loop {
        for entry in page.get("entries").and_then(Value::as_array).context("the answer has no entries")? {
            match args.format {
                ExportFormat::Json => writeln!(out, "{entry}")?,
                ExportFormat::Csv => write_csv(&mut out, entry)?,
            }
        }
        let Some(cursor) = page.get("next_cursor").and_then(Value::as_str) else { break };
        page = client.ask(&Method::GET, &format!("{base}&cursor={}", segment(cursor)), None)?;
    }
    out.flush()?;
    Ok(())
}

fn write_csv(out: &mut impl Write, entry: &Value) -> Result<()> {
    let fields = COLUMNS.map(|name| match entry.get(name) {
        None | Some(Value::Null) => String::new(),
        // Scores are numbers that are sent as texts.
        Some(Value::String(text)) if name == "player" => csv_text::escape(text).into_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    });
    let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
    writer.write_record(&fields)?;
    out.write_all(&writer.into_inner().context("write a line")?)?;
    Ok(())
}
