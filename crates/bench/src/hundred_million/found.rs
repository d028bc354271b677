//! The result of one step, as a file of the work directory.

use crate::error::{During, Error};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use tally_load::report::{Chart, Ratio, Table};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct StepResult {
    /// The number of players, and the seed.
    pub(super) players: u64,
    pub(super) seed: u64,
    /// When it began, how long it took, and the percentage of the processors that others used.
    pub(super) at: String,
    pub(super) seconds: f64,
    pub(super) others_percent: Option<f64>,
    /// Figures that the report compares, by name.
    pub(super) figures: BTreeMap<String, f64>,
    pub(super) tables: Vec<Table>,
    pub(super) ratios: Vec<Ratio>,
    pub(super) charts: Vec<Chart>,
    pub(super) notes: Vec<String>,
}

impl StepResult {
    pub(super) fn figure(&mut self, name: &str, value: f64) {
        self.figures.insert(name.to_owned(), value);
    }

    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Reads the result of an earlier run, if it had as many players.
    pub(super) fn read(path: &Path, players: u64, seed: u64) -> Option<Self> {
        let found: Self = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        (found.players == players && found.seed == seed).then_some(found)
    }

    /// Writes it atomically.
    pub(super) fn write(&self, path: &Path) -> Result<(), Error> {
        let beside = path.with_extension("new");
        let json = serde_json::to_vec_pretty(self).during("write what a step has found")?;
        std::fs::write(&beside, json).during("write what a step has found")?;
        std::fs::rename(&beside, path).during("keep what a step has found")
    }
}
