//! Query parameters. An unknown or repeated parameter is an error.

use crate::fields::{FieldError, UNKNOWN_MAX};
use crate::numbers;
use percent_encoding::percent_decode_str;
use tally_rules::score::ScoreInput;

/// The value of a parameter is invalid.
pub const INVALID_PARAMETER: &str = "invalid_parameter";
/// A parameter that this request does not define.
pub const UNKNOWN_PARAMETER: &str = "unknown_parameter";

/// The largest `limit` of a list.
pub const LIMIT_MAX: usize = 1_000;
/// The default `limit`.
pub const LIMIT_DEFAULT: usize = 20;

/// A query being read.
#[derive(Debug, Default)]
pub struct Query {
    pairs: Vec<(String, String)>,
    known: Vec<&'static str>,
    errors: Vec<FieldError>,
}

impl Query {
    /// Splits and decodes a query string.
    pub fn parse(query: &str) -> Self {
        let mut read = Self::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match (decode(name), decode(value)) {
                (Some(name), Some(_)) if read.pairs.iter().any(|(other, _)| *other == name) => {
                    read.wrong(&name, "must not be given twice");
                }
                (Some(name), Some(value)) => read.pairs.push((name, value)),
                (_, _) => {
                    read.wrong(&name.chars().take(64).collect::<String>(), "must be percent-encoded UTF-8")
                }
            }
        }
        read
    }

    /// Takes the text of a parameter.
    pub fn text(&mut self, name: &'static str) -> Option<String> {
        self.known.push(name);
        let at = self.pairs.iter().position(|(other, _)| other == name)?;
        Some(self.pairs.swap_remove(at).1)
    }

    /// Takes a whole number within bounds.
    pub fn number(&mut self, name: &'static str, least: u64, most: u64) -> Option<u64> {
        let text = self.text(name)?;
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|number| digits && (least..=most).contains(number));
        if number.is_none() {
            self.wrong(name, format!("must be a whole number from {least} to {most}"));
        }
        number
    }

    /// Takes `true` or `false`; the default is false.
    pub fn flag(&mut self, name: &'static str) -> bool {
        match self.text(name).as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => {
                self.wrong(name, "must be true or false");
                false
            }
        }
    }

    /// Whether a parameter is given that was not taken yet.
    pub fn has(&self, name: &str) -> bool {
        self.pairs.iter().any(|(other, _)| other == name)
    }

    /// Takes `limit`, with its default.
    pub fn limit(&mut self) -> usize {
        let number = self.number("limit", 1, LIMIT_MAX as u64);
        number.and_then(|number| usize::try_from(number).ok()).unwrap_or(LIMIT_DEFAULT)
    }

    /// Takes a score.
    pub fn score(&mut self, name: &'static str) -> Option<ScoreInput> {
        let text = self.text(name)?;
        let score = numbers::score_text(&text);
        if score.is_none() {
            self.wrong(name, "must be a number");
        }
        score
    }

    /// Records an error of a parameter.
    pub fn wrong(&mut self, name: &str, detail: impl Into<String>) {
        let error = FieldError { pointer: name.to_owned(), code: INVALID_PARAMETER, detail: detail.into() };
        self.errors.push(error);
    }

    /// Ends the query: a parameter that was not taken is unknown.
    pub fn finish(&mut self) -> Result<(), Vec<FieldError>> {
        for (name, _) in std::mem::take(&mut self.pairs).into_iter().take(UNKNOWN_MAX) {
            let known = if self.known.is_empty() { "none".to_owned() } else { self.known.join(", ") };
            self.errors.push(FieldError {
                pointer: name.chars().take(64).collect(),
                code: UNKNOWN_PARAMETER,
                detail: format!("is not a parameter of this request; it has: {known}"),
            });
        }
        if self.errors.is_empty() { Ok(()) } else { Err(std::mem::take(&mut self.errors)) }
    }
}

/// Decodes the text of a query: `+` is a space, as in forms.
fn decode(text: &str) -> Option<String> {
    decode_segment(&text.replace('+', " "))
}

/// Decodes one segment of a path.
pub fn decode_segment(text: &str) -> Option<String> {
    if !well_encoded(text) {
        return None;
    }
    percent_decode_str(text).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

fn well_encoded(text: &str) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let hex = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_hexdigit());
            if !hex(bytes.next()) || !hex(bytes.next()) {
                return false;
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_parameter_is_known_once_and_within_bounds() {
        let mut query = Query::parse("limit=5&cursor=a%20b&other=1&limit=6&bad=%zz");
        assert_eq!(query.limit(), 5);
        assert_eq!(query.text("cursor").as_deref(), Some("a b"));
        let errors = query.finish().unwrap_err();
        let got: Vec<_> = errors.iter().map(|error| (error.pointer.as_str(), error.code)).collect();
        assert_eq!(
            got,
            [("limit", INVALID_PARAMETER), ("bad", INVALID_PARAMETER), ("other", UNKNOWN_PARAMETER)]
        );
    }

    #[test]
    fn numbers_are_digits_within_their_bounds() {
        for (text, valid) in [
            ("1", true),
            ("1000", true),
            ("0", false),
            ("1001", false),
            ("-1", false),
            ("+1", false),
            ("1.0", false),
            ("", false),
            ("99999999999999999999999", false),
        ] {
            let mut query = Query::parse(&format!("limit={}", text.replace('+', "%2B")));
            query.limit();
            assert_eq!(query.finish().is_ok(), valid, "{text:?}");
        }
    }
}
