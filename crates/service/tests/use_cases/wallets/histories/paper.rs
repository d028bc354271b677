//! Contests on paper: lists of players, numbers, and the contract of each act.

use std::collections::{BTreeMap, BTreeSet};
use tally_rules::contest::ContestState;

/// The fee, if there is one.
pub(crate) const FEE: i64 = 10;
/// The maximum of accepted applications.
pub(crate) const CAPACITY: usize = 3;
/// The prizes of the first ranks.
pub(crate) const PRIZES: [i64; 3] = [101, 30, 30];

/// The kind of contest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) fee: i64,
    pub(crate) prizes: bool,
    /// Ranks are not shared.
    pub(crate) ordinal: bool,
    /// Players with a shared rank get its prize whole.
    pub(crate) each: bool,
    pub(crate) division: Option<usize>,
}

/// An act on the contest.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Open,
    Apply(usize),
    Accept(usize),
    Reject(usize),
    Withdraw(usize),
    Start,
    /// Two at once.
    StartTwice,
    Score(usize, i64),
    /// On the board of the division after the player's own.
    ScoreElsewhere(usize),
    Ban(usize, bool),
    Finish,
    Settle,
    /// Two at once.
    SettleTwice,
    Cancel,
    /// The score of a player is set in the review.
    Correct(usize, i64),
    /// What could not be paid, which is nothing here.
    Repay,
    /// The fee of a player is taken back.
    ReverseFee(usize),
}

/// One contest.
#[derive(Clone, Debug)]
pub(crate) struct Paper {
    pub(crate) shape: Shape,
    pub(crate) state: ContestState,
    pub(crate) pending: Vec<usize>,
    pub(crate) accepted: Vec<usize>,
    pub(crate) rejected: Vec<usize>,
    /// In order of acceptance.
    pub(crate) members: Vec<usize>,
    /// Whether it ran, or was reviewed, when it was cancelled.
    pub(crate) refunded: bool,
    /// Those whose fees were taken back.
    pub(crate) reversed: BTreeSet<usize>,
    /// The best of each, and when it was reached.
    scores: BTreeMap<usize, (i64, usize)>,
    banned: BTreeSet<usize>,
}

/// The whole model: money by player, and contests.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) money: Vec<i64>,
    pub(crate) contests: Vec<Paper>,
    moments: usize,
}

/// A prize: player, division, rank, amount.
pub(crate) type Prize = (usize, Option<usize>, u32, i64);

fn take(list: &mut Vec<usize>, player: usize) -> bool {
    let found = list.iter().position(|one| *one == player);
    found.map(|at| list.remove(at)).is_some()
}

impl Shape {
    /// Whether money is moved for it.
    pub(crate) fn has_money(&self) -> bool {
        self.fee > 0 || self.prizes
    }
}

impl Paper {
    pub(crate) fn new(shape: Shape) -> Self {
        Self {
            shape,
            state: ContestState::Draft,
            pending: Vec::new(),
            accepted: Vec::new(),
            rejected: Vec::new(),
            members: Vec::new(),
            refunded: false,
            reversed: BTreeSet::new(),
            scores: BTreeMap::new(),
            banned: BTreeSet::new(),
        }
    }

