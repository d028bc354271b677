//! The trait of a kind of request, and the list of all kinds.
//!
//! A request is a list of rows. A row names the players of a leaderboard, and what it does with them. Windows, records to read,
//! shards and the rules of contests follow from that. A kind adds its decision, its publication and its reply. The enums have no
//! box, so a request costs no allocation and each call is a `match`.

use super::publish::{Effects, Versions};
use super::shards::Shards;
use super::slices::{Piece, Slicing};
use super::state::ScoreBatchState;
use super::targets::{RowTarget, Targets};
use crate::boards::Board;
use crate::failure::{Failure, Fault};
use crate::periods::TargetWindow;
use crate::scores::ban::Ban;
use crate::scores::correct::Correct;
use crate::scores::delete_unused::DeleteUnused;
use crate::scores::erase::Erase;
use crate::scores::import::ImportChunk;
use crate::scores::pipeline::Pipeline;
use crate::scores::redefine::Redefine;
use crate::scores::remove::Remove;
use crate::scores::shared::Shared;
use crate::scores::submit::Submit;
use std::fmt::Debug;
use std::sync::Arc;
use tally_ranking::{Published, RankingError};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::{Micros, PlayerId, Rejection};
use tally_store::{ReadSet, WindowKey};

/// One row of a request.
#[derive(Clone, Copy)]
pub(crate) struct TargetRow<'a> {
    /// None for a row that changes nothing.
    pub(crate) board: Option<&'a Arc<Board>>,
    /// The players that it names. Players that are found by rank are not named.
    pub(crate) players: Players<'a>,
    pub(crate) access: Access,
}

/// What a row does with its players.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// A new score counts for all time and the open periods. The instant is that of the caller, else the next one.
    Score(Option<Micros>),
    /// The same for a line of a file. With an instant it counts for closed periods too.
    Line(Option<Micros>),
    /// Players leave the open windows.
    Remove,
    /// Players that are found by rank leave the open windows.
    Take,
    /// A player is banned from all windows, or restored.
    Ban,
    /// A player's record in one window is set.
    Correct(TargetWindow),
    /// Nothing changes.
    Read,
}

#[derive(Clone, Copy)]
pub(crate) enum Players<'a> {
    Named(&'a [PlayerId]),
    Scored(&'a [(PlayerId, i64)]),
}

impl<'a> Players<'a> {
    pub(crate) const NONE: Self = Players::Named(&[]);

    pub(crate) fn one(player: &'a PlayerId) -> Self {
        Players::Named(std::slice::from_ref(player))
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = &'a PlayerId> {
        let (named, scored): (&'a [PlayerId], &'a [(PlayerId, i64)]) = match self {
            Players::Named(named) => (named, &[]),
            Players::Scored(scored) => (&[], scored),
        };
        named.iter().chain(scored.iter().map(|(player, _)| player))
    }
}

/// What a reply may need beside its decision.
#[derive(Clone, Copy)]
pub(crate) struct Replying<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) targets: &'a Targets,
    pub(crate) rows: &'a [RowTarget],
    /// The ranks around the change that the kind has published as ranked.
    pub(crate) ranks: Published,
}

/// A kind of request.
pub(crate) trait ScoreRequestKind: Sized {
    /// What the transaction decides, unless a rule rejects the request.
    type Decision: Debug;
    /// What the caller gets.
    type Reply;

