//! A contest. Its name, its number and its state are stored beside the bytes.

use super::boards::{put_board, put_prizes, take_board, take_money, take_prizes};
use super::contest_extras;
use super::{Input, put_bytes, put_number, put_option, put_signed};
use crate::{BoardNo, BoardRow};
use std::num::NonZeroU32;
use tally_rules::contest::application::ApplicationCounts;
use tally_rules::contest::definition::Fee;
use tally_rules::contest::record::{ApplicationLocation, ContestTask, StartReport};
use tally_rules::contest::start::{InvalidApplication, InvalidReason};
use tally_rules::contest::state::ContestState;
use tally_rules::contest::{Contest, ContestId, ContestRecord, OnInvalid};
use tally_rules::ledger::{MemberId, Uuid};
use tally_rules::{Micros, PlayerId};

/// The format of the bytes below. A released one is never changed; a new one gets a new number.
const FORM: u8 = 1;

/// Encodes a contest.
pub(crate) fn encode(record: &ContestRecord) -> Vec<u8> {
    let mut out = vec![FORM];
    let out_mut = &mut out;
    put_contest(&record.contest, out_mut);
    put_option(record.series.as_ref(), out_mut, |id, out| put_bytes(id.as_str().as_bytes(), out));
    put_signed(record.since.0, out_mut);
    let ApplicationCounts { pending, accepted, rejected, places } = record.applications;
    for number in [pending, accepted, rejected, record.members] {
        put_number(number.into(), out_mut);
    }
    put_number(places, out_mut);
    put_number(record.revision, out_mut);
    put_option(record.report.as_ref(), out_mut, |report, out| {
        for number in [report.enrolled, report.failed] {
            put_number(number.into(), out);
        }
        put_number(report.first_failed.len() as u64, out);
        for InvalidApplication { player, why } in &report.first_failed {
            put_bytes(player.as_bytes(), out);
            put_bytes(why.as_str().as_bytes(), out);
        }
    });
    match &record.work {
        ContestTask::None => out_mut.push(0),
        ContestTask::Clear => out_mut.push(1),
        ContestTask::Pay { done } => {
            out_mut.push(2);
            put_number((*done).into(), out_mut);
        }
        ContestTask::Refund { after } => {
            out_mut.push(3);
            put_option(after.as_ref(), out_mut, |player, out| put_bytes(player.as_bytes(), out));
        }
        ContestTask::Determine => out_mut.push(4),
    }
    put_option(record.prizes, out_mut, |count, out| put_number(count.into(), out));
    put_signed(record.created_at.0, out_mut);
    put_signed(record.updated_at.0, out_mut);
    // Without a location, the applications are in the store, as in rows that were written before there was another place.
    let (fees, payouts) = (&record.reversed_fees, record.reversed_payouts);
    let mut extras = Vec::new();
    contest_extras::put(&record.contest, &mut extras);
    contest_extras::put_result(record.pool_result, &mut extras);
    let has_more = record.contest.review_s.is_some() || !fees.is_empty() || payouts > 0 || !extras.is_empty();
    match record.kept {
        ApplicationLocation::Store if !has_more => {}
        ApplicationLocation::Store => out_mut.push(0),
        ApplicationLocation::Lost => out_mut.push(1),
        ApplicationLocation::Redis(number) => {
            out_mut.push(2);
            out_mut.extend_from_slice(&number.0);
        }
    }
    // Without a review, reversals and later fields, a row ends where earlier releases ended it.
    if has_more {
        put_option(record.contest.review_s, out_mut, |seconds, out| put_number(seconds.into(), out));
        put_number(payouts.into(), out_mut);
        put_number(fees.len() as u64, out_mut);
        for (member, amount) in fees {
            out_mut.extend_from_slice(&member.0.0);
            put_signed(*amount, out_mut);
        }
        out_mut.extend(extras);
    }
    out
}

