//! The table `contest_prizes`: the payouts of a contest or of a closed period, and their outcomes.
//!
//! Not here: which contest or period they belong to (`contests`, `payments`).

use super::fault::damaged;
use super::player;
use super::row::Fields;
use super::table::Table;
use super::text::{RowScript, Script};
use crate::StoreError;
use crate::contests::PayoutKey;
use tally_rules::contest::Payout;
use tally_rules::contest::member::UnpaidReason;
use tally_rules::ledger::{Amount, Currency, MemberId, TransferId, Uuid};

pub(super) struct Prizes;

impl Table for Prizes {
    const NAME: &'static str = "contest_prizes";
    const KEY: &'static str = "(contest, `no`)";
    const READ: &'static str =
        "contest, `no`, player, member, division, `rank`, currency, amount, transfer, unpaid";
    const REPLACED: &'static [&'static str] = &["player", "member", "transfer", "unpaid"];
    const BLANK: &'static str = "";
    type Key = PayoutKey;
    type Value = Payout;

    fn put_key(row: &mut RowScript<'_>, key: &PayoutKey) {
        row.bytes(&key.contest.0).number(key.no);
    }

    fn put(row: &mut RowScript<'_>, payout: &Payout) {
        row.bytes(payout.player.as_bytes()).bytes(&payout.member.0.0);
        row.signed_or_null(payout.division.map(i64::from)).number(payout.rank);
        row.bytes(payout.currency.as_str().as_bytes()).signed(payout.amount.units());
        let (transfer, unpaid) = (payout.paid.and_then(Result::ok), payout.paid.and_then(Result::err));
        row.bytes_or_null(transfer.as_ref().map(|id| &id.0.0[..]));
        row.bytes_or_null(unpaid.map(|why| why.as_str().as_bytes()));
    }

    fn decode(row: &mut Fields<'_>) -> Result<(PayoutKey, Payout), StoreError> {
        let contest = Uuid(row.fixed()?);
        let (no, payout) = decode(row)?;
        Ok((PayoutKey { contest, no }, payout))
    }
}

/// Queries prizes of a contest by their numbers.
pub(super) fn select(contest: Uuid, from: u32, limit: usize) -> Script {
    let mut script = Script::default();
    script.sql("SELECT `no`, player, member, division, `rank`, currency, amount, transfer, unpaid ");
    script.sql("FROM contest_prizes FORCE INDEX (PRIMARY) WHERE contest = ").bytes(&contest.0);
    script.sql(" AND `no` >= ").number(from);
    script.sql(" ORDER BY `no` LIMIT ").number(limit as u64).end();
    script
}

/// Adds the key of a corrupt row of [`select`] to its error.
pub(super) fn named(error: StoreError, contest: Uuid, row: &Fields<'_>) -> StoreError {
    error.of_row("contest_prizes", || format!("{contest}/{}", row.first()))
}

/// Reads the next columns.
pub(super) fn decode(row: &mut Fields<'_>) -> Result<(u32, Payout), StoreError> {
    Ok((row.small()?, decode_prize(row)?))
}

fn decode_prize(row: &mut Fields<'_>) -> Result<Payout, StoreError> {
    let bad = || damaged("contest_prizes", "a prize that cannot be");
    let (player, member) = (player(row)?, MemberId(Uuid(row.fixed()?)));
    let (division, rank) = (row.maybe_small()?, row.small()?);
    let currency = Currency::parse(row.text()?).ok_or_else(bad)?;
    let amount = Amount::new(row.signed()?).map_err(|_| bad())?;
    let (transfer, unpaid) = (row.maybe_fixed()?, row.maybe_text()?);
    let paid = match (transfer, unpaid) {
        (None, None) => None,
        (Some(transfer), None) => Some(Ok(TransferId(Uuid(transfer)))),
        (None, Some(why)) => Some(Err(UnpaidReason::parse(why).ok_or_else(bad)?)),
        (Some(_), Some(_)) => return Err(bad()),
    };
    Ok(Payout { player, member, division, rank, currency, amount, paid })
}
