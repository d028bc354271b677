//! `POST /v1/leaderboards/{board}/among`: the ranks of some players, such as friends, among themselves.

use super::{expand, find, read, view, wants_players};
use crate::http::call::Call;
use crate::http::response::{self, Response};
use crate::limits::AMONG_MAX;
use serde_json::Value;
use tally_rules::PlayerId;
use tally_wire::api::scores::{AmongEntry, AmongJson, Style};
use tally_wire::{FieldError, Fields, Problem, time};

pub(in crate::http) async fn among(mut call: Call) -> Result<Response, Problem> {
    let period = call.query.text("period");
    let wanted = wants_players(&mut call.query);
    call.finish_query()?;
    let (tally, int64) = (call.tally()?, call.int64()?);
    let board = find(&tally, &call.board()?).await?;
    let view = view(&tally, &board, period.as_deref())?;
    let players = read_players(call.json().await?)?;
    let among = read(&tally, &view, move |ranking| ranking.among(&players)).await?;
    let style = Style { definition: &board.definition, int64 };
    let ids = among.entries.iter().map(|(_, place)| place.player.clone()).collect();
    let (expanded, _share) = expand(&tally, &call.readiness.responses, ids, wanted).await?;
    let mut expanded = expanded.into_iter();
    let entry = |(rank, place): &(u64, tally_service::RankedEntry)| AmongEntry {
        rank: *rank,
        overall_rank: place.rank,
        player: place.player.as_str().to_owned(),
        scores: style.scores(&place.record),
        at: time::format(place.record.at),
        expanded: expanded.next().flatten(),
    };
    Ok(response::ok(&AmongJson {
        board: board.id.as_str(),
        period: &view.name,
        total: among.total,
        entries: among.entries.iter().map(entry).collect(),
        missing: among.missing.iter().map(PlayerId::as_str).collect(),
    }))
}

fn read_players(body: Value) -> Result<Vec<PlayerId>, Problem> {
    let mut fields = Fields::new("", body).map_err(Problem::fields)?;
    let list = fields.required("players", |value| {
        let list = value.as_array().filter(|list| (1..=AMONG_MAX).contains(&list.len()));
        list.cloned().ok_or_else(|| format!("must be an array of 1 to {AMONG_MAX} player ids"))
    });
    fields.finish().map_err(Problem::fields)?;
    let (mut players, mut errors) = (Vec::new(), Vec::new());
    for (at, one) in list.expect("no field is wrong").iter().enumerate() {
        match one.as_str().ok_or("must be a string").and_then(|id| PlayerId::new(id).map_err(|bad| bad.0)) {
            Ok(player) => players.push(player),
            Err(why) => errors.push(FieldError::invalid(format!("/players/{at}"), why)),
        }
    }
    if errors.is_empty() { Ok(players) } else { Err(Problem::fields(errors)) }
}