    fn must(&self, state: ContestState) -> Result<(), &'static str> {
        if self.state == state { Ok(()) } else { Err("contest_state") }
    }

    /// The division of a member, from 1; of any other player the first.
    pub(crate) fn division(&self, player: usize) -> Option<usize> {
        let place = self.members.iter().position(|one| *one == player).unwrap_or(0);
        self.shape.division.map(|size| place / size + 1)
    }

    /// All prizes, division by division.
    pub(crate) fn prizes(&self) -> Vec<Prize> {
        if !self.shape.prizes {
            return Vec::new();
        }
        let size = self.shape.division.unwrap_or(usize::MAX);
        let divisions = self.members.chunks(size.min(self.members.len().max(1)));
        divisions.flat_map(|members| self.prizes_of(members)).collect()
    }

    fn prizes_of(&self, members: &[usize]) -> Vec<Prize> {
        let shown = members.iter().filter(|player| !self.banned.contains(player));
        let mut ranked: Vec<_> =
            shown.filter_map(|player| self.scores.get(player).map(|score| (*player, *score))).collect();
        ranked.sort_by_key(|(_, (score, reached))| (std::cmp::Reverse(*score), *reached));
        let of_place = |place: usize| PRIZES.get(place).copied().unwrap_or(0);
        let mut prizes = Vec::new();
        for (place, (player, (score, _))) in ranked.iter().enumerate() {
            let alike = |other: &(usize, (i64, usize))| other.1.0 == *score;
            let shared: Vec<usize> = match self.shape.ordinal {
                true => vec![place],
                false => (0..ranked.len()).filter(|other| alike(&ranked[*other])).collect(),
            };
            let units = match self.shape.each {
                true => of_place(shared[0]),
                false => {
                    shared.iter().map(|place| of_place(*place)).sum::<i64>()
                        / i64::try_from(shared.len()).unwrap()
                }
            };
            if units > 0 {
                let rank = u32::try_from(shared[0] + 1).unwrap();
                prizes.push((*player, self.division(*player), rank, units));
            }
        }
        prizes
    }

    fn before_the_start(&mut self, free: &[i64], op: Op) -> Result<(), &'static str> {
        match op {
            Op::Open => {
                self.must(ContestState::Draft)?;
                self.state = ContestState::Open;
                return Ok(());
            }
            _ => self.must(ContestState::Open)?,
        }
        match op {
            Op::Apply(player) => {
                if self.rejected.contains(&player) {
                    return Err("already_rejected");
                }
                if self.pending.contains(&player) || self.accepted.contains(&player) {
                    return Err("already_applied");
                }
                if free[player] < self.shape.fee {
                    return Err("insufficient_funds");
                }
                self.pending.push(player);
            }
            Op::Accept(player) if self.accepted.contains(&player) => {}
            Op::Accept(player) => {
                if !self.pending.contains(&player) {
                    return Err("not_applied");
                }
                if self.accepted.len() == CAPACITY {
                    return Err("contest_full");
                }
                take(&mut self.pending, player);
                self.accepted.push(player);
            }
            Op::Reject(player) if self.rejected.contains(&player) => {}
            Op::Withdraw(player) if self.rejected.contains(&player) => return Err("already_rejected"),
            Op::Reject(player) | Op::Withdraw(player) => {
                if !take(&mut self.pending, player) && !take(&mut self.accepted, player) {
                    return Err("not_applied");
                }
                if matches!(op, Op::Reject(_)) {
                    self.rejected.push(player);
                }
            }
            _ => unreachable!("it is another's"),
        }
        Ok(())
    }

    /// Whether the board that a player would score on was ever made.
    fn has_board(&self) -> bool {
        match self.state {
            ContestState::Draft | ContestState::Open => false,
            ContestState::Cancelled => {
                self.refunded && (self.shape.division.is_none() || !self.members.is_empty())
            }
            _ => self.shape.division.is_none() || !self.members.is_empty(),
        }
    }

    fn score(&mut self, player: usize, score: i64, moment: usize) -> Result<(), &'static str> {
        if !self.has_board() {
            return Err("leaderboard_not_found");
        }
        self.must(ContestState::Running)?;
        if !self.members.contains(&player) {
            return Err("not_a_member");
        }
        let best = self.scores.entry(player).or_insert((score, moment));
        if score > best.0 {
            *best = (score, moment);
        }
        Ok(())
    }

    /// The reason why a member of one division does not score in the next.
    fn score_elsewhere(&self, player: usize) -> &'static str {
        let (own, size) = (self.division(player).unwrap_or(1), self.shape.division.unwrap_or(usize::MAX));
        match own < self.members.len().div_ceil(size) {
            false => "leaderboard_not_found",
            true => self.must(ContestState::Running).err().unwrap_or("not_a_member"),
        }
    }

    fn correct(&mut self, player: usize, score: i64, moment: usize) -> Result<(), &'static str> {
        self.must(ContestState::Finished)?;
        if !self.members.contains(&player) {
            return Err("player_not_found");
        }
        // The instant decides ties, and stays.
        self.scores.entry(player).or_insert((score, moment)).0 = score;
        Ok(())
    }

    fn ban(&mut self, player: usize, banned: bool) -> Result<(), &'static str> {
        self.must(ContestState::Running).or_else(|_| self.must(ContestState::Finished))?;
        if !self.members.contains(&player) {
            return Err("player_not_found");
        }
        match banned {
            true => self.banned.insert(player),
            false => self.banned.remove(&player),
        };
        Ok(())
    }
}

