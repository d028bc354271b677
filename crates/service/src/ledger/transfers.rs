//! Transfers: one, or a list of independent or linked ones.

use super::request::{LedgerRequest, Needs};
use super::state::BatchState;
use super::{LedgerSettings, acts};
use crate::audit;
use crate::failure::{Failure, Fault, blocking};
use crate::outcomes;
use crate::reply::LaneReply;
use crate::requests::{BatchKeys, KeyGuard};
use crate::tally::Tally;
use std::sync::Arc;
use tally_rules::audit::Audited;
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::ledger::transfer_request::Posted;
use tally_rules::ledger::{Entry, EntryKey, MintCap, TransferId, TransferRequest, Uuid};
use tally_rules::outcome::Outcome;
use tally_rules::{Origin, Rejection};
use tally_store::ReadSet;

/// A requested transfer.
#[derive(Clone, Debug)]
pub struct NewTransfer {
    /// The transfer itself.
    pub order: TransferRequest,
    /// Its actor, its reason and its metadata.
    pub origin: Origin,
    /// The idempotency key, if the caller sent one.
    pub idempotency: Option<IdempotencyKey>,
    /// The cap that a deposit counts towards.
    pub mint_cap: Option<MintCap>,
}

/// The reply to a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Transferred {
    /// It was done now.
    Now(Posted),
    /// It was done before; its entry has not changed since.
    Replayed(EntryKey),
}

/// Linked transfers: done in order, all or none. Most are of one. Beside them, the acts that those of administrators are.
pub(super) struct LinkedTransfers(pub(super) Vec<NewTransfer>, pub(super) Vec<Option<Audited>>);

impl LedgerRequest for LinkedTransfers {
    type Answer = Vec<Result<Transferred, Rejection>>;

    fn needs(&self) -> Needs {
        let metadata = self.0.iter().filter_map(|one| one.origin.metadata.as_ref());
        let bytes = metadata.map(|text| text.len()).sum();
        let acts = self.1.iter().flatten().count();
        Needs { rows: self.0.len() + acts, bytes, ids: self.0.len(), ..Needs::default() }
    }

    fn read(&self, plan: &mut ReadSet, _ids: &[Uuid], settings: &LedgerSettings) {
        let home = settings.currencies.home();
        for one in &self.0 {
            outcomes::read(plan, one.idempotency.as_ref());
            plan.ledger.wallets.extend(one.order.wallets(home));
            plan.ledger.minted.extend(one.mint_cap.map(|cap| cap.of));
        }
    }

    /// All of them, or none: the first rejected one has its reason, and the others the reason that a linked one failed.
    fn decide(&self, state: &mut BatchState<'_>, ids: &[Uuid]) -> Result<Self::Answer, Rejection> {
        let (savepoint, acts) = (state.book.savepoint(), state.added.audit.len());
        let (mut before, mut done) = (Vec::new(), Vec::with_capacity(self.0.len()));
        for (place, (one, id)) in self.0.iter().zip(ids).enumerate() {
            before.extend(
                one.idempotency.as_ref().map(|one| (&one.key, state.outcomes.stored(&one.key).cloned())),
            );
            match one.decide(state, TransferId(*id)) {
                Ok(transferred) => {
                    let act = self.1.get(place).and_then(Option::as_ref);
                    let row = act.filter(|_| matches!(transferred, Transferred::Now(_)));
                    state
                        .added
                        .audit
                        .extend(row.map(|act| acts::of_transfer(act, &one.order, TransferId(*id))));
                    done.push(Ok(transferred));
                }
                Err(rejection) => {
                    state.book.roll_back(savepoint);
                    state.added.audit.truncate(acts);
                    before.into_iter().rev().for_each(|(key, stored)| state.outcomes.restore(key, stored));
                    return Ok(rejected(self.0.len(), place, &rejection));
                }
            }
        }
        Ok(done)
    }
}

impl NewTransfer {
    fn decide(&self, state: &mut BatchState<'_>, id: TransferId) -> Result<Transferred, Rejection> {
        if let Some(Outcome::Posted(key)) = state.outcomes.replay(self.idempotency.as_ref())? {
            return Ok(Transferred::Replayed(key));
        } // Linked transfers have a reason each.
        state.book.set_origin(self.origin.clone());
        if let Some(cap) = &self.mint_cap {
            state.book.count_minted(cap, self.order.amount, state.expected)?;
        }
        let posted = state.book.post(id, &self.order, state.expected)?;
        state.outcomes.remember(self.idempotency.as_ref(), Outcome::Posted(posted.key));
        Ok(Transferred::Now(posted))
    }
}

/// Why none of some linked transfers was done: one of them was rejected.
fn rejected(len: usize, place: usize, rejection: &Rejection) -> Vec<Result<Transferred, Rejection>> {
    let linked = Rejection::LinkedFailed { nth: place + 1, code: rejection.code() };
    let of = |at| if at == place { rejection } else { &linked };
    (0..len).map(|at| Err(of(at).clone())).collect()
}

