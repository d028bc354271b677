//! The definition of a board: the choices of its creator.

use crate::contest::Prize;
use crate::instant::Micros;
use crate::ledger::Currencies;
use crate::named;
use crate::period::PeriodRule;
use crate::rejection::{Rejection, WrongField};

named! {
    /// Which score is better.
    pub enum Order { /// The higher score.
        Descending = "descending", /// The lower score.
        Ascending = "ascending" }
}
named! {
    /// What a submit makes of the player's record.
    pub enum Update { /// Keeps the better of the old and the new score.
        Best = "best", /// Keeps the new score.
        Latest = "latest", /// Adds the new score to the old.
        Sum = "sum" }
}
named! {
    /// How equal scores share a rank.
    pub enum Ranking { /// 1 2 3 4: never.
        Ordinal = "ordinal", /// 1 2 2 4: as in sports.
        Competition = "competition", /// 1 2 2 3: without a gap.
        Dense = "dense" }
}
named! {
    /// How equal scores are ordered.
    pub enum Ties { /// The score that was reached first is ahead.
        First = "first", /// The score that was reached last is ahead.
        Last = "last", /// By the bytes of the player id.
        Player = "player", /// By the bytes of the player id, reversed.
        PlayerReversed = "player_reversed" }
}
named! {
    /// What kind of number a score is.
    pub enum ScoreType { /// Exact 64-bit integers.
        Int64 = "int64", /// IEEE 754 doubles.
        Float64 = "float64" }
}
named! {
    /// Whether a second number orders equal scores, and which one is better.
    pub enum Subscore { /// There is none.
        None = "none", /// The higher subscore.
        Descending = "descending", /// The lower subscore.
        Ascending = "ascending" }
}

/// A board's definition. All fields except the periods are fixed at creation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Which score is better.
    pub order: Order,
    /// What a submit makes of the old and the new score.
    pub update: Update,
    /// How equal scores share a rank.
    pub ranking: Ranking,
    /// How equal scores are ordered.
    pub ties: Ties,
    /// Integers or floats.
    pub score: ScoreType,
    /// Whether there is a subscore, and its order.
    pub subscore: Subscore,
    /// Whether there is an all-time window.
    pub all_time: bool,
    /// The period rules: weeks, seasons and the like.
    pub periods: Vec<PeriodRule>,
    /// How many numbers were given to period rules so far.
    pub rules_given: u32,
    /// Whether its first score created it, like a sorted set of Redis. Then it exists as long as it has players.
    pub implicit: bool,
}

impl Default for Definition {
    fn default() -> Self {
        Self {
            order: Order::Descending,
            update: Update::Best,
            ranking: Ranking::Ordinal,
            ties: Ties::First,
            score: ScoreType::Int64,
            subscore: Subscore::None,
            all_time: true,
            periods: Vec::new(),
            rules_given: 0,
            implicit: false,
        }
    }
}

impl Definition {
    /// A board that behaves like a sorted set of Redis.
    pub fn sorted_set() -> Self {
        Self {
            update: Update::Latest,
            ties: Ties::PlayerReversed,
            score: ScoreType::Float64,
            implicit: true,
            ..Self::default()
        }
    }

    /// Refuses choices that contradict each other.
    pub fn check(&self) -> Result<(), Rejection> {
        if self.update == Update::Sum && self.subscore != Subscore::None {
            return Err(invalid("/subscore", "a board of update `sum` has no subscore"));
        }
        if !self.all_time && self.periods.is_empty() {
            return Err(invalid("/periods", "a board needs `all_time` or at least one of `periods`"));
        }
        for (at, period) in self.periods.iter().enumerate() {
            let within =
                |wrong: WrongField| Rejection::InvalidDefinition(wrong.within(&format!("/periods/{at}")));
            period.check().map_err(within)?;
            if self.periods[..at].iter().any(|before| before.name == period.name) {
                let why = format!("two periods are named `{}`", period.name);
                return Err(invalid(format!("/periods/{at}/name"), why));
            }
        }
        Ok(())
    }

    /// Gives each period rule its number: that of the present rule with its name, or the next.
    fn number(mut self, present: &[PeriodRule]) -> Self {
        for period in &mut self.periods {
            period.no = match present.iter().find(|old| old.name == period.name) {
                Some(old) => {
                    // New prizes apply from the instant from which the old ones applied, unless there were none.
                    period.prizes.from = old.prizes.from.filter(|_| !period.prizes.table.is_empty());
                    old.no
                }
                None => {
                    self.rules_given += 1;
                    self.rules_given - 1
                }
            };
        }
        self
    }

    /// Refuses prizes in currencies that are not configured.
    pub fn check_currencies(&self, currencies: &Currencies) -> Result<(), Rejection> {
        check_currencies(&self.periods, currencies)
    }

    /// Sets the start of prizes that are new: they are for periods that are closed after `now`.
    #[must_use]
    pub fn with_prizes_from(mut self, now: Micros) -> Self {
        for prizes in self.periods.iter_mut().map(|period| &mut period.prizes) {
            if !prizes.table.is_empty() {
                prizes.from.get_or_insert(now);
            }
        }
        self
    }

    /// Whether records carry a subscore.
    pub fn has_subscore(&self) -> bool {
        self.subscore != Subscore::None
    }
}

