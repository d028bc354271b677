//! The definition of a contest: the spec of a caller, its checks, and which fields may still change in which state.
//!
//! A check names every wrong field at once, by its JSON pointer. Applicants were promised fee, prizes, leaderboard and
//! capacity: these are fixed once players may apply (capacity may still grow). Every other field is fixed once it has
//! taken effect. A field that a patch leaves unchanged passes. Not here: permission to patch (`state`), and period schedules.

#[cfg(test)]
mod tests;

use super::application::Capacity;
use super::pool::PrizePool;
use super::prize::{self, Prize, PrizeTies};
use super::state::ContestState;
use crate::definition::Definition;
use crate::ids::PlayerId;
use crate::instant::Micros;
use crate::ledger::{Amount, Currencies, Currency};
use crate::named;
use crate::rejection::{Rejection, WrongField};
use std::num::NonZeroU32;

/// The longest title, in bytes.
pub const TITLE_BYTES_MAX: usize = 200;

/// The longest review, and the longest time to join, in seconds: a year.
pub const LENGTH_S_MAX: u32 = 366 * 86_400;

/// The most players that a contest may have as staff.
pub const STAFF_MAX: usize = 100;

named! {
    /// What a bad application does to a start.
    pub enum OnInvalid { /// The start fails.
        Reject = "reject", /// The other applications start.
        Skip = "skip" }
}
named! {
    /// What the clock does at the start of a contest with fewer members than it needs.
    pub enum BelowMin { /// It cancels the contest.
        Cancel = "cancel", /// It starts the contest all the same.
        Start = "start" }
}

/// The entry fee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fee {
    /// The currency.
    pub currency: Currency,
    /// The amount.
    pub amount: Amount,
}

/// A contest's definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contest {
    /// The title that users see.
    pub title: String,
    /// The players that manage the contest.
    pub staff: Vec<PlayerId>,
    /// How many applications may be accepted.
    pub capacity: u32,
    /// What a bad application does to a start.
    pub on_invalid: OnInvalid,
    /// Whether an application is accepted at once while there is room.
    pub auto_accept: bool,
    /// How many members the clock starts it with, if it needs some.
    pub players_min: Option<NonZeroU32>,
    /// What the clock does with fewer.
    pub below_min: BelowMin,
    /// For how many seconds after its start players may still join it.
    pub join_s: Option<NonZeroU32>,
    /// How many scores each member may submit.
    pub attempts_max: Option<NonZeroU32>,
    /// The entry fee.
    pub entry_fee: Option<Fee>,
    /// Its leaderboard, or that of each division.
    pub leaderboard: Definition,
    /// The prizes of the ranks.
    pub prizes: Vec<Prize>,
    /// What players get that share a rank.
    pub prize_ties: PrizeTies,
    /// The prizes of the ranks that are parts of the fees.
    pub pool: Option<PrizePool>,
    /// How many members a division has, if there are divisions.
    pub division_size: Option<NonZeroU32>,
    /// When the clock opens it.
    pub opens_at: Option<Micros>,
    /// When the clock starts it.
    pub starts_at: Option<Micros>,
    /// When the clock ends it.
    pub ends_at: Option<Micros>,
    /// How many seconds after its end the clock settles it. Without it: at once in a series, else by hand.
    pub review_s: Option<u32>,
}

impl Default for Contest {
    fn default() -> Self {
        Self {
            title: String::new(),
            staff: Vec::new(),
            capacity: 1,
            on_invalid: OnInvalid::Reject,
            auto_accept: false,
            players_min: None,
            below_min: BelowMin::Cancel,
            join_s: None,
            attempts_max: None,
            entry_fee: None,
            leaderboard: Definition::default(),
            prizes: Vec::new(),
            prize_ties: PrizeTies::Split,
            pool: None,
            division_size: None,
            opens_at: None,
            starts_at: None,
            ends_at: None,
            review_s: None,
        }
    }
}

/// The limits of all contests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContestLimits {
    /// Members of a contest without a fee.
    pub members_max: u32,
    /// Members of a contest with a fee.
    pub paying_members_max: u32,
    /// Applications that a contest may have at a time.
    pub applications_max: u32,
}

impl Default for ContestLimits {
    fn default() -> Self {
        Self { members_max: 100_000, paying_members_max: 10_000, applications_max: 1_000_000 }
    }
}

