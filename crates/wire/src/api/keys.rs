//! API keys as JSON.

use crate::fields::{FieldError, Fields, text};
use crate::time;
use serde_json::{Value, json};
use tally_rules::Micros;
use tally_rules::role::Role;

/// The longest name of a key, in bytes.
const NAME_BYTES_MAX: usize = 128;

/// Reads the body of `POST /v1/keys`.
pub fn read_create(body: Value) -> Result<(Role, String), Vec<FieldError>> {
    let mut fields = Fields::new("", body)?;
    let role = fields.required("role", |value| {
        value.as_str().and_then(Role::parse).ok_or_else(|| format!("must be one of: {}", Role::choices()))
    });
    let name = fields.optional("name", |value| {
        text(value)
            .ok()
            .filter(|name| name.len() <= NAME_BYTES_MAX)
            .ok_or("must be a string of at most 128 bytes")
    });
    fields.finish()?;
    Ok((role.expect("no field is wrong"), name.unwrap_or_default()))
}

/// A key in a list; `token` only for a new key.
pub fn write(id: &str, role: Role, name: &str, created_at: Micros, token: Option<&str>) -> Value {
    let mut key = json!({
        "id": id, "role": role.as_str(), "name": name, "created_at": time::format(created_at),
    });
    if let Some(token) = token {
        key["key"] = json!(token);
    }
    key
}
