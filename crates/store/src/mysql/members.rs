//! The tables `members` and `handles`: members, and the handles that find them.

use super::fault::damaged;
use super::row::Fields;
use super::table::{self, Table};
use super::text::{RowScript, Script};
use crate::StoreError;
use crate::codec::pins;
use crate::ledger::after_prefix;
use std::sync::Arc;
use tally_rules::ledger::member::{Handle, HandleKind, Login, Phone};
use tally_rules::ledger::pin::Attempts;
use tally_rules::ledger::{Member, MemberId, Uuid};
use tally_rules::{Micros, PlayerId};

pub(super) struct Members;

impl Table for Members {
    const NAME: &'static str = "members";
    const KEY: &'static str = "id";
    const READ: &'static str = "id, login, phone, player, name, password, pin, pin_digits, pin_wrong, pin_locked_until, \
         tokens_from, closed_at";
    const REPLACED: &'static [&'static str] = &[
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
    ];
    const BLANK: &'static str = "'', NULL, '', '', NULL, NULL, NULL, 0, NULL, 0, NULL";
    type Key = MemberId;
    type Value = Member;

    fn put_key(row: &mut RowScript<'_>, id: &MemberId) {
        row.bytes(&id.0.0);
    }

    fn put(row: &mut RowScript<'_>, member: &Member) {
        row.bytes(member.login.as_str().as_bytes());
        row.bytes_or_null(member.phone.as_ref().map(|phone| phone.as_str().as_bytes()));
        row.bytes(member.player.as_bytes()).bytes(member.name.as_bytes());
        row.bytes_or_null(member.password.as_ref().map(|text| text.as_bytes()));
        row.bytes_or_null(member.pin.as_ref().map(|pin| &pin.mac[..]));
        row.signed_or_null(member.pin.map(|pin| pins::column(&pin).into()));
        row.number(member.attempts.wrong).signed_or_null(member.attempts.locked_until.map(|at| at.0));
        row.signed(member.tokens_from.0).signed_or_null(member.closed_at.map(|at| at.0));
    }

    fn decode(row: &mut Fields<'_>) -> Result<(MemberId, Member), StoreError> {
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
            (Some(mac), Some(digits)) => Some(pins::pin(mac, digits)),
            (None, None) => None,
            _ => return Err(bad("PIN")),
        };
        let attempts = Attempts { wrong: row.tiny()?, locked_until: row.maybe_signed()?.map(Micros) };
        let (tokens_from, closed_at) = (Micros(row.signed()?), row.maybe_signed()?.map(Micros));
        Ok((id, Member { login, phone, player, name, password, pin, attempts, tokens_from, closed_at }))
    }
}

pub(super) struct Handles;

impl Table for Handles {
    const NAME: &'static str = "handles";
    const KEY: &'static str = "(kind, `text`)";
    const READ: &'static str = "kind, `text`, member";
    const REPLACED: &'static [&'static str] = &["member"];
    const BLANK: &'static str = "''";
    type Key = Handle;
    type Value = MemberId;

    fn put_key(row: &mut RowScript<'_>, handle: &Handle) {
        row.number(handle.number()).bytes(handle.as_str().as_bytes());
    }

    fn put(row: &mut RowScript<'_>, member: &MemberId) {
        row.bytes(&member.0.0);
    }

    fn decode(row: &mut Fields<'_>) -> Result<(Handle, MemberId), StoreError> {
        let number = row.tiny()?;
        let handle = Handle::of_stored(number, row.text()?);
        let handle = handle.ok_or_else(|| damaged("handles", "a handle that cannot be"))?;
        Ok((handle, MemberId(Uuid(row.fixed()?))))
    }
}

/// Queries handles of a kind that begin with `prefix`.
pub(super) fn select_handles(kind: HandleKind, prefix: &str, limit: usize) -> Script {
    let mut script = Script::default();
    table::all::<Handles>(&mut script).sql(" WHERE kind = ").number(kind.number());
    script.sql(" AND `text` >= ").bytes(prefix.as_bytes());
    script.sql(" AND `text` < ").bytes(after_prefix(prefix).as_bytes());
    script.sql(" ORDER BY `text` LIMIT ").number(limit as u64).end();
    script
}
