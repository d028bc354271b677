//! Texts in CSV files that people open in a spreadsheet: none of them is a formula there
//! (<https://owasp.org/www-community/attacks/CSV_Injection>).
//!
//! An exported text that would begin a formula gets an apostrophe in front, and so does one that already looks like this.
//! An import takes one apostrophe off again: what was exported is imported as it was.

use std::borrow::Cow;

/// The text as it is exported.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    if begins_formula(text) { format!("'{text}").into() } else { text.into() }
}

/// The text of an exported one; any other text is itself.
pub(crate) fn unescape(text: &str) -> &str {
    text.strip_prefix('\'').filter(|rest| begins_formula(rest)).unwrap_or(text)
}

/// Whether a spreadsheet takes it for a formula, when the apostrophes in front are left out.
fn begins_formula(text: &str) -> bool {
    text.trim_start_matches('\'').starts_with(['=', '+', '-', '@', '\t', '\r'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_exported_text_is_a_formula_and_each_comes_back() {
        for text in ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "'=1", "''@", "'", "", "ann", "'ann", "a=b", "é"]
        {
            let exported = escape(text);
            assert!(!exported.starts_with(['=', '+', '-', '@', '\t', '\r']), "{exported}");
            assert_eq!(unescape(&exported), text, "{exported}");
        }
        assert_eq!(
            (escape("=1").as_ref(), escape("'=1").as_ref(), escape("ann").as_ref()),
            ("'=1", "''=1", "ann")
        );
    }
}
