//! Joining a contest that runs: the player becomes a member at once, and its fee is captured.

use super::{ContestDecision, outdated};
use crate::contests::actions::{ActionResult, ContestRequest};
use crate::ledger::state::BatchState;
use std::sync::Arc;
use tally_rules::contest::{
    Application, ContestPlayer, ContestRecord, ContestTrigger, Status, division, state,
};
use tally_rules::ledger::hold::Ending;
use tally_rules::ledger::{HoldId, MemberId, TransferId};
use tally_rules::{PlayerId, Rejection};

impl BatchState<'_> {
    pub(super) fn join(
        &mut self,
        request: &ContestRequest,
        mut record: ContestRecord,
        (player, member): (&PlayerId, Option<MemberId>),
        (hold, capture): (HoldId, TransferId),
    ) -> ContestDecision {
        state::transition(record.state, ContestTrigger::Apply, request.by)?;
        record.check_may_apply(self.expected)?;
        let (key, place) = (Self::entrant(&record, player), record.members);
        if self.joined.get(&key).is_some() {
            return Err(Rejection::AlreadyApplied(Status::Accepted));
        }
        if record.contest.is_staff(player) {
            return Err(Rejection::StaffCannotApply);
        }
        if place >= record.contest.capacity {
            return Err(Rejection::ContestFull(record.contest.capacity));
        }
        let division = division::of(place, record.contest.division_size);
        // The first one of a division makes its leaderboard.
        let new = record.new_division();
        if self.has_moved(&record, player, member) || (new.is_some() && new != request.new_division()) {
            return outdated(record);
        }
        let hold = self.hold_fee(&record, member, hold)?;
        if let Some(hold) = hold {
            let reference: Arc<str> = request.id.board(None).as_str().into();
            let whole = Ending::Capture { amount: None, to: record.pool_account() };
            self.book.end_for(hold, whole, (capture, Some(&reference)), self.time)?;
        }
        let member = member.filter(|_| record.contest.needs_members());
        self.joined.set(&key, Some(ContestPlayer { place, division, member }));
        record.members += 1;
        let board = new.map(|division| self.make_board(&request.id, &record, Some(division)));
        let (status, now) = (Status::Accepted, self.time.now);
        let application = Application { status, place: record.members.into(), applied_at: now, member, hold };
        self.keep(request, record, ActionResult::Joined(application, board))
    }
}
