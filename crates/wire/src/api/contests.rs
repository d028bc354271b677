//! Contests as JSON: specs, applications and decisions, and how a contest, its rows and its start are shown.
//!
//! An error names all wrong fields of a body, those inside of lists and objects by their own pointers. In a contest, `null`
//! means no fee, no time or no divisions. Not here: which contests are valid and what may change (the rules).

mod pool;
mod series;
mod show;
#[cfg(test)]
mod tests;

pub use series::{read_new_series, read_series_patch, write_series};
pub(crate) use show::write_prizes;
pub use show::{ApplicationJson, write, write_failed, write_member, write_payout};

use crate::api::leaderboards::{choice, read_definition_at};
use crate::api::wallets::{read_amount, read_currency};
use crate::fields::{FieldError, Fields, boolean, text};
use crate::time;
use serde_json::Value;
use std::num::NonZeroU32;
use tally_rules::contest::definition::{ContestSpec, Fee, LENGTH_S_MAX, STAFF_MAX};
use tally_rules::contest::prize::PRIZES_MAX;
use tally_rules::contest::{BelowMin, ContestId, OnInvalid, Prize, PrizeTies};
use tally_rules::ledger::{Amount, Currency};
use tally_rules::{Definition, Micros, PlayerId, Rejection};

/// The most players of one decision.
pub const PLAYERS_MAX: usize = 1_000;

/// The wrong fields inside of a field.
type Inner = Vec<FieldError>;

/// Reads the body of `POST /v1/contests`: the name, if it has one, and the spec.
pub fn read_new(body: Value) -> Result<(Option<ContestId>, ContestSpec), Vec<FieldError>> {
    let mut fields = Fields::new("", body)?;
    let id = fields.optional("id", |value| ContestId::new(&text(value)?).map_err(|bad| bad.0));
    let mut inner = Inner::new();
    let title = fields.required("title", text);
    let spec = ContestSpec { title, ..read_rest(&mut fields, &mut inner) };
    let spec = read_times(&mut fields, spec);
    finish(fields, inner)?;
    Ok((id, spec))
}

/// Reads the body of `PATCH /v1/contests/{contest}`.
pub fn read_patch(body: Value) -> Result<ContestSpec, Vec<FieldError>> {
    let mut fields = Fields::new("", body)?;
    let mut inner = Inner::new();
    let title = fields.optional("title", text);
    let spec = ContestSpec { title, ..read_rest(&mut fields, &mut inner) };
    let spec = read_times(&mut fields, spec);
    finish(fields, inner)?;
    Ok(spec)
}

/// Reads the body of an application: the player, if it names one.
pub fn read_application(body: Option<Value>) -> Result<Option<PlayerId>, Vec<FieldError>> {
    let Some(body) = body else { return Ok(None) };
    let mut fields = Fields::new("", body)?;
    let player = fields.optional("player", player);
    fields.finish()?;
    Ok(player)
}

/// Reads the players of a decision.
pub fn read_players(body: Value) -> Result<Vec<PlayerId>, Vec<FieldError>> {
    let mut fields = Fields::new("", body)?;
    let mut inner = Inner::new();
    let players = fields.required("players", |value| {
        let list = value.as_array().filter(|list| (1..=PLAYERS_MAX).contains(&list.len()));
        let list = list.ok_or_else(|| format!("must be an array of 1 to {PLAYERS_MAX} players"))?;
        Ok::<_, String>(read_list("/players", list, &mut inner, |_, value| one(player(value))))
    });
    finish(fields, inner)?;
    Ok(players.unwrap_or_default())
}

/// Reads all fields of a contest except the times, and the title, which only a new contest must have.
fn read_rest(fields: &mut Fields, inner: &mut Inner) -> ContestSpec {
    ContestSpec {
        staff: fields.optional("staff", |value| read_staff(value, inner)),
        capacity: fields.optional("capacity", |value| count(value).map(NonZeroU32::get)),
        on_invalid: fields
            .optional("on_invalid", |value| choice(value, OnInvalid::parse, OnInvalid::choices)),
        auto_accept: fields.optional("auto_accept", boolean),
        players_min: read_players_min(fields),
        below_min: fields.optional("below_min", |value| choice(value, BelowMin::parse, BelowMin::choices)),
        join_s: fields.optional("join_s", |value| nullable(value, count)),
        attempts_max: fields.optional("attempts_max", |value| nullable(value, count)),
        entry_fee: fields
            .optional("entry_fee", |value| nullable(value, |value| into(inner, read_fee(value.clone())))),
        leaderboard: fields.optional("leaderboard", |value| into(inner, read_leaderboard(value.clone()))),
        prizes: fields.optional("prizes", |value| read_prizes("/prizes", value, inner)),
        prize_ties: fields
            .optional("prize_ties", |value| choice(value, PrizeTies::parse, PrizeTies::choices)),
        pool: fields
            .optional("pool", |value| nullable(value, |value| into(inner, pool::read(value.clone())))),
        division_size: fields.optional("division_size", |value| nullable(value, count)),
        review_s: fields.optional("review_s", |value| nullable(value, seconds)),
        ..ContestSpec::default()
    }
}

/// Reads `players_min`, or `members_min`, which is the older name.
fn read_players_min(fields: &mut Fields) -> Option<Option<NonZeroU32>> {
    let [present, older] =
        ["players_min", "members_min"].map(|name| fields.optional(name, |value| nullable(value, count)));
    if present.zip(older).is_some_and(|(present, older)| present != older) {
        fields.wrong(
            "members_min",
            "is the older name of `players_min` and has another value; send `players_min` alone",
        );
    }
    present.or(older)
}

