//! A figure with a target, and whether the run reached it.

use super::number;
use serde::{Deserialize, Serialize};

/// A floor that is required and an aim that is desired.
#[derive(Clone, Copy, Debug)]
pub struct RatioTarget {
    /// The required value.
    pub floor: f64,
    /// The desired value.
    pub aim: f64,
}

/// A figure that is compared with a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// What it compares.
    pub name: String,
    /// The figure.
    pub value: f64,
    /// Its unit; `×` for a quotient.
    pub unit: String,
    /// Whether more is better.
    pub more_is_better: bool,
    /// The required value, if there is a target.
    pub floor: Option<f64>,
    /// The desired value.
    pub aim: Option<f64>,
    /// The result of the comparison.
    pub verdict: RatioVerdict,
}

/// The result of comparing a figure with its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RatioVerdict {
    /// The figure has no target.
    NoTarget,
    /// The floor is not reached.
    Missed,
    /// The floor is reached, the aim is not.
    Floor,
    /// The aim is reached.
    Aim,
}

impl Ratio {
    /// A quotient without a target; more is better.
    #[must_use]
    pub fn times(name: &str, value: f64) -> Self {
        let verdict = RatioVerdict::NoTarget;
        Self {
            name: name.to_owned(),
            value,
            unit: "×".to_owned(),
            more_is_better: true,
            floor: None,
            aim: None,
            verdict,
        }
    }

    /// A quotient that must be at least the floor.
    #[must_use]
    pub fn at_least(name: &str, value: f64, target: RatioTarget) -> Self {
        Self { floor: Some(target.floor), aim: Some(target.aim), ..Self::times(name, value) }.with_verdict()
    }

    /// A figure of this unit that must be at most the floor.
    #[must_use]
    pub fn at_most(name: &str, value: f64, unit: &str, target: RatioTarget) -> Self {
        let (floor, aim) = (Some(target.floor), Some(target.aim));
        Self { unit: unit.to_owned(), more_is_better: false, floor, aim, ..Self::times(name, value) }
            .with_verdict()
    }

    /// The figure with its unit.
    pub(super) fn figure(&self, value: f64) -> String {
        format!("{} {}", number(value), self.unit)
    }

    fn with_verdict(mut self) -> Self {
        let reaches =
            |target: Option<f64>| {
                target.is_some_and(|target| {
                    if self.more_is_better { self.value >= target } else { self.value <= target }
                })
            };
        self.verdict = match (reaches(self.aim), reaches(self.floor)) {
            (true, _) => RatioVerdict::Aim,
            (false, true) => RatioVerdict::Floor,
            (false, false) => RatioVerdict::Missed,
        };
        self
    }
}

impl RatioVerdict {
    /// As text.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::NoTarget => "no target",
            Self::Missed => "misses the floor",
            Self::Floor => "floor",
            Self::Aim => "aim",
        }
    }
}
