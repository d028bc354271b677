//! The tables `members` and `handles`: members, and the handles that find them.

use super::fault::damaged;
use super::table::{Rows, Table};
use crate::StoreError;
use crate::codec::{Input, pins, put_bytes, put_number, put_option, put_signed};
use rusqlite::{Connection, Row, params};
use std::sync::Arc;
use tally_rules::ledger::member::{Handle, HandleKind, Login, Phone};
use tally_rules::ledger::pin::Attempts;
use tally_rules::ledger::{Member, MemberId, Uuid};
use tally_rules::{Micros, PlayerId};

pub(super) const GET: &str = "SELECT login, phone, player, name, password, pin, pin_digits, pin_wrong, \
     pin_locked_until, tokens_from, closed_at FROM members WHERE id = ?1";
pub(super) const LIST: &str = "SELECT login, phone, player, name, password, pin, pin_digits, pin_wrong, \
     pin_locked_until, tokens_from, closed_at, id FROM members WHERE id < ?1 ORDER BY id DESC";
pub(super) const PUT: &str = "REPLACE INTO members (id, login, phone, player, name, password, pin, pin_digits, \
     pin_wrong, pin_locked_until, tokens_from, closed_at) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
pub(super) const REMOVE: &str = "DELETE FROM members WHERE id = ?1";
pub(super) const GET_HANDLE: &str = "SELECT member FROM handles WHERE kind = ?1 AND text = ?2";
pub(super) const LIST_HANDLES: &str =
    "SELECT text, member FROM handles WHERE kind = ?1 AND text >= ?2 AND text < ?3 ORDER BY text";
pub(super) const PUT_HANDLE: &str = "REPLACE INTO handles (kind, text, member) VALUES (?1, ?2, ?3)";
pub(super) const REMOVE_HANDLE: &str = "DELETE FROM handles WHERE kind = ?1 AND text = ?2";

pub(super) fn get(connection: &Connection, id: &MemberId) -> Result<Option<Member>, StoreError> {
    let mut statement = connection.prepare_cached(GET)?;
    let mut rows = statement.query(params![id.0.0])?;
    rows.next()?.map(decode).transpose()
}

