//! Taking the player of a closed member from the staff of contests that are not over, and of series. The closing released the
//! player's name, and a member that gets it would run them.
//!
//! A closing that is repeated does what a crash has left of it. Blocks. Not here: entries of the player (`entries`).

use super::execute::{ContestActor, find};
use super::pages::{each_of_contests, each_of_series};
use super::{change, series};
use crate::failure::Failure;
use crate::tally::Tally;
use tally_rules::contest::definition::ContestSpec;
use tally_rules::contest::series::SeriesSpec;
use tally_rules::contest::{Contest, ContestState};
use tally_rules::ledger::member::Handle;
use tally_rules::{PlayerId, Rejection};

/// Does it, unless another member has the player's name by now.
pub(crate) fn leave(tally: &Tally, player: &PlayerId) -> Result<(), Failure> {
    if tally.store.ledger().member_of(&Handle::Player(player.clone()))?.is_some() {
        return Ok(());
    }
    each_of_series(tally, |page| {
        for (id, record) in page.iter().filter(|(_, record)| record.series.template.is_staff(player)) {
            let template = without(&record.series.template, player);
            series::patch(
                tally,
                id,
                &ContestActor::ADMIN,
                &SeriesSpec { template, ..SeriesSpec::default() },
                None,
            )?;
        }
        Ok(())
    })?;
    each_of_contests(
        tally,
        &[ContestState::Draft, ContestState::Open, ContestState::Running, ContestState::Finished],
        |page| {
            for (id, _) in page.iter().filter(|(_, record)| record.contest.is_staff(player)) {
                let spec = without(&find(tally, id)?.contest, player);
                match change::patch(tally, id, &ContestActor::ADMIN, &spec, None) {
                    // It is over meanwhile.
                    Ok(_) | Err(Failure::Rejected(Rejection::ContestState(_))) => {}
                    Err(failure) => return Err(failure),
                }
            }
            Ok(())
        },
    )
}

fn without(contest: &Contest, player: &PlayerId) -> ContestSpec {
    let staff = contest.staff.iter().filter(|one| *one != player).cloned().collect();
    ContestSpec { staff: Some(staff), ..ContestSpec::default() }
}
