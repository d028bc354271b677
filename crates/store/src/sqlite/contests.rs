//! The tables `contests`, `contest_applications`, `contest_members` and `contest_prizes`.
//!
//! The state of a contest and the time when it is due are separate columns, because contests are found by them; the rest is
//! bytes. Not here: those bytes (`contests`), and reads (`contest_reads`).

use super::fault::{column_text, damaged};
use super::table::{Rows, Table};
use super::wallets::currency;
use crate::StoreError;
use crate::codec::contests;
use crate::codec::{Input, put_bytes, put_number, put_option, put_signed};
use crate::contests::{EntrantKey, PayoutKey};
use rusqlite::{Connection, Row, params};
use tally_rules::contest::application::Status;
use tally_rules::contest::member::UnpaidReason;
use tally_rules::contest::{Application, ContestId, ContestPlayer, ContestRecord, ContestState, Payout};
use tally_rules::ledger::{Amount, Currency, HoldId, MemberId, TransferId, Uuid};
use tally_rules::{Micros, PlayerId};

pub(super) const GET: &str = "SELECT no, state, body, id FROM contests WHERE id = ?1";
pub(super) const PUT: &str = "REPLACE INTO contests (id, no, state, due, body) VALUES (?1, ?2, ?3, ?4, ?5)";
pub(super) const REMOVE: &str = "DELETE FROM contests WHERE id = ?1";
pub(super) const GET_APPLICATION: &str = "SELECT status, place, applied_at, member, hold, player \
     FROM contest_applications WHERE contest = ?1 AND player = ?2";
pub(super) const PUT_APPLICATION: &str = "REPLACE INTO contest_applications (contest, player, status, place, \
     applied_at, member, hold) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
pub(super) const REMOVE_APPLICATION: &str =
    "DELETE FROM contest_applications WHERE contest = ?1 AND player = ?2";
pub(super) const GET_MEMBER: &str =
    "SELECT place, division, member, player FROM contest_members WHERE contest = ?1 AND player = ?2";
pub(super) const PUT_MEMBER: &str = "REPLACE INTO contest_members (contest, player, place, division, member) \
     VALUES (?1, ?2, ?3, ?4, ?5)";
pub(super) const REMOVE_MEMBER: &str = "DELETE FROM contest_members WHERE contest = ?1 AND player = ?2";
pub(super) const PUT_PRIZE: &str = "REPLACE INTO contest_prizes (contest, no, player, member, division, rank, \
     currency, amount, transfer, unpaid) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
pub(super) const REMOVE_PRIZE: &str = "DELETE FROM contest_prizes WHERE contest = ?1 AND no = ?2";

fn uuid(bytes: Option<[u8; 16]>) -> Option<Uuid> {
    bytes.map(Uuid)
}

/// Decodes the column of this number as a player.
pub(super) fn player(row: &Row<'_>, column: usize) -> Result<PlayerId, StoreError> {
    let text: String = row.get(column)?;
    PlayerId::new(&text).map_err(|bad| damaged("", &format!("a player {}", bad.0)))
}

/// Decodes a contest and its name.
pub(super) fn decode(row: &Row<'_>) -> Result<(ContestId, ContestRecord), StoreError> {
    decode_contest(row).map_err(|error| error.of_row("contests", || column_text(row, 3)))
}

fn decode_contest(row: &Row<'_>) -> Result<(ContestId, ContestRecord), StoreError> {
    let (state, body): (String, Vec<u8>) = (row.get(1)?, row.get(2)?);
    let id = ContestId::new(&row.get::<_, String>(3)?).ok();
    let record =
        ContestState::parse(&state).and_then(|state| contests::decode(Uuid(row.get(0).ok()?), state, &body));
    id.zip(record).ok_or_else(|| damaged("contests", "a contest that cannot be"))
}

pub(super) fn decode_application(row: &Row<'_>) -> Result<(PlayerId, Application), StoreError> {
    read_application(row).map_err(|error| error.of_table("contest_applications"))
}

