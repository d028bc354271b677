//! Records of players, and periods.

use super::{Input, put_number, put_signed};
use crate::plan::{Window, WindowRow};
use tally_rules::period::TimeSpan;
use tally_rules::{Micros, Record};

/// Appends a record.
pub(crate) fn put_record(value: &Record, out: &mut Vec<u8>) {
    put_signed(value.score, out);
    put_signed(value.subscore, out);
    put_signed(value.at.0, out);
}

/// Reads what [`put_record`] wrote.
pub(crate) fn take_record(input: &mut Input<'_>) -> Option<Record> {
    let (score, subscore) = (input.signed()?, input.signed()?);
    Some(Record { score, subscore, at: Micros(input.signed()?) })
}

/// Appends a period.
pub(crate) fn put_window(value: &WindowRow, out: &mut Vec<u8>) {
    put_number(value.window.0, out);
    put_number(value.rule.into(), out);
    put_signed(value.span.start.0, out);
    put_signed(value.span.end.0, out);
    out.push(value.closed.into());
    put_number(value.version.into(), out);
    out.push(value.stale.into());
    put_number(value.total, out);
}

/// Reads what [`put_window`] wrote.
pub(crate) fn take_window(input: &mut Input<'_>) -> Option<WindowRow> {
    let (window, rule) = (Window(input.number()?), input.small()?);
    let span = TimeSpan { start: Micros(input.signed()?), end: Micros(input.signed()?) };
    let (closed, version, stale) = (input.boolean()?, input.small()?, input.boolean()?);
    Some(WindowRow { window, rule, span, closed, version, stale, total: input.number()? })
}
