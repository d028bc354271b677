//! `tally archive`: past months of the ledger move into files, or are listed.
//!
//! The server does the work; this command waits for it. Not here: how (`tally_store::archive`).

use crate::cli::{ArchiveArgs, Cli};
use crate::client::Client;
use crate::config::Usage;
use crate::printing::stdout;
use crate::target::TargetServer;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;
use tally_rules::ledger::Month;
use ureq::http::Method;

const PATH: &str = "/v1/ledger/archives";

/// Between two checks whether it is done.
const PAUSE: Duration = Duration::from_millis(500);

/// Runs the subcommand.
pub(crate) fn run(cli: &Cli, args: &ArchiveArgs) -> Result<ExitCode> {
    let before = args.before.as_deref().map(|text| {
        Month::parse(text).ok_or_else(|| Usage("--before must be a month such as 2026-01".into()))
    });
    let before = before.transpose()?;
    let target = TargetServer::find(cli, &args.target)?;
    if let Some(before) = before {
        let mut body = json!({"before": before.to_string()});
        if let Some(reason) = &args.why.reason {
            body["reason"] = json!(reason);
        }
        let body = body.to_string();
        target.client.ask(&Method::POST, PATH, Some(("application/json", body.as_bytes())))?;
        wait(&target.client, before)?;
    }
    let (months, failure) = read_months(&target.client)?;
    if months.is_empty() {
        eprintln!("no month of the ledger is archived, and none is to be");
    }
    list(&months)?;
    if let Some(failure) = failure {
        eprintln!("{failure}");
    }
    target.finish();
    Ok(ExitCode::SUCCESS)
}

/// Waits until all months before one are archived, and says how far they are.
fn wait(client: &Client, before: Month) -> Result<()> {
    let mut printed = Vec::new();
    loop {
        let (mut months, failure) = read_months(client)?;
        months.retain(|month| of(month).is_some_and(|of| of < before));
        if months.is_empty() {
            eprintln!("no transfer is from before {before}");
        }
        for line in months.iter().map(progress) {
            if !printed.contains(&line) {
                eprintln!("{line}");
                printed.push(line);
            }
        }
        if months.iter().all(|month| month["state"] == "done") {
            return Ok(());
        }
        if let Some(failure) = failure {
            bail!("{failure}. The server tries again every minute, and at once after this command");
        }
        std::thread::sleep(PAUSE);
    }
}

/// How far a month is, in tenths while its rows are deleted.
fn progress(month: &Value) -> String {
    let (name, state) = (&month["month"], &month["state"]);
    let (name, state) = (name.as_str().unwrap_or_default(), state.as_str().unwrap_or_default());
    let count = |field: &str| month[field].as_u64().unwrap_or_default();
    match count("transfers") {
        all if all > 0 && state == "deleting" => {
            format!("{name} {state}: {} of 10 tenths of {all} transfers", count("deleted") * 10 / all)
        }
        _ => format!("{name} {state}"),
    }
}

fn of(month: &Value) -> Option<Month> {
    month["month"].as_str().and_then(Month::parse)
}

/// The months, and why one of them cannot be archived.
fn read_months(client: &Client) -> Result<(Vec<Value>, Option<String>)> {
    let mut answer = client.ask(&Method::GET, PATH, None)?;
    let Value::Array(months) = answer["items"].take() else { bail!("the answer has no items") };
    let text = |field: &str| answer["failure"][field].as_str();
    let failure = text("month").zip(text("reason"));
    Ok((months, failure.map(|(month, reason)| format!("{month} cannot be archived: {reason}"))))
}

fn list(months: &[Value]) -> Result<()> {
    let mut out = stdout();
    for month in months {
        let field = |name: &str| match &month[name] {
            Value::String(text) => text.clone(),
            Value::Null => "-".to_owned(),
            other => other.to_string(),
        };
        let names = ["month", "state", "transfers", "entries", "bytes", "digest"];
        writeln!(out, "{}", names.map(field).join("  ")).context("print the months")?;
    }
    Ok(())
}
