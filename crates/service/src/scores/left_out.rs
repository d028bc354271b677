//! Commands that are left out of their request, because the database that they concern cannot be used now.
//!
//! A request of many commands may concern several databases. Where one of them is away, its commands say so, each at its
//! place, and the others are done as if those had not been given: they are decided anew without them, so no answer tells of
//! what was not done. Not here: finding out which database is away.

use super::command::Request;
use super::spread;
use super::steps::Step;
use crate::failure::Fault;
use std::collections::BTreeMap;
use tally_store::{ShardSet, Store};

/// Commands of the only request of a batch, by their place, and why each is left out.
#[derive(Clone, Debug, Default)]
pub(super) struct LeftOut {
    faults: BTreeMap<usize, Fault>,
}

impl LeftOut {
    /// Leaves out what concerns these databases; whether that is more than before.
    pub(super) fn add(
        &mut self,
        batch: &[Request],
        away: ShardSet,
        fault: &Fault,
        store: &dyn Store,
    ) -> bool {
        let [Request::Commands(commands)] = batch else { return false };
        let before = self.faults.len();
        for (at, step) in commands.steps.iter().enumerate() {
            if spread::of_step(step, store).meets(away) {
                self.faults.entry(at).or_insert_with(|| fault.clone());
            }
        }
        self.faults.len() > before
    }

    /// Why a command is left out, if it is.
    pub(super) fn fault(&self, at: usize) -> Option<&Fault> {
        self.faults.get(&at)
    }

    /// Whether nothing is left that changes anything.
    pub(super) fn is_all(&self, batch: &[Request]) -> bool {
        let [Request::Commands(commands)] = batch else { return false };
        let stays = |(at, step): (usize, &Step)| step.board().is_some() && !self.faults.contains_key(&at);
        !self.faults.is_empty() && !commands.steps.iter().enumerate().any(stays)
    }
}