/// The times of a contest.
fn read_times(fields: &mut Fields, spec: ContestSpec) -> ContestSpec {
    ContestSpec {
        opens_at: fields.optional("opens_at", |value| nullable(value, instant)),
        starts_at: fields.optional("starts_at", |value| nullable(value, instant)),
        ends_at: fields.optional("ends_at", |value| nullable(value, instant)),
        ..spec
    }
}

/// Ends the object. Errors inside of fields come first; they replace the empty error of their field.
pub(crate) fn finish(fields: Fields, mut inner: Inner) -> Result<(), Vec<FieldError>> {
    let own = fields.finish().err().unwrap_or_default();
    inner.extend(own.into_iter().filter(|error| !error.detail.is_empty()));
    if inner.is_empty() { Ok(()) } else { Err(inner) }
}

/// Collects the errors inside of a field, and gives the field itself an empty error.
fn into<T>(inner: &mut Inner, read: Result<T, Vec<FieldError>>) -> Result<T, String> {
    read.map_err(|wrong| {
        inner.extend(wrong);
        String::new()
    })
}

fn nullable<T, E>(value: &Value, read: impl FnOnce(&Value) -> Result<T, E>) -> Result<Option<T>, E> {
    if value.is_null() { Ok(None) } else { read(value).map(Some) }
}

fn player(value: &Value) -> Result<PlayerId, &'static str> {
    PlayerId::new(&text(value)?).map_err(|bad| bad.0)
}

fn count(value: &Value) -> Result<NonZeroU32, String> {
    let count = value.as_u64().and_then(|count| u32::try_from(count).ok()).and_then(NonZeroU32::new);
    count.ok_or_else(|| format!("must be a whole number from 1 to {}", u32::MAX))
}

fn seconds(value: &Value) -> Result<u32, String> {
    let seconds = value.as_u64().and_then(|seconds| u32::try_from(seconds).ok());
    seconds.ok_or_else(|| format!("must be a whole number of seconds from 0 to {LENGTH_S_MAX}, or null"))
}

fn instant(value: &Value) -> Result<Micros, String> {
    let at = value.as_str().and_then(time::parse);
    at.ok_or_else(|| "must be an RFC 3339 instant such as 2026-11-21T08:20:00Z, or null".into())
}

/// The error of an element without fields.
fn one<T>(read: Result<T, &'static str>) -> Result<T, Vec<FieldError>> {
    read.map_err(|why| vec![FieldError::invalid("", why)])
}

/// Reads each element. The errors of an element get its own pointer.
fn read_list<T>(
    pointer: &str,
    list: &[Value],
    inner: &mut Inner,
    read: impl Fn(&str, &Value) -> Result<T, Vec<FieldError>>,
) -> Vec<T> {
    let mut all = Vec::with_capacity(list.len());
    for (at, value) in list.iter().enumerate() {
        let pointer = format!("{pointer}/{at}");
        match read(&pointer, value) {
            Ok(one) => all.push(one),
            Err(wrong) => inner.extend(wrong.into_iter().map(|error| match error.pointer.as_str() {
                "" => FieldError { pointer: pointer.clone(), ..error },
                _ => error,
            })),
        }
    }
    all
}

fn read_staff(value: &Value, inner: &mut Inner) -> Result<Vec<PlayerId>, String> {
    let list = value.as_array().filter(|list| list.len() <= STAFF_MAX);
    let list = list.ok_or_else(|| format!("must be an array of at most {STAFF_MAX} players"))?;
    Ok(read_list("/staff", list, inner, |_, value| one(player(value))))
}

/// Reads a table of prizes at this pointer.
pub(crate) fn read_prizes(pointer: &str, value: &Value, inner: &mut Inner) -> Result<Vec<Prize>, String> {
    let list = value.as_array().filter(|list| list.len() <= PRIZES_MAX);
    let list = list.ok_or_else(|| format!("must be an array of at most {PRIZES_MAX} prizes"))?;
    Ok(read_list(pointer, list, inner, |pointer, value| read_prize(pointer, value.clone())))
}

fn read_prize(pointer: &str, value: Value) -> Result<Prize, Vec<FieldError>> {
    let mut fields = Fields::new(pointer, value)?;
    let from = fields.required("from", count);
    let to = fields.required("to", count);
    let (currency, amount) = read_money(&mut fields);
    fields.finish()?;
    let read = (from, to, currency, amount);
    let (Some(from), Some(to), Some(currency), Some(amount)) = read else {
        unreachable!("no field is wrong")
    };
    Ok(Prize { from: from.get(), to: to.get(), currency, amount })
}

fn read_fee(value: Value) -> Result<Fee, Vec<FieldError>> {
    let mut fields = Fields::new("/entry_fee", value)?;
    let (currency, amount) = read_money(&mut fields);
    fields.finish()?;
    let (Some(currency), Some(amount)) = (currency, amount) else { unreachable!("no field is wrong") };
    Ok(Fee { currency, amount })
}

/// An invalid amount is one of the wrong fields here, so that an error names all of them.
fn read_money(fields: &mut Fields) -> (Option<Currency>, Option<Amount>) {
    let currency = fields.required("currency", |value| read_currency(&text(value)?));
    let amount = fields.required("amount", |value| match read_amount(value) {
        Ok(Ok(amount)) => Ok(amount),
        Ok(Err(rejection)) => Err(rejection.detail()),
        Err(why) => Err(why.into()),
    });
    (currency, amount)
}

fn read_leaderboard(value: Value) -> Result<Definition, Vec<FieldError>> {
    let spec = read_definition_at("/leaderboard", value)?;
    spec.create().map_err(|rejection| {
        let pointer = match &rejection {
            Rejection::InvalidDefinition(wrong) => format!("/leaderboard{}", wrong.pointer),
            _ => "/leaderboard".into(),
        };
        vec![FieldError::invalid(pointer, rejection.detail())]
    })
}
