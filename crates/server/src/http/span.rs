//! Lists whose ids ascend with time: `from`, `until`, `limit` and `cursor` of their requests, and their pages.

use super::keys::invalid_cursor;
use super::response::{self, Response};
use serde_json::{Value, json};
use std::fmt::Display;
use tally_rules::ledger::Uuid;
use tally_rules::{Actor, Micros};
use tally_service::scan::{ListRange, ScanPage};
use tally_wire::cursor::{self, Names};
use tally_wire::{Problem, Query, time};

/// The part of a list that a query asks for, and its cursor, which is read once the query is sound.
pub(super) struct SpanQuery {
    span: ListRange,
    cursor: Option<String>,
}

impl SpanQuery {
    pub(super) fn of(query: &mut Query) -> Self {
        let (limit, cursor) = (query.limit(), query.text("cursor"));
        let span =
            ListRange { from: instant(query, "from"), until: instant(query, "until"), before: None, limit };
        Self { span, cursor }
    }

    /// The span, from the cursor on.
    pub(super) fn of_list(self, list: Names) -> Result<ListRange, Problem> {
        Ok(ListRange { before: before(list, self.cursor)?, ..self.span })
    }
}

/// The id of a cursor, before which the next page of a list begins.
pub(super) fn before(list: Names, cursor: Option<String>) -> Result<Option<Uuid>, Problem> {
    let read = |text: String| {
        let id = cursor::decode_name(list, &text).and_then(|id| Uuid::parse(&id));
        id.ok_or_else(invalid_cursor)
    };
    cursor.map(read).transpose()
}

fn instant(query: &mut Query, name: &'static str) -> Option<Micros> {
    let at = query.text(name).map(|text| time::parse(&text))?;
    if at.is_none() {
        query.wrong(name, "must be an RFC 3339 instant such as 2026-11-21T08:20:00Z");
    }
    at
}

/// Takes one of these names.
pub(super) fn choice<T: Copy + Display>(query: &mut Query, name: &'static str, all: &[T]) -> Option<T> {
    let text = query.text(name)?;
    let found = all.iter().copied().find(|one| one.to_string() == text);
    if found.is_none() {
        let names: Vec<String> = all.iter().map(ToString::to_string).collect();
        query.wrong(name, format!("must be one of: {}", names.join(", ")));
    }
    found
}

/// Takes an actor.
pub(super) fn actor(query: &mut Query) -> Option<Actor> {
    let actor = query.text("actor").map(|text| Actor::parse(&text))?;
    if actor.is_none() {
        let choices = "must be `key:{id}`, `member:{id}`, `command_line`, `local`, `background` or `unknown`";
        query.wrong("actor", choices);
    }
    actor
}

/// A page of a list.
pub(super) fn page<T>(list: Names, page: &ScanPage<T>, shown: impl Fn(Uuid, &T) -> Value) -> Response {
    let items: Vec<Value> = page.rows.iter().map(|(id, row)| shown(*id, row)).collect();
    let mut body = json!({"items": items});
    if let Some(next) = page.next {
        body["next_cursor"] = json!(cursor::encode_name(list, &next.to_string()));
    }
    response::name_damaged(&mut body, &page.damaged);
    response::ok(&body)
}