    /// Its rows, always in the same order.
    fn each_row<'a>(&'a self, _each: &mut impl FnMut(TargetRow<'a>)) {}

    /// Every leaderboard of the request; duplicates are possible.
    fn each_board<'a>(&'a self, each: &mut impl FnMut(&'a Arc<Board>)) {
        self.each_row(&mut |row| row.board.into_iter().for_each(&mut *each));
    }

    /// The only player whose records it reads and changes. The request goes through that player's lane then.
    fn player(&self) -> Option<&PlayerId> {
        None
    }

    fn idempotency(&self) -> Option<&IdempotencyKey> {
        None
    }

    /// How many rows it weighs in a batch.
    fn weight(&self) -> usize {
        1
    }

    /// Whether it changes what other lanes read: definitions, windows or bans. Then its batch is exclusive: on the shard of its player,
    /// or on all.
    fn changes_boards(&self) -> bool {
        false
    }

    /// Whether it shares a batch with nothing else.
    fn is_alone(&self) -> bool {
        false
    }

    /// Whether it may be acknowledged before it is durable.
    fn is_relaxed(&self) -> bool {
        false
    }

    /// The shards of the request. Without any it goes to the first one.
    fn shards(&self, shards: &mut Shards<'_>) {
        self.each_row(&mut |row| shards.row(row));
    }

    /// Windows that are stored because of it although it has no row for them.
    fn begins(&self, _now: Micros) -> Vec<WindowKey> {
        Vec::new()
    }

    /// Adds reads beside the leaderboards and records of its rows, and its stored outcome.
    fn read(&self, _targets: &Targets, _plan: &mut ReadSet) {}

    /// Applies it to the working set. It must depend on nothing else, because it may run twice.
    fn decide(
        &self,
        state: &mut ScoreBatchState,
        rows: &[RowTarget],
        targets: &Targets,
    ) -> Result<Self::Decision, Rejection>;

    /// Adds its changes of the rankings, and makes its other changes in memory.
    fn publish<'a>(
        &'a self,
        _decision: &'a Self::Decision,
        _rows: &'a [RowTarget],
        _effects: &mut Effects<'a>,
    ) {
    }

    /// Whether its rows are published one by one, because a reply depends on the rankings just then.
    fn is_serial(&self) -> bool {
        false
    }

    /// Publishes it on its own.
    fn publish_serially(
        &mut self,
        _decision: &mut Self::Decision,
        _targets: &Targets,
        _versions: &Versions<'_>,
    ) {
    }

    /// How many scores it has submitted: not those of files, corrections and retries.
    fn scores(&self, _decision: &Self::Decision) -> usize {
        0
    }

