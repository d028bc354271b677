//! What each request hears of what was decided about it.
//!
//! Not here: ranks, which publishing tells; answers that repeat those of an earlier batch.

use super::aim::{Aims, RowAim};
use super::command::{Done, Imported, Previous, Removed, Request, Submitted};
use super::decide::Decision;
use super::redefine::Change;
use tally_ranking::Published;
use tally_rules::outcome::Outcome;
use tally_rules::{Record, Rejection};

pub(super) fn before(record: Option<Record>, rank: Option<u64>) -> Option<Previous> {
    record.map(|record| Previous { record, rank })
}

pub(super) fn answer(
    request: &Request,
    decision: Decision,
    aims: &Aims,
    aim: Option<&RowAim>,
    ranks: Published,
) -> Result<Done, Rejection> {
    match (request, decision) {
        (_, Decision::Refused(rejection)) => Err(rejection),
        (_, Decision::Vanish(gone)) => Ok(Done::Vanished(gone)),
        (_, Decision::Redefine { change, replayed }) => {
            let created = replayed == Some(Outcome::BoardPut { created: true });
            let owes = matches!(change, Change::Owes);
            Ok(Done::Redefined { created, replayed: replayed.is_some(), owes })
        }
        (
            _,
            Decision::Remove { replayed } | Decision::Ban { replayed, .. } | Decision::Erase { replayed },
        ) => Ok(Done::Removed(Removed { replayed })),
        (_, Decision::Import { progress, refused, replayed, .. }) => {
            Ok(Done::Imported(Imported { progress, refused, replayed }))
        }
        (Request::Submit(submit), Decision::Submit { record, previous, changed, parts, .. }) => {
            let part = parts.first().map(|(part, _)| *part);
            let period = part.map_or_else(String::new, |part| aims.name(&submit.board, part));
            let closed_periods = aim.map_or_else(Vec::new, |aim| aim.closed.clone());
            let previous = before(previous, ranks.before);
            let (rank, replayed) = (ranks.after, false);
            let done = Submitted { period, closed_periods, record, rank, changed, previous, replayed };
            Ok(Done::Submitted(done))
        }
        (_, Decision::Commands(_)) => unreachable!("commands are answered step by step"),
        (_, Decision::Undone) => unreachable!("what was not decided hears of a fault"),
        (_, Decision::Submit { .. }) => unreachable!("a submit is decided as one"),
    }
}