fn read_application(row: &Row<'_>) -> Result<(PlayerId, Application), StoreError> {
    let status = Status::parse(&row.get::<_, String>(0)?);
    let status = status.ok_or_else(|| damaged("contest_applications", "an unknown status"))?;
    let place = u64::try_from(row.get::<_, i64>(1)?);
    let place = place.map_err(|_| damaged("contest_applications", "a negative place"))?;
    let (member, hold) = (uuid(row.get(3)?).map(MemberId), uuid(row.get(4)?).map(HoldId));
    Ok((player(row, 5)?, Application { status, place, applied_at: Micros(row.get(2)?), member, hold }))
}

pub(super) fn decode_member(row: &Row<'_>) -> Result<(PlayerId, ContestPlayer), StoreError> {
    let read = || -> Result<(PlayerId, ContestPlayer), StoreError> {
        let member = uuid(row.get(2)?).map(MemberId);
        Ok((player(row, 3)?, ContestPlayer { place: row.get(0)?, division: row.get(1)?, member }))
    };
    read().map_err(|error| error.of_table("contest_members"))
}

/// Columns: player, member, division, rank, currency, amount, transfer, unpaid.
pub(super) fn decode_prize(row: &Row<'_>) -> Result<Payout, StoreError> {
    let bad = || damaged("contest_prizes", "a prize that cannot be");
    let (transfer, unpaid): (Option<[u8; 16]>, Option<String>) = (row.get(6)?, row.get(7)?);
    let paid = match (transfer, unpaid) {
        (None, None) => None,
        (Some(transfer), None) => Some(Ok(TransferId(Uuid(transfer)))),
        (None, Some(why)) => Some(Err(UnpaidReason::parse(&why).ok_or_else(bad)?)),
        (Some(_), Some(_)) => return Err(bad()),
    };
    Ok(Payout {
        player: player(row, 0)?,
        member: MemberId(Uuid(row.get(1)?)),
        division: row.get(2)?,
        rank: row.get(3)?,
        currency: currency("contest_prizes", &row.get::<_, String>(4)?)?,
        amount: Amount::new(row.get(5)?).map_err(|_| bad())?,
        paid,
    })
}

/// The first row of a statement.
pub(super) fn one<T>(
    connection: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
    decode: impl Fn(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    rows.next()?.map(decode).transpose()
}

pub(super) fn get(connection: &Connection, id: &ContestId) -> Result<Option<ContestRecord>, StoreError> {
    Ok(one(connection, GET, params![id.as_str()], decode)?.map(|(_, record)| record))
}

pub(super) fn application(
    connection: &Connection,
    key: &EntrantKey,
) -> Result<Option<Application>, StoreError> {
    let keys = params![key.contest.0, key.player.as_str()];
    Ok(one(connection, GET_APPLICATION, keys, decode_application)?.map(|(_, row)| row))
}

pub(super) fn member(connection: &Connection, key: &EntrantKey) -> Result<Option<ContestPlayer>, StoreError> {
    let keys = params![key.contest.0, key.player.as_str()];
    Ok(one(connection, GET_MEMBER, keys, decode_member)?.map(|(_, row)| row))
}

fn put_entrant(key: &EntrantKey, out: &mut Vec<u8>) {
    out.extend_from_slice(&key.contest.0);
    put_bytes(key.player.as_bytes(), out);
}

fn take_entrant(input: &mut Input<'_>) -> Option<EntrantKey> {
    Some(EntrantKey { contest: Uuid(input.fixed()?), player: PlayerId::new(input.text()?).ok()? })
}

fn put_id(id: &Uuid, out: &mut Vec<u8>) {
    out.extend_from_slice(&id.0);
}

fn take_id(input: &mut Input<'_>) -> Option<Uuid> {
    input.fixed().map(Uuid)
}

/// The table `contests` for the journal.
pub(super) struct Contests;

impl Table for Contests {
    const TAG: u8 = 17;
    type Key = ContestId;
    type Value = ContestRecord;

    fn check(_key: &ContestId, _value: Option<&ContestRecord>) -> Result<(), StoreError> {
        Ok(())
    }

    fn put_key(key: &ContestId, out: &mut Vec<u8>) {
        put_bytes(key.as_str().as_bytes(), out);
    }

    fn take_key(input: &mut Input<'_>) -> Option<ContestId> {
        ContestId::new(input.text()?).ok()
    }

    fn put_value(value: &ContestRecord, out: &mut Vec<u8>) {
        put_id(&value.no, out);
        put_bytes(value.state.as_str().as_bytes(), out);
        put_bytes(&contests::encode(value), out);
    }

    fn take_value(input: &mut Input<'_>) -> Option<ContestRecord> {
        let (no, state) = (take_id(input)?, ContestState::parse(input.text()?)?);
        contests::decode(no, state, input.bytes()?)
    }

    fn heap_bytes(_key: &ContestId, value: Option<&ContestRecord>) -> usize {
        let contest = |record: &ContestRecord| {
            let contest = &record.contest;
            1024 + 64 * (contest.staff.len() + contest.prizes.len() + contest.leaderboard.periods.len())
        };
        value.map_or(0, contest)
    }

    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        for (id, record) in rows {
            match record {
                Some(record) => {
                    let (state, body) = (record.state.as_str(), contests::encode(record));
                    let due = record.due().map(|(at, _)| at.0);
                    let row = params![id.as_str(), record.no.0, state, due, body];
                    connection.prepare_cached(PUT)?.execute(row)?
                }
                None => connection.prepare_cached(REMOVE)?.execute(params![id.as_str()])?,
            };
        }
        Ok(())
    }
}

