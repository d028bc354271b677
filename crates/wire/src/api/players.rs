//! Profiles as JSON.

use crate::fields::{FieldError, Fields, text};
use serde_json::{Map, Value, json};
use tally_rules::profile::Profile;

/// Reads the body of `PUT /v1/players/{player}`.
pub fn read_profile(body: Value) -> Result<Profile, Vec<FieldError>> {
    let mut fields = Fields::new("", body)?;
    let profile = Profile {
        name: fields.optional("name", text),
        avatar_url: fields.optional("avatar_url", text),
        metadata: fields.optional("metadata", |value| {
            if value.is_object() { Ok(value.to_string()) } else { Err("must be an object") }
        }),
    };
    for (field, why) in profile.check() {
        fields.wrong(field, why);
    }
    fields.finish()?;
    Ok(profile)
}

/// A profile as part of an entry.
pub fn write_profile(profile: &Profile) -> Value {
    let mut object = Map::new();
    if let Some(name) = &profile.name {
        object.insert("name".into(), json!(name));
    }
    if let Some(url) = &profile.avatar_url {
        object.insert("avatar_url".into(), json!(url));
    }
    if let Some(metadata) = &profile.metadata {
        // It was JSON when it was stored.
        object.insert("metadata".into(), serde_json::from_str(metadata).unwrap_or(Value::Null));
    }
    Value::Object(object)
}

/// A player with its profile.
pub fn write_player(player: &str, profile: &Profile) -> Value {
    let mut object = write_profile(profile);
    object["player"] = json!(player);
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let body = json!({"name": "Ada", "metadata": {"level": 3, "tags": ["a"]}});
        let profile = read_profile(body.clone()).unwrap();
        assert_eq!(write_profile(&profile), body);
        assert_eq!(write_player("p", &Profile::default()), json!({"player": "p"}));
    }

    #[test]
    fn wrong_fields_are_named() {
        let errors =
            read_profile(json!({"name": 1, "avatar_url": "ftp://x", "metadata": [], "x": 1})).unwrap_err();
        let pointers: Vec<_> = errors.iter().map(|error| error.pointer.as_str()).collect();
        assert_eq!(pointers, ["/name", "/metadata", "/avatar_url", "/x"]);
    }
}
