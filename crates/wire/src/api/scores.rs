//! Scores, ranks and pages as JSON.

use crate::api::row_key::take_row_key;
use crate::fields::{FieldError, Fields, text};
use crate::numbers::{self, Int64, ScoreOut};
use crate::time;
use serde::{Serialize, Serializer};
use serde_json::Value;
use tally_rules::definition::Definition;
use tally_rules::rank::Percentile;
use tally_rules::score::ScoreInput;
use tally_rules::{BoardId, Micros, PlayerId, Record};

/// A submit. The board is in the path, or in the row of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct NewScore {
    /// The player.
    pub player: PlayerId,
    /// The score.
    pub score: ScoreInput,
    /// The subscore.
    pub subscore: Option<i64>,
    /// The instant.
    pub at: Option<Micros>,
}

/// A row of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRow {
    /// The board.
    pub board: BoardId,
    /// The submit.
    pub score: NewScore,
    /// Its idempotency key.
    pub id: Option<String>,
}

/// Reads the body of a submit.
pub fn read_submit(body: Value) -> Result<NewScore, Vec<FieldError>> {
    let mut fields = Fields::new("", body)?;
    let score = read_score(&mut fields);
    fields.finish()?;
    Ok(score.expect("no field is wrong"))
}

/// Reads the body of a correction: the score and the subscore.
pub fn read_correction(body: Value) -> Result<(ScoreInput, Option<i64>), Vec<FieldError>> {
    let mut fields = Fields::new("", body)?;
    let (score, subscore) = correction(&mut fields);
    fields.finish()?;
    Ok((score.expect("no field is wrong"), subscore))
}

/// Reads the body of a correction on any leaderboard: the score, the subscore and the window.
pub fn read_correction_of(body: Value) -> Result<(ScoreInput, Option<i64>, Option<String>), Vec<FieldError>> {
    let mut fields = Fields::new("", body)?;
    let (score, subscore) = correction(&mut fields);
    let period = fields.optional("period", text);
    fields.finish()?;
    Ok((score.expect("no field is wrong"), subscore, period))
}

/// The score, unless it is wrong, and the subscore of a correction.
fn correction(fields: &mut Fields) -> (Option<ScoreInput>, Option<i64>) {
    (fields.required("score", numbers::score), fields.optional("subscore", numbers::integer))
}

/// Reads one row of a batch; pointers are relative to the row.
pub fn read_row(row: Value) -> Result<NewRow, Vec<FieldError>> {
    let mut fields = Fields::new("", row)?;
    let board = fields.required("board", |value| {
        let name = text(value)?;
        BoardId::new(&name).map_err(|bad| bad.0)
    });
    let score = read_score(&mut fields);
    let id = take_row_key(&mut fields);
    fields.finish()?;
    Ok(NewRow { board: board.expect("no field is wrong"), score: score.expect("no field is wrong"), id })
}

/// One row of a request for ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRank {
    /// The board.
    pub board: BoardId,
    /// The player.
    pub player: PlayerId,
    /// The window.
    pub period: Option<String>,
}

/// Reads one row of a request for ranks; `pointer` is that of the row.
pub fn read_rank(pointer: &str, row: Value) -> Result<NewRank, Vec<FieldError>> {
    let mut fields = Fields::new(pointer, row)?;
    let board = fields.required("board", |value| BoardId::new(&text(value)?).map_err(|bad| bad.0));
    let player = fields.required("player", |value| PlayerId::new(&text(value)?).map_err(|bad| bad.0));
    let period = fields.optional("period", text);
    fields.finish()?;
    Ok(NewRank {
        board: board.expect("no field is wrong"),
        player: player.expect("no field is wrong"),
        period,
    })
}

