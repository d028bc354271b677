//! Events as they are sent to a client that listens (`text/event-stream`), and what each says.
//!
//! An event is lines of `id`, `event` and `data`, and an empty one; its data is JSON on one line. An id says where a stream
//! stands: the number of an event, or of a member's last entry in each wallet. Not here: when one is sent.

use super::scores::{Scores, Style};
use super::wallets::TransactionAnswer;
use crate::time;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use tally_rules::event::{ContestChanged, PeriodClosed};
use tally_rules::ledger::{Currency, Entry};
use tally_rules::{PlayerId, Record};

/// What is sent where there is nothing to say: a comment.
pub const KEEP_ALIVE: &str = ":\n\n";

/// The event of scores.
pub const SCORE: &str = "score";

/// The event of a period that was closed.
pub const PERIOD_CLOSED: &str = "period_closed";

/// The event of a contest.
pub const CONTEST: &str = "contest";

/// The event of a movement of money.
pub const TRANSACTION: &str = "transaction";

/// The event that says that others are gone.
pub const RESET: &str = "reset";

/// Every event.
pub const ALL: [&str; 5] = [SCORE, PERIOD_CLOSED, CONTEST, TRANSACTION, RESET];

/// What a stream begins with: where it stands, so that a client whose connection breaks goes on there, two seconds later.
pub fn beginning(id: &str) -> String {
    format!("retry: 2000\nid: {id}\n\n")
}

/// The line of an id, before an event that is written without one.
pub fn id_line(id: &str) -> String {
    format!("id: {id}\n")
}

/// Says that events are gone which the client has not had.
pub fn reset(id: &str) -> String {
    event(Some(id), RESET, &json!({}))
}

/// Says that events which the client has had may never have happened: it begins anew, without an id.
pub fn lost() -> String {
    event(Some(""), RESET, &json!({}))
}

/// Where a stream of numbered events stands.
pub fn event_id(number: u64) -> String {
    number.to_string()
}

/// Reads what [`event_id`] wrote.
pub fn read_event_id(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number| event_id(*number) == text)
}

/// Where a stream of a member's money stands, as `KRW.12,USD.3`.
pub fn entries_id(last: &BTreeMap<Currency, u64>) -> String {
    last.iter().map(|(currency, number)| format!("{currency}.{number}")).collect::<Vec<_>>().join(",")
}

/// Reads what [`entries_id`] wrote.
pub fn read_entries_id(text: &str) -> Option<BTreeMap<Currency, u64>> {
    let one = |one: &str| {
        let (currency, number) = one.split_once('.')?;
        Some((Currency::parse(currency)?, number.parse().ok()?))
    };
    let last: BTreeMap<Currency, u64> = text.split(',').map(one).collect::<Option<_>>()?;
    (entries_id(&last) == text).then_some(last)
}

/// An event of a contest.
pub fn contest(id: &str, contest: &str, changed: &ContestChanged) -> String {
    let ContestChanged { before, state, at, members } = changed;
    let data = json!({
        "contest": contest, "previous": before.map(|state| state.as_str()), "state": state.as_str(),
        "members": members, "at": time::format(*at),
    });
    event(Some(id), CONTEST, &data)
}

/// An event of a board's period.
pub fn period_closed(id: &str, board: &str, closed: &PeriodClosed) -> String {
    let PeriodClosed { period, name, span, total } = closed;
    let data = json!({
        "board": board, "period": period, "name": name, "start": time::format(span.start),
        "end": time::format(span.end), "state": "closed", "total": total,
    });
    event(Some(id), PERIOD_CLOSED, &data)
}

#[derive(Serialize)]
struct TransactionEvent {
    currency: String,
    #[serde(flatten)]
    transaction: TransactionAnswer,
}

/// An event of a member's money.
pub fn transaction(id: &str, currency: Currency, entry: &Entry) -> String {
    let (currency, transaction) = (currency.to_string(), TransactionAnswer::from(entry));
    event(Some(id), TRANSACTION, &TransactionEvent { currency, transaction })
}

