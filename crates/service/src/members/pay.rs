//! A transfer that a member requests with its PIN, to a phone number.
//!
//! The member that has the number is looked up beforehand, because a transaction reads by key, and compared in the transaction.
//! So an outdated cache entry costs another try, never money. The lane checks the PIN first, with the member locked, and writes
//! the attempt in any case: guesses at the same time count. The reply and its time depend on the PIN first. The only remaining
//! difference is one more wallet in the read of the batch. A member that can pay learns which member has a number only by
//! paying, or by an unknown one, and of those it has a budget.

use super::ATTEMPTS_MAX;
use super::pin::Guess;
use crate::failure::{Failure, Fault};
use crate::ledger::LedgerSettings;
use crate::ledger::request::{LedgerRequest, Needs};
use crate::ledger::state::BatchState;
use crate::ledger::transfers::{Receipt, Transferred, receipt};
use crate::outcomes;
use crate::tally::Tally;
use std::sync::Arc;
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::ledger::member::{Handle, Phone};
use tally_rules::ledger::transfer_request::wallets_of;
use tally_rules::ledger::{
    Amount, Currency, Member, MemberId, TransferId, TransferKind, TransferRequest, Uuid, pin,
};
use tally_rules::outcome::Outcome;
use tally_rules::{Actor, Micros, Origin, Rejection};
use tally_store::ReadSet;

/// A transfer that a member requests, with its PIN.
#[derive(Clone, Debug)]
pub struct NewPayment {
    /// The member that pays.
    pub from: MemberId,
    /// The instant from which its tokens were valid when the request was authenticated.
    pub tokens_from: Micros,
    /// The PIN of the caller.
    pub guess: Guess,
    /// The number of the member that is paid.
    pub phone: Phone,
    /// The member that had that number at the lookup.
    pub to: Option<MemberId>,
    /// In which currency.
    pub currency: Currency,
    /// How much.
    pub amount: Amount,
    /// The idempotency key, if the caller sent one.
    pub idempotency: Option<IdempotencyKey>,
}

impl LedgerRequest for NewPayment {
    /// `None` if tokens or the number have changed since the lookup; only the attempt at the PIN was recorded then.
    type Answer = Option<Transferred>;

    fn needs(&self) -> Needs {
        Needs { ids: 1, ..Needs::default() }
    }

    fn origin(&self) -> Origin {
        Actor::Member(self.from).into()
    }

    fn read(&self, plan: &mut ReadSet, _ids: &[Uuid], settings: &LedgerSettings) {
        let home = settings.currencies.home();
        outcomes::read(plan, self.idempotency.as_ref());
        plan.ledger.members.push(self.from);
        plan.ledger.handles.push(Handle::Phone(self.phone.clone()));
        plan.ledger.wallets.extend(wallets_of([Some(self.from), self.to], self.currency, home));
    }

    fn decide(&self, state: &mut BatchState<'_>, ids: &[Uuid]) -> Result<Self::Answer, Rejection> {
        let member = state.members.get(&self.from).cloned().ok_or(Rejection::MemberNotFound)?;
        if member.tokens_from != self.tokens_from || member.closed_at.is_some() {
            return Ok(None);
        }
        let right = member.pin.is_some_and(|pin| self.guess.is(&pin));
        let (attempts, checked) = pin::attempt(member.attempts, right, state.expected, state.settings.pin);
        let renewed = member.pin.filter(|_| checked.is_ok()).and_then(|pin| self.guess.renewed(&pin));
        if attempts != member.attempts || renewed.is_some() {
            let pin = renewed.or(member.pin);
            state.members.set(&self.from, Some(Member { attempts, pin, ..member }));
        }
        checked?;
        if let Some(Outcome::Posted(key)) = state.outcomes.replay(self.idempotency.as_ref())? {
            return Ok(Some(Transferred::Replayed(key)));
        }
        let holder = state.handles.get(&Handle::Phone(self.phone.clone())).copied();
        if holder != self.to {
            return Ok(None);
        }
        // Money first: a member that cannot pay does not learn which numbers other members have.
        if holder != Some(self.from) {
            state.book.can_transfer(self.from, (self.currency, self.amount), state.expected)?;
        }
        let to = holder.ok_or(Rejection::RecipientNotFound)?;
        let what = TransferKind::Transfer { from: self.from, to };
        let order = TransferRequest { what, currency: self.currency, amount: self.amount, reference: None };
        let posted = state.book.post(TransferId(ids[0]), &order, state.expected)?;
        state.outcomes.remember(self.idempotency.as_ref(), Outcome::Posted(posted.key));
        Ok(Some(Transferred::Now(posted)))
    }
}

/// The reply to a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PaymentReply {
    /// It was done, now or before.
    Paid(Receipt),
    /// The token of the request has ended.
    SignedOut,
    /// Too many phone numbers of this member were unknown: wait so many seconds.
    Wait(u32),
}

/// Pays.
pub async fn pay(tally: &Arc<Tally>, mut new: NewPayment) -> Result<PaymentReply, Failure> {
    // Taken before, so that guesses at the same time gain nothing.
    let guess = match tally.members.recipients.take(new.from, tally.now()) {
        Ok(guess) => guess,
        Err(seconds) => return Ok(PaymentReply::Wait(seconds)),
    };
    for _ in 0..ATTEMPTS_MAX {
        let running = new.idempotency.as_ref().map(|one| tally.begin(&one.key)).transpose()?;
        new.to = tally.members.of_phone(tally, &new.phone).await?;
        let done = tally.ledger.ask(new.clone(), running.into_iter().collect()).await;
        if let Err(Failure::Rejected(Rejection::RecipientNotFound)) = done {
            guess.spend();
            return Err(Rejection::RecipientNotFound.into());
        }
        if let Some(transferred) = done? {
            return receipt(tally, transferred).await.map(PaymentReply::Paid);
        }
        tally.members.cache.forget(new.from, &new.phone);
        let payer = tally.members.known(tally, new.from).await?;
        if payer.tokens_from != new.tokens_from || payer.closed_at.is_some() {
            return Ok(PaymentReply::SignedOut);
        }
    }
    Err(Fault::Overloaded.into())
}