/// A spec for a contest. A field that a caller left out keeps its present or default value; `Some(None)` removes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContestSpec {
    /// See [`Contest::title`].
    pub title: Option<String>,
    /// See [`Contest::staff`].
    pub staff: Option<Vec<PlayerId>>,
    /// See [`Contest::capacity`].
    pub capacity: Option<u32>,
    /// See [`Contest::on_invalid`].
    pub on_invalid: Option<OnInvalid>,
    /// See [`Contest::auto_accept`].
    pub auto_accept: Option<bool>,
    /// See [`Contest::players_min`].
    pub players_min: Option<Option<NonZeroU32>>,
    /// See [`Contest::below_min`].
    pub below_min: Option<BelowMin>,
    /// See [`Contest::join_s`].
    pub join_s: Option<Option<NonZeroU32>>,
    /// See [`Contest::attempts_max`].
    pub attempts_max: Option<Option<NonZeroU32>>,
    /// See [`Contest::entry_fee`].
    pub entry_fee: Option<Option<Fee>>,
    /// See [`Contest::leaderboard`].
    pub leaderboard: Option<Definition>,
    /// See [`Contest::prizes`].
    pub prizes: Option<Vec<Prize>>,
    /// See [`Contest::prize_ties`].
    pub prize_ties: Option<PrizeTies>,
    /// See [`Contest::pool`].
    pub pool: Option<Option<PrizePool>>,
    /// See [`Contest::division_size`].
    pub division_size: Option<Option<NonZeroU32>>,
    /// See [`Contest::opens_at`].
    pub opens_at: Option<Option<Micros>>,
    /// See [`Contest::starts_at`].
    pub starts_at: Option<Option<Micros>>,
    /// See [`Contest::ends_at`].
    pub ends_at: Option<Option<Micros>>,
    /// See [`Contest::review_s`].
    pub review_s: Option<Option<u32>>,
}

