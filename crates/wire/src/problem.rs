//! Problems: the shape of every error over HTTP (RFC 9457).

use crate::fields::FieldError;
use serde_json::{Map, Value, json};

/// An error reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The HTTP status.
    pub status: u16,
    /// The stable code for programs.
    pub code: &'static str,
    /// A sentence for people.
    pub detail: String,
    /// The wrong fields.
    pub errors: Vec<FieldError>,
    /// The seconds to wait before a retry.
    pub retry_after_s: Option<u32>,
    /// More members, such as progress.
    pub more: Map<String, Value>,
    /// Headers of this reply, such as `Allow`.
    pub headers: Vec<(&'static str, String)>,
}

impl Problem {
    /// A problem with a detail.
    pub fn new(status: u16, code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status,
            code,
            detail: detail.into(),
            errors: Vec::new(),
            retry_after_s: None,
            more: Map::new(),
            headers: Vec::new(),
        }
    }

    /// 400 for wrong fields or parameters. Its code is that of the first.
    pub fn fields(errors: Vec<FieldError>) -> Self {
        let code = errors.first().map_or(crate::fields::INVALID_FIELD, |error| error.code);
        let shown: Vec<String> = errors.iter().take(3).map(sentence).collect();
        let rest = if errors.len() > shown.len() {
            format!("; and {} more", errors.len() - shown.len())
        } else {
            String::new()
        };
        Self { errors, ..Self::new(400, code, format!("{}{rest}", shown.join("; "))) }
    }

    /// 400 for one wrong field.
    pub fn field(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::fields(vec![FieldError::invalid(pointer, detail)])
    }

    /// Adds the seconds to wait before a retry.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after_s = Some(seconds);
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The body.
    pub fn body(&self, instance: &str, request_id: &str) -> Value {
        let mut body = self.more.clone();
        body.insert("type".into(), json!(format!("urn:tally:problem:{}", self.code)));
        body.insert("title".into(), json!(title(self.status)));
        body.insert("status".into(), json!(self.status));
        body.insert("detail".into(), json!(self.detail));
        body.insert("instance".into(), json!(instance));
        body.insert("code".into(), json!(self.code));
        body.insert("request_id".into(), json!(request_id));
        if !self.errors.is_empty() {
            let one = |error: &FieldError| json!({"pointer": error.pointer, "code": error.code, "detail": error.detail});
            body.insert("errors".into(), self.errors.iter().map(one).collect());
        }
        Value::Object(body)
    }

    /// The error of one row, in place of its reply in a batch.
    pub fn row_error(&self) -> Value {
        json!({"code": self.code, "detail": self.detail})
    }
}

/// A wrong field in a sentence. The empty pointer is the whole body.
fn sentence(error: &FieldError) -> String {
    match error.pointer.as_str() {
        "" => format!("the body {}", error.detail),
        pointer => format!("`{pointer}` {}", error.detail),
    }
}

/// The title of a status, from RFC 9110.
fn title(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        422 => "Unprocessable Content",
        423 => "Locked",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_names_each_wrong_field_and_the_body_as_such() {
        let detail = |pointers: &[&str]| {
            let wrong = pointers.iter().map(|pointer| FieldError::invalid(*pointer, "must be an object"));
            Problem::fields(wrong.collect()).detail
        };
        assert_eq!(detail(&[""]), "the body must be an object");
        assert_eq!(detail(&["/a", "/b"]), "`/a` must be an object; `/b` must be an object");
        let rest = "`/a` must be an object; `/a` must be an object; `/a` must be an object; and 1 more";
        assert_eq!(detail(&["/a"; 4]), rest);
    }
}
