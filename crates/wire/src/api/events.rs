//! Events in the form of an event stream (`text/event-stream`), and their data.
//!
//! An event is the lines `id`, `event` and `data`, and an empty line; its data is JSON on one line. An id is the offset of a
//! stream: the number of an event, or of a member's last entry in each wallet. Not here: when an event is sent.

use super::scores::{ScoresBody, Style};
use super::wallets::TransactionJson;
use crate::time;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tally_rules::event::{ContestChanged, PeriodClosed, PeriodPaid};
use tally_rules::ledger::{Currency, Entry};
use tally_rules::{PlayerId, Record};

/// A comment that is sent when there are no events.
pub const KEEP_ALIVE: &str = ":\n\n";

/// The type of an event with scores.
pub const SCORE: &str = "score";

/// The type of an event of a closed period.
pub const PERIOD_CLOSED: &str = "period_closed";

/// The type of an event of a period whose prizes were paid.
pub const PERIOD_PAID: &str = "period_paid";

/// The type of an event of a contest.
pub const CONTEST: &str = "contest";

/// The type of an event of a transfer.
pub const TRANSACTION: &str = "transaction";

/// The type of the event that reports lost events.
pub const RESET: &str = "reset";

/// Every type of event.
pub const ALL: [&str; 6] = [SCORE, PERIOD_CLOSED, PERIOD_PAID, CONTEST, TRANSACTION, RESET];

/// The beginning of a stream: its offset, from which a client whose connection breaks continues after two seconds.
pub fn beginning(id: &str) -> String {
    format!("retry: 2000\nid: {id}\n\n")
}

/// The line of an id, before an event that is written without one.
pub fn id_line(id: &str) -> String {
    format!("id: {id}\n")
}

/// Reports that events were deleted before the client got them.
pub fn reset(id: &str) -> String {
    event(Some(id), RESET, &json!({}))
}

/// Reports that events which the client got may not have happened. The client starts again, without an id.
pub fn lost() -> String {
    event(Some(""), RESET, &json!({}))
}

/// The offset of a stream of numbered events.
pub fn event_id(number: u64) -> String {
    number.to_string()
}

/// Reads the text of [`event_id`].
pub fn read_event_id(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number| event_id(*number) == text)
}

/// The offset of a stream of a member's entries, as `KRW.12,USD.3`.
pub fn entries_id(last: &BTreeMap<Currency, u64>) -> String {
    last.iter().map(|(currency, number)| format!("{currency}.{number}")).collect::<Vec<_>>().join(",")
}

/// Reads the text of [`entries_id`].
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
    event(Some(id), CONTEST, &contest_data(contest, changed))
}

/// The data of an event of a contest.
pub(super) fn contest_data(contest: &str, changed: &ContestChanged) -> Value {
    let ContestChanged { before, state, at, members, .. } = changed;
    // `members` is the older name of `players`.
    json!({
        "contest": contest, "previous": before.map(|state| state.as_str()), "state": state.as_str(),
        "players": members, "members": members, "at": time::format(*at),
    })
}

/// An event of a period of a board.
pub fn period_closed(id: &str, board: &str, closed: &PeriodClosed) -> String {
    event(Some(id), PERIOD_CLOSED, &period_closed_data(board, closed))
}

/// The data of an event of a period of a board.
pub(super) fn period_closed_data(board: &str, closed: &PeriodClosed) -> Value {
    let PeriodClosed { period, name, span, total } = closed;
    let (starts_at, ends_at) = (time::format(span.start), time::format(span.end));
    // `start` and `end` are the older names.
    json!({
        "board": board, "period": period, "name": name, "starts_at": starts_at, "ends_at": ends_at,
        "start": starts_at, "end": ends_at, "state": "closed", "total": total,
    })
}

/// An event of a period whose prizes were paid.
pub fn period_paid(id: &str, board: &str, paid: &PeriodPaid) -> String {
    event(Some(id), PERIOD_PAID, &period_paid_data(board, paid))
}

/// The data of an event of a period whose prizes were paid.
pub(super) fn period_paid_data(board: &str, paid: &PeriodPaid) -> Value {
    json!({"board": board, "period": paid.period, "prizes": paid.prizes})
}

/// An event of a transfer of a member.
pub fn transaction(id: &str, currency: Currency, entry: &Entry) -> String {
    event(Some(id), TRANSACTION, &TransactionJson::new(currency, entry))
}

/// The changed players of a board.
#[derive(Debug, Serialize)]
struct ScoresEvent<'a> {
    board: &'a str,
    period: &'a str,
    total: u64,
    entries: Vec<ScoresEntry<'a>>,
    /// Players that no longer have a rank.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gone: Vec<&'a str>,
    /// Present if further players have changed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    incomplete: bool,
}

#[derive(Debug, Serialize)]
struct ScoresEntry<'a> {
    rank: u64,
    player: &'a str,
    #[serde(flatten)]
    scores: ScoresBody,
    at: String,
}

/// An event of scores: a window of a board with its total, and each changed player with rank and record.
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

/// The lines of an event.
fn event(id: Option<&str>, name: &str, data: &impl Serialize) -> String {
    // JSON on one line: line breaks of texts are escaped.
    let data = serde_json::to_string(data).expect("events are made of strings and numbers");
    let id = id.map(id_line).unwrap_or_default();
    format!("{id}event: {name}\ndata: {data}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::Int64;
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
