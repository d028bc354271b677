//! A board, and tables of prizes.

use super::{Input, put_bytes, put_number, put_option, put_signed};
use crate::{BoardNo, BoardRow};
use tally_rules::contest::{Prize, PrizeTies};
use tally_rules::definition::{Order, Ranking, ScoreType, Subscore, Ties, Update};
use tally_rules::ledger::{Amount, Currency};
use tally_rules::period::{PeriodPrizes, PeriodRule};
use tally_rules::{BoardId, Definition, Micros};

/// Added to the number of periods if they have prizes: more than a board can have.
const WITH_PRIZES: u64 = 1 << 16;

/// Appends a board. Its choices are written by the names that users see, as in the table.
pub(crate) fn put_board(value: &BoardRow, out: &mut Vec<u8>) {
    let of = &value.definition;
    put_number(value.no.0.into(), out);
    put_bytes(value.id.as_str().as_bytes(), out);
    let choices = [of.order.as_str(), of.update.as_str(), of.ranking.as_str(), of.ties.as_str()];
    for choice in choices.into_iter().chain([of.score.as_str(), of.subscore.as_str()]) {
        put_bytes(choice.as_bytes(), out);
    }
    out.push(of.all_time.into());
    put_number(of.rules_given.into(), out);
    out.push(of.implicit.into());
    put_signed(value.created_at.0, out);
    // A board without prizes is encoded as before prizes existed, so journals of older versions can be read.
    let with_prizes = of.periods.iter().any(|period| period.prizes != PeriodPrizes::default());
    put_number(of.periods.len() as u64 + if with_prizes { WITH_PRIZES } else { 0 }, out);
    for period in &of.periods {
        for text in [&period.name, &period.schedule, &period.time_zone] {
            put_bytes(text.as_bytes(), out);
        }
        for number in [period.keep, period.grace_s, period.no] {
            put_number(number.into(), out);
        }
        if with_prizes {
            out.extend(encode_prizes(&period.prizes));
        }
    }
}

/// Encodes the prizes of periods.
pub(crate) fn encode_prizes(prizes: &PeriodPrizes) -> Vec<u8> {
    let mut out = Vec::new();
    put_prizes((&prizes.table, prizes.ties), &mut out);
    put_option(prizes.from, &mut out, |at, out| put_signed(at.0, out));
    out
}

/// Reads what [`encode_prizes`] wrote.
pub(crate) fn take_period_prizes(input: &mut Input<'_>) -> Option<PeriodPrizes> {
    let (table, ties) = take_prizes(input)?;
    Some(PeriodPrizes { table, ties, from: input.option(Input::signed)?.map(Micros) })
}

/// Reads what [`put_board`] wrote.
pub(crate) fn take_board(input: &mut Input<'_>) -> Option<BoardRow> {
    let no = BoardNo(input.small()?);
    let id = BoardId::new(input.text()?).ok()?;
    let mut definition = Definition {
        order: Order::parse(input.text()?)?,
        update: Update::parse(input.text()?)?,
        ranking: Ranking::parse(input.text()?)?,
        ties: Ties::parse(input.text()?)?,
        score: ScoreType::parse(input.text()?)?,
        subscore: Subscore::parse(input.text()?)?,
        all_time: input.boolean()?,
        rules_given: input.small()?,
        implicit: input.boolean()?,
        periods: Vec::new(),
    };
    let created_at = Micros(input.signed()?);
    let count = input.number()?;
    for _ in 0..count % WITH_PRIZES {
        let mut text = || input.text().map(str::to_owned);
        let (name, schedule, time_zone) = (text()?, text()?, text()?);
        let (keep, grace_s, no) = (input.small()?, input.small()?, input.small()?);
        let with_prizes = count >= WITH_PRIZES;
        let prizes = if with_prizes { take_period_prizes(input)? } else { PeriodPrizes::default() };
        definition.periods.push(PeriodRule { no, name, schedule, time_zone, keep, grace_s, prizes });
    }
    Some(BoardRow { no, id, definition, created_at })
}

/// Appends a table of prizes.
pub(crate) fn put_prizes((prizes, ties): (&[Prize], PrizeTies), out: &mut Vec<u8>) {
    put_number(prizes.len() as u64, out);
    for prize in prizes {
        put_number(prize.from.into(), out);
        put_number(prize.to.into(), out);
        out.extend_from_slice(&prize.currency.bytes());
        put_signed(prize.amount.units(), out);
    }
    put_bytes(ties.as_str().as_bytes(), out);
}

/// Reads what [`put_prizes`] wrote.
pub(crate) fn take_prizes(input: &mut Input<'_>) -> Option<(Vec<Prize>, PrizeTies)> {
    let mut prizes = Vec::new();
    for _ in 0..input.number()? {
        let (from, to) = (input.small()?, input.small()?);
        let (currency, amount) = take_money(input)?;
        prizes.push(Prize { from, to, currency, amount });
    }
    Some((prizes, PrizeTies::parse(input.text()?)?))
}

pub(super) fn take_money(input: &mut Input<'_>) -> Option<(Currency, Amount)> {
    let currency = Currency::of_bytes(input.fixed()?)?;
    Some((currency, Amount::new(input.signed()?).ok()?))
}
