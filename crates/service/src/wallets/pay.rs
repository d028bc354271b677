//! A transfer that a member asks for with its PIN, to a phone number.
//!
//! Who has the number is looked up beforehand, because a transaction reads by key, and compared in the transaction: an old
//! answer of the cache costs another try, never money. What is told depends on the PIN first, and so does the time it
//! takes: who has a number is looked up in the same way whether somebody has it or not. What is left of a difference is
//! one more wallet in the batch's one reading. A member that can pay learns who has a number only by paying, or by an unknown
//! one, and of those it has a budget.

use super::command::{Done, NewPayment, Request};
use super::post::{Receipt, receipt};
use crate::failure::{Failure, Fault};
use crate::tally::Tally;
use std::sync::Arc;
use tally_rules::Rejection;

/// How often it is tried anew because the number changed hands meanwhile.
const TRIES: usize = 8;

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payment {
    /// It was done, now or before.
    Paid(Receipt),
    /// The token it was asked with has ended.
    SignedOut,
    /// Too many phone numbers of this member were unknown: not looked at for so many seconds.
    Wait(u32),
}

/// Does one.
pub async fn pay(tally: &Arc<Tally>, mut new: NewPayment) -> Result<Payment, Failure> {
    // Taken before, so that guesses at the same time gain nothing.
    let guess = match tally.members.recipients.take(new.from, tally.now()) {
        Ok(guess) => guess,
        Err(seconds) => return Ok(Payment::Wait(seconds)),
    };
    for _ in 0..TRIES {
        let running = new.identity.as_ref().map(|one| tally.begin(&one.key)).transpose()?;
        new.to = tally.members.of_phone(tally, &new.phone).await?;
        let done = tally.ledger.ask(Request::Pay(new.clone()), running.into_iter().collect()).await;
        if let Err(Failure::Refused(Rejection::RecipientNotFound)) = done {
            guess.spend();
            return Err(Rejection::RecipientNotFound.into());
        }
        match done? {
            Done::Paid(moved) => return receipt(tally, moved).await.map(Payment::Paid),
            Done::Stale => tally.members.cache.forget(new.from, &new.phone),
            done => {
                return Err(Fault::Broken(format!("a payment is answered as one, not as {done:?}")).into());
            }
        }
        let payer = tally.members.known(tally, new.from).await?;
        if payer.tokens_from != new.tokens_from || payer.closed_at.is_some() {
            return Ok(Payment::SignedOut);
        }
    }
    Err(Fault::Overloaded.into())
}