/// Reads an idempotency key: 1 to 255 visible ASCII characters.
pub fn read_key(key: &str) -> Result<String, &'static str> {
    let visible = key.bytes().all(|byte| byte.is_ascii_graphic());
    if (1..=tally_rules::idempotency::KEY_BYTES_MAX).contains(&key.len()) && visible {
        Ok(key.to_owned())
    } else {
        Err("must be 1 to 255 visible ASCII characters")
    }
}

fn read_score(fields: &mut Fields) -> Option<NewScore> {
    let player = fields.required("player", |value| {
        let name = text(value)?;
        PlayerId::new(&name).map_err(|bad| bad.0)
    });
    let score = fields.required("score", numbers::score);
    let subscore = fields.optional("subscore", numbers::integer);
    let at = fields.optional("at", |value| {
        value.as_str().and_then(time::parse).ok_or("must be an RFC 3339 instant such as 2026-11-21T08:20:00Z")
    });
    Some(NewScore { player: player?, score: score?, subscore, at })
}

/// The properties of a board that all records of a reply share.
#[derive(Clone, Copy, Debug)]
pub struct Style<'a> {
    /// The board's definition.
    pub definition: &'a Definition,
    /// How integers are written.
    pub int64: Int64,
}

/// Score and subscore of a record.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ScoresBody {
    score: ScoreOut,
    #[serde(skip_serializing_if = "Option::is_none")]
    subscore: Option<ScoreOut>,
}

impl Style<'_> {
    /// Score and subscore in the form of this board.
    pub fn scores(&self, record: &Record) -> ScoresBody {
        let subscore = ScoreOut::integer(record.subscore, self.int64);
        ScoresBody {
            score: ScoreOut::new(self.definition.score, record.score, self.int64),
            subscore: self.definition.has_subscore().then_some(subscore),
        }
    }
}

/// The reply to a submit.
#[derive(Clone, Debug, Serialize)]
pub struct SubmitJson<'a> {
    /// The board.
    pub board: &'a str,
    /// The window of the ranks.
    pub period: &'a str,
    /// The player.
    pub player: &'a str,
    /// Score and subscore.
    #[serde(flatten)]
    pub scores: ScoresBody,
    /// The record's instant.
    pub at: String,
    /// The current rank; null if the player has none.
    pub rank: Option<u64>,
    /// Whether the submit changed the record.
    pub changed: bool,
    /// The record before.
    pub previous: Option<PreviousJson>,
    /// Closed periods that did not take the score.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub closed_periods: &'a [String],
    /// Present if this row repeats an earlier reply.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    /// The windows that the score counted for, if the caller asked for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub windows: Option<Vec<WindowRankJson>>,
}

/// The record before a submit.
#[derive(Clone, Debug, Serialize)]
pub struct PreviousJson {
    /// Score and subscore.
    #[serde(flatten)]
    pub scores: ScoresBody,
    /// Its rank just before.
    pub rank: Option<u64>,
}

/// One entry of a page.
#[derive(Clone, Debug, Serialize)]
pub struct EntryJson<'a> {
    /// From 1.
    pub rank: u64,
    /// The player.
    pub player: &'a str,
    /// Score and subscore.
    #[serde(flatten)]
    pub scores: ScoresBody,
    /// The record's instant.
    pub at: String,
    /// The expansion, if requested.
    #[serde(flatten)]
    pub expanded: Option<Expanded>,
}

/// What `expand=player` adds to an entry.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Expanded {
    /// The profile; null if the player has none.
    Profile(Option<Value>),
    /// Why the profile is not shown.
    PlayerError(Value),
}

/// A page.
#[derive(Clone, Debug, Serialize)]
pub struct PageJson<'a> {
    /// The board.
    pub board: &'a str,
    /// The window.
    pub period: &'a str,
    /// Players in the window.
    pub total: u64,
    /// The entries.
    pub entries: Vec<EntryJson<'a>>,
    /// The cursor of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// An entry of a ranking among given players.
