//! Removing a player from the open windows of a leaderboard.

use super::batch::{
    Access, Effect, Effects, Piece, Players, Replying, RowTarget, ScoreBatchState, ScoreRequestKind, Slicing,
    TargetRow, Targets, score_key,
};
use super::correct::shown;
use crate::audit;
use crate::boards::Board;
use crate::failure::Failure;
use crate::tally::Tally;
use std::sync::Arc;
use tally_rules::audit::{AuditAction, Audited};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::outcome::Outcome;
use tally_rules::{BoardId, Origin, PlayerId, Rejection};
use tally_store::Window;

/// About as many bytes of records are in the row of a removal: those of all time and of 16 periods. Grace keeps more periods open.
const RECORDS_BYTES_MAX: usize = 1_800;

#[derive(Clone, Debug)]
pub(crate) struct Remove {
    pub(crate) board: Arc<Board>,
    pub(crate) player: PlayerId,
    /// The act, if an administrator removes the player.
    pub(crate) act: Option<Audited>,
    pub(crate) idempotency: Option<IdempotencyKey>,
}

impl Remove {
    /// The records that go, with their windows, so that each can be set again: `arcade: all_time 9, weekly:2026-11-23 7`.
    fn detail(&self, state: &ScoreBatchState, windows: &[Window], targets: &Targets) -> String {
        let record = |window: &Window| {
            let record = *state.scores.get(&score_key(self.board.no, *window, &self.player))?;
            Some(format!("{} {}", targets.name(&self.board, *window), shown(&self.board, record)))
        };
        let records: Vec<String> = windows.iter().filter_map(record).collect();
        format!("{}: {}", self.board.id.as_str(), listed(&records))
    }
}

/// The first records that fit, and how many others there are.
fn listed(records: &[String]) -> String {
    let mut bytes = 0;
    let fits = |record: &&String| {
        bytes += record.len() + 2;
        bytes <= RECORDS_BYTES_MAX
    };
    let first: Vec<&str> = records.iter().take_while(fits).map(String::as_str).collect();
    match records.len() - first.len() {
        0 => first.join(", "),
        others => format!("{}, and {others} more", first.join(", ")),
    }
}

/// The reply to a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// Whether this repeats an earlier reply.
    pub replayed: bool,
}

impl ScoreRequestKind for Remove {
    type Decision = Removed;
    type Reply = Removed;

    fn each_row<'a>(&'a self, each: &mut impl FnMut(TargetRow<'a>)) {
        let players = Players::one(&self.player);
        each(TargetRow { board: Some(&self.board), players, access: Access::Remove });
    }

    fn player(&self) -> Option<&PlayerId> {
        Some(&self.player)
    }

    fn idempotency(&self) -> Option<&IdempotencyKey> {
        self.idempotency.as_ref()
    }

    fn decide(
        &self,
        state: &mut ScoreBatchState,
        rows: &[RowTarget],
        targets: &Targets,
    ) -> Result<Removed, Rejection> {
        if state.replay(self.idempotency.as_ref())?.is_some() {
            return Ok(Removed { replayed: true });
        }
        state.check_live(self.board.no)?;
        rows[0].at.clone()?;
        let detail = self.act.as_ref().map(|_| self.detail(state, &rows[0].windows, targets));
        let mut moves = Vec::new();
        state.remove(self.board.no, &self.player, &rows[0].windows, &mut moves);
        if moves.is_empty() {
            return Err(Rejection::PlayerNotRanked);
        }
        if let (Some(act), Some(detail)) = (&self.act, detail) {
            state.audit.push(act.row(AuditAction::PlayerRemoved, self.player.as_str(), Some(detail.into())));
        }
        state.remember(self.idempotency.as_ref(), Outcome::Removed);
        Ok(Removed { replayed: false })
    }

    fn publish<'a>(&'a self, decision: &'a Removed, rows: &'a [RowTarget], effects: &mut Effects<'a>) {
        if !decision.replayed {
            // Only from open windows: a period that is due keeps the player.
            effects.add(&self.board, Effect::Leave(&self.player, &rows[0].windows));
        }
    }

    fn reply(&self, decision: Removed, _with: Replying<'_>) -> Result<Removed, Failure> {
        Ok(decision)
    }

    fn cut(&self, slicing: &Slicing<'_>, rows: &[RowTarget]) -> Option<Piece<Self>> {
        slicing.of_player(&self.player, self, rows)
    }
}

/// Removes a player. It goes through the score lanes, so it is ordered with the player's submits. It is an act of the audit log
/// if an administrator does it; games remove players as often as they submit scores.
pub async fn remove(
    tally: &Tally,
    board: &BoardId,
    player: PlayerId,
    origin: &Origin,
    idempotency: Option<IdempotencyKey>,
) -> Result<Removed, Failure> {
    tally.of_present(board, || remove_once(tally, board, player.clone(), origin, idempotency.clone())).await
}

async fn remove_once(
    tally: &Tally,
    board: &BoardId,
    player: PlayerId,
    origin: &Origin,
    idempotency: Option<IdempotencyKey>,
) -> Result<Removed, Failure> {
    let act = audit::of_admin(tally, origin)?;
    let board = match tally.find(board).await {
        Ok(board) => board,
        Err(rejection) => return replay_or_reject(tally, idempotency.as_ref(), rejection).await,
    };
    let running = idempotency.as_ref().map(|one| tally.running.begin(&one.key)).transpose()?;
    tally.lane.ask(Remove { board, player, act, idempotency }, running).await
}

/// The first reply of a change whose leaderboard is deleted, if it was done before.
pub(crate) async fn replay_or_reject(
    tally: &Tally,
    idempotency: Option<&IdempotencyKey>,
    rejection: Rejection,
) -> Result<Removed, Failure> {
    let stored = match idempotency {
        Some(idempotency) => tally.stored(idempotency).await?,
        None => None,
    };
    stored.map(|_| Removed { replayed: true }).ok_or(Failure::Rejected(rejection))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_records_of_sixteen_periods_and_not_of_any_number() {
        // The longest name of a period, and the longest score with its subscore.
        let name = format!("{}:2026-11-23T10:00", "p".repeat(32));
        let longest = format!("{name} {:?}/{}", -f64::MIN_POSITIVE, i64::MIN);
        let records = vec![longest.clone(); 100];
        assert_eq!(listed(&records[..17]), vec![&*longest; 17].join(", "));
        let many = listed(&records);
        assert!(many.len() < RECORDS_BYTES_MAX + 20, "{}", many.len());
        assert!(many.starts_with(&longest) && many.ends_with(" more"), "{many}");
        assert_eq!(
            listed(&["all_time 9".into(), "weekly:2026-11-23 7".into()]),
            "all_time 9, weekly:2026-11-23 7"
        );
    }
}
