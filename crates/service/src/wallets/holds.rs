//! Holding money, and ending a hold.

use super::command::{Done, EndHold, Held, NewHold, Request};
use crate::failure::{Failure, Fault, blocking};
use crate::tally::Tally;
use std::sync::Arc;
use tally_rules::Rejection;
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::ledger::hold::Ending;
use tally_rules::ledger::{Hold, HoldId};

/// A hold as it was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldDone {
    /// Its id.
    pub id: HoldId,
    /// The hold.
    pub hold: Hold,
    /// Whether this repeats an earlier answer.
    pub replayed: bool,
}

/// Makes a hold.
pub async fn place(tally: &Tally, new: NewHold) -> Result<HoldDone, Failure> {
    let running = new.identity.as_ref().map(|one| tally.begin(&one.key)).transpose()?;
    let held = ask(tally, Request::Hold(new), running.into_iter().collect()).await?;
    let mut done = told(tally, held).await?;
    // As it was made, whatever became of it since.
    done.hold.end = None;
    Ok(done)
}

/// Ends a hold.
pub async fn end(
    tally: &Tally,
    id: HoldId,
    ending: Ending,
    identity: Option<IdempotencyKey>,
) -> Result<HoldDone, Failure> {
    let running = identity.as_ref().map(|one| tally.begin(&one.key)).transpose()?;
    let hold = match (find(tally, id).await, &identity) {
        // Its key may be that of something else, which comes first.
        (Err(Failure::Refused(Rejection::HoldNotFound)), Some(identity)) => {
            tally.stored(identity).await?;
            return Err(Rejection::HoldNotFound.into());
        }
        (found, _) => found?,
    };
    let request = Request::End(EndHold { hold: id, wallet: hold.wallet, ending, identity });
    let held = ask(tally, request, running.into_iter().collect()).await?;
    told(tally, held).await
}

/// The hold of that id.
pub async fn find(tally: &Tally, id: HoldId) -> Result<Hold, Failure> {
    let store = Arc::clone(&tally.store);
    let hold = blocking(move || Ok(store.ledger().hold(id)?)).await?;
    hold.ok_or(Failure::Refused(Rejection::HoldNotFound))
}

async fn ask(
    tally: &Tally,
    request: Request,
    running: Vec<crate::requests::Running>,
) -> Result<Held, Failure> {
    match tally.ledger.ask(request, running).await? {
        Done::Hold(held) => Ok(held),
        done => Err(Fault::Broken(format!("a hold is answered as a hold, not as {done:?}")).into()),
    }
}

async fn told(tally: &Tally, held: Held) -> Result<HoldDone, Failure> {
    Ok(match held {
        Held::Now(id, hold) => HoldDone { id, hold, replayed: false },
        Held::Replayed(id) => HoldDone { id, hold: find(tally, id).await?, replayed: true },
    })
}
