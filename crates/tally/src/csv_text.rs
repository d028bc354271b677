//! Texts in CSV files that are opened in a spreadsheet: no text is a formula there
//! (<https://owasp.org/www-community/attacks/CSV_Injection>).
//!
//! An export puts an apostrophe before a text that would begin a formula, and before one that already looks like this. An
//! import removes one apostrophe, so an exported text is imported unchanged.

use std::borrow::Cow;

/// The exported form of a text.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    if begins_formula(text) { format!("'{text}").into() } else { text.into() }
}

/// The text of an exported one; any other text is unchanged.
pub(crate) fn unescape(text: &str) -> &str {
    text.strip_prefix('\'').filter(|rest| begins_formula(rest)).unwrap_or(text)
}

/// Whether a spreadsheet takes it for a formula, apart from leading apostrophes.
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
