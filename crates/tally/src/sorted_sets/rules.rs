//! What becomes of a key, a score and a member of a Redis in tally: rules without I/O.
//!
//! A template names one text of a key as the leaderboard, so two keys never become one leaderboard.

use tally_rules::definition::ScoreType;
use tally_rules::score::{ScoreInput, ordered};
use tally_rules::{BoardId, PlayerId};

/// What stands for the leaderboard in a template.
const BOARD: &str = "{board}";

/// The leaderboard of a key: what is between two texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BoardRule {
    before: String,
    behind: String,
}

impl BoardRule {
    /// Reads a template such as `lb:{board}`.
    pub(crate) fn parse(template: &str) -> Result<Self, &'static str> {
        let (before, behind) = template.split_once(BOARD).ok_or("must have {board} in it")?;
        if behind.contains(BOARD) {
            return Err("must have {board} once");
        }
        Ok(Self { before: before.to_owned(), behind: behind.to_owned() })
    }

    /// The rule of a pattern without a template: its `*` stands for the leaderboard. A pattern without one is the whole name. In any
    /// other pattern, the text before the first special character is taken off.
    pub(crate) fn of_pattern(pattern: &str) -> Self {
        let special = |text: &str| text.find(['*', '?', '[', '\\']);
        let (before, behind) = match pattern.split_once('*') {
            Some((before, behind)) if special(before).is_none() && special(behind).is_none() => {
                (before, behind)
            }
            _ => (special(pattern).map_or("", |at| &pattern[..at]), ""),
        };
        Self { before: before.to_owned(), behind: behind.to_owned() }
    }

    /// The leaderboard of a key, or why it has none.
    pub(crate) fn board(&self, key: &[u8]) -> Result<BoardId, String> {
        let shown = shown(key);
        let text = std::str::from_utf8(key).map_err(|_| format!("the key {shown} is not UTF-8"))?;
        let name = text.strip_prefix(self.before.as_str());
        let name = name.and_then(|name| name.strip_suffix(self.behind.as_str()));
        let template = || format!("{}{BOARD}{}", self.before, self.behind);
        let name = name.ok_or_else(|| format!("the key {shown} does not fit `{}`", template()))?;
        let board = BoardId::new(name).map_err(|bad| {
            format!("the key {shown} is the leaderboard `{name}` by `{}`, which {}", template(), bad.0)
        })?;
        if board.is_reserved() {
            return Err(format!(
                "the key {shown} is the leaderboard `{name}`, and such names are those of contests"
            ));
        }
        Ok(board)
    }
}

/// A score of Redis in tally. An integer is one, so that leaderboards of integers take it.
pub(crate) fn score_input(score: f64) -> ScoreInput {
    let int = score as i64;
    // The conversion saturates: 2^63 and all beyond it become the greatest integer, which no double is.
    if int as f64 == score && int != i64::MAX { ScoreInput::Int(int) } else { ScoreInput::Float(score) }
}

/// Whether doubles of this size leave out integers, so that the score may have lost digits in Redis.
pub(crate) fn may_have_lost_digits(score: f64) -> bool {
    score.is_finite() && score.abs() > (1_u64 << f64::MANTISSA_DIGITS) as f64
}

/// Why a member has no counterpart on a leaderboard with such scores.
pub(crate) fn refusal(scores: ScoreType, member: &[u8], score: f64) -> Option<String> {
    let player = std::str::from_utf8(member).map_err(|_| "is not UTF-8");
    if let Err(why) = player.and_then(|text| PlayerId::new(text).map_err(|bad| bad.0)) {
        return Some(format!("the player {why}"));
    }
    ordered(scores, score_input(score)).err().map(|why| format!("the score {why}"))
}