/// Reads what [`encode`] wrote; the number and the state are stored beside it.
pub(crate) fn decode(no: Uuid, state: ContestState, bytes: &[u8]) -> Option<ContestRecord> {
    let mut bytes = Input::new(bytes);
    let input = &mut bytes;
    if input.byte()? != FORM {
        return None;
    }
    let mut contest = take_contest(input)?;
    let series = input.option(|input| ContestId::new(input.text()?).ok())?;
    let since = Micros(input.signed()?);
    let (pending, accepted, rejected, members) =
        (input.small()?, input.small()?, input.small()?, input.small()?);
    let applications = ApplicationCounts { pending, accepted, rejected, places: input.number()? };
    let revision = input.number()?;
    let report = input.option(|input| {
        let (enrolled, failed) = (input.small()?, input.small()?);
        let mut first_failed = Vec::new();
        for _ in 0..input.number()? {
            let player = PlayerId::new(input.text()?).ok()?;
            first_failed.push(InvalidApplication { player, why: InvalidReason::parse(input.text()?)? });
        }
        Some(StartReport { enrolled, failed, first_failed })
    })?;
    let work = match input.byte()? {
        0 => ContestTask::None,
        1 => ContestTask::Clear,
        2 => ContestTask::Pay { done: input.small()? },
        3 => ContestTask::Refund { after: input.option(|input| PlayerId::new(input.text()?).ok())? },
        4 => ContestTask::Determine,
        _ => return None,
    };
    let prizes = input.option(Input::small)?;
    let (created_at, updated_at) = (Micros(input.signed()?), Micros(input.signed()?));
    let kept = match input.is_empty() {
        true => ApplicationLocation::Store,
        false => match input.byte()? {
            0 => ApplicationLocation::Store,
            1 => ApplicationLocation::Lost,
            2 => ApplicationLocation::Redis(Uuid(input.fixed()?)),
            _ => return None,
        },
    };
    let (mut reversed_fees, mut reversed_payouts, mut pool_result) = (Vec::new(), 0, None);
    if !input.is_empty() {
        contest.review_s = input.option(Input::small)?;
        reversed_payouts = input.small()?;
        for _ in 0..input.number()? {
            reversed_fees.push((MemberId(Uuid(input.fixed()?)), input.signed()?));
        }
        pool_result = contest_extras::take(&mut contest, input)?;
    }
    let record = ContestRecord {
        no,
        contest,
        series,
        state,
        since,
        kept,
        applications,
        revision,
        members,
        report,
        work,
        prizes,
        pool_result,
        reversed_fees,
        reversed_payouts,
        created_at,
        updated_at,
    };
    input.is_empty().then_some(record)
}

/// All but the review and later fields, which the container puts at its end: released bytes lack them.
pub(crate) fn put_contest(contest: &Contest, out: &mut Vec<u8>) {
    put_bytes(contest.title.as_bytes(), out);
    put_number(contest.staff.len() as u64, out);
    contest.staff.iter().for_each(|player| put_bytes(player.as_bytes(), out));
    put_number(contest.capacity.into(), out);
    put_bytes(contest.on_invalid.as_str().as_bytes(), out);
    put_option(contest.entry_fee, out, |fee, out| {
        out.extend_from_slice(&fee.currency.bytes());
        put_signed(fee.amount.units(), out);
    });
    // The bytes of a board, with a dummy name and a dummy number.
    let (id, definition) = (board_name(), contest.leaderboard.clone());
    put_board(&BoardRow { no: BoardNo(0), id, definition, created_at: Micros(0) }, out);
    put_prizes((&contest.prizes, contest.prize_ties), out);
    put_option(contest.division_size, out, |size, out| put_number(size.get().into(), out));
    for at in [contest.opens_at, contest.starts_at, contest.ends_at] {
        put_option(at, out, |at, out| put_signed(at.0, out));
    }
}

pub(crate) fn take_contest(input: &mut Input<'_>) -> Option<Contest> {
    let title = input.text()?.to_owned();
    let mut staff = Vec::new();
    for _ in 0..input.number()? {
        staff.push(PlayerId::new(input.text()?).ok()?);
    }
    let capacity = input.small()?;
    let on_invalid = OnInvalid::parse(input.text()?)?;
    let entry_fee = input.option(take_money)?.map(|(currency, amount)| Fee { currency, amount });
    let leaderboard = take_board(input)?.definition;
    let (prizes, prize_ties) = take_prizes(input)?;
    let division_size = input.option(|input| NonZeroU32::new(input.small()?))?;
    let mut at = || input.option(|input| input.signed().map(Micros));
    let (opens_at, starts_at, ends_at) = (at()?, at()?, at()?);
    Some(Contest {
        title,
        staff,
        capacity,
        on_invalid,
        entry_fee,
        leaderboard,
        prizes,
        prize_ties,
        division_size,
        opens_at,
        starts_at,
        ends_at,
        // Its container has the others at its end.
        ..Contest::default()
    })
}

fn board_name() -> tally_rules::BoardId {
    tally_rules::BoardId::new("-").expect("a name")
}
