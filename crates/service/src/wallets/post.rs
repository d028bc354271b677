//! Moving money: one movement, or a list of them in which each stands for itself or with the next.

use super::command::{Done, Moved, NewMove, Request};
use crate::failure::{Failure, Fault, blocking};
use crate::requests::{Begun, Running};
use crate::tally::Tally;
use crate::waiting::Told;
use std::sync::Arc;
use tally_rules::Rejection;
use tally_rules::ledger::transfer_request::Posted;
use tally_rules::ledger::{Entry, EntryKey};

/// A movement that was done, as its entry shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The entry, on the side where the money leaves a wallet if there is one.
    pub posted: Posted,
    /// Whether this repeats an earlier answer.
    pub replayed: bool,
}

/// What came of one movement of a list.
pub type MoveResult = Result<Receipt, Failure>;

/// Does one movement.
pub async fn post(tally: &Tally, new: NewMove) -> MoveResult {
    post_all(tally, vec![(new, false)]).await?.pop().expect("one result")
}

/// Does many; the flag ties one to the next, and what is tied is done whole or not at all. The whole fails only if nothing
/// was taken.
pub async fn post_all(tally: &Tally, moves: Vec<(NewMove, bool)>) -> Result<Vec<MoveResult>, Failure> {
    let (chains, mut keys) = (chains(moves), Begun::default());
    let mut requests = Vec::with_capacity(chains.len());
    let mut begun: Vec<Result<usize, Vec<Result<Moved, Rejection>>>> = Vec::with_capacity(chains.len());
    for chain in chains {
        match begin(tally, &chain, &mut keys) {
            Ok(running) => {
                begun.push(Ok(chain.len()));
                requests.push((Request::Chain(chain), running));
            }
            Err(results) => begun.push(Err(results)),
        }
    }
    let mut answers = tally.ledger.ask_all(requests).await?.into_iter();
    let mut results = Vec::new();
    for begun in begun {
        match begun {
            Err(rows) => results.extend(rows.into_iter().map(|row| row.map_err(Failure::Refused))),
            Ok(rows) => results.extend(rows_of(answers.next().expect("one answer a chain"), rows)),
        }
    }
    receipts(tally, results).await
}

/// Cuts a list where one is not tied to the next.
fn chains(moves: Vec<(NewMove, bool)>) -> Vec<Vec<NewMove>> {
    let mut chains = Vec::new();
    let mut chain = Vec::new();
    for (one, linked) in moves {
        chain.push(one);
        if !linked {
            chains.push(std::mem::take(&mut chain));
        }
    }
    // The last has no next to be tied to.
    chains.extend((!chain.is_empty()).then_some(chain));
    chains
}

/// Takes the keys of a chain, or none of them: then that says which could not be had.
fn begin(
    tally: &Tally,
    chain: &[NewMove],
    keys: &mut Begun,
) -> Result<Vec<Running>, Vec<Result<Moved, Rejection>>> {
    let mut running = Vec::new();
    for (place, one) in chain.iter().enumerate() {
        match keys.begin(&tally.running, one.identity.as_ref()) {
            Ok(taken) => running.extend(taken),
            Err(rejection) => {
                let others = |at| if at == place { rejection.clone() } else { Rejection::LinkedFailed };
                return Err((0..chain.len()).map(|at| Err(others(at))).collect());
            }
        }
    }
    Ok(running)
}

/// The rows of a chain; what is said of the whole is said of each.
fn rows_of(told: Told<Done>, rows: usize) -> Vec<Result<Moved, Failure>> {
    match told {
        Ok(Ok(Done::Chain(rows))) => rows.into_iter().map(|row| row.map_err(Failure::Refused)).collect(),
        Ok(Ok(_)) => unreachable!("a chain is answered as a chain"),
        Ok(Err(rejection)) => vec![Err(Failure::Refused(rejection)); rows],
        Err(fault) => vec![Err(Failure::Fault(fault)); rows],
    }
}

/// The receipt of one movement.
pub(super) async fn receipt(tally: &Tally, moved: Moved) -> MoveResult {
    receipts(tally, vec![Ok(moved)]).await?.pop().expect("one result")
}

/// A fault that one row has is one for the whole answer where every row has it.
pub fn common_fault(results: &[MoveResult]) -> Option<Fault> {
    let fault = |one: &MoveResult| match one {
        Err(Failure::Fault(fault)) => Some(fault.clone()),
        Ok(_) | Err(Failure::Refused(_)) => None,
    };
    let first = results.first().and_then(fault)?;
    results.iter().all(|one| fault(one).is_some()).then_some(first)
}

/// Reads the entries of those that were done before.
async fn receipts(tally: &Tally, results: Vec<Result<Moved, Failure>>) -> Result<Vec<MoveResult>, Failure> {
    let key = |result: &Result<Moved, Failure>| match result {
        Ok(Moved::Replayed(key)) => Some(*key),
        Ok(Moved::Posted(_)) | Err(_) => None,
    };
    let keys: Vec<EntryKey> = results.iter().filter_map(key).collect();
    let mut first = if keys.is_empty() { Vec::new() } else { entries(tally, keys).await? }.into_iter();
    let receipt = |moved| match moved {
        Moved::Posted(posted) => Ok(Receipt { posted, replayed: false }),
        Moved::Replayed(key) => {
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