/// The table `contest_applications` for the journal.
pub(super) struct Applications;

impl Table for Applications {
    const TAG: u8 = 18;
    type Key = EntrantKey;
    type Value = Application;

    fn check(_key: &EntrantKey, value: Option<&Application>) -> Result<(), StoreError> {
        let fits = |row: &Application| i64::try_from(row.place).is_ok();
        match value {
            Some(row) if !fits(row) => Err(StoreError::Row("contest_applications: too many places".into())),
            Some(_) | None => Ok(()),
        }
    }

    fn put_key(key: &EntrantKey, out: &mut Vec<u8>) {
        put_entrant(key, out);
    }

    fn take_key(input: &mut Input<'_>) -> Option<EntrantKey> {
        take_entrant(input)
    }

    fn put_value(value: &Application, out: &mut Vec<u8>) {
        put_bytes(value.status.as_str().as_bytes(), out);
        put_number(value.place, out);
        put_signed(value.applied_at.0, out);
        put_option(value.member, out, |id, out| put_id(&id.0, out));
        put_option(value.hold, out, |id, out| put_id(&id.0, out));
    }

    fn take_value(input: &mut Input<'_>) -> Option<Application> {
        let (status, place) = (Status::parse(input.text()?)?, input.number()?);
        let applied_at = Micros(input.signed()?);
        let (member, hold) = (input.option(take_id)?.map(MemberId), input.option(take_id)?.map(HoldId));
        Some(Application { status, place, applied_at, member, hold })
    }

    fn heap_bytes(key: &EntrantKey, _value: Option<&Application>) -> usize {
        16 + key.player.as_bytes().len()
    }

    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        for (key, row) in rows {
            let of = (key.contest.0, key.player.as_str());
            match row {
                Some(row) => connection.prepare_cached(PUT_APPLICATION)?.execute(params![
                    of.0,
                    of.1,
                    row.status.as_str(),
                    row.place.cast_signed(),
                    row.applied_at.0,
                    row.member.map(|id| id.0.0),
                    row.hold.map(|id| id.0.0)
                ])?,
                None => connection.prepare_cached(REMOVE_APPLICATION)?.execute(params![of.0, of.1])?,
            };
        }
        Ok(())
    }
}

/// The table `contest_members` for the journal.
pub(super) struct Enrollments;

impl Table for Enrollments {
    const TAG: u8 = 19;
    type Key = EntrantKey;
    type Value = ContestPlayer;

    fn check(_key: &EntrantKey, _value: Option<&ContestPlayer>) -> Result<(), StoreError> {
        Ok(())
    }

    fn put_key(key: &EntrantKey, out: &mut Vec<u8>) {
        put_entrant(key, out);
    }

