//! Reads a JSON object field by field. An error names each wrong field by its JSON pointer (RFC 6901).
//!
//! All errors of an object are collected before the request is refused, so that a caller can fix them at once. An unknown
//! field is an error too.

use serde_json::{Map, Value};

/// One wrong field or parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// A JSON pointer into the body, or the name of a query parameter, path segment or header.
    pub pointer: String,
    /// The stable code for programs.
    pub code: &'static str,
    /// The error, in the form that follows the field's name: "must be …".
    pub detail: String,
}

/// A field is missing, of the wrong type or out of range.
pub const INVALID_FIELD: &str = "invalid_field";
/// The most unknown fields or parameters that one reply names: a body of 2 MiB may have 200,000.
pub const UNKNOWN_MAX: usize = 20;
/// The most bytes of a cron expression, which the definition of a leaderboard contains.
const SCHEDULE_BYTES_MAX: usize = 1_000;
/// A field that this request does not define.
pub const UNKNOWN_FIELD: &str = "unknown_field";

impl FieldError {
    /// A field that is missing, of the wrong type or out of range.
    pub fn invalid(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), code: INVALID_FIELD, detail: detail.into() }
    }
}

/// An object being read.
#[derive(Debug)]
pub struct Fields {
    pointer: String,
    object: Map<String, Value>,
    errors: Vec<FieldError>,
    known: Vec<&'static str>,
}

impl Fields {
    /// Begins to read a value, which must be an object.
    pub fn new(pointer: impl Into<String>, value: Value) -> Result<Self, Vec<FieldError>> {
        let pointer = pointer.into();
        match value {
            Value::Object(object) => Ok(Self { pointer, object, errors: Vec::new(), known: Vec::new() }),
            _ => Err(vec![FieldError::invalid(pointer, "must be an object")]),
        }
    }

    /// Takes an optional field; `read` reports an error of its value.
    pub fn optional<T, E: Into<String>>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Value) -> Result<T, E>,
    ) -> Option<T> {
        self.known.push(name);
        let value = self.object.remove(name)?;
        match read(&value) {
            Ok(read) => Some(read),
            Err(detail) => {
                self.wrong(name, detail);
                None
            }
        }
    }

    /// Takes a required field.
    pub fn required<T, E: Into<String>>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Value) -> Result<T, E>,
    ) -> Option<T> {
        if !self.object.contains_key(name) {
            self.known.push(name);
            self.wrong(name, "is required");
            return None;
        }
        self.optional(name, read)
    }

    /// Records an error of a field.
    pub fn wrong(&mut self, name: &str, detail: impl Into<String>) {
        self.errors.push(FieldError::invalid(format!("{}/{}", self.pointer, escape(name)), detail));
    }

    /// Ends the object: a field that was not taken is unknown.
    pub fn finish(mut self) -> Result<(), Vec<FieldError>> {
        for name in self.object.keys().take(UNKNOWN_MAX) {
            let pointer = format!("{}/{}", self.pointer, escape(name));
            let detail = format!("is not a field of this request; it has: {}", self.known.join(", "));
            self.errors.push(FieldError { pointer, code: UNKNOWN_FIELD, detail });
        }
        if self.errors.is_empty() { Ok(()) } else { Err(self.errors) }
    }
}

/// Reads a string.
pub fn text(value: &Value) -> Result<String, &'static str> {
    value.as_str().map(str::to_owned).ok_or("must be a string")
}

/// Reads a cron expression. Checks only its length.
pub fn schedule(value: &Value) -> Result<String, String> {
    let schedule = text(value)?;
    if schedule.len() > SCHEDULE_BYTES_MAX {
        return Err(format!("must have at most {SCHEDULE_BYTES_MAX} bytes"));
    }
    Ok(schedule)
}

/// Reads true or false.
pub fn boolean(value: &Value) -> Result<bool, &'static str> {
    value.as_bool().ok_or("must be true or false")
}

fn escape(name: &str) -> String {
    // Without a limit, a name as long as the body would make the reply as long.
    let short: String = name.chars().take(64).collect();
    short.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_wrong_field_is_named() {
        let mut fields = Fields::new("", json!({"a": 1, "b": "x", "c/~d": 2})).unwrap();
        assert_eq!(fields.required("a", text), None);
        assert_eq!(fields.optional("b", text), Some("x".into()));
        assert_eq!(fields.required("e", text), None);
        let errors = fields.finish().unwrap_err();
        let got: Vec<_> = errors.iter().map(|error| (error.pointer.as_str(), error.code)).collect();
        assert_eq!(got, [("/a", INVALID_FIELD), ("/e", INVALID_FIELD), ("/c~1~0d", UNKNOWN_FIELD)]);
        assert!(Fields::new("", json!([])).is_err());
    }

    #[test]
    fn what_a_body_can_make_an_answer_say_has_a_bound() {
        let many: Map<String, Value> = (0..1_000).map(|at| (at.to_string(), json!(1))).collect();
        let fields = Fields::new("", Value::Object(many)).unwrap();
        assert_eq!(fields.finish().unwrap_err().len(), UNKNOWN_MAX);
        assert!(schedule(&json!("0 0 * * *")).is_ok());
        assert!(schedule(&json!("0,".repeat(501))).is_err());
    }
}
