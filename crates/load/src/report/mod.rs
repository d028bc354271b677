//! The results of a run: tables, ratios, charts and notes, as values.
//!
//! A report is data first; [`Report::to_text`], [`Report::to_json`] and [`Report::to_html`] show the same data to a terminal, a
//! program and a browser. Not here: printing, and any figure that was not measured.

mod chart;
mod html;
mod machine;
mod ratio;
mod text;

pub use chart::{Axis, Chart, Series};
pub use machine::Machine;
pub use ratio::{Ratio, RatioTarget, RatioVerdict};

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A run in which other processes used a larger percentage of the processors is not to be quoted.
const OTHERS_PERCENT_MAX: f64 = 10.0;

/// How a run was started.
#[derive(Clone, Debug, Default)]
pub struct RunInfo {
    /// The command as it was typed.
    pub command: String,
    /// The seed of its random numbers.
    pub seed: u64,
    /// Whether its numbers are small, so that figures mean little.
    pub small: bool,
}

/// The results of a scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The scenario.
    pub name: &'static str,
    /// What was measured.
    pub title: String,
    /// The machine.
    pub machine: Machine,
    /// The command as it was typed.
    pub command: String,
    /// The seed of its random numbers.
    pub seed: u64,
    /// Whether numbers were small, so that figures mean little.
    pub small: bool,
    /// The percentage of the processors that other processes used during the run, if the system reports it.
    pub others_percent: Option<f64>,
    /// Why the scenario was skipped; `None` if it ran.
    pub skipped: Option<String>,
    /// The figures.
    pub tables: Vec<Table>,
    /// The figures with targets.
    pub ratios: Vec<Ratio>,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// The figures as lines.
    pub charts: Vec<Chart>,
}

/// Figures in rows and columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// Names of columns, with units.
    pub columns: Vec<String>,
    /// Cells, as many in each row as there are columns.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new(title: &str, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        Self { title: title.to_owned(), columns, rows: Vec::new() }
    }

    /// Adds a row.
    ///
    /// # Panics
    ///
    /// If the number of cells is not the number of columns.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.columns.len(), "one cell for each column of `{}`", self.title);
        self.rows.push(cells);
    }
}

impl Report {
    /// A report without figures. Make it before measuring: it records how busy the machine is.
    #[must_use]
    pub fn new(name: &'static str, title: &str, run: impl Into<RunInfo>) -> Self {
        let RunInfo { command, seed, small } = run.into();
        Self {
            name,
            title: title.to_owned(),
            machine: Machine::here(),
            command,
            seed,
            small,
            others_percent: None,
            skipped: None,
            tables: Vec::new(),
            ratios: Vec::new(),
            notes: Vec::new(),
            charts: Vec::new(),
        }
    }

    /// The report of a skipped scenario.
    #[must_use]
    pub fn skipped(name: &'static str, title: &str, why: String, run: impl Into<RunInfo>) -> Self {
        Self { skipped: Some(why), ..Self::new(name, title, run) }
    }

    /// Adds a note.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// For a terminal.
    #[must_use]
    pub fn to_text(&self) -> String {
        text::render(self)
    }

    /// For a program.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report is made of strings and finite numbers") + "\n"
    }

    /// For a browser: one page without external resources.
    #[must_use]
    pub fn to_html(&self) -> String {
        html::render(self)
    }

    /// Writes it in all three forms into a folder, which it creates if missing; returns the paths.
    ///
    /// # Errors
    ///
    /// If a file cannot be written.
    pub fn write(&self, folder: &Path) -> std::io::Result<Vec<PathBuf>> {
        std::fs::create_dir_all(folder)?;
        let forms = [("txt", self.to_text()), ("json", self.to_json()), ("html", self.to_html())];
        let write = |(ending, form): (&str, String)| {
            let path = folder.join(format!("{}.{ending}", self.name));
            std::fs::write(&path, form)?;
            Ok(path)
        };
        forms.into_iter().map(write).collect()
    }

    /// Machine, command and load, one line each, for the text and the page.
    fn circumstances(&self) -> Vec<String> {
        if let Some(why) = &self.skipped {
            return vec![format!("skipped: {why}")];
        }
        let machine = &self.machine;
        let (cores, memory) = (machine.cores, machine.memory_mib / 1024);
        let mut lines = vec![
            format!("{cores} cores, {}, {memory} GiB, {}", machine.cpu, machine.kernel),
            format!("load before {}, {}, seed {}", machine.load_before, machine.at, self.seed),
        ];
        if !self.command.is_empty() {
            lines.push(format!("command: {}", self.command));
        }
        if let Some(others) = self.others_percent {
            let verdict =
                if others > OTHERS_PERCENT_MAX { ": too much for the figures to be quoted" } else { "" };
            lines.push(format!("others used {others:.0} % of the processors during the run{verdict}"));
        }
        if self.small {
            lines.push("small numbers, to see that it works: the figures mean little".to_owned());
        }
        if !machine.optimised {
            lines.push("not an optimised build: the figures mean nothing".to_owned());
        }
        lines
    }
}

/// A figure that may be unknown.
pub fn or_dash<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), show)
}

/// A number with three significant digits and thousands separators.
#[must_use]
pub fn number(value: f64) -> String {
    let size = value.abs();
    if size >= 1_000.0 {
        grouped(value)
    } else if size >= 100.0 || value == 0.0 {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else if size >= 0.1 {
        format!("{value:.2}")
    } else {
        format!("{value:.4}")
    }
}

fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let (sign, digits) = digits.split_at(usize::from(digits.starts_with('-')));
    let mut text = sign.to_owned();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests;
