//! Colours on a terminal: the word that begins a line of `doctor` or `verify` has that of its meaning.
//!
//! A file or a pipe gets plain text, and so does a terminal with `NO_COLOR` (<https://no-color.org>) or without colours.

use crate::sources::variable;
use std::borrow::Cow;
use std::io::IsTerminal;

const RED: &str = "\x1b[1;31m";
const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const CYAN: &str = "\x1b[36m";
const END: &str = "\x1b[0m";

const WORDS: [(&str, &str); 5] =
    [("ok", GREEN), ("warn", YELLOW), ("owed", YELLOW), ("note", CYAN), ("WRONG", RED)];

/// Prints a line.
pub(crate) fn print(line: &str) {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let shows = std::io::stdout().is_terminal() && variable("NO_COLOR").is_none() && !is_dumb;
    println!("{}", if shows { coloured(line) } else { line.into() });
}

/// The line with its first word in colour, if that has one.
fn coloured(line: &str) -> Cow<'_, str> {
    let found = WORDS.iter().find_map(|(word, colour)| {
        let rest = line.strip_prefix(word).filter(|rest| rest.starts_with(' '))?;
        Some(format!("{colour}{word}{END}{rest}"))
    });
    found.map_or(Cow::Borrowed(line), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_has_the_colour_of_its_meaning() {
        assert_eq!(coloured("ok    ledger: ok"), "\x1b[32mok\x1b[0m    ledger: ok");
        assert_eq!(coloured("WRONG 2 rows disagree"), "\x1b[1;31mWRONG\x1b[0m 2 rows disagree");
        for plain in ["      verified in 0.1 s", "okay", "since the end of 2026-01", ""] {
            assert_eq!(coloured(plain), plain);
        }
    }
}
