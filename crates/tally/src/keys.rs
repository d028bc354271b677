//! `tally keys`: create, list, revoke.

use crate::cli::{Cli, KeysArgs, KeysWhat};
use crate::client::segment;
use crate::config::Usage;
use crate::target::Target;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::io::Write;
use std::process::ExitCode;
use tally_rules::role::Role;
use ureq::http::Method;

/// Runs the subcommand.
pub(crate) fn run(cli: &Cli, args: &KeysArgs) -> Result<ExitCode> {
    if let KeysWhat::Create { role, .. } = &args.what
        && Role::parse(role).is_none()
    {
        bail!(Usage(format!("--role must be one of: {}", Role::choices())));
    }
    let target = Target::find(cli, &args.target)?;
    let client = &target.client;
    let mut out = std::io::stdout().lock();
    match &args.what {
        KeysWhat::Create { role, name } => {
            let body = json!({"role": role, "name": name}).to_string();
            let made = client.ask(&Method::POST, "/v1/keys", Some(("application/json", body.as_bytes())))?;
            let key = made.get("key").and_then(Value::as_str).context("the answer has no key")?;
            writeln!(out, "{key}")?;
            eprintln!("This key is shown once. Send it as `Authorization: Bearer {key}`.");
        }
        KeysWhat::List => list(client, &mut out)?,
        KeysWhat::Revoke { id, force } => {
            let force = if *force { "?force=true" } else { "" };
            client.ask(&Method::DELETE, &format!("/v1/keys/{}{force}", segment(id)), None)?;
            writeln!(out, "revoked {id}")?;
        }
    }
    target.finish();
    Ok(ExitCode::SUCCESS)
}

fn list(client: &crate::client::Client, out: &mut impl Write) -> Result<()> {
    writeln!(out, "{:<14} {:<8} {:<28} NAME", "ID", "ROLE", "CREATED")?;
    let mut path = "/v1/keys?limit=1000".to_owned();
    loop {
        let page = client.ask(&Method::GET, &path, None)?;
        for key in page.get("items").and_then(Value::as_array).context("the answer has no items")? {
            let field = |name: &str| key.get(name).and_then(Value::as_str).unwrap_or_default();
            writeln!(
                out,
                "{:<14} {:<8} {:<28} {}",
                field("id"),
                field("role"),
                field("created_at"),
                field("name")
            )?;
        }
        let Some(cursor) = page.get("next_cursor").and_then(Value::as_str) else { return Ok(()) };
        path = format!("/v1/keys?limit=1000&cursor={}", segment(cursor));
    }
}