    fn take_key(input: &mut Input<'_>) -> Option<EntrantKey> {
        take_entrant(input)
    }

    fn put_value(value: &ContestPlayer, out: &mut Vec<u8>) {
        put_number(value.place.into(), out);
        put_option(value.division, out, |no, out| put_number(no.into(), out));
        put_option(value.member, out, |id, out| put_id(&id.0, out));
    }

    fn take_value(input: &mut Input<'_>) -> Option<ContestPlayer> {
        let (place, division) = (input.small()?, input.option(Input::small)?);
        Some(ContestPlayer { place, division, member: input.option(take_id)?.map(MemberId) })
    }

    fn heap_bytes(key: &EntrantKey, _value: Option<&ContestPlayer>) -> usize {
        16 + key.player.as_bytes().len()
    }

    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        for (key, row) in rows {
            let of = (key.contest.0, key.player.as_str());
            match row {
                Some(ContestPlayer { place, division, member }) => connection
                    .prepare_cached(PUT_MEMBER)?
                    .execute(params![of.0, of.1, place, division, member.map(|id| id.0.0)])?,
                None => connection.prepare_cached(REMOVE_MEMBER)?.execute(params![of.0, of.1])?,
            };
        }
        Ok(())
    }
}

/// The table `contest_prizes` for the journal.
pub(super) struct Payouts;

impl Table for Payouts {
    const TAG: u8 = 20;
    type Key = PayoutKey;
    type Value = Payout;

    fn check(_key: &PayoutKey, _value: Option<&Payout>) -> Result<(), StoreError> {
        Ok(())
    }

    fn put_key(key: &PayoutKey, out: &mut Vec<u8>) {
        put_id(&key.contest, out);
        put_number(key.no.into(), out);
    }

    fn take_key(input: &mut Input<'_>) -> Option<PayoutKey> {
        Some(PayoutKey { contest: take_id(input)?, no: input.small()? })
    }

    fn put_value(value: &Payout, out: &mut Vec<u8>) {
        put_bytes(value.player.as_bytes(), out);
        put_id(&value.member.0, out);
        put_option(value.division, out, |no, out| put_number(no.into(), out));
        put_number(value.rank.into(), out);
        out.extend_from_slice(&value.currency.bytes());
        put_signed(value.amount.units(), out);
        put_option(value.paid, out, |paid, out| {
            put_option(paid.ok(), out, |id, out| put_id(&id.0, out));
            put_option(paid.err(), out, |why, out| put_bytes(why.as_str().as_bytes(), out));
        });
    }

    fn take_value(input: &mut Input<'_>) -> Option<Payout> {
        let (player, member) = (PlayerId::new(input.text()?).ok()?, MemberId(take_id(input)?));
        let (division, rank) = (input.option(Input::small)?, input.small()?);
        let (currency, amount) = (Currency::of_bytes(input.fixed()?)?, Amount::new(input.signed()?).ok()?);
        let paid = input.option(|input| {
            let transfer = input.option(take_id)?;
            let why = input.option(|input| UnpaidReason::parse(input.text()?))?;
            transfer.map(|id| Ok(TransferId(id))).or(why.map(Err))
        })?;
        Some(Payout { player, member, division, rank, currency, amount, paid })
    }

    fn heap_bytes(_key: &PayoutKey, value: Option<&Payout>) -> usize {
        value.map_or(0, |row| 16 + row.player.as_bytes().len())
    }

    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        for (key, row) in rows {
            match row {
                Some(row) => connection.prepare_cached(PUT_PRIZE)?.execute(params![
                    key.contest.0,
                    key.no,
                    row.player.as_str(),
                    row.member.0.0,
                    row.division,
                    row.rank,
                    row.currency.as_str(),
                    row.amount.units(),
                    row.paid.and_then(Result::ok).map(|id| id.0.0),
                    row.paid.and_then(Result::err).map(UnpaidReason::as_str)
                ])?,
                None => connection.prepare_cached(REMOVE_PRIZE)?.execute(params![key.contest.0, key.no])?,
            };
        }
        Ok(())
    }
}
