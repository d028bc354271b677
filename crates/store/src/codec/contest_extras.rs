//! Fields of a contest that came after its first format: each has a number and follows at the end of its row, if it is in use.
//!
//! So a row without them ends where earlier releases ended it, and a field that comes later needs a number and no format. Not here: the
//! review and the reversals, which are older.

use super::{Input, put_bytes, put_number, put_option, put_signed};
use std::num::NonZeroU32;
use tally_rules::contest::pool::{PoolPrize, PoolResult};
use tally_rules::contest::{BelowMin, Contest, PrizePool};
use tally_rules::ledger::Amount;

const AUTO_ACCEPT: u8 = 1;
const PLAYERS_MIN: u8 = 2;
const BELOW_MIN: u8 = 3;
const POOL: u8 = 4;
const JOIN_S: u8 = 5;
const ATTEMPTS_MAX: u8 = 6;
/// Not of the definition.
const POOL_RESULT: u8 = 128;

/// Appends the fields that are in use.
pub(super) fn put(contest: &Contest, out: &mut Vec<u8>) {
    if contest.auto_accept {
        out.push(AUTO_ACCEPT);
    }
    for (field, number) in
        [(PLAYERS_MIN, contest.players_min), (JOIN_S, contest.join_s), (ATTEMPTS_MAX, contest.attempts_max)]
    {
        if let Some(number) = number {
            out.push(field);
            put_number(number.get().into(), out);
        }
    }
    if contest.below_min != BelowMin::Cancel {
        out.push(BELOW_MIN);
        put_bytes(contest.below_min.as_str().as_bytes(), out);
    }
    if let Some(PrizePool { prizes, rake, min }) = &contest.pool {
        out.push(POOL);
        put_number(prizes.len() as u64, out);
        for PoolPrize { from, to, share } in prizes {
            [from, to, share].into_iter().for_each(|number| put_number((*number).into(), out));
        }
        put_number((*rake).into(), out);
        put_option(*min, out, |min, out| put_signed(min.units(), out));
    }
}

/// Appends what became of a pool.
pub(super) fn put_result(result: Option<PoolResult>, out: &mut Vec<u8>) {
    if let Some(PoolResult { first, rake, top_up }) = result {
        out.push(POOL_RESULT);
        put_number(first.into(), out);
        [rake, top_up].into_iter().for_each(|units| put_signed(units, out));
    }
}

/// Reads what [`put`] and [`put_result`] wrote, up to the end.
pub(super) fn take(contest: &mut Contest, input: &mut Input<'_>) -> Option<Option<PoolResult>> {
    let mut result = None;
    while !input.is_empty() {
        match input.byte()? {
            AUTO_ACCEPT => contest.auto_accept = true,
            PLAYERS_MIN => contest.players_min = Some(NonZeroU32::new(input.small()?)?),
            JOIN_S => contest.join_s = Some(NonZeroU32::new(input.small()?)?),
            ATTEMPTS_MAX => contest.attempts_max = Some(NonZeroU32::new(input.small()?)?),
            BELOW_MIN => contest.below_min = BelowMin::parse(input.text()?)?,
            POOL => contest.pool = Some(take_pool(input)?),
            POOL_RESULT => {
                let (first, rake, top_up) = (input.small()?, input.signed()?, input.signed()?);
                result = Some(PoolResult { first, rake, top_up });
            }
            _ => return None,
        }
    }
    Some(result)
}

fn take_pool(input: &mut Input<'_>) -> Option<PrizePool> {
    let mut prizes = Vec::new();
    for _ in 0..input.number()? {
        prizes.push(PoolPrize { from: input.small()?, to: input.small()?, share: input.small()? });
    }
    let rake = input.small()?;
    Some(PrizePool { prizes, rake, min: input.option(|input| Amount::new(input.signed()?).ok())? })
}