/// A key or a member in a message: a text in quotes, bytes that are none escaped, and not too long.
pub(crate) fn shown(bytes: &[u8]) -> String {
    const CHARS_MAX: usize = 60;
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text.escape_debug().to_string(),
        Err(_) => bytes.escape_ascii().to_string(),
    };
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("\"{}…\"", &text[..end]),
        None => format!("\"{text}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_leaderboard_by_its_template() {
        let board = |template: &str, key: &str| {
            let board = BoardRule::parse(template).unwrap().board(key.as_bytes());
            board
                .map(|board| board.as_str().to_owned())
                .map_err(|why| why.chars().take(60).collect::<String>())
        };
        assert_eq!(board("lb:{board}", "lb:season"), Ok("season".into()));
        assert_eq!(board("{board}", "lb:season"), Ok("lb:season".into()));
        assert_eq!(board("lb:{board}:v2", "lb:eu:season:v2"), Ok("eu:season".into()));
        for (template, key, why) in [
            ("lb:{board}", "other", "the key \"other\" does not fit `lb:{board}`"),
            ("lb:{board}:v2", "lb:season", "the key \"lb:season\" does not fit `lb:{board}:v2`"),
            ("lb:{board}", "lb:", "the key \"lb:\" is the leaderboard `` by `lb:{board}`, which "),
            ("lb:{board}", "lb:a@b", "the key \"lb:a@b\" is the leaderboard `a@b` by `lb:{board}"),
            ("{board}", "contest:a", "the key \"contest:a\" is the leaderboard `contest:a`, and s"),
        ] {
            let got = board(template, key).unwrap_err();
            assert!(got.starts_with(&why.chars().take(60).collect::<String>()), "{got}");
        }
        // A text that is before and behind does not count twice.
        assert!(BoardRule::parse("aba{board}aba").unwrap().board(b"aba").is_err());
        assert!(BoardRule::parse("{board}").unwrap().board(b"\xff").unwrap_err().contains("is not UTF-8"));
        assert!(BoardRule::parse("lb:").is_err() && BoardRule::parse("{board}{board}").is_err());
    }

    #[test]
    fn a_pattern_is_its_own_template() {
        for (pattern, template) in [
            ("lb:*", "lb:{board}"),
            ("lb:*:v2", "lb:{board}:v2"),
            ("*", "{board}"),
            ("season", "{board}"),
            ("lb:*:*", "lb:{board}"),
            ("lb:[ab]*", "lb:{board}"),
            ("lb:?", "lb:{board}"),
            ("a\\*b*", "a{board}"),
        ] {
            assert_eq!(BoardRule::of_pattern(pattern), BoardRule::parse(template).unwrap(), "{pattern}");
        }
    }

    #[test]
    fn a_double_that_is_an_integer_is_one() {
        use ScoreInput::{Float, Int};
        for (score, input) in [
            (3.0, Int(3)),
            (-0.0, Int(0)),
            (1e17, Int(100_000_000_000_000_000)),
            (-9_223_372_036_854_775_808.0, Int(i64::MIN)),
            (9_223_372_036_854_775_808.0, Float(9_223_372_036_854_775_808.0)),
            (1e300, Float(1e300)),
            (20.5, Float(20.5)),
            (f64::INFINITY, Float(f64::INFINITY)),
            (f64::NEG_INFINITY, Float(f64::NEG_INFINITY)),
        ] {
            assert_eq!(score_input(score), input, "{score}");
        }
        let lost = [0.5, 9_007_199_254_740_992.0, 9_007_199_254_740_994.0, -1e17, f64::INFINITY];
        assert_eq!(lost.map(may_have_lost_digits), [false, false, true, true, false]);
    }

    #[test]
    fn members_without_a_counterpart_have_a_reason() {
        let why = |scores, member: &[u8], score| refusal(scores, member, score).unwrap_or_default();
        assert_eq!(why(ScoreType::Float64, b"ann", 20.5), "");
        assert_eq!(why(ScoreType::Int64, b"ann", 1e17), "");
        assert!(why(ScoreType::Int64, b"ann", 20.5).starts_with("the score must be an integer"));
        assert!(why(ScoreType::Int64, b"ann", f64::INFINITY).starts_with("the score must be an integer"));
        assert_eq!(why(ScoreType::Float64, b"ann", f64::INFINITY), "");
        assert_eq!(why(ScoreType::Float64, b"\xff\xfe", 1.0), "the player is not UTF-8");
        assert_eq!(why(ScoreType::Float64, b"", 1.0), "the player must not be empty");
        assert!(why(ScoreType::Float64, &[b'x'; 129], 1.0).starts_with("the player must be at most 128"));
    }

    #[test]
    fn what_is_shown_is_one_line_and_short() {
        assert_eq!(shown("구글\n".as_bytes()), "\"구글\\n\"");
        assert_eq!(shown(b"\xff\xfe"), "\"\\xff\\xfe\"");
        assert_eq!(shown(&[b'x'; 100]).chars().count(), 63);
    }
}