#[derive(Clone, Debug, Serialize)]
pub struct AmongEntry {
    /// The rank among these players, from 1.
    pub rank: u64,
    /// The rank in the whole window, from 1.
    pub overall_rank: u64,
    /// The player.
    pub player: String,
    /// Score and subscore.
    #[serde(flatten)]
    pub scores: ScoresBody,
    /// The record's instant.
    pub at: String,
    /// The expansion, if requested.
    #[serde(flatten)]
    pub expanded: Option<Expanded>,
}

/// A ranking among given players.
#[derive(Clone, Debug, Serialize)]
pub struct AmongJson<'a> {
    /// The board.
    pub board: &'a str,
    /// The window.
    pub period: &'a str,
    /// Players in the window.
    pub total: u64,
    /// The players with a rank, best first.
    pub entries: Vec<AmongEntry>,
    /// The players without a rank.
    pub missing: Vec<&'a str>,
}

/// The rank of one player.
#[derive(Clone, Debug, Serialize)]
pub struct PlayerJson<'a> {
    /// The board.
    pub board: &'a str,
    /// The window.
    pub period: &'a str,
    /// The player.
    pub player: &'a str,
    /// Score and subscore.
    #[serde(flatten)]
    pub scores: ScoresBody,
    /// The record's instant.
    pub at: String,
    /// From 1.
    pub rank: u64,
    /// Players in the window.
    pub total: u64,
    /// Two decimals.
    #[serde(serialize_with = "write_percentile")]
    pub percentile: Percentile,
}

/// A leaderboard of a player.
#[derive(Clone, Debug, Serialize)]
pub struct BoardRanksJson<'a> {
    /// The board.
    pub board: &'a str,
    /// Whether it has banned the player.
    pub banned: bool,
    /// All time and the open periods, as far as the player has a score there.
    pub ranks: Vec<WindowRankJson>,
}

/// A record of a player with its rank; banned players have none.
#[derive(Clone, Debug, Serialize)]
pub struct WindowRankJson {
    /// The window.
    pub period: String,
    /// Score and subscore.
    #[serde(flatten)]
    pub scores: ScoresBody,
    /// The record's instant.
    pub at: String,
    /// From 1.
    pub rank: Option<u64>,
    /// Players in the window.
    pub total: Option<u64>,
    /// Two decimals.
    #[serde(serialize_with = "write_percentile_or_null")]
    pub percentile: Option<Percentile>,
}

fn write_percentile_or_null<S: Serializer>(
    percentile: &Option<Percentile>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match percentile {
        Some(percentile) => write_percentile(percentile, serializer),
        None => serializer.serialize_none(),
    }
}

fn write_percentile<S: Serializer>(percentile: &Percentile, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(f64::from(percentile.0) / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_submit_is_read_with_all_its_fields() {
        let body =
            json!({"player": "José", "score": "9007199254740993", "at": "1970-01-01T00:00:00.000001Z"});
        let read = read_submit(body).unwrap();
        assert_eq!(read.player.as_str(), "José");
        assert_eq!(read.score, ScoreInput::Int(9_007_199_254_740_993));
        assert_eq!((read.subscore, read.at), (None, Some(Micros(1))));
    }

    #[test]
    fn a_row_names_what_is_wrong_within_it() {
        let errors = read_row(json!({"board": "a@b", "player": "", "score": null, "id": "a b"})).unwrap_err();
        let pointers: Vec<_> = errors.iter().map(|error| error.pointer.as_str()).collect();
        assert_eq!(pointers, ["/board", "/player", "/score", "/id"]);
    }

    #[test]
    fn percentiles_are_numbers_of_two_decimals() {
        for (hundredths, text) in [(10_000, "100.0"), (6_667, "66.67"), (1, "0.01")] {
            let mut bytes = Vec::new();
            let mut serializer = serde_json::Serializer::new(&mut bytes);
            write_percentile(&Percentile(hundredths), &mut serializer).unwrap();
            assert_eq!(String::from_utf8(bytes).unwrap(), text);
        }
    }
}
