//! Imports as newline-delimited JSON: a head that names the file and the lines that follow, then one row per line.

use crate::fields::{FieldError, Fields, text};
use crate::{numbers, time};
use serde_json::{Value, json};
use tally_rules::score::ScoreInput;
use tally_rules::{BoardId, Micros, PlayerId};

/// The most rows of one chunk.
pub const CHUNK_ROWS_MAX: usize = 5_000;

/// The most lines of a file.
const LINES_MAX: u64 = i64::MAX.cast_unsigned();

/// The first line of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScoreChunkHead {
    /// The board.
    pub board: BoardId,
    /// The digest of the file and of how it is read: 64 hexadecimal digits.
    pub digest: [u8; 32],
    /// Lines of the file before this chunk.
    pub lines_before: u64,
    /// Lines of the file up to the end of this chunk.
    pub lines_after: u64,
    /// Whether the file ends here.
    pub last: bool,
}

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedScore {
    /// Its line in the file.
    pub line: u64,
    /// The player.
    pub player: PlayerId,
    /// The score.
    pub score: ScoreInput,
    /// The instant.
    pub at: Option<Micros>,
}

/// Reads the head.
pub fn read_head(value: Value) -> Result<ScoreChunkHead, Vec<FieldError>> {
    let mut fields = Fields::new("/0", value)?;
    let board = fields.required("board", |value| BoardId::new(&text(value)?).map_err(|bad| bad.0));
    let digest = fields.required("digest", |value| {
        value.as_str().and_then(read_digest).ok_or("must be 64 hexadecimal digits")
    });
    let lines = |value: &Value| {
        value.as_u64().filter(|lines| *lines <= LINES_MAX).ok_or("must be a whole number below 2^63")
    };
    let lines_before = fields.required("lines_before", lines);
    let lines_after = fields.required("lines_after", lines);
    let last = fields.optional("last", crate::fields::boolean);
    if let (Some(before), Some(after)) = (lines_before, lines_after)
        && after < before
    {
        fields.wrong("lines_after", "must not be less than lines_before");
    }
    fields.finish()?;
    Ok(ScoreChunkHead {
        board: board.expect("no field is wrong"),
        digest: digest.expect("no field is wrong"),
        lines_before: lines_before.expect("no field is wrong"),
        lines_after: lines_after.expect("no field is wrong"),
        last: last.unwrap_or(false),
    })
}

/// Reads one row: line `number` of the chunk.
pub fn read_row(number: usize, value: Value) -> Result<ImportedScore, Vec<FieldError>> {
    let mut fields = Fields::new(format!("/{number}"), value)?;
    let line = fields.required("line", |value| value.as_u64().ok_or("must be a whole number"));
    let player = fields.required("player", |value| PlayerId::new(&text(value)?).map_err(|bad| bad.0));
    let score = fields.required("score", numbers::score);
    let at = fields
        .optional("at", |value| value.as_str().and_then(time::parse).ok_or("must be an RFC 3339 instant"));
    fields.finish()?;
    Ok(ImportedScore {
        line: line.expect("no field is wrong"),
        player: player.expect("no field is wrong"),
        score: score.expect("no field is wrong"),
        at,
    })
}

/// Reads a digest.
pub fn read_digest(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut digest = [0; 32];
    for (byte, at) in digest.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(digest)
}

/// The result of a chunk, or the progress of an import.
pub fn write(lines: u64, taken: u64, refused: u64, finished: bool, rows: &[(u64, &str, String)]) -> Value {
    let row =
        |(line, code, detail): &(u64, &str, String)| json!({"line": line, "code": code, "detail": detail});
    let rows: Vec<_> = rows.iter().map(row).collect();
    // `rows` is the older name of `refused_rows`.
    json!({
        "lines": lines, "taken": taken, "refused": refused, "finished": finished,
        "refused_rows": rows, "rows": rows,
    })
}