fn invalid(pointer: impl Into<String>, why: impl Into<String>) -> Rejection {
    Rejection::InvalidDefinition(WrongField::new(pointer, why))
}

fn check_currencies(periods: &[PeriodRule], currencies: &Currencies) -> Result<(), Rejection> {
    for (nth, period) in periods.iter().enumerate() {
        let unknown = |(at, prize): (usize, &Prize)| Some((at, currencies.check(prize.currency).err()?));
        if let Some((at, rejection)) = period.prizes.table.iter().enumerate().find_map(unknown) {
            let why = rejection.detail();
            let why = format!("period `{}`: prizes/{at}/currency: {why}", period.name);
            return Err(invalid(format!("/periods/{nth}/prizes/{at}/currency"), why));
        }
    }
    Ok(())
}

/// A spec for a board. A field that a caller left out keeps its present or default value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BoardSpec {
    /// See [`Definition::order`].
    pub order: Option<Order>,
    /// See [`Definition::update`].
    pub update: Option<Update>,
    /// See [`Definition::ranking`].
    pub ranking: Option<Ranking>,
    /// See [`Definition::ties`].
    pub ties: Option<Ties>,
    /// See [`Definition::score`].
    pub score: Option<ScoreType>,
    /// See [`Definition::subscore`].
    pub subscore: Option<Subscore>,
    /// See [`Definition::all_time`].
    pub all_time: Option<bool>,
    /// See [`Definition::periods`].
    pub periods: Option<Vec<PeriodRule>>,
    /// Whether a change is rejected that would delete periods with scores.
    pub keeps_history: bool,
}

impl BoardSpec {
    /// Whether it sets prizes.
    pub fn has_prizes(&self) -> bool {
        self.periods.iter().flatten().any(|period| !period.prizes.table.is_empty())
    }

    /// The definition of a new board.
    pub fn create(&self) -> Result<Definition, Rejection> {
        let definition = self.over(&Definition::default());
        definition.check()?;
        Ok(definition)
    }

    /// Changes the definition of an existing board. Only periods may change; the rejection names the other fields that
    /// differ.
    pub fn change(&self, present: &Definition) -> Result<Definition, Rejection> {
        let requested = self.over(present);
        let differs = [
            ("order", requested.order != present.order),
            ("update", requested.update != present.update),
            ("ranking", requested.ranking != present.ranking),
            ("ties", requested.ties != present.ties),
            ("score", requested.score != present.score),
            ("subscore", requested.subscore != present.subscore),
            ("all_time", requested.all_time != present.all_time),
        ];
        let fields: Vec<&'static str> =
            differs.iter().filter(|(_, yes)| *yes).map(|(name, _)| *name).collect();
        if !fields.is_empty() {
            return Err(Rejection::DefinitionConflict(fields));
        }
        requested.check()?;
        Ok(requested)
    }

    /// See [`Definition::check_currencies`].
    pub fn check_currencies(&self, currencies: &Currencies) -> Result<(), Rejection> {
        check_currencies(self.periods.as_deref().unwrap_or_default(), currencies)
    }

    fn over(&self, base: &Definition) -> Definition {
        Definition {
            order: self.order.unwrap_or(base.order),
            update: self.update.unwrap_or(base.update),
            ranking: self.ranking.unwrap_or(base.ranking),
            ties: self.ties.unwrap_or(base.ties),
            score: self.score.unwrap_or(base.score),
            subscore: self.subscore.unwrap_or(base.subscore),
            all_time: self.all_time.unwrap_or(base.all_time),
            periods: self.periods.clone().unwrap_or_else(|| base.periods.clone()),
            rules_given: base.rules_given,
            // A board that a caller creates explicitly exists even without players.
            implicit: false,
        }
        .number(&base.periods)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_wish_creates_the_defaults_and_repeats_anything() {
        let created = BoardSpec::default().create().unwrap();
        assert_eq!(created, Definition::default());
        let other = Definition { order: Order::Ascending, ..Definition::default() };
        assert_eq!(BoardSpec::default().change(&other).unwrap(), other);
    }

    #[test]
    fn every_fixed_field_that_differs_is_named() {
        let spec =
            BoardSpec { order: Some(Order::Ascending), ties: Some(Ties::Last), ..BoardSpec::default() };
        let rejection = spec.change(&Definition::default()).unwrap_err();
        assert_eq!(rejection, Rejection::DefinitionConflict(vec!["order", "ties"]));
    }

    #[test]
    fn contradictions_are_refused() {
        let sum = BoardSpec {
            update: Some(Update::Sum),
            subscore: Some(Subscore::Ascending),
            ..BoardSpec::default()
        };
        assert!(matches!(sum.create(), Err(Rejection::InvalidDefinition(_))));
        let nothing = BoardSpec { all_time: Some(false), ..BoardSpec::default() };
        assert!(matches!(nothing.create(), Err(Rejection::InvalidDefinition(_))));
    }

    #[test]
    fn names_read_back() {
        for ties in Ties::ALL {
            assert_eq!(Ties::parse(ties.as_str()), Some(*ties));
        }
        assert_eq!(Ties::parse("First"), None);
        assert_eq!(Update::choices(), "best, latest, sum");
    }
}
