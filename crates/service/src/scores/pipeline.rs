//! Handing commands to the lane, and what of them cannot be one transaction.
//!
//! Not here: what they are (`steps`), and where a database of several does its part (`several`).

use super::command::{Done, Request};
use super::spread;
use super::steps::{Commands, Step, StepReply};
use crate::failure::Failure;
use crate::tally::Tally;

/// Hands commands in; answers in order. Blocks nobody: the caller waits. On several databases what takes players by rank is
/// handed in by itself: which players they are is known when nothing else changes them.
pub async fn run(tally: &Tally, commands: Commands) -> Result<Vec<StepReply>, Failure> {
    let is_taking = |step: &Step| matches!(step, Step::Take { .. });
    if tally.store.shards() == 1 || !commands.steps.iter().any(is_taking) {
        return ask(tally, commands).await;
    }
    let (mut pieces, mut replies): (Vec<Vec<Step>>, Vec<StepReply>) = (Vec::new(), Vec::new());
    for step in commands.steps {
        match pieces.last_mut().filter(|piece| !is_taking(&step) && !is_taking(&piece[0])) {
            Some(piece) => piece.push(step),
            None => pieces.push(vec![step]),
        }
    }
    for steps in pieces {
        let (count, alone) = (steps.len(), is_taking(&steps[0]));
        let done = ask(tally, Commands { steps, alone, ..commands }).await;
        match done {
            Ok(some) => replies.extend(some),
            // Nothing is done yet.
            Err(failure) if replies.is_empty() => return Err(failure),
            Err(failure) => replies.extend((0..count).map(|_| match failure.clone() {
                Failure::Fault(fault) => StepReply::Failed(fault),
                Failure::Refused(rejection) => StepReply::Refused(rejection),
            })),
        }
    }
    Ok(replies)
}

async fn ask(tally: &Tally, commands: Commands) -> Result<Vec<StepReply>, Failure> {
    match tally.lane.ask(Request::Commands(commands), None).await? {
        Done::Commands(replies) => Ok(replies),
        _ => unreachable!("commands are answered as commands"),
    }
}

/// Whether commands concern players of several databases, so that they cannot be one transaction.
pub fn concern_several(tally: &Tally, steps: &[Step]) -> bool {
    tally.store.shards() > 1 && spread::of_steps(steps, &*tally.store).len() > 1
}
