//! `POST /v1/scores/batch`: up to 1,000 rows; each succeeds or fails alone.

use super::{rank_windows, wants_windows, write_submitted};
use crate::http::call::Call;
use crate::http::problem;
use crate::http::ranks::write_windows;
use crate::http::response::{self, Response};
use crate::limits::{BATCH_ROWS_MAX, RANKED_ROWS_MAX};
use serde_json::{Value, json};
use std::sync::Arc;
use tally_rules::idempotency::{IdempotencyKey, row_key};
use tally_rules::{BoardId, PlayerId};
use tally_service::failure::common_fault;
use tally_service::players::ranks::{Counted, WindowRank};
use tally_service::scores::submit::{NewScore, RowResult, submit_batch};
use tally_service::{Failure, Tally};
use tally_wire::api::row_key::sent_row_key;
use tally_wire::api::scores::{NewRow, read_row};
use tally_wire::numbers::Int64;
use tally_wire::{Fields, Problem};

/// A row that was read, or its error.
enum ScoreRow {
    Read { board: BoardId, player: PlayerId, id: Option<String> },
    Wrong(Value),
}

pub(in crate::http) async fn batch(mut call: Call) -> Result<Response, Problem> {
    let windows = wants_windows(&mut call.query);
    call.finish_query()?;
    let (tally, int64) = (call.tally()?, call.int64()?);
    let key = call.key()?.map(|key| key.key);
    let rows = read_list(call.json().await?, windows)?;
    let (mut read, mut news) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    for (index, row) in rows.into_iter().enumerate() {
        let echo = echo(&row);
        match read_row(row).map_err(Problem::fields) {
            Ok(row) => {
                // The key of a row: its own, or the key of the request with the index of the row.
                let id = row.id.clone().or_else(|| key.as_deref().map(|key| row_key(key, index)));
                let (board, player) = (row.board.clone(), row.score.player.clone());
                read.push(ScoreRow::Read { board, player, id: row.id.clone() });
                news.push(new_score(&tally, &call, row, id));
            }
            Err(wrong) => read.push(ScoreRow::Wrong(with_error(echo, &wrong))),
        }
    }
    let done = submit_batch(&tally, news, windows).await;
    let mut done = done.map_err(|failure| problem::of_failure(&failure))?;
    if let Some(fault) = common_fault(&done)
        && done.len() == read.len()
    {
        return Err(problem::of_failure(&Failure::Fault(fault)));
    }
    let ranked = if windows { Some(rank_windows(&tally, counted(&read, &mut done)).await?) } else { None };
    Ok(render(read, done, ranked, int64))
}

/// The windows that the rows counted for, of the rows that succeeded.
fn counted(read: &[ScoreRow], done: &mut [RowResult]) -> Vec<Counted> {
    let player = |row: &ScoreRow| match row {
        ScoreRow::Read { player, .. } => Some(player.clone()),
        ScoreRow::Wrong(_) => None,
    };
    let rows = read.iter().filter_map(player).zip(done);
    let one = |(player, done): (PlayerId, &mut RowResult)| {
        let (board, submitted) = done.as_mut().ok()?;
        Some((board.id.clone(), player, std::mem::take(&mut submitted.windows)))
    };
    rows.filter_map(one).collect()
}

fn read_list(body: Value, windows: bool) -> Result<Vec<Value>, Problem> {
    let (most, with) = if windows { (RANKED_ROWS_MAX, " with `windows=all`") } else { (BATCH_ROWS_MAX, "") };
    let mut fields = Fields::new("", body).map_err(Problem::fields)?;
    let rows = fields.required("scores", |value| {
        let list = value.as_array().filter(|list| (1..=most).contains(&list.len()));
        let list = list.filter(|list| list.iter().all(Value::is_object));
        list.cloned().ok_or_else(|| format!("must be an array of 1 to {most} objects{with}"))
    });
    fields.finish().map_err(Problem::fields)?;
    Ok(rows.expect("no field is wrong"))
}

fn new_score(tally: &Arc<Tally>, call: &Call, row: NewRow, id: Option<String>) -> NewScore {
    let score = row.score;
    let idempotency = id.map(|id| IdempotencyKey {
        key: call.key_of(&id),
        fingerprint: tally.fingerprints.of_submit(
            &row.board,
            &score.player,
            score.score,
            score.subscore,
            score.at,
        ),
    });
    NewScore {
        board: row.board,
        player: score.player,
        score: score.score,
        subscore: score.subscore,
        at: score.at,
        idempotency,
    }
}

fn render(
    read: Vec<ScoreRow>,
    done: Vec<RowResult>,
    ranked: Option<Vec<Vec<WindowRank>>>,
    int64: Int64,
) -> Response {
    let mut done = done.into_iter();
    let mut ranked = ranked.map(Vec::into_iter);
    let mut replays = 0;
    let rows = read.len();
    let results: Vec<Value> = read
        .into_iter()
        .map(|row| match row {
            ScoreRow::Wrong(wrong) => wrong,
            ScoreRow::Read { board: name, player, id } => match done.next().expect("one result a row") {
                Ok((board, submitted)) => {
                    replays += usize::from(submitted.replayed);
                    let mut row = write_submitted(&board, &player, &submitted, int64, true);
                    let windows = ranked.as_mut().and_then(Iterator::next);
                    row.windows = windows.map(|windows| write_windows(&board, &windows, int64));
                    serde_json::to_value(row).expect("answers are made of strings and numbers")
                }
                Err(failure) => {
                    let mut echo = json!({"board": name.as_str(), "player": player.as_str()});
                    if let Some(id) = id {
                        echo["idempotency_key"] = json!(id);
                    }
                    with_error(echo, &problem::of_failure(&failure))
                }
            },
        })
        .collect();
    response::replayed(response::ok(&json!({"results": results})), replays == rows)
}

/// The names of a row in its error, as far as they are text.
fn echo(row: &Value) -> Value {
    let named = ["board", "player"].into_iter().filter_map(|name| {
        let text = row.get(name)?.as_str()?;
        let short = text.chars().take(tally_rules::idempotency::KEY_BYTES_MAX).collect::<String>();
        Some((name.to_owned(), Value::String(short)))
    });
    let key = sent_row_key(row).map(|key| ("idempotency_key".to_owned(), Value::String(key)));
    Value::Object(named.chain(key).collect())
}

fn with_error(mut echo: Value, problem: &Problem) -> Value {
    // `id` is the older name.
    if let Some(key) = echo.get("idempotency_key").cloned() {
        echo["id"] = key;
    }
    echo["error"] = problem.row_error();
    echo
}
