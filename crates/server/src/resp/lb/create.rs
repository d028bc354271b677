//! `LB.CREATE`: creates a board as `PUT` does.

use crate::resp::args::Args;
use crate::resp::error::{self, ErrorReply};
use crate::resp::session::Session;
use crate::resp::target::board_id;
use std::sync::Arc;
use tally_rules::definition::{BoardSpec, Order, Ranking, ScoreType, Subscore, Ties, Update};
use tally_service::{blocking, boards};
use tally_wire::resp::Encoder;

/// `LB.CREATE board [ORDER …] [UPDATE …] [RANKING …] [TIES …] [SCORE …] [SUBSCORE …]`
pub(in crate::resp) async fn create(
    session: &Session,
    args: Args<'_>,
    to: &mut Encoder<'_>,
) -> error::Result {
    let tally = session.tally()?;
    let id = board_id(args.get(1))?;
    let spec = read(args)?;
    let owner = Arc::clone(tally);
    let actor = session.require_caller()?.actor;
    let put = blocking(move || boards::put(&owner, &id, &spec, &actor.into(), None)).await;
    put.map_err(|failure| error::of_failure(&failure))?;
    to.simple("OK");
    Ok(())
}

fn read(args: Args<'_>) -> error::Result<BoardSpec> {
    let mut spec = BoardSpec::default();
    for at in (2..args.len()).step_by(2) {
        if at + 1 >= args.len() {
            return Err(error::SYNTAX.into());
        }
        let value = String::from_utf8_lossy(args.get(at + 1)).to_ascii_lowercase();
        let error = |choices: String| ErrorReply::from(format!("ERR `{value}` must be one of: {choices}"));
        if args.is(at, "order") {
            spec.order = Some(Order::parse(&value).ok_or_else(|| error(Order::choices()))?);
        } else if args.is(at, "update") {
            spec.update = Some(Update::parse(&value).ok_or_else(|| error(Update::choices()))?);
        } else if args.is(at, "ranking") {
            spec.ranking = Some(Ranking::parse(&value).ok_or_else(|| error(Ranking::choices()))?);
        } else if args.is(at, "ties") {
            spec.ties = Some(Ties::parse(&value).ok_or_else(|| error(Ties::choices()))?);
        } else if args.is(at, "score") {
            spec.score = Some(ScoreType::parse(&value).ok_or_else(|| error(ScoreType::choices()))?);
        } else if args.is(at, "subscore") {
            spec.subscore = Some(Subscore::parse(&value).ok_or_else(|| error(Subscore::choices()))?);
        } else {
            return Err(error::SYNTAX.into());
        }
    }
    Ok(spec)
}
