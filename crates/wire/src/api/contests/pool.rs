//! The pool of a contest as JSON.

use super::{Inner, count, finish, read_list};
use crate::api::wallets::read_amount;
use crate::fields::{FieldError, Fields};
use serde_json::{Value, json};
use tally_rules::contest::pool::{PoolPrize, PrizePool, WHOLE};
use tally_rules::contest::prize::PRIZES_MAX;
use tally_rules::contest::{Contest, ContestRecord};
use tally_rules::ledger::Amount;

pub(super) fn read(value: Value) -> Result<PrizePool, Vec<FieldError>> {
    let (mut fields, mut inner) = (Fields::new("/pool", value)?, Inner::new());
    let prizes = fields.required("prizes", |value| {
        let list = value.as_array().filter(|list| (1..=PRIZES_MAX).contains(&list.len()));
        let list = list.ok_or_else(|| format!("must be an array of 1 to {PRIZES_MAX} shares"))?;
        Ok::<_, String>(read_list("/pool/prizes", list, &mut inner, |at, value| {
            read_share(at, value.clone())
        }))
    });
    let rake = fields.optional("rake", |value| parts(value, 0));
    let min = fields.optional("min", |value| super::nullable(value, read_min));
    finish(fields, inner)?;
    Ok(PrizePool { prizes: prizes.unwrap_or_default(), rake: rake.unwrap_or(0), min: min.flatten() })
}

fn read_min(value: &Value) -> Result<Amount, String> {
    match read_amount(value) {
        Ok(Ok(amount)) => Ok(amount),
        Ok(Err(rejection)) => Err(rejection.detail()),
        Err(why) => Err(why.into()),
    }
}

fn read_share(pointer: &str, value: Value) -> Result<PoolPrize, Vec<FieldError>> {
    let mut fields = Fields::new(pointer, value)?;
    let (from, to) = (fields.required("from", count), fields.required("to", count));
    let share = fields.required("share", |value| parts(value, 1));
    fields.finish()?;
    let (Some(from), Some(to), Some(share)) = (from, to, share) else { unreachable!("no field is wrong") };
    Ok(PoolPrize { from: from.get(), to: to.get(), share })
}

fn parts(value: &Value, least: u64) -> Result<u32, String> {
    let parts = value.as_u64().filter(|parts| (least..=WHOLE.into()).contains(parts));
    let parts = parts.and_then(|parts| u32::try_from(parts).ok());
    parts.ok_or_else(|| format!("must be a whole number of parts of {WHOLE}, from {least}"))
}

/// The definition, as a spec for the same.
pub(super) fn write(contest: &Contest) -> Value {
    let share = |one: &PoolPrize| json!({"from": one.from, "to": one.to, "share": one.share});
    let write = |pool: &PrizePool| {
        let prizes: Value = pool.prizes.iter().map(share).collect();
        json!({"prizes": prizes, "rake": pool.rake, "min": pool.min.map(|min| min.units().to_string())})
    };
    json!(contest.pool.as_ref().map(write))
}

/// The account of the pool, and its money: what came in, what is to be won, and what became of the rest.
pub(super) fn write_account(record: &ContestRecord) -> Option<(String, Value)> {
    let (account, pool) = (record.pool_account()?, record.contest.pool.as_ref()?);
    let fees = record.fees_left();
    let mut shown = json!({
        "member": account.0.to_string(),
        "fees": fees.to_string(),
        "to_win": pool.to_win(fees).to_string(),
    });
    if let Some(result) = record.pool_result {
        shown["rake"] = json!(result.rake.to_string());
        shown["top_up"] = json!(result.top_up.to_string());
    }
    Some(("pool_account".into(), shown))
}
