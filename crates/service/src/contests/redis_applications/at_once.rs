//! Applications that are accepted at once: one change applies and accepts, while there is room.
//!
//! The change does not name the revision that it was decided from, because players apply at the same time. Redis compares the
//! number of accepted applications instead. The row in the audit log comes first, as for other decisions.

use super::{ApplicationsInRedis, Limits, Outcome, done, note, row};
use crate::contests::actions::{ActionResult, detail_of};
use crate::contests::application_store::{ApplicationRequest, AttemptResult};
use crate::contests::start::boards_free;
use crate::failure::Failure;
use tally_rules::PlayerId;
use tally_rules::contest::{ActorKind, Status};

impl ApplicationsInRedis<'_> {
    /// Applies and accepts, if there is room; without room the application waits like any other.
    pub(super) fn apply_and_accept(
        &self,
        request: &ApplicationRequest<'_>,
        player: &PlayerId,
        most: u32,
    ) -> Result<Option<Option<super::ContestDone>>, Failure> {
        let observed = self.read(std::slice::from_ref(player))?;
        let (mut counts, contest) = (observed.counts, &request.record.contest);
        let present = observed.rows.first().and_then(Option::as_ref).map(|kept| kept.application);
        counts.may_apply(present.as_ref(), false, most)?;
        let members = counts.accepted.saturating_add(1);
        let room = contest.room(boards_free(request.tally, contest, members)?);
        let application = counts.apply(request.tally.now(), None, None);
        if counts.accept(Some(&application), false, room).is_err() {
            return Ok(None);
        }
        self.accept_at_once(request, player, (most, room.capacity.min(room.boards))).map(Some)
    }

    fn accept_at_once(
        &self,
        request: &ApplicationRequest<'_>,
        player: &PlayerId,
        (most, room): (u32, u32),
    ) -> AttemptResult {
        let detail = detail_of(std::iter::once(player), &[Ok(Status::Accepted)]);
        // The definition has decided, whichever player applies.
        let by = ActorKind::Admin;
        if !detail.map_or(Ok(true), |detail| note(request, by, true, detail))? {
            return Ok(None);
        }
        let limits = Limits { most: Some(most.saturating_sub(1)), accepted: Some(room.saturating_sub(1)) };
        let rows = vec![row(player, None, Some(Status::Accepted), request.tally.now())];
        match self.change(request, None, limits, rows)? {
            Outcome::Changed(Some(application)) => done(request, ActionResult::Applied(application)),
            Outcome::Before(before) => Ok(Some(before)),
            Outcome::Frozen => self.wait(request),
            Outcome::Changed(None) | Outcome::Conflict => Ok(None),
        }
    }
}
