//! The tables `members` and `handles`: who there is, and what each is found by.

use super::connect::Flavour;
use super::fault::damaged;
use super::found;
use super::row::{Answers, Fields};
use super::text::{Row, Script, keys_end};
use crate::StoreError;
use std::sync::Arc;
use tally_rules::ledger::member::{Handle, Login, Phone, Pin};
use tally_rules::ledger::pin::Attempts;
use tally_rules::ledger::{Member, MemberId, Uuid};
use tally_rules::{Micros, PlayerId};

/// Asks for members; how many statements that takes. The keys ascend.
pub(super) fn select(script: &mut Script, keys: &[MemberId], locking: bool) -> usize {
    script.keys(
        "SELECT id, login, phone, player, name, password, pin, pin_digits, pin_wrong, pin_locked_until, \
         tokens_from, closed_at FROM members FORCE INDEX (PRIMARY) WHERE id IN (",
        keys,
        keys_end(locking),
        put_key,
    )
}

fn put_key(row: &mut Row<'_>, id: &MemberId) {
    row.bytes(&id.0.0);
}

/// The answer.
pub(super) fn read(
    answers: &mut Answers,
    statements: usize,
    keys: &[MemberId],
) -> Result<Vec<Option<Member>>, StoreError> {
    found(answers, statements, "members", keys, decode)
}

pub(super) fn decode(row: &mut Fields<'_>) -> Result<(MemberId, Member), StoreError> {
    let bad = |what: &str| damaged("members", &format!("a {what} that cannot be"));
    let id = MemberId(Uuid(row.fixed()?));
    let login = Login::new(row.text()?).map_err(|_| bad("login"))?;
    let phone =
        row.maybe_text()?.map(|text| Phone::of_stored(text).ok_or_else(|| bad("phone"))).transpose()?;
    let player = PlayerId::new(row.text()?).map_err(|_| bad("player"))?;
    let (name, password) = (row.text()?.into(), row.maybe_text()?.map(Arc::from));
    let (mac, digits) = (row.maybe_fixed()?, row.maybe_signed()?);
    let digits = digits.map(u8::try_from).transpose().map_err(|_| bad("PIN"))?;
    let pin = match (mac, digits) {
        (Some(mac), Some(digits)) => Some(Pin { mac, digits }),
        (None, None) => None,
        _ => return Err(bad("PIN")),
    };
    let attempts = Attempts { wrong: row.tiny()?, locked_until: row.maybe_signed()?.map(Micros) };
    let (tokens_from, closed_at) = (Micros(row.signed()?), row.maybe_signed()?.map(Micros));
    Ok((id, Member { login, phone, player, name, password, pin, attempts, tokens_from, closed_at }))
}

const HEAD: &str = "INSERT INTO members (id, login, phone, player, name, password, pin, pin_digits, pin_wrong, \
     pin_locked_until, tokens_from, closed_at) VALUES ";

/// Writes members. One that was not there when it was read must not be there now.
pub(super) fn write(
    script: &mut Script,
    rows: &[(MemberId, Member)],
    absent: impl Fn(&MemberId) -> bool,
    flavour: Flavour,
) {
    let put = |row: &mut Row<'_>, (id, member): &(MemberId, Member)| {
        put_key(row, id);
        row.bytes(member.login.as_str().as_bytes());
        row.bytes_or_null(member.phone.as_ref().map(|phone| phone.as_str().as_bytes()));
        row.bytes(member.player.as_bytes()).bytes(member.name.as_bytes());
        row.bytes_or_null(member.password.as_ref().map(|text| text.as_bytes()));
        row.bytes_or_null(member.pin.as_ref().map(|pin| &pin.mac[..]));
        row.signed_or_null(member.pin.map(|pin| pin.digits.into()));
        row.number(member.attempts.wrong).signed_or_null(member.attempts.locked_until.map(|at| at.0));
        row.signed(member.tokens_from.0).signed_or_null(member.closed_at.map(|at| at.0));
    };
    script.rows(HEAD, rows.iter().filter(|(id, _)| absent(id)), "", put);
    let tail = |script: &mut Script| {
        flavour.replace(
            script,
            &[
                "login",
                "phone",
                "player",
                "name",
                "password",
                "pin",
                "pin_digits",
                "pin_wrong",
                "pin_locked_until",
                "tokens_from",
                "closed_at",
            ],
        )
    };
    script.upserts(HEAD, rows.iter().filter(|(id, _)| !absent(id)), tail, put);
}

