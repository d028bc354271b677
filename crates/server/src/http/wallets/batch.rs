//! `POST /v1/transfers/batch`: up to 1,000 transfers, each alone or linked to the next.

use super::{home, name_member, new_transfer, of_posted, wrong};
use crate::http::call::Call;
use crate::http::problem;
use crate::http::response::{self, Response};
use crate::limits::BATCH_ROWS_MAX;
use serde_json::{Map, Value, json};
use tally_rules::Rejection;
use tally_rules::idempotency::row_key;
use tally_service::failure::common_fault;
use tally_service::ledger::transfers::{self, NewTransfer, TransferResult};
use tally_service::{Failure, Tally};
use tally_wire::api::row_key::sent_row_key;
use tally_wire::api::wallets::{TransferRow, read_row};
use tally_wire::{Fields, Problem};

struct BatchRow {
    /// Its idempotency key as sent, for the response.
    key: Option<String>,
    /// Whether the next row belongs to the same linked group.
    linked: bool,
    transfer: Result<NewTransfer, Problem>,
}

pub(in crate::http) async fn batch(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let tally = call.tally()?;
    let key = call.key()?.map(|key| key.key);
    let list = read_list(call.json().await?)?;
    let read = |(index, row)| read_one(&tally, &call, row, (key.as_deref(), index));
    let mut rows: Vec<BatchRow> = list.into_iter().enumerate().map(read).collect();
    fail_broken_groups(&mut rows);
    let sound = |row: &BatchRow| row.transfer.as_ref().ok().map(|new| (new.clone(), row.linked));
    let transfers: Vec<(NewTransfer, bool)> = rows.iter().filter_map(sound).collect();
    let done =
        transfers::post_all(&tally, transfers).await.map_err(|failure| problem::of_failure(&failure))?;
    if let Some(fault) = common_fault(&done)
        && done.len() == rows.len()
    {
        return Err(problem::of_failure(&Failure::Fault(fault)));
    }
    Ok(render(rows, done))
}

fn read_list(body: Value) -> Result<Vec<Value>, Problem> {
    let mut fields = Fields::new("", body).map_err(Problem::fields)?;
    let rows = fields.required("transfers", |value| {
        let list = value.as_array().filter(|list| (1..=BATCH_ROWS_MAX).contains(&list.len()));
        let list = list.filter(|list| list.iter().all(Value::is_object));
        list.cloned().ok_or_else(|| format!("must be an array of 1 to {BATCH_ROWS_MAX} objects"))
    });
    fields.finish().map_err(Problem::fields)?;
    Ok(rows.expect("no field is wrong"))
}

fn read_one(tally: &Tally, call: &Call, row: Value, place: (Option<&str>, usize)) -> BatchRow {
    let key = sent_row_key(&row);
    // An unreadable value counts as `true`: it may have meant to link the next row.
    let linked = row.get("linked").is_some_and(|linked| *linked != Value::Bool(false));
    let transfer =
        read_row(row, home(tally)).map_err(wrong).map(|row| keyed_transfer(tally, call, row, place));
    BatchRow { key, linked, transfer }
}

fn keyed_transfer(
    tally: &Tally,
    call: &Call,
    row: TransferRow,
    (key, index): (Option<&str>, usize),
) -> NewTransfer {
    let TransferRow { read, id, .. } = row;
    let id = id.or_else(|| key.map(|key| row_key(key, index)));
    new_transfer(tally, call, read, id.map(|id| call.key_of(&id)))
}

/// Fails all rows of a linked group if one of them is invalid.
fn fail_broken_groups(rows: &mut [BatchRow]) {
    let mut from = 0;
    while from < rows.len() {
        let linked = rows[from..].iter().take_while(|row| row.linked).count();
        let until = (from + linked + 1).min(rows.len());
        let group = &mut rows[from..until];
        let failed =
            group.iter().enumerate().find_map(|(at, row)| Some((at, row.transfer.as_ref().err()?.code)));
        if let Some((at, code)) = failed {
            for row in group.iter_mut().filter(|row| row.transfer.is_ok()) {
                row.transfer = Err(problem::of_rejection(&Rejection::LinkedFailed { nth: at + 1, code }));
            }
        }
        from = until;
    }
}

fn render(rows: Vec<BatchRow>, done: Vec<TransferResult>) -> Response {
    let (mut done, count, mut replays) = (done.into_iter(), rows.len(), 0);
    let mut one = |row: BatchRow| {
        let mut object = Map::new();
        // `id` is the older name.
        if let Some(key) = row.key {
            object.insert("id".into(), json!(key));
            object.insert("idempotency_key".into(), Value::String(key));
        }
        let done = match row.transfer {
            Err(wrong) => Err(wrong),
            Ok(new) => {
                let (done, sides) = (done.next().expect("one result a row"), new.order.what.sides());
                done.map_err(|failure| name_member(problem::of_failure(&failure), sides, "from"))
            }
        };
        match done {
            Ok(receipt) => {
                replays += usize::from(receipt.replayed);
                object.insert("status".into(), json!("posted"));
                object.insert("transaction".into(), json!(of_posted(&receipt.posted)));
                if receipt.replayed {
                    object.insert("replayed".into(), json!(true));
                }
            }
            Err(wrong) => drop(object.insert("error".into(), wrong.row_error())),
        }
        Value::Object(object)
    };
    let results: Vec<Value> = rows.into_iter().map(&mut one).collect();
    response::replayed(response::ok(&json!({"results": results})), replays == count)
}
