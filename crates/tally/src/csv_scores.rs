//! Reading scores from CSV: each line becomes a row, a reject with its reason, or is skipped by a filter.
//!
//! Pure over any reader, so that the same code reads a file and the shipped sample.

use crate::config::Usage;
use crate::csv_records;
use crate::csv_text;
use csv::{ByteRecord, Reader};
use std::io::Read;
use tally_rules::score::ScoreInput;
use tally_rules::{Micros, PlayerId};
use tally_wire::{numbers, time};

/// The meaning of the columns.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    /// Column of the player.
    pub(crate) player: String,
    /// Column of the score, or the same score for all.
    pub(crate) score: ScoreSource,
    /// Column of the instant.
    pub(crate) at: Option<String>,
    /// Lines to take.
    pub(crate) filters: Vec<Filter>,
    /// Texts that stand for a missing value.
    pub(crate) missing: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) enum ScoreSource {
    /// A column.
    Column(String),
    /// The same for every line.
    Constant(ScoreInput),
}

/// A condition on a column.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    column: String,
    value: String,
    equal: bool,
}

/// The values of a line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CsvScore {
    pub(crate) player: PlayerId,
    pub(crate) score: ScoreInput,
    /// The instant.
    pub(crate) at: Option<Micros>,
}

/// One record of the file.
pub(crate) type Line = csv_records::Line<CsvOutcome>;

/// The result of a record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CsvOutcome {
    /// A row to import.
    Row(CsvScore),
    /// A filter skips it.
    LeftOut,
    /// It is invalid.
    Rejected(String),
}

impl Filter {
    /// Reads `COL=VALUE` or `COL!=VALUE`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (column, value) = text.split_once('=')?;
        let (column, equal) = match column.strip_suffix('!') {
            Some(column) => (column, false),
            None => (column, true),
        };
        if column.is_empty() {
            return None;
        }
        Some(Self { column: column.to_owned(), value: value.to_owned(), equal })
    }
}

/// Reads records one by one.
pub(crate) struct Lines<R> {
    reader: Reader<R>,
    columns: Columns,
    places: Places,
    header: Vec<String>,
}

/// Indexes of the columns in a record.
struct Places {
    player: usize,
    score: Option<usize>,
    at: Option<usize>,
    filters: Vec<usize>,
}

impl<R: Read> csv_records::Lines for Lines<R> {
    type Read = CsvOutcome;

    fn next(&mut self) -> anyhow::Result<Option<Line>> {
        let line = csv_records::next(&mut self.reader)?;
        Ok(line.map(|line| {
            let read = self.read(&line.record);
            line.saying(read)
        }))
    }

    fn bytes(&self) -> u64 {
        self.reader.position().byte()
    }
}

impl<R: Read> Lines<R> {
    /// Reads the header; an unknown column is an error that names the existing ones.
    pub(crate) fn new(input: R, delimiter: u8, columns: Columns) -> anyhow::Result<Self> {
        let (reader, header) = csv_records::open(input, delimiter)?;
        if header.is_empty() {
            return Err(Usage("the file is empty; its first line must name the columns".into()).into());
        }
        let place = |name: &str| {
            header.iter().position(|column| column == name).ok_or_else(|| {
                let (all, advice) = (header.join(", "), csv_records::advice(&header, delimiter));
                Usage(format!("there is no column `{name}`; the file has: {all}{advice}"))
            })
        };
        let places = Places {
            player: place(&columns.player)?,
            score: match &columns.score {
                ScoreSource::Column(name) => Some(place(name)?),
                ScoreSource::Constant(_) => None,
            },
            at: columns.at.as_deref().map(place).transpose()?,
            filters: columns.filters.iter().map(|filter| place(&filter.column)).collect::<Result<_, _>>()?,
        };
        Ok(Self { reader, columns, places, header })
    }

    /// Names of the columns.
    pub(crate) fn header(&self) -> &[String] {
        &self.header
    }

    fn read(&self, record: &ByteRecord) -> CsvOutcome {
        if record.len() != self.header.len() {
            let (has, wanted) = (record.len(), self.header.len());
            return CsvOutcome::Rejected(format!("the line has {has} fields, the header {wanted}"));
        }
        for (filter, place) in self.columns.filters.iter().zip(&self.places.filters) {
            if (record[*place] == *filter.value.as_bytes()) != filter.equal {
                return CsvOutcome::LeftOut;
            }
        }
        match self.row(record) {
            Ok(row) => CsvOutcome::Row(row),
            Err(reason) => CsvOutcome::Rejected(reason),
        }
    }