    fn reply(&self, decision: Self::Decision, with: Replying<'_>) -> Result<Self::Reply, Failure>;

    /// What one shard of several has of it.
    fn cut(&self, _slicing: &Slicing<'_>, _rows: &[RowTarget]) -> Option<Piece<Self>> {
        None
    }

    /// Its decision before any shard has decided its slice, if slices have separate replies.
    fn pending(
        &self,
        _rows: &[RowTarget],
        _targets: &Targets,
    ) -> Result<Option<Self::Decision>, RankingError> {
        Ok(None)
    }

    /// Adds the decision of one more slice, or the fault of its shard.
    fn join(_known: Decision, new: Decision, _steps: &[usize]) -> Decision {
        new
    }
}

/// A kind in the list, so that its caller gets its own type of reply.
pub(crate) trait Listed: ScoreRequestKind + Into<ScoreRequest> {
    /// The reply, or the fault of its shard.
    fn typed(reply: ScoreReply) -> Result<Self::Reply, Fault>;
}

macro_rules! kinds {
    ($d:tt $($kind:ident)*) => {
        /// One entry of the lane.
        #[derive(Debug)]
        pub(crate) enum ScoreRequest { $($kind($kind)),* }

        /// The decision on one request; its kind is that of the request.
        #[derive(Debug)]
        pub(crate) enum Decision {
            $($kind(<$kind as ScoreRequestKind>::Decision),)*
            /// A rule does not allow it.
            Rejected(Rejection),
            /// Its shard has not done it.
            Failed(Fault),
            /// Its shard has not decided it yet.
            Pending,
        }

        pub(crate) enum ScoreReply {
            $($kind(<$kind as ScoreRequestKind>::Reply),)*
            /// Its shard has not done it, or not all of it.
            Failed(Fault),
        }

        $(
            impl From<$kind> for ScoreRequest {
                fn from(request: $kind) -> Self {
                    Self::$kind(request)
                }
            }

            impl Listed for $kind {
                fn typed(reply: ScoreReply) -> Result<Self::Reply, Fault> {
                    match reply {
                        ScoreReply::$kind(reply) => Ok(reply),
                        ScoreReply::Failed(fault) => Err(fault),
                        _ => unreachable!("a reply is of the kind of its request"),
                    }
                }
            }
        )*

        /// Calls a method of [`ScoreRequestKind`] on whatever kind a request is.
        macro_rules! on_kind {
            ($d request:expr, $d one:ident => $d call:expr) => {{
                use $crate::scores::batch::ScoreRequestKind as _;
                match $d request { $($crate::scores::batch::ScoreRequest::$kind($d one) => $d call),* }
            }};
        }

        /// Methods of [`ScoreRequestKind`] with decisions, replies and slices.
        impl ScoreRequest {
            pub(crate) fn decide(&self, state: &mut ScoreBatchState, rows: &[RowTarget], targets: &Targets) -> Decision {
                match self { $(Self::$kind(one) => {
                    one.decide(state, rows, targets).map_or_else(Decision::Rejected, Decision::$kind)
                }),* }
            }

            /// A request that was rejected or not done publishes nothing.
            pub(crate) fn publish<'a>(
                &'a self,
                decision: &'a Decision,
                rows: &'a [RowTarget],
                effects: &mut Effects<'a>,
            ) {
                match (self, decision) {
                    $((Self::$kind(one), Decision::$kind(decision)) => one.publish(decision, rows, effects),)*
                    (_, _) => {}
                }
            }

            pub(crate) fn publish_serially(
                &mut self,
                decision: &mut Decision,
                targets: &Targets,
                versions: &Versions<'_>,
            ) {
                match (self, decision) {
                    $((Self::$kind(one), Decision::$kind(decision)) => {
                        one.publish_serially(decision, targets, versions);
                    })*
                    (_, _) => {}
                }
            }

            pub(crate) fn scores(&self, decision: &Decision) -> usize {
                match (self, decision) {
                    $((Self::$kind(one), Decision::$kind(decision)) => one.scores(decision),)*
                    (_, _) => 0,
                }
            }

            pub(crate) fn reply(&self, decision: Decision, with: Replying<'_>) -> Result<ScoreReply, Rejection> {
                let reply = match (self, decision) {
                    $((Self::$kind(one), Decision::$kind(decision)) => {
                        one.reply(decision, with).map(ScoreReply::$kind)
                    })*
                    (_, Decision::Rejected(rejection)) => Err(Failure::Rejected(rejection)),
                    (_, Decision::Failed(fault)) => Err(Failure::Fault(fault)),
                    (_, _) => unreachable!("a decision is of the kind of its request"),
                };
                match reply {
                    Ok(reply) => Ok(reply),
                    Err(Failure::Fault(fault)) => Ok(ScoreReply::Failed(fault)),
                    Err(Failure::Rejected(rejection)) => Err(rejection),
                }
            }

            pub(crate) fn cut(&self, slicing: &Slicing<'_>, rows: &[RowTarget]) -> Option<Piece<Self>> {
                match self { $(Self::$kind(one) => one.cut(slicing, rows).map(|piece| {
                    let Piece { request, rows, steps } = piece;
                    Piece { request: Self::$kind(request), rows, steps }
                })),* }
            }

            pub(crate) fn pending(
                &self,
                rows: &[RowTarget],
                targets: &Targets,
            ) -> Result<Decision, RankingError> {
                match self { $(Self::$kind(one) => {
                    Ok(one.pending(rows, targets)?.map_or(Decision::Pending, Decision::$kind))
                }),* }
            }

            pub(crate) fn join(&self, known: Decision, new: Decision, steps: &[usize]) -> Decision {
                match self { $(Self::$kind(_) => <$kind as ScoreRequestKind>::join(known, new, steps)),* }
            }
        }
    };
}

// One line for each kind of request.
kinds! { $
    Submit
    Correct
    Remove
    Ban
    Erase
    ImportChunk
    Redefine
    DeleteUnused
    Pipeline
}
pub(crate) use on_kind;
