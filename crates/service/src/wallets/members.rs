//! Members as far as money concerns them: making one with its first wallet, and closing it.

use super::command::{CloseMember, Created, Done, NewMember, Request};
use crate::failure::{Failure, Fault};
use crate::tally::Tally;

/// Makes a member.
pub async fn create(tally: &Tally, new: NewMember) -> Result<Created, Failure> {
    let running = new.identity.as_ref().map(|one| tally.begin(&one.key)).transpose()?;
    match tally.ledger.ask(Request::Create(new), running.into_iter().collect()).await? {
        Done::Created(created) => Ok(created),
        done => Err(unlike(&done)),
    }
}

/// Closes a member; once more changes nothing.
pub async fn close(tally: &Tally, close: CloseMember) -> Result<(), Failure> {
    let running = close.identity.as_ref().map(|one| tally.begin(&one.key)).transpose()?;
    match tally.ledger.ask(Request::Close(close), running.into_iter().collect()).await? {
        Done::Closed => Ok(()),
        done => Err(unlike(&done)),
    }
}

fn unlike(done: &Done) -> Failure {
    Fault::Broken(format!("a request is answered by its own kind, not by {done:?}")).into()
}
