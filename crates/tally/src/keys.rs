//! `tally keys`: create, list, revoke.

use crate::cli::{Cli, KeysArgs, KeysWhat};
use crate::client::segment;
use crate::config::Usage;
use crate::printing::stdout;
use crate::target::TargetServer;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::io::Write;
use std::process::ExitCode;
use tally_rules::role::Role;
use tally_rules::scope::Scope;
use ureq::http::Method;

/// Runs the subcommand.
pub(crate) fn run(cli: &Cli, args: &KeysArgs) -> Result<ExitCode> {
    if let KeysWhat::Create { role, scope, .. } = &args.what {
        if role.as_ref().is_some_and(|role| Role::parse(role).is_none()) {
            bail!(Usage(format!("--role must be one of: {}", Role::choices())));
        }
        if scope.iter().any(|scope| Scope::parse(scope).is_none()) {
            bail!(Usage(format!("--scope must be one of: {}", Scope::choices())));
        }
    }
    let target = TargetServer::find(cli, &args.target)?;
    let client = &target.client;
    let mut out = stdout();
    match &args.what {
        KeysWhat::Create { role, scope, mint_cap, name, why } => {
            let mut body = json!({"name": name});
            if let Some(reason) = &why.reason {
                body["reason"] = json!(reason);
            }
            match role {
                Some(role) => body["role"] = json!(role),
                None => body["scopes"] = json!(scope),
            }
            if !mint_cap.is_empty() {
                body["mint_caps"] = mint_cap.iter().map(|(code, cap)| (code.clone(), json!(cap))).collect();
            }
            let body = body.to_string();
            let made = client.ask(&Method::POST, "/v1/keys", Some(("application/json", body.as_bytes())))?;
            let key = made.get("key").and_then(Value::as_str).context("the answer has no key")?;
            writeln!(out, "{key}")?;
            eprintln!("This key is shown once. Send it as `Authorization: Bearer {key}`.");
        }
        KeysWhat::List => list(client, &mut out)?,
        KeysWhat::Revoke { id, force, why } => {
            let reason =
                why.reason.as_ref().map_or_else(String::new, |text| format!("&reason={}", segment(text)));
            let path = format!("/v1/keys/{}?force={force}{reason}", segment(id));
            client.ask(&Method::DELETE, &path, None)?;
            writeln!(out, "revoked {id}")?;
        }
    }
    target.finish();
    Ok(ExitCode::SUCCESS)
}

/// The role or the scopes of a key, and its caps, in one word.
fn may(key: &Value) -> String {
    let scopes = key.get("scopes").and_then(Value::as_array).into_iter().flatten();
    let of_role = key.get("role").into_iter().chain(scopes).filter_map(Value::as_str).map(str::to_owned);
    let caps = key.get("mint_caps").and_then(Value::as_object).into_iter().flatten();
    let caps = caps.map(|(code, cap)| format!("{code}={}", cap.as_str().unwrap_or_default()));
    of_role.chain(caps).collect::<Vec<_>>().join(",")
}

fn list(client: &crate::client::Client, out: &mut impl Write) -> Result<()> {
    let mut rows = vec![["ID", "ROLE OR SCOPES", "CREATED", "NAME"].map(str::to_owned)];
    let mut path = "/v1/keys?limit=1000".to_owned();
    loop {
        let page = client.ask(&Method::GET, &path, None)?;
        for key in page.get("items").and_then(Value::as_array).context("the answer has no items")? {
            let field = |name: &str| key.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            rows.push([field("id"), may(key), field("created_at"), field("name")]);
        }
        let Some(cursor) = page.get("next_cursor").and_then(Value::as_str) else { break };
        path = format!("/v1/keys?limit=1000&cursor={}", segment(cursor));
    }
    Ok(out.write_all(aligned(&rows).as_bytes())?)
}

/// Rows as lines; each column is as wide as its longest text.
fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_longest_text() {
        let many = json!({"scopes": ["money:mint", "members:read"], "mint_caps": {"KRW": "5"}});
        let rows = [["ID", "ROLE", "NAME"].map(str::to_owned), ["ä1".to_owned(), may(&many), String::new()]];
        let wanted = "ID  ROLE                           NAME\nä1  money:mint,members:read,KRW=5\n";
        assert_eq!(aligned(&rows), wanted);
        let short = [rows[0].clone(), ["a".to_owned(), may(&json!({"role": "admin"})), "x".to_owned()]];
        assert_eq!(aligned(&short), "ID  ROLE   NAME\na   admin  x\n");
    }
}