impl Model {
    pub(crate) fn new(money: Vec<i64>, contests: Vec<Paper>) -> Self {
        Self { money, contests, moments: 0 }
    }

    /// The held amount of a player's money.
    pub(crate) fn held(&self, player: usize) -> i64 {
        let open = self.contests.iter().filter(|one| one.state == ContestState::Open);
        let has = |one: &&Paper| one.pending.contains(&player) || one.accepted.contains(&player);
        open.filter(has).map(|one| one.shape.fee).sum()
    }

    /// Does it, or returns the reason why not.
    pub(crate) fn act(&mut self, contest: usize, op: Op) -> Result<(), &'static str> {
        self.moments += 1;
        let free: Vec<i64> =
            (0..self.money.len()).map(|player| self.money[player] - self.held(player)).collect();
        let (one, money) = (&mut self.contests[contest], &mut self.money);
        match op {
            Op::Open | Op::Apply(_) | Op::Accept(_) | Op::Reject(_) | Op::Withdraw(_) => {
                one.before_the_start(&free, op)?;
            }
            Op::Start | Op::StartTwice => {
                one.must(ContestState::Open)?;
                (one.state, one.members) = (ContestState::Running, std::mem::take(&mut one.accepted));
                one.members.iter().for_each(|player| money[*player] -= one.shape.fee);
            }
            Op::Score(player, score) => one.score(player, score, self.moments)?,
            Op::ScoreElsewhere(player) => return Err(one.score_elsewhere(player)),
            Op::Ban(player, banned) => one.ban(player, banned)?,
            Op::Finish => {
                one.must(ContestState::Running)?;
                one.state = ContestState::Finished;
            }
            Op::Settle | Op::SettleTwice if one.state == ContestState::Settled => {}
            Op::Settle | Op::SettleTwice => {
                one.must(ContestState::Finished)?;
                one.state = ContestState::Settled;
                one.prizes().into_iter().for_each(|(player, _, _, units)| money[player] += units);
            }
            Op::Cancel => match one.state {
                ContestState::Cancelled => {}
                ContestState::Draft | ContestState::Open => one.state = ContestState::Cancelled,
                ContestState::Running | ContestState::Finished => {
                    (one.state, one.refunded) = (ContestState::Cancelled, true);
                    let paying = one.members.iter().filter(|player| !one.reversed.contains(player));
                    paying.for_each(|player| money[*player] += one.shape.fee);
                }
                ContestState::Settled => return Err("contest_state"),
            },
            Op::Correct(player, score) => one.correct(player, score, self.moments)?,
            Op::Repay => one.must(ContestState::Settled).or_else(|_| one.must(ContestState::Cancelled))?,
            Op::ReverseFee(player) => {
                if one.shape.fee == 0 || !one.members.contains(&player) {
                    return Err("transaction_not_found");
                }
                if one.state == ContestState::Cancelled {
                    return Err("contest_state");
                }
                if !one.reversed.insert(player) {
                    return Err("exceeds_reversible");
                }
                money[player] += one.shape.fee;
            }
        }
        Ok(())
    }
}
