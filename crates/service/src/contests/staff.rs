//! Taking the player of a closed member from the staff of contests that are not over, and of series. The closing released the
//! player, and a member that gets it would run them.
//!
//! A closing that is repeated does what a crash has left of it. Blocks. Not here: entries of the player (`entries`).

use super::act::{Actor, find};
use super::{change, series};
use crate::failure::Failure;
use crate::tally::Tally;
use tally_rules::contest::definition::ContestSpec;
use tally_rules::contest::series::SeriesSpec;
use tally_rules::contest::{Contest, ContestId, State};
use tally_rules::ledger::member::Handle;
use tally_rules::{PlayerId, Rejection};

/// Contests of one read.
const PAGE: usize = 500;

/// Does it, unless another member has the player by now.
pub(crate) fn leave(tally: &Tally, player: &PlayerId) -> Result<(), Failure> {
    if tally.store.ledger().member_of(&Handle::Player(player.clone()))?.is_some() {
        return Ok(());
    }
    of_series(tally, player)?;
    // A contest that comes into another state meanwhile is met there.
    for state in [State::Draft, State::Open, State::Running, State::Finished] {
        let mut after = None::<ContestId>;
        loop {
            let page = tally.store.ledger().contests(Some(state), after.as_ref(), PAGE)?;
            for (id, _) in page.iter().filter(|(_, record)| record.contest.is_staff(player)) {
                let spec = without(&find(tally, id)?.contest, player);
                match change::patch(tally, id, &Actor::Admin, &spec, None) {
                    // It is over meanwhile.
                    Ok(_) | Err(Failure::Refused(Rejection::ContestState(_))) => {}
                    Err(failure) => return Err(failure),
                }
            }
            if page.len() < PAGE {
                break;
            }
            after = page.into_iter().next_back().map(|(id, _)| id);
        }
    }
    Ok(())
}

fn of_series(tally: &Tally, player: &PlayerId) -> Result<(), Failure> {
    let mut after = None;
    loop {
        let page = series::list(tally, after.as_ref(), PAGE)?.rows;
        for (id, record) in page.iter().filter(|(_, record)| record.series.template.is_staff(player)) {
            let template = without(&record.series.template, player);
            series::patch(tally, id, &Actor::Admin, &SeriesSpec { template, ..SeriesSpec::default() }, None)?;
        }
        if page.len() < PAGE {
            return Ok(());
        }
        after = page.into_iter().next_back().map(|(id, _)| id);
    }
}

fn without(contest: &Contest, player: &PlayerId) -> ContestSpec {
    let staff = contest.staff.iter().filter(|one| *one != player).cloned().collect();
    ContestSpec { staff: Some(staff), ..ContestSpec::default() }
}
