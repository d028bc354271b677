//! Reversing a transfer, whole or in part.
//!
//! A transfer never changes, so the caller reads the original before. The lane reads how much of it is reversed, and the contest
//! that it refers to, which keeps what was reversed of its fees. Not here: how much may be reversed
//! (`tally_rules::ledger::reversal`).

use super::request::{LedgerRequest, Needs};
use super::state::BatchState;
use super::transfers::{self, TransferResult, Transferred};
use super::{LedgerSettings, acts, read};
use crate::audit;
use crate::outcomes;
use crate::tally::Tally;
use tally_rules::audit::Audited;
use tally_rules::contest::ContestId;
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::ledger::{
    Amount, MemberId, ReversalRequest, TransferId, TransferKind, TransferRequest, Uuid,
};
use tally_rules::outcome::Outcome;
use tally_rules::{BoardId, Origin, Rejection};
use tally_store::ReadSet;

/// A requested reversal.
#[derive(Clone, Debug)]
pub struct NewReversal {
    /// The transfer to reverse, by its id or that of one of its entries.
    pub transaction: Uuid,
    /// The amount. The default is what is left.
    pub amount: Option<Amount>,
    /// Its actor and its reason.
    pub origin: Origin,
    /// The idempotency key with the fingerprint of the request.
    pub idempotency: Option<IdempotencyKey>,
}

/// A reversal whose original was read.
struct Reverse {
    request: ReversalRequest,
    /// The contest that the original refers to.
    contest: Option<ContestId>,
    origin: Origin,
    /// The act that it is, if its actor is an administrator.
    act: Option<Audited>,
    idempotency: Option<IdempotencyKey>,
}

impl LedgerRequest for Reverse {
    type Answer = Transferred;

    fn needs(&self) -> Needs {
        Needs { rows: 1 + usize::from(self.act.is_some()), ids: 2, ..Needs::default() }
    }

    fn origin(&self) -> Origin {
        self.origin.clone()
    }

    fn read(&self, plan: &mut ReadSet, _ids: &[Uuid], settings: &LedgerSettings) {
        outcomes::read(plan, self.idempotency.as_ref());
        plan.ledger.reversals.push(self.request.original);
        plan.ledger.wallets.extend(self.request.wallets(settings.currencies.home()));
        plan.ledger.contests.contests.extend(self.contest.clone());
    }

    fn decide(&self, state: &mut BatchState<'_>, ids: &[Uuid]) -> Result<Transferred, Rejection> {
        if let Some(Outcome::Posted(key)) = state.outcomes.replay(self.idempotency.as_ref())? {
            return Ok(Transferred::Replayed(key));
        }
        let original = &self.request.transfer;
        let contest = self.contest.as_ref().and_then(|id| Some((id, state.contests.get(id)?.clone())));
        contest.as_ref().map_or(Ok(()), |(_, record)| record.check_reversal(original))?;
        let (payer, payee) = self.request.sides();
        if contest.is_none() && [payer, payee].into_iter().flatten().any(MemberId::is_pool) {
            return Err(Rejection::NotReversible);
        }
        let posted = state.book.reverse(TransferId(ids[0]), &self.request)?;
        if let Some(pool) = payee.filter(|payee| payee.is_pool()) {
            self.empty_pool(state, pool, (posted.entry.amount, TransferId(ids[1])));
        }
        if let Some((id, mut record)) = contest {
            record.note_reversal(original, posted.entry.amount);
            state.contests.set(id, Some(record));
        }
        let (id, moved) = (TransferId(ids[0]), (posted.entry.amount, original.currency));
        let row = |act| acts::of_reversal(act, self.request.original, moved, (payer, payee), id);
        state.added.audit.extend(self.act.as_ref().map(row));
        state.outcomes.remember(self.idempotency.as_ref(), Outcome::Posted(posted.key));
        Ok(Transferred::Now(posted))
    }
}

impl Reverse {
    /// Moves what a pool has got back on to the account `FEES`: its prizes or refunds are stored, and others get no more for it.
    fn empty_pool(&self, state: &mut BatchState<'_>, pool: MemberId, (units, id): (i64, TransferId)) {
        let amount = Amount::new(units).expect("an amount was reversed");
        let (what, currency) = (TransferKind::Fee { from: pool }, self.request.transfer.currency);
        let order = TransferRequest { what, currency, amount, reference: self.request.reference.clone() };
        state.book.post(id, &order, state.expected).expect("the pool has just got it");
    }
}

/// Reverses a transfer. The reply is the entry of the wallet that the money leaves, or of the one that gets it.
pub async fn reverse(tally: &Tally, new: NewReversal) -> TransferResult {
    let NewReversal { transaction, amount, origin, idempotency } = new;
    let running = idempotency.as_ref().map(|one| tally.begin(&one.key)).transpose()?;
    let found = tally.named(read::transfer(tally, transaction).await, idempotency.as_ref()).await?;
    let reference = found.reference().cloned();
    let contest = reference.as_deref().and_then(|name| ContestId::of_board(&BoardId::new(name).ok()?));
    let contest = contest.map(|(id, _)| id);
    let act = audit::of_admin(tally, &origin)?;
    let request = ReversalRequest { original: found.id, transfer: found.transfer, amount, reference };
    let done = tally
        .ledger
        .ask(Reverse { request, contest, origin, act, idempotency }, running.into_iter().collect())
        .await?;
    transfers::receipt(tally, done).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_rules::ledger::{Currency, EntryKind, Transfer};
    use tally_rules::{Actor, Micros};

    #[test]
    fn an_act_of_an_administrator_is_a_row_more() {
        let act = Audited::new(Origin::from(Actor::CommandLine), Micros(1), 7);
        let reverse = |act| {
            let transfer = Transfer {
                kind: EntryKind::Deposit,
                reverses: None,
                currency: Currency::parse("KRW").unwrap(),
                amount: 5,
                debit: None,
                credit: Some((MemberId(Uuid([1; 16])), 1)),
                origin: Origin::default(),
            };
            let original = TransferId(Uuid([2; 16]));
            let request = ReversalRequest { original, transfer, amount: None, reference: None };
            Reverse { request, contest: None, origin: Origin::default(), act, idempotency: None }
        };
        let rows = |act| LedgerRequest::needs(&reverse(act)).rows;
        assert_eq!((rows(None), rows(Some(act))), (1, 2));
    }
}
