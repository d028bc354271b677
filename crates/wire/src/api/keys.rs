//! API keys as JSON.

use crate::api::wallets::{read_amount, read_currency};
use crate::fields::{FieldError, Fields, text};
use crate::time;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tally_rules::Micros;
use tally_rules::grant::{Grant, Rights};
use tally_rules::ledger::{Amount, Currency};
use tally_rules::role::Role;
use tally_rules::scope::{Scope, Scopes};

/// The longest name of a key, in bytes.
const NAME_BYTES_MAX: usize = 128;

/// The most caps of a key.
const CAPS_MAX: usize = 64;

/// Reads the body of `POST /v1/keys`.
pub fn read_create(body: Value) -> Result<(Grant, String), Vec<FieldError>> {
    let one_of_both = body.get("role").is_some() != body.get("scopes").is_some();
    let mut fields = Fields::new("", body)?;
    let role = fields.optional("role", |value| {
        value.as_str().and_then(Role::parse).ok_or_else(|| format!("must be one of: {}", Role::choices()))
    });
    let scopes = fields.optional("scopes", |value| {
        read_scopes(value).ok_or_else(|| format!("must be an array of one or more of: {}", Scope::choices()))
    });
    let caps = fields.optional("mint_caps", |value| {
        read_caps(value).ok_or("must be an object of amounts by currency, such as {\"KRW\":1000000}")
    });
    let name = fields.optional("name", |value| {
        text(value)
            .ok()
            .filter(|name| name.len() <= NAME_BYTES_MAX)
            .ok_or("must be a string of at most 128 bytes")
    });
    let (rights, caps) = (role.map(Rights::Role).or(scopes.map(Rights::Scopes)), caps.unwrap_or_default());
    if !one_of_both {
        fields.wrong("role", "is required, or `scopes`, and never both");
    }
    let makes_money = |rights: Rights| !rights.is_admin() && rights.scopes().contains(Scope::MoneyMint);
    if !caps.is_empty() && !rights.is_none_or(makes_money) {
        fields.wrong("mint_caps", "needs the scope `money:mint`, or the role `server`");
    }
    fields.finish()?;
    let rights = rights.expect("no field is wrong");
    Ok((Grant { rights, mint_caps: Arc::new(caps) }, name.unwrap_or_default()))
}

fn read_scopes(value: &Value) -> Option<Scopes> {
    let list = value.as_array().filter(|list| !list.is_empty())?;
    list.iter().map(|name| Scope::parse(name.as_str()?)).collect()
}

fn read_caps(value: &Value) -> Option<BTreeMap<Currency, Amount>> {
    let caps = value.as_object().filter(|caps| caps.len() <= CAPS_MAX)?;
    caps.iter().map(|(code, cap)| Some((read_currency(code).ok()?, read_amount(cap).ok()?.ok()?))).collect()
}

/// A key in a list; `token` only for a new key.
pub fn write(id: &str, grant: &Grant, name: &str, created_at: Micros, token: Option<&str>) -> Value {
    let mut key = json!({"id": id, "name": name, "created_at": time::format(created_at)});
    match grant.rights {
        Rights::Role(role) => key["role"] = json!(role.as_str()),
        Rights::Scopes(scopes) => key["scopes"] = scopes.iter().map(Scope::as_str).collect(),
    }
    if !grant.mint_caps.is_empty() {
        let cap =
            |(currency, cap): (&Currency, &Amount)| (currency.to_string(), json!(cap.units().to_string()));
        key["mint_caps"] = grant.mint_caps.iter().map(cap).collect::<Map<_, _>>().into();
    }
    if let Some(token) = token {
        key["key"] = json!(token);
    }
    key
}
