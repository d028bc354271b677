//! Deciding a start: members, captured fees and leaderboards; or the cancellation of a contest that lacks members.

use super::{ContestDecision, outdated};
use crate::contests::actions::{ActionResult, ContestRequest};
use crate::ledger::state::BatchState;
use std::sync::Arc;
use tally_rules::PlayerId;
use tally_rules::contest::record::{ApplicationLocation, ContestTask, FAILED_KEPT, StartReport};
use tally_rules::contest::start::{Facts, invalid_reason, select_members};
use tally_rules::contest::{
    ActorKind, Application, ContestId, ContestPlayer, ContestRecord, ContestTrigger, OnInvalid, division,
    state,
};
use tally_rules::ledger::hold::Ending;
use tally_rules::ledger::{Hold, TransferId, Uuid};
use tally_store::{BoardChange, BoardNo, BoardRow};

impl BatchState<'_> {
    pub(super) fn start(
        &mut self,
        request: &ContestRequest,
        mut record: ContestRecord,
        rows: &[(PlayerId, Application)],
        ids: &[Uuid],
    ) -> ContestDecision {
        let row = state::transition(record.state, ContestTrigger::Start, request.by)?;
        if request.observed.as_ref().is_none_or(|observed| {
            (observed.revision, observed.contest.division_size)
                != (record.revision, record.contest.division_size)
        }) {
            return outdated(record);
        }
        let (fee, needs) = (record.contest.entry_fee, record.contest.needs_members());
        let checked = rows.iter().map(|(player, application)| {
            let hold: Option<Hold> = application.hold.and_then(|hold| self.book.hold(&hold));
            let open = |member| self.must_be_open(member).is_ok();
            let member_is_open = needs && application.member.is_some_and(open);
            let is_staff = record.contest.is_staff(player);
            let facts =
                Facts { application: Some(application), member_is_open, is_staff, hold: hold.as_ref() };
            (player.clone(), *application, invalid_reason(facts, fee.is_some(), needs, self.time.now))
        });
        // A start by the clock does not fail for one bad row.
        let on_invalid = match request.by {
            ActorKind::Clock => OnInvalid::Skip,
            _ => record.contest.on_invalid,
        };
        let (good, failed) = select_members(checked.collect::<Vec<_>>(), on_invalid)?;
        let members = u32::try_from(good.len()).unwrap_or(u32::MAX);
        // Staff that starts it by hand has decided.
        if request.by == ActorKind::Clock && record.contest.lacks_members(members) {
            return self.cancel(request, record);
        }
        let reference: Arc<str> = request.id.board(None).as_str().into();
        for ((place, (player, application)), id) in (0..).zip(good).zip(ids) {
            if let Some(hold) = application.hold {
                let whole = Ending::Capture { amount: None, to: record.pool_account() };
                self.book.end_for(hold, whole, (TransferId(*id), Some(&reference)), self.time)?;
            }
            let division = division::of(place, record.contest.division_size);
            let enrolled = ContestPlayer { place, division, member: application.member };
            self.added.members.push((Self::entrant(&record, &player), enrolled));
        }
        let boards = self.make_boards(&request.id, &record, members);
        let at = self.at(request, &record);
        record.work = match record.kept {
            ApplicationLocation::Store => self.clear_at_once(&record, rows),
            ApplicationLocation::Redis(_) | ApplicationLocation::Lost => ContestTask::None,
        };
        record.applications.clear();
        record.members = members;
        record.report = Some(StartReport {
            enrolled: members,
            failed: u32::try_from(failed.len()).unwrap_or(u32::MAX),
            first_failed: failed.iter().take(FAILED_KEPT).cloned().collect(),
        });
        record.enter(row.to, at, self.time.now);
        self.keep(request, record, ActionResult::Started(failed, boards))
    }

    /// The leaderboard, or that of each division.
    fn make_boards(&mut self, id: &ContestId, record: &ContestRecord, members: u32) -> Vec<BoardRow> {
        let divisions: Vec<Option<u32>> = match record.contest.division_size {
            None => vec![None],
            Some(size) => division::sizes(members, size).map(|(n, _)| Some(n)).collect(),
        };
        divisions.into_iter().map(|division| self.make_board(id, record, division)).collect()
    }

    /// The leaderboard of one division, or of all.
    pub(super) fn make_board(
        &mut self,
        id: &ContestId,
        record: &ContestRecord,
        division: Option<u32>,
    ) -> BoardRow {
        let no = self.added.next_board;
        self.added.next_board = BoardNo(no.0 + 1);
        let definition = record.contest.leaderboard.clone().with_prizes_from(self.time.now);
        let row = BoardRow { no, id: id.board(division), definition, created_at: self.time.now };
        self.added.boards.push(BoardChange::Create(row.clone()));
        row
    }
}
