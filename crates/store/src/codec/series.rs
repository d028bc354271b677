//! A series of contests.

use super::contest_extras;
use super::contests::{put_contest, take_contest};
use super::{Input, put_bytes, put_number, put_option, put_signed};
use tally_rules::Micros;
use tally_rules::contest::{ContestId, Series, SeriesRecord};

/// The format of the bytes below. A released one is never changed; a new one gets a new number.
const FORM: u8 = 1;

/// In place of the review, if only later fields follow: no review is so long.
const NO_REVIEW: u32 = u32::MAX;

/// Encodes a series.
pub(crate) fn encode(record: &SeriesRecord) -> Vec<u8> {
    let mut bytes = vec![FORM];
    let out = &mut bytes;
    let Series { template, open, start, end, time_zone, ahead } = &record.series;
    put_contest(template, out);
    for text in [open, start, end, time_zone] {
        put_bytes(text.as_bytes(), out);
    }
    put_number((*ahead).into(), out);
    for at in [record.from, record.since, record.created_at, record.updated_at] {
        put_signed(at.0, out);
    }
    put_option(record.due, out, |at, out| put_signed(at.0, out));
    put_option(record.last.as_ref(), out, |id, out| put_bytes(id.as_str().as_bytes(), out));
    // A template without a review and later fields ends where earlier releases ended it.
    let mut extras = Vec::new();
    contest_extras::put(template, &mut extras);
    if template.review_s.is_some() || !extras.is_empty() {
        put_number(template.review_s.unwrap_or(NO_REVIEW).into(), out);
        out.extend(extras);
    }
    bytes
}

/// Reads what [`encode`] wrote.
pub(crate) fn decode(bytes: &[u8]) -> Option<SeriesRecord> {
    let mut bytes = Input::new(bytes);
    let input = &mut bytes;
    if input.byte()? != FORM {
        return None;
    }
    let mut template = take_contest(input)?;
    let mut text = || input.text().map(str::to_owned);
    let (open, start, end, time_zone) = (text()?, text()?, text()?, text()?);
    let ahead = input.small()?;
    let mut at = || input.signed().map(Micros);
    let (from, since, created_at, updated_at) = (at()?, at()?, at()?, at()?);
    let due = input.option(|input| input.signed().map(Micros))?;
    let last = input.option(|input| ContestId::new(input.text()?).ok())?;
    if !input.is_empty() {
        template.review_s = Some(input.small()?).filter(|seconds| *seconds != NO_REVIEW);
        contest_extras::take(&mut template, input)?;
    }
    let series = Series { template, open, start, end, time_zone, ahead };
    let record = SeriesRecord { series, from, since, due, last, created_at, updated_at };
    input.is_empty().then_some(record)
}
