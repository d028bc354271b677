//! The forms of replies: how the results of steps become the reply of a command.
//!
//! Not here: the order of replies, see `run.rs`, and their bytes, see `Encoder`.

use super::error;
use super::lb;
use super::target;
use tally_rules::Rejection;
use tally_rules::definition::ScoreType;
use tally_service::scores::steps::StepReply;
use tally_wire::resp::{Encoder, Protocol};

/// The form of the reply to a command.
pub(super) enum Shape {
    /// The number of added members; with `CH` the number of changed ones.
    Added { changed: bool },
    /// The score after an increment, or null.
    Incremented(ScoreType),
    /// A number.
    Count,
    /// Members with scores, as nested pairs if the protocol has them.
    Members { kind: ScoreType, pairs: bool },
    /// The number of boards that had members, for `DEL`.
    Deleted,
    /// For `LB.SUBMIT`.
    Submitted(ScoreType),
    /// For `LB.MSUBMIT`: an error, or the reply of the next step.
    SubmittedMany(Vec<error::Result<ScoreType>>),
    /// Bytes unchanged.
    Read,
}

impl Shape {
    /// Writes the reply of one command.
    pub(super) fn write(&self, mut replies: impl Iterator<Item = StepReply>, to: &mut Encoder<'_>) {
        if let Self::SubmittedMany(rows) = self {
            return lb::submit::write_many(rows, replies, to);
        }
        if matches!(self, Self::Deleted) {
            let replies: Vec<StepReply> = replies.collect();
            if replies.iter().any(|reply| matches!(reply, StepReply::Rejected(_))) {
                return to.error(error::TOO_MANY_IN_MULTI);
            }
            if let Some(StepReply::Failed(fault)) =
                replies.iter().find(|reply| matches!(reply, StepReply::Failed(_)))
            {
                return to.error(error::of_failure(&fault.clone().into()).as_bytes());
            }
            let there = |reply: &&StepReply| matches!(reply, StepReply::Took(list) if !list.is_empty());
            return to.integer(replies.iter().filter(there).count() as i64);
        }
        let Some(reply) = replies.next() else { return to.error("ERR internal error: a step has no reply") };
        match (self, reply) {
            (_, StepReply::Rejected(Rejection::ScoreOverflow(_))) => to.error(match self {
                Self::Incremented(ScoreType::Float64) => error::NAN,
                _ => error::OVERFLOW,
            }),
            (_, StepReply::Rejected(Rejection::TooManyAtOnce(_))) => to.error(error::TOO_MANY_IN_MULTI),
            (_, StepReply::Rejected(rejection)) => to.error(error::of_rejection(&rejection).as_bytes()),
            (_, StepReply::Failed(fault)) => to.error(error::of_failure(&fault.into()).as_bytes()),
            (Self::Added { changed }, StepReply::Added { added, updated, .. }) => {
                to.integer((added + if *changed { updated } else { 0 }).cast_signed());
            }
            (Self::Incremented(kind), StepReply::Added { score, .. }) => match score {
                Some(score) => target::write_score(to, *kind, score),
                None => to.null(),
            },
            (Self::Count, StepReply::Removed(count)) => to.integer(count.cast_signed()),
            (Self::Count, StepReply::Took(list)) => to.integer(list.len() as i64),
            (Self::Members { kind, pairs }, StepReply::Took(list)) => {
                let nested = *pairs && to.protocol() == Protocol::Resp3;
                to.array(if nested { list.len() } else { list.len() * 2 });
                for (player, score) in list {
                    if nested {
                        to.array(2);
                    }
                    to.bulk(player.as_bytes());
                    target::write_score(to, *kind, score);
                }
            }
            (Self::Submitted(kind), StepReply::Submitted(done)) => lb::submit::write(&done, *kind, to),
            (Self::Read, StepReply::Read(bytes)) => to.raw(&bytes),
            (_, _) => to.error("ERR internal error: a step has another reply than its command"),
        }
    }
}