/// The name of a field, the state from which it is fixed, and whether it has changed.
type Field = (&'static str, ContestState, fn(&Contest, &Contest) -> bool);

/// Every field, with the state from which it is fixed.
pub const FROZEN_FROM: &[Field] = &[
    ("title", ContestState::Settled, |old, new| old.title != new.title),
    ("staff", ContestState::Settled, |old, new| old.staff != new.staff),
    // The capacity may still grow until there are members.
    ("capacity", ContestState::Open, |old, new| new.capacity < old.capacity),
    ("capacity", ContestState::Running, |old, new| new.capacity != old.capacity),
    ("on_invalid", ContestState::Running, |old, new| old.on_invalid != new.on_invalid),
    ("auto_accept", ContestState::Running, |old, new| old.auto_accept != new.auto_accept),
    ("players_min", ContestState::Running, |old, new| old.players_min != new.players_min),
    ("below_min", ContestState::Running, |old, new| old.below_min != new.below_min),
    ("join_s", ContestState::Finished, |old, new| old.join_s != new.join_s),
    ("attempts_max", ContestState::Open, |old, new| old.attempts_max != new.attempts_max),
    ("entry_fee", ContestState::Open, |old, new| old.entry_fee != new.entry_fee),
    ("leaderboard", ContestState::Open, |old, new| old.leaderboard != new.leaderboard),
    ("prizes", ContestState::Open, |old, new| old.prizes != new.prizes),
    ("prize_ties", ContestState::Open, |old, new| old.prize_ties != new.prize_ties),
    ("pool", ContestState::Open, |old, new| old.pool != new.pool),
    ("division_size", ContestState::Running, |old, new| old.division_size != new.division_size),
    ("opens_at", ContestState::Open, |old, new| old.opens_at != new.opens_at),
    ("starts_at", ContestState::Running, |old, new| old.starts_at != new.starts_at),
    ("ends_at", ContestState::Finished, |old, new| old.ends_at != new.ends_at),
    ("review_s", ContestState::Settled, |old, new| old.review_s != new.review_s),
];

impl Contest {
    /// Whether only members may take part: their wallets pay or are paid.
    pub fn needs_members(&self) -> bool {
        self.entry_fee.is_some() || !self.prizes.is_empty()
    }

    /// Whether both have the same capacity, and either both or neither a fee.
    fn is_as_large(&self, other: &Self) -> bool {
        (self.capacity, self.entry_fee.is_some()) == (other.capacity, other.entry_fee.is_some())
    }

    /// Whether a player is staff.
    pub fn is_staff(&self, player: &PlayerId) -> bool {
        self.staff.contains(player)
    }

    /// Whether the clock cancels it instead of starting it with this many members.
    pub fn lacks_members(&self, members: u32) -> bool {
        self.below_min == BelowMin::Cancel && self.players_min.is_some_and(|least| members < least.get())
    }

    /// The number of leaderboards for this many members.
    pub fn boards_of(&self, members: u32) -> u32 {
        self.division_size.map_or(1, |size| members.div_ceil(size.get()))
    }

    /// How many applications may be accepted if this many leaderboards may still be made.
    pub fn room(&self, boards: u32) -> Capacity {
        let most = match self.division_size {
            Some(size) => boards.saturating_mul(size.get()),
            None if boards == 0 => 0,
            None => u32::MAX,
        };
        Capacity { capacity: self.capacity, boards: most }
    }

    /// Refuses an invalid definition and names every wrong field.
    pub fn check(&self, currencies: &Currencies, bounds: ContestLimits) -> Result<(), Rejection> {
        let mut wrong: Vec<WrongField> = Vec::new();
        let mut no = |pointer: String, why: String| wrong.push(WrongField { pointer, why });
        if self.title.trim().is_empty() || self.title.len() > TITLE_BYTES_MAX {
            no("/title".into(), format!("must be 1 to {TITLE_BYTES_MAX} bytes, not only spaces"));
        } else if self.title.chars().any(char::is_control) {
            no("/title".into(), "must not contain control characters".into());
        }
        if self.staff.len() > STAFF_MAX {
            no("/staff".into(), format!("must be at most {STAFF_MAX} players"));
        }
        for (at, player) in self.staff.iter().enumerate().take(STAFF_MAX) {
            if self.staff[..at].contains(player) {
                no(format!("/staff/{at}"), "is named before".into());
            }
        }
        if self.capacity == 0 {
            no("/capacity".into(), "must be 1 or more".into());
        }
        if self.players_min.is_some_and(|least| least.get() > self.capacity) {
            no("/players_min".into(), "must not exceed `capacity`".into());
        }
        if let Some(rejection) = self.entry_fee.and_then(|fee| currencies.check(fee.currency).err()) {
            no("/entry_fee/currency".into(), rejection.detail());
        }
        let leaderboard = self.leaderboard.check();
        if let Err(rejection) = leaderboard.and_then(|()| self.leaderboard.check_currencies(currencies)) {
            match rejection {
                Rejection::InvalidDefinition(wrong) => {
                    no(format!("/leaderboard{}", wrong.pointer), wrong.why)
                }
                rejection => no("/leaderboard".into(), rejection.detail()),
            }
        } else if !self.leaderboard.all_time {
            no(
                "/leaderboard/all_time".into(),
                "must be true: the ranks of a contest are those of all its time".into(),
            );
        }
        if self.prizes.len() > prize::PRIZES_MAX {
            no("/prizes".into(), format!("must be at most {} ranges", prize::PRIZES_MAX));
        } else if let Err((at, field, why)) = prize::check(&self.prizes, self.prize_ties, self.capacity) {
            no(format!("/prizes/{at}/{field}"), why);
        }
        for (at, prize) in self.prizes.iter().enumerate().take(prize::PRIZES_MAX) {
            if let Err(rejection) = currencies.check(prize.currency) {
                no(format!("/prizes/{at}/currency"), rejection.detail());
            }
        }
        for WrongField { pointer, why } in
            self.pool.iter().flat_map(|pool| pool.check(self.entry_fee, self.capacity))
        {
            no(pointer, why);
        }
        let times = [("opens_at", self.opens_at), ("starts_at", self.starts_at), ("ends_at", self.ends_at)];
        for (place, (name, at)) in times.iter().enumerate() {
            let before = times[..place].iter().rev().find(|(_, at)| at.is_some());
            let (Some(at), Some((earlier, Some(first)))) = (at, before) else { continue };
            // It may open and start at the same instant, but not end at the instant it starts.
            if at < first || (*name == "ends_at" && at == first) {
                no(format!("/{name}"), format!("must be after `{earlier}`"));
            }
        }
        let lengths = [("review_s", self.review_s), ("join_s", self.join_s.map(NonZeroU32::get))];
        for (name, _) in lengths.iter().filter(|(_, seconds)| seconds.is_some_and(|one| one > LENGTH_S_MAX)) {
            no(format!("/{name}"), format!("must be at most {LENGTH_S_MAX}"));
        }
        if !wrong.is_empty() {
            return Err(Rejection::InvalidContest(wrong));
        }
        let most = if self.entry_fee.is_some() { bounds.paying_members_max } else { bounds.members_max };
        if self.capacity > most { Err(Rejection::ContestTooLarge(most)) } else { Ok(()) }
    }
}

impl ContestSpec {
    /// Whether it sets prizes that make money.
    pub fn has_prizes(&self) -> bool {
        let guarantees = self.pool.iter().flatten().any(|pool| pool.min.is_some());
        guarantees || self.prizes.as_ref().is_some_and(|prizes| !prizes.is_empty())
    }

    /// A new contest.
    pub fn create(&self, currencies: &Currencies, bounds: ContestLimits) -> Result<Contest, Rejection> {
        let paying = self.entry_fee.flatten().is_some();
        let capacity = if paying { bounds.paying_members_max } else { bounds.members_max };
        let contest = self.over(&Contest { capacity, ..Contest::default() });
        contest.check(currencies, bounds)?;
        Ok(contest)
    }

    /// Changes an existing contest in this state.
    pub fn change(
        &self,
        present: &Contest,
        state: ContestState,
        currencies: &Currencies,
        bounds: ContestLimits,
    ) -> Result<Contest, Rejection> {
        let requested = self.over(present);
        let frozen = |field: &&Field| state >= field.1 && field.2(present, &requested);
        let mut fields: Vec<&'static str> = FROZEN_FROM.iter().filter(frozen).map(|field| field.0).collect();
        fields.dedup();
        if !fields.is_empty() {
            return Err(Rejection::ContestFrozen { state, fields });
        }
        match requested.check(currencies, bounds) {
            // The bound was higher when the contest got this capacity.
            Err(Rejection::ContestTooLarge(_)) if requested.is_as_large(present) => {}
            checked => checked?,
        }
        Ok(requested)
    }

    fn over(&self, base: &Contest) -> Contest {
        Contest {
            title: self.title.clone().unwrap_or_else(|| base.title.clone()),
            staff: self.staff.clone().unwrap_or_else(|| base.staff.clone()),
            capacity: self.capacity.unwrap_or(base.capacity),
            on_invalid: self.on_invalid.unwrap_or(base.on_invalid),
            auto_accept: self.auto_accept.unwrap_or(base.auto_accept),
            players_min: self.players_min.unwrap_or(base.players_min),
            below_min: self.below_min.unwrap_or(base.below_min),
            join_s: self.join_s.unwrap_or(base.join_s),
            attempts_max: self.attempts_max.unwrap_or(base.attempts_max),
            entry_fee: self.entry_fee.unwrap_or(base.entry_fee),
            leaderboard: self.leaderboard.clone().unwrap_or_else(|| base.leaderboard.clone()),
            prizes: self.prizes.clone().unwrap_or_else(|| base.prizes.clone()),
            prize_ties: self.prize_ties.unwrap_or(base.prize_ties),
            pool: self.pool.clone().unwrap_or_else(|| base.pool.clone()),
            division_size: self.division_size.unwrap_or(base.division_size),
            opens_at: self.opens_at.unwrap_or(base.opens_at),
            starts_at: self.starts_at.unwrap_or(base.starts_at),
            ends_at: self.ends_at.unwrap_or(base.ends_at),
            review_s: self.review_s.unwrap_or(base.review_s),
        }
    }
}

/// The table of fields and states, as it is in the documentation.
pub fn markdown() -> String {
    let until = |state: ContestState| {
        ContestState::ALL[..ContestState::ALL.iter().position(|one| *one == state).unwrap_or(0)].last()
    };
    let line = |(name, state, _): &Field| {
        let what = if *name == "capacity" && *state == ContestState::Open { " downwards" } else { "" };
        let last = until(*state).map_or("", |state| state.as_str());
        format!("| `{name}`{what} | `{last}` |\n")
    };
    FROZEN_FROM
        .iter()
        .map(line)
        .fold("| field | may change up to |\n|---|---|\n".to_owned(), |text, line| text + &line)
}