    fn row(&self, record: &ByteRecord) -> Result<CsvScore, String> {
        let field = |place: usize, what: &str| -> Result<String, String> {
            let text = std::str::from_utf8(&record[place]).map_err(|_| format!("{what} is not UTF-8"))?;
            if text.is_empty() || self.columns.missing.iter().any(|missing| missing == text) {
                return Err(format!("{what} is missing"));
            }
            Ok(text.to_owned())
        };
        let player = field(self.places.player, "the player")?;
        let player =
            PlayerId::new(csv_text::unescape(&player)).map_err(|bad| format!("the player {}", bad.0))?;
        let score = match (&self.columns.score, self.places.score) {
            (ScoreSource::Constant(score), _) => *score,
            (ScoreSource::Column(_), place) => {
                let text = field(place.expect("a column has a place"), "the score")?;
                numbers::score_text(text.trim())
                    .ok_or_else(|| format!("the score `{}` is not a number", short(&text)))?
            }
        };
        let at = match self.places.at {
            None => None,
            Some(place) => {
                let text = field(place, "the time")?;
                let at = time::parse_or_date(text.trim());
                Some(at.ok_or_else(|| format!("the time `{}` is neither RFC 3339 nor a date", short(&text)))?)
            }
        };
        Ok(CsvScore { player, score, at })
    }
}

fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv_records::{COMMA, Lines as _};

    fn lines(text: &str, columns: Columns) -> Vec<(u64, CsvOutcome)> {
        let mut lines = Lines::new(text.as_bytes(), COMMA, columns).unwrap();
        std::iter::from_fn(|| lines.next().unwrap()).map(|line| (line.number, line.read)).collect()
    }

    fn columns() -> Columns {
        Columns {
            player: "who".into(),
            score: ScoreSource::Column("n".into()),
            at: Some("day".into()),
            filters: vec![Filter::parse("own=FALSE").unwrap(), Filter::parse("who!=bot").unwrap()],
            missing: vec!["NA".into()],
        }
    }

    #[test]
    fn every_line_is_a_row_a_reject_or_left_out() {
        let text = "day,who,n,own\n2026-01-02,José,3,FALSE\n2026-01-02,NA,3,FALSE\n2026-01-02,x,3,TRUE\n\
                    2026-01-02,bot,3,FALSE\n2026-01-02,y,many,FALSE\nNA,y,1,FALSE\n2026-01-02,y\n";
        let got = lines(text, columns());
        let rejected = |text: &str| CsvOutcome::Rejected(text.to_owned());
        assert!(matches!(&got[0], (2, CsvOutcome::Row(row)) if row.player.as_str() == "José"));
        assert_eq!(got[1], (3, rejected("the player is missing")));
        assert_eq!(got[2], (4, CsvOutcome::LeftOut));
        assert_eq!(got[3], (5, CsvOutcome::LeftOut));
        assert_eq!(got[4], (6, rejected("the score `many` is not a number")));
        assert_eq!(got[5], (7, rejected("the time is missing")));
        assert_eq!(got[6], (8, rejected("the line has 2 fields, the header 4")));
    }

    #[test]
    fn an_unknown_column_names_those_there_are() {
        let error = Lines::new("a,b\n".as_bytes(), COMMA, columns()).err().unwrap();
        assert_eq!(error.to_string(), "there is no column `who`; the file has: a, b");
        let error = Lines::new("".as_bytes(), COMMA, columns()).err().unwrap();
        assert!(error.to_string().starts_with("the file is empty"), "{error}");
        let error = Lines::new("day;who;n\n".as_bytes(), COMMA, columns()).err().unwrap().to_string();
        assert!(
            error.ends_with("; the file has: day;who;n. If ';' divides its columns, add --delimiter ';'")
        );
    }

    #[test]
    fn records_over_several_lines_keep_their_numbers() {
        let columns = Columns {
            score: ScoreSource::Constant(ScoreInput::Int(1)),
            at: None,
            filters: vec![],
            ..columns()
        };
        let mut lines = Lines::new("who;n\n\"a\nb\";1\nc;2\n".as_bytes(), b';', columns).unwrap();
        let first = lines.next().unwrap().unwrap();
        assert_eq!((first.number, first.end), (2, 3));
        assert_eq!(lines.next().unwrap().unwrap().number, 4);
    }
}