/// Fails where one of these members is there by now.
pub(super) fn guard<'a>(script: &mut Script, absent: impl Iterator<Item = &'a MemberId> + Clone) {
    script.rows(HEAD, absent.clone(), "", |row, id| {
        put_key(row, id);
        row.sql("'', NULL, '', '', NULL, NULL, NULL, 0, NULL, 0, NULL");
    });
    script.keys("DELETE FROM members WHERE id IN (", absent, ")", put_key);
}

/// Asks whose handles are; how many statements that takes. The keys ascend.
pub(super) fn select_handles(script: &mut Script, keys: &[Handle], locking: bool) -> usize {
    script.keys(
        "SELECT kind, `text`, member FROM handles FORCE INDEX (PRIMARY) WHERE (kind, `text`) IN (",
        keys,
        keys_end(locking),
        put_handle,
    )
}

/// The answer.
pub(super) fn read_handles(
    answers: &mut Answers,
    statements: usize,
    keys: &[Handle],
) -> Result<Vec<Option<MemberId>>, StoreError> {
    found(answers, statements, "handles", keys, decode_handle)
}

pub(super) fn decode_handle(row: &mut Fields<'_>) -> Result<(Handle, MemberId), StoreError> {
    let number = row.tiny()?;
    let handle = Handle::of_stored(number, row.text()?);
    let handle = handle.ok_or_else(|| damaged("handles", "a handle that cannot be"))?;
    Ok((handle, MemberId(Uuid(row.fixed()?))))
}

fn put_handle(row: &mut Row<'_>, handle: &Handle) {
    row.number(handle.number()).bytes(handle.as_str().as_bytes());
}

/// Gives handles to members, and takes them away. One that was nobody's when it was read must still be nobody's.
pub(super) fn write_handles(
    script: &mut Script,
    rows: &[(Handle, Option<MemberId>)],
    absent: impl Fn(&Handle) -> bool,
    flavour: Flavour,
) {
    const HEAD: &str = "INSERT INTO handles (kind, `text`, member) VALUES ";
    let given = || rows.iter().filter_map(|(handle, member)| Some((handle, (*member)?)));
    let put = |row: &mut Row<'_>, (handle, member): (&Handle, MemberId)| {
        put_handle(row, handle);
        row.bytes(&member.0.0);
    };
    script.rows(HEAD, given().filter(|(handle, _)| absent(handle)), "", put);
    let tail = |script: &mut Script| flavour.replace(script, &["member"]);
    script.upserts(HEAD, given().filter(|(handle, _)| !absent(handle)), tail, put);
    let taken = rows.iter().filter(|(handle, member)| member.is_none() && !absent(handle));
    let head = "DELETE FROM handles WHERE (kind, `text`) IN (";
    script.keys(head, taken.map(|(handle, _)| handle), ")", put_handle);
}

/// Fails where one of these handles is somebody's by now.
pub(super) fn guard_handles<'a>(script: &mut Script, absent: impl Iterator<Item = &'a Handle> + Clone) {
    script.rows("INSERT INTO handles (kind, `text`, member) VALUES ", absent.clone(), "", |row, handle| {
        put_handle(row, handle);
        row.sql("''");
    });
    script.keys("DELETE FROM handles WHERE (kind, `text`) IN (", absent, ")", put_handle);
}
