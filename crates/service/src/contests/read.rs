//! Reading contests: one, a list by state, who applied, who takes part, who is paid. Each blocks.

use super::act::{Actor, find};
use crate::failure::Failure;
use crate::tally::Tally;
use tally_rules::contest::{Application, ContestId, Enrolled, Event, Payout, Record, State, Status, state};
use tally_rules::{PlayerId, Refusal};

/// The contest of that name.
pub fn get(tally: &Tally, id: &ContestId) -> Result<Record, Failure> {
    find(tally, id)
}

/// At most `limit` in order of names, from the first one after `after`: of one state, or of all.
pub fn list(
    tally: &Tally,
    state: Option<State>,
    after: Option<&ContestId>,
    limit: usize,
) -> Result<Vec<(ContestId, Record)>, Failure> {
    Ok(tally.store.ledger().contests(state, after, limit)?)
}

/// At most `limit` applications in one status by their places, from the first one above `above`. Only for staff. None are
/// left after the start.
pub fn applications(
    tally: &Tally,
    id: &ContestId,
    actor: &Actor,
    status: Status,
    (above, limit): (u64, usize),
) -> Result<Vec<(PlayerId, Application)>, Failure> {
    let record = find(tally, id)?;
    let by = actor.by(&record, Event::Decide, None)?;
    match state::judge(record.state, Event::Decide, by) {
        Ok(_) => Ok(tally.store.ledger().applications(record.no, status, above, limit)?),
        Err(Refusal::ContestState(_)) => Ok(Vec::new()),
        Err(refusal) => Err(refusal.into()),
    }
}

/// At most `limit` members in order of players, from the first one after `after`.
pub fn members(
    tally: &Tally,
    id: &ContestId,
    after: Option<&PlayerId>,
    limit: usize,
) -> Result<Vec<(PlayerId, Enrolled)>, Failure> {
    let record = find(tally, id)?;
    if record.report.is_none() {
        return Err(Refusal::ContestState(record.state).into());
    }
    Ok(tally.store.ledger().contest_members(record.no, after, limit)?)
}

/// At most `limit` prizes, best rank first, from that number on.
pub fn prizes(tally: &Tally, id: &ContestId, from: u32, limit: usize) -> Result<Vec<Payout>, Failure> {
    let record = find(tally, id)?;
    if record.state != State::Settled {
        return Err(Refusal::ContestState(record.state).into());
    }
    Ok(tally.store.ledger().payouts(record.no, from, limit)?)
}