/// The member of a handle.
pub(super) fn of_handle(connection: &Connection, handle: &Handle) -> Result<Option<MemberId>, StoreError> {
    let mut statement = connection.prepare_cached(GET_HANDLE)?;
    let mut rows = statement.query(params![handle.number(), handle.as_str()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(MemberId(Uuid(row.get(0)?))))
}

/// Decodes a row of [`LIST_HANDLES`].
pub(super) fn decode_handle(
    kind: HandleKind,
    row: &Row<'_>,
) -> Result<Option<(Handle, MemberId)>, StoreError> {
    let text: String = row.get(0)?;
    let handle = Handle::of_stored(kind.number(), &text);
    let name = || format!("{}/{text}", kind.number());
    let handle =
        handle.ok_or_else(|| damaged("handles", "a handle that cannot be").of_row("handles", name))?;
    Ok(Some((handle, MemberId(Uuid(row.get(1)?)))))
}

/// Decodes the columns from the first one on.
pub(super) fn decode(row: &Row<'_>) -> Result<Member, StoreError> {
    let bad = |what: &str| damaged("members", &format!("a {what} that cannot be"));
    let phone: Option<String> = row.get(1)?;
    let phone = phone.map(|text| Phone::of_stored(&text).ok_or_else(|| bad("phone"))).transpose()?;
    let mac: Option<[u8; 32]> = row.get(5)?;
    let digits: Option<u8> = row.get(6)?;
    let pin = match (mac, digits) {
        (Some(mac), Some(digits)) => Some(pins::pin(mac, digits)),
        (None, None) => None,
        _ => return Err(bad("PIN")),
    };
    let locked_until: Option<i64> = row.get(8)?;
    let password: Option<String> = row.get(4)?;
    Ok(Member {
        login: Login::new(&row.get::<_, String>(0)?).map_err(|_| bad("login"))?,
        phone,
        player: PlayerId::new(&row.get::<_, String>(2)?).map_err(|_| bad("player"))?,
        name: row.get::<_, String>(3)?.into(),
        password: password.map(Arc::from),
        pin,
        attempts: Attempts { wrong: row.get(7)?, locked_until: locked_until.map(Micros) },
        tokens_from: Micros(row.get(9)?),
        closed_at: row.get::<_, Option<i64>>(10)?.map(Micros),
    })
}

/// The table `members` for the journal.
pub(super) struct Members;

impl Table for Members {
    const TAG: u8 = 10;
    type Key = MemberId;
    type Value = Member;

    fn check(_key: &MemberId, _value: Option<&Member>) -> Result<(), StoreError> {
        Ok(())
    }

    fn put_key(key: &MemberId, out: &mut Vec<u8>) {
        out.extend_from_slice(&key.0.0);
    }

    fn take_key(input: &mut Input<'_>) -> Option<MemberId> {
        Some(MemberId(Uuid(input.fixed()?)))
    }

    fn put_value(value: &Member, out: &mut Vec<u8>) {
        put_bytes(value.login.as_str().as_bytes(), out);
        put_option(value.phone.as_ref(), out, |phone, out| put_bytes(phone.as_str().as_bytes(), out));
        put_bytes(value.player.as_bytes(), out);
        put_bytes(value.name.as_bytes(), out);
        put_option(value.password.as_ref(), out, |text, out| put_bytes(text.as_bytes(), out));
        put_option(value.pin, out, |pin, out| {
            out.extend_from_slice(&pin.mac);
            out.push(pins::column(&pin));
        });
        put_number(value.attempts.wrong.into(), out);
        put_option(value.attempts.locked_until, out, |at, out| put_signed(at.0, out));
        put_signed(value.tokens_from.0, out);
        put_option(value.closed_at, out, |at, out| put_signed(at.0, out));
    }

    fn take_value(input: &mut Input<'_>) -> Option<Member> {
        let login = Login::new(input.text()?).ok()?;
        let phone = input.option(|input| Phone::of_stored(input.text()?))?;
        let player = PlayerId::new(input.text()?).ok()?;
        let name = input.text()?.into();
        let password = input.option(|input| input.text().map(Arc::from))?;
        let pin = input.option(|input| Some(pins::pin(input.fixed()?, input.byte()?)))?;
        let wrong = input.number()?.try_into().ok()?;
        let locked_until = input.option(Input::signed)?.map(Micros);
        let tokens_from = Micros(input.signed()?);
        let closed_at = input.option(Input::signed)?.map(Micros);
        let attempts = Attempts { wrong, locked_until };
        Some(Member { login, phone, player, name, password, pin, attempts, tokens_from, closed_at })
    }

    fn heap_bytes(_key: &MemberId, value: Option<&Member>) -> usize {
        value.map_or(0, |value| {
            let password = value.password.as_ref().map_or(0, |text| text.len());
            80 + value.login.as_str().len() + value.player.as_bytes().len() + value.name.len() + password
        })
    }

    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        for (id, member) in rows {
            match member {
                Some(member) => connection.prepare_cached(PUT)?.execute(params![
                    id.0.0,
                    member.login.as_str(),
                    member.phone.as_ref().map(Phone::as_str),
                    member.player.as_str(),
                    &*member.name,
                    member.password.as_deref(),
                    member.pin.map(|pin| pin.mac),
                    member.pin.map(|pin| pins::column(&pin)),
                    member.attempts.wrong,
                    member.attempts.locked_until.map(|at| at.0),
                    member.tokens_from.0,
                    member.closed_at.map(|at| at.0),
                ])?,
                None => connection.prepare_cached(REMOVE)?.execute(params![id.0.0])?,
            };
        }
        Ok(())
    }
}

/// The table `handles` for the journal.
pub(super) struct Handles;

impl Table for Handles {
    const TAG: u8 = 11;
    type Key = Handle;
    type Value = MemberId;

    fn check(_key: &Handle, _value: Option<&MemberId>) -> Result<(), StoreError> {
        Ok(())
    }

    fn put_key(key: &Handle, out: &mut Vec<u8>) {
        out.push(key.number());
        put_bytes(key.as_str().as_bytes(), out);
    }

    fn take_key(input: &mut Input<'_>) -> Option<Handle> {
        let number = input.byte()?;
        Handle::of_stored(number, input.text()?)
    }

    fn put_value(value: &MemberId, out: &mut Vec<u8>) {
        out.extend_from_slice(&value.0.0);
    }

    fn take_value(input: &mut Input<'_>) -> Option<MemberId> {
        Some(MemberId(Uuid(input.fixed()?)))
    }

    fn heap_bytes(key: &Handle, _value: Option<&MemberId>) -> usize {
        16 + key.as_str().len()
    }

    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        for (handle, member) in rows {
            let (number, text) = (handle.number(), handle.as_str());
            match member {
                Some(member) => {
                    connection.prepare_cached(PUT_HANDLE)?.execute(params![number, text, member.0.0])?
                }
                None => connection.prepare_cached(REMOVE_HANDLE)?.execute(params![number, text])?,
            };
        }
        Ok(())
    }
}
