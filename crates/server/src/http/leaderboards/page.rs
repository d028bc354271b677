//! `GET /v1/leaderboards/{board}/scores`: pages from both ends, by cursor, offset and range of scores.

use super::{find, read, view, wants_players, write_entries};
use crate::http::call::Call;
use crate::http::keys::invalid_cursor;
use crate::http::response::{self, Response};
use tally_rules::score::{self, ScoreInput};
use tally_service::boards::Board;
use tally_service::{Edge, PageQuery, PageStart};
use tally_wire::Problem;
use tally_wire::api::scores::{PageJson, Style};
use tally_wire::cursor::ScoreCursor;

pub(in crate::http) async fn page(mut call: Call) -> Result<Response, Problem> {
    let limit = call.query.limit();
    let cursor = call.query.text("cursor");
    let offset = call.query.number("offset", 0, u64::MAX);
    let (min, max) = (call.query.score("min"), call.query.score("max"));
    let period = call.query.text("period");
    let players = wants_players(&mut call.query);
    let edge = match call.query.text("order").as_deref() {
        None | Some("best") => Edge::Best,
        Some("worst") => Edge::Worst,
        Some(_) => {
            call.query.wrong("order", "must be `best` or `worst`");
            Edge::Best
        }
    };
    if cursor.is_some() && offset.is_some() {
        call.query.wrong("offset", "must not be given together with `cursor`");
    }
    call.finish_query()?;
    let (tally, int64) = (call.tally()?, call.int64()?);
    let board = find(&tally, &call.board()?).await?;
    let view = view(&tally, &board, period.as_deref())?;
    let list = list_digest(&board, &view.name, edge);
    let start = match (cursor, offset) {
        (Some(text), _) => {
            let cursor = ScoreCursor::decode(&text, list).ok_or_else(invalid_cursor)?;
            PageStart::After(cursor.record, cursor.player)
        }
        (None, Some(offset)) => PageStart::Offset(offset),
        (None, None) => PageStart::Edge,
    };
    let (min, max) = (bound(&board, "min", min)?, bound(&board, "max", max)?);
    let query = PageQuery { edge, start, limit, min, max };
    let page = read(&tally, &view, move |ranking| ranking.page(&query)).await?;
    let style = Style { definition: &board.definition, int64 };
    let last = page.entries.last().filter(|_| page.more);
    let next_cursor =
        last.map(|place| ScoreCursor { list, record: place.record, player: place.player.clone() }.encode());
    let responses = &call.readiness.responses;
    let (entries, _share) = write_entries(&tally, responses, &style, &page.entries, players).await?;
    Ok(response::ok(&PageJson {
        board: board.id.as_str(),
        period: &view.name,
        total: page.total,
        entries,
        next_cursor,
    }))
}

/// The digest of the list that a cursor is from: board, window and direction (FNV-1a; a forged cursor gains nothing).
fn list_digest(board: &Board, part: &str, edge: Edge) -> u64 {
    let bytes =
        board.no.0.to_le_bytes().into_iter().chain([u8::from(edge == Edge::Worst)]).chain(part.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn bound(board: &Board, name: &'static str, given: Option<ScoreInput>) -> Result<Option<i64>, Problem> {
    let ordered = |given| score::ordered(board.definition.score, given);
    given.map(ordered).transpose().map_err(|why| crate::http::call::bad_parameter(name, why))
}
