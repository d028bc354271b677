//! Series of contests as JSON: specs, and how a series is shown.
//!
//! A template is a contest without id and times. Errors inside of it have the pointer of the template as prefix.

use super::show::write_definition_of;
use super::{Inner, count, finish, into, read_rest};
use crate::fields::{FieldError, Fields, schedule, text};
use crate::time;
use serde_json::{Map, Value, json};
use std::num::NonZeroU32;
use tally_rules::contest::definition;
use tally_rules::contest::series::SeriesSpec;
use tally_rules::contest::{ContestId, SeriesRecord};

/// Reads the body of `POST /v1/contest-series`: the name, if it has one, and the spec.
pub fn read_new_series(body: Value) -> Result<(Option<ContestId>, SeriesSpec), Vec<FieldError>> {
    let mut fields = Fields::new("", body)?;
    let mut inner = Inner::new();
    let id = fields.optional("id", |value| ContestId::of_series(&text(value)?).map_err(|bad| bad.0));
    let template = |value: &Value| into(&mut inner, read_template(value.clone(), true));
    let template = fields.required("template", template).unwrap_or_default();
    let (open, start) = (fields.required("open", schedule), fields.required("start", schedule));
    let spec =
        SeriesSpec { template, open, start, end: fields.required("end", schedule), ..read_more(&mut fields) };
    finish(fields, inner)?;
    Ok((id, spec))
}

/// Reads the body of `PATCH /v1/contest-series/{series}`.
pub fn read_series_patch(body: Value) -> Result<SeriesSpec, Vec<FieldError>> {
    let mut fields = Fields::new("", body)?;
    let mut inner = Inner::new();
    let template = |value: &Value| into(&mut inner, read_template(value.clone(), false));
    let template = fields.optional("template", template).unwrap_or_default();
    let (open, start) = (fields.optional("open", schedule), fields.optional("start", schedule));
    let spec =
        SeriesSpec { template, open, start, end: fields.optional("end", schedule), ..read_more(&mut fields) };
    finish(fields, inner)?;
    Ok(spec)
}

fn read_more(fields: &mut Fields) -> SeriesSpec {
    let time_zone = fields.optional("time_zone", text);
    let ahead = fields.optional("ahead", |value| count(value).map(NonZeroU32::get));
    SeriesSpec { time_zone, ahead, ..SeriesSpec::default() }
}

fn read_template(value: Value, is_new: bool) -> Result<definition::ContestSpec, Vec<FieldError>> {
    let read = || {
        let mut fields = Fields::new("", value)?;
        let mut inner = Inner::new();
        let title = if is_new { fields.required("title", text) } else { fields.optional("title", text) };
        let spec = definition::ContestSpec { title, ..read_rest(&mut fields, &mut inner) };
        finish(fields, inner)?;
        Ok(spec)
    };
    let moved = |one: FieldError| FieldError { pointer: format!("/template{}", one.pointer), ..one };
    read().map_err(|wrong: Vec<FieldError>| wrong.into_iter().map(moved).collect())
}

/// A series.
pub fn write_series(id: &ContestId, record: &SeriesRecord) -> Value {
    let series = &record.series;
    let mut template: Map<String, Value> = write_definition_of(&series.template);
    template.retain(|name, _| !name.ends_with("_at"));
    let last = record.last.as_ref().map(ContestId::as_str);
    // `last` is the older name of `last_contest`.
    json!({
        "id": id.as_str(),
        "template": template,
        "open": series.open,
        "start": series.start,
        "end": series.end,
        "time_zone": series.time_zone,
        "ahead": series.ahead,
        "last_contest": last,
        "last": last,
        "created_at": time::format(record.created_at),
        "updated_at": time::format(record.updated_at),
    })
}
