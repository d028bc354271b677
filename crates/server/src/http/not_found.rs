//! Names in a 404 the thing that was not found, so that the caller sees which id was wrong. Also a rejected player.
//!
//! Rules know no paths, so their sentences have no ids. Not here: rows of batches, which name themselves.

use tally_wire::Problem;
use tally_wire::query::decode_segment;

/// A path may be longer than any id.
const ID_CHARS_MAX: usize = 128;

/// The path parameter that has the id, by the code of the problem.
const PARAMS: [(&str, &str); 13] = [
    ("leaderboard_not_found", "board"),
    ("player_not_ranked", "player"),
    ("player_not_found", "player"),
    ("not_applied", "player"),
    ("already_rejected", "player"),
    ("member_not_found", "member"),
    ("hold_not_found", "hold"),
    ("transaction_not_found", "transaction"),
    ("contest_not_found", "contest"),
    ("series_not_found", "series"),
    ("key_not_found", "key"),
    ("webhook_not_found", "webhook"),
    ("delivery_not_found", "delivery"),
];

/// Names the thing in the path of a request.
pub(super) fn name_path<'a>(problem: Problem, param: impl FnOnce(&str) -> Option<&'a str>) -> Problem {
    let known = PARAMS.iter().find(|(code, _)| problem.code == *code);
    let id = known.and_then(|(_, name)| param(name)).and_then(decode_segment);
    match id {
        Some(id) => name(problem, &id),
        None => problem,
    }
}

/// Writes the id after the words of what was not found.
pub(super) fn name(mut problem: Problem, id: &str) -> Problem {
    let words = ["the player", "the member", "the receiving member"];
    let subject = words.iter().find(|words| problem.detail.starts_with(**words)).map(|words| words.len());
    let end = || problem.detail.find([';', ':']).unwrap_or(problem.detail.len());
    let at = subject.unwrap_or_else(end);
    let id: String = id.chars().take(ID_CHARS_MAX).collect();
    problem.detail.insert_str(at, &format!(" `{id}`"));
    problem
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::problem::of_rejection;
    use tally_rules::Rejection;

    #[test]
    fn a_sentence_names_what_was_not_found() {
        let rows = [
            (Rejection::LeaderboardNotFound(None), "no such leaderboard `x y`"),
            (
                Rejection::LeaderboardNotFound(Some("xy".into())),
                "no such leaderboard `x y`; did you mean `xy`?",
            ),
            (Rejection::PlayerNotRanked, "the player `x y` has no rank on this leaderboard"),
            (Rejection::NotApplied, "the player `x y` has no application"),
            (Rejection::ContestNotFound, "no such contest `x y`"),
            (Rejection::DeliveryNotFound, "no such event `x y`: events are kept for 7 days"),
        ];
        for (rejection, wanted) in rows {
            let named = name_path(of_rejection(&rejection), |_| Some("x%20y"));
            assert_eq!((named.status, named.detail.as_str()), (404, wanted));
        }
        // Another parameter of the path is not what was missed.
        let other = name_path(of_rejection(&Rejection::TooManyBoards), |_| Some("x"));
        assert_eq!(other.detail, Rejection::TooManyBoards.detail());
        let long = name(of_rejection(&Rejection::ContestNotFound), &"x".repeat(500));
        assert_eq!(long.detail.len(), "no such contest ``".len() + ID_CHARS_MAX);
    }
}
