//! `tally archive`: past months of the ledger move into files, or are listed.
//!
//! The server does the work; this command waits for it. Not here: how (`tally_store::archive`).

use crate::cli::{ArchiveArgs, Cli};
use crate::client::Client;
use crate::config::Usage;
use crate::target::Target;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;
use tally_rules::ledger::Month;
use ureq::http::Method;

const PATH: &str = "/v1/ledger/archives";

/// Between two looks whether it is done.
const PAUSE: Duration = Duration::from_millis(500);

/// Runs the subcommand.
pub(crate) fn run(cli: &Cli, args: &ArchiveArgs) -> Result<ExitCode> {
    let before = args.before.as_deref().map(|text| {
        Month::parse(text).ok_or_else(|| Usage("--before must be a month such as 2026-01".into()))
    });
    let before = before.transpose()?;
    let target = Target::find(cli, &args.target)?;
    if let Some(before) = before {
        let mut body = json!({"before": before.to_string()});
        if let Some(reason) = &args.why.reason {
            body["reason"] = json!(reason);
        }
        let body = body.to_string();
        target.client.ask(&Method::POST, PATH, Some(("application/json", body.as_bytes())))?;
        while !months(&target.client)?.iter().all(|month| is_done(month, before)) {
            std::thread::sleep(PAUSE);
        }
    }
    list(&months(&target.client)?)?;
    target.finish();
    Ok(ExitCode::SUCCESS)
}

fn months(client: &Client) -> Result<Vec<Value>> {
    let mut answer = client.ask(&Method::GET, PATH, None)?;
    let Value::Array(months) = answer["items"].take() else { bail!("the answer has no items") };
    Ok(months)
}

/// Whether a month is archived, or was not asked for.
fn is_done(month: &Value, before: Month) -> bool {
    let of = month["month"].as_str().and_then(Month::parse);
    month["state"] == "done" || of.is_none_or(|of| of >= before)
}

fn list(months: &[Value]) -> Result<()> {
    let mut out = std::io::stdout().lock();
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