/// Who has changed on a board.
#[derive(Debug, Serialize)]
struct ScoresEvent<'a> {
    board: &'a str,
    period: &'a str,
    total: u64,
    entries: Vec<ScoresEntry<'a>>,
    /// Those who have no rank any more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gone: Vec<&'a str>,
    /// Present where others have changed too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    incomplete: bool,
}

#[derive(Debug, Serialize)]
struct ScoresEntry<'a> {
    rank: u64,
    player: &'a str,
    #[serde(flatten)]
    scores: Scores,
    at: String,
}

/// An event of scores: of a board's part with its total, each with rank and record.
pub fn scores<'a>(
    (board, period, total): (&'a str, &'a str, u64),
    style: &Style<'_>,
    places: impl Iterator<Item = (u64, &'a PlayerId, &'a Record)>,
    gone: &'a [PlayerId],
    incomplete: bool,
) -> String {
    let entry = |(rank, player, record): (u64, &'a PlayerId, &'a Record)| ScoresEntry {
        rank,
        player: player.as_str(),
        scores: style.scores(record),
        at: time::format(record.at),
    };
    let (entries, gone) = (places.map(entry).collect(), gone.iter().map(PlayerId::as_str).collect());
    event(None, SCORE, &ScoresEvent { board, period, total, entries, gone, incomplete })
}

/// An event in its lines.
fn event(id: Option<&str>, name: &str, data: &impl Serialize) -> String {
    // JSON has no line breaks within: those of texts are escaped.
    let data = serde_json::to_string(data).expect("events are made of strings and numbers");
    let id = id.map(id_line).unwrap_or_default();
    format!("{id}event: {name}\ndata: {data}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::Int64;
    use serde_json::{Value, json};
    use tally_rules::{Definition, Micros};

    #[test]
    fn ids_read_back_and_others_are_none() {
        for number in [0, 1, u64::MAX] {
            assert_eq!(read_event_id(&event_id(number)), Some(number));
        }
        for text in ["", "-1", "+1", "01", "1 ", "x", "18446744073709551616"] {
            assert_eq!(read_event_id(text), None, "{text}");
        }
        let of = |pairs: &[(&str, u64)]| {
            let pair = |(code, number): &(&str, u64)| (Currency::parse(code).unwrap(), *number);
            pairs.iter().map(pair).collect::<BTreeMap<_, _>>()
        };
        for last in [of(&[("KRW", 0)]), of(&[("KRW", 12), ("USD", u64::MAX)])] {
            assert_eq!(read_entries_id(&entries_id(&last)), Some(last));
        }
        assert_eq!(entries_id(&of(&[("USD", 3), ("KRW", 12)])), "KRW.12,USD.3");
        for text in
            ["", "7", "KRW", "KRW.", "KRW.-1", "KRW.01", "KRW.1,", "USD.1,KRW.1", "KRW.1,KRW.1", "krw.1"]
        {
            assert_eq!(read_entries_id(text), None, "{text}");
        }
    }

    #[test]
    fn an_event_is_its_lines_whatever_names_there_are() {
        let definition = Definition::default();
        let player = PlayerId::new("a\u{2028}\"b").unwrap();
        let record = Record { score: 9_007_199_254_740_993, subscore: 0, at: Micros(0) };
        for (int64, score) in
            [(Int64::Number, json!(record.score)), (Int64::String, json!(record.score.to_string()))]
        {
            let style = Style { definition: &definition, int64 };
            let places = std::iter::once((1, &player, &record));
            let text = scores(("b", "all_time", 7), &style, places, &[], false);
            let lines: Vec<&str> = text.split('\n').collect();
            let [name, data, "", ""] = lines[..] else { panic!("{text:?}") };
            assert_eq!(name, "event: score");
            let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
            let entry = json!({"rank": 1, "player": "a\u{2028}\"b", "score": score, "at": "1970-01-01T00:00:00.000000Z"});
            assert_eq!(data, json!({"board": "b", "period": "all_time", "total": 7, "entries": [entry]}));
        }
    }
}