/// A transfer that was done, as its entry shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The entry, on the debited wallet if there is one.
    pub posted: Posted,
    /// Whether this repeats an earlier reply.
    pub replayed: bool,
}

/// The reply to one transfer of a list.
pub type TransferResult = Result<Receipt, Failure>;

/// Does one transfer.
pub async fn post(tally: &Tally, new: NewTransfer) -> TransferResult {
    post_all(tally, vec![(new, false)]).await?.pop().expect("one result")
}

/// Does many; the flag links one to the next, and linked ones are done whole or not at all. The whole fails only if the lane
/// accepted nothing.
pub async fn post_all(
    tally: &Tally,
    transfers: Vec<(NewTransfer, bool)>,
) -> Result<Vec<TransferResult>, Failure> {
    let (groups, mut keys) = (linked_groups(transfers), BatchKeys::default());
    let mut requests = Vec::with_capacity(groups.len());
    let mut begun: Vec<Result<usize, Vec<Result<Transferred, Rejection>>>> = Vec::with_capacity(groups.len());
    for group in groups {
        match begin(tally, &group, &mut keys) {
            Ok(running) => {
                begun.push(Ok(group.len()));
                let acts = group.iter().map(|one| audit::of_admin(tally, &one.origin));
                let acts = acts.collect::<Result<_, _>>()?;
                requests.push((LinkedTransfers(group, acts), running));
            }
            Err(results) => begun.push(Err(results)),
        }
    }
    let mut answers = tally.ledger.ask_all(requests).await?.into_iter();
    let mut results = Vec::new();
    for begun in begun {
        match begun {
            Err(rows) => results.extend(rows.into_iter().map(|row| row.map_err(Failure::Rejected))),
            Ok(rows) => results.extend(rows_of(answers.next().expect("one answer a group"), rows)),
        }
    }
    receipts(tally, results).await
}

/// Splits a list after each transfer that is not linked to the next.
fn linked_groups(transfers: Vec<(NewTransfer, bool)>) -> Vec<Vec<NewTransfer>> {
    let mut groups = Vec::new();
    let mut group = Vec::new();
    for (one, linked) in transfers {
        group.push(one);
        if !linked {
            groups.push(std::mem::take(&mut group));
        }
    }
    // The last has no next to be linked to.
    groups.extend((!group.is_empty()).then_some(group));
    groups
}

/// Takes the keys of linked transfers, or none of them: then each transfer gets the rejection.
fn begin(
    tally: &Tally,
    group: &[NewTransfer],
    keys: &mut BatchKeys,
) -> Result<Vec<KeyGuard>, Vec<Result<Transferred, Rejection>>> {
    let mut running = Vec::new();
    for (place, one) in group.iter().enumerate() {
        match keys.begin(&tally.running, one.idempotency.as_ref()) {
            Ok(taken) => running.extend(taken),
            Err(rejection) => {
                return Err(rejected(group.len(), place, &rejection));
            }
        }
    }
    Ok(running)
}

/// The replies of linked transfers; a reply to the whole is one to each.
fn rows_of(
    reply: LaneReply<Vec<Result<Transferred, Rejection>>>,
    rows: usize,
) -> Vec<Result<Transferred, Failure>> {
    match reply {
        Ok(Ok(rows)) => rows.into_iter().map(|row| row.map_err(Failure::Rejected)).collect(),
        Ok(Err(rejection)) => vec![Err(Failure::Rejected(rejection)); rows],
        Err(fault) => vec![Err(Failure::Fault(fault)); rows],
    }
}

/// The receipt of one transfer.
pub(crate) async fn receipt(tally: &Tally, moved: Transferred) -> TransferResult {
    receipts(tally, vec![Ok(moved)]).await?.pop().expect("one result")
}

/// Reads the entries of those that were done before.
async fn receipts(
    tally: &Tally,
    results: Vec<Result<Transferred, Failure>>,
) -> Result<Vec<TransferResult>, Failure> {
    let key = |result: &Result<Transferred, Failure>| match result {
        Ok(Transferred::Replayed(key)) => Some(*key),
        Ok(Transferred::Now(_)) | Err(_) => None,
    };
    let keys: Vec<EntryKey> = results.iter().filter_map(key).collect();
    let mut first = if keys.is_empty() { Vec::new() } else { entries(tally, keys).await? }.into_iter();
    let receipt = |moved| match moved {
        Transferred::Now(posted) => Ok(Receipt { posted, replayed: false }),
        Transferred::Replayed(key) => {
            let entry = first.next().flatten();
            let entry = entry.ok_or_else(|| Fault::Broken(format!("an entry is missing: {key:?}")))?;
            Ok(Receipt { posted: Posted { key, entry }, replayed: true })
        }
    };
    let mut receipt = receipt;
    Ok(results.into_iter().map(|result| result.and_then(&mut receipt)).collect())
}

async fn entries(tally: &Tally, keys: Vec<EntryKey>) -> Result<Vec<Option<Entry>>, Failure> {
    let store = Arc::clone(&tally.store);
    blocking(move || Ok(store.ledger().entries(&keys)?)).await
}
