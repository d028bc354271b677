//! Which member pays which other member.

use tally_load::{Draws, Random, Skew};

/// The distribution of payers and payees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Traffic {
    /// Between any two members.
    Uniform,
    /// From any member, mostly to a few.
    Zipf,
    /// From any member, to one member.
    Hot,
}

pub(super) const TRAFFICS: [Traffic; 3] = [Traffic::Uniform, Traffic::Zipf, Traffic::Hot];

impl Traffic {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipf => "Zipf 0.99",
            Self::Hot => "to one wallet",
        }
    }
}

/// Transfers of one caller.
pub(super) struct Pairs {
    traffic: Traffic,
    members: u64,
    any_member: Draws,
    getters: Draws,
    random: Random,
}

impl Pairs {
    pub(super) fn new(traffic: Traffic, members: u64, caller: usize) -> Self {
        let skew = if traffic == Traffic::Zipf { Skew::Zipf } else { Skew::Uniform };
        Self {
            traffic,
            members,
            any_member: Draws::new(Skew::Uniform, members),
            getters: Draws::new(skew, members),
            random: Random::new(caller as u64),
        }
    }

    /// The payer and the payee: two different members.
    pub(super) fn next(&mut self) -> (u64, u64) {
        let from = self.any_member.draw(&mut self.random);
        let to = match self.traffic {
            Traffic::Hot => 0,
            Traffic::Uniform | Traffic::Zipf => self.getters.draw(&mut self.random),
        };
        if from == to { ((from + 1) % self.members, to) } else { (from, to) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_members_take_part() {
        for traffic in TRAFFICS {
            let mut pairs = Pairs::new(traffic, 10, 1);
            let mut to_first = 0;
            for _ in 0..1_000 {
                let (from, to) = pairs.next();
                assert!(from != to && from < 10 && to < 10);
                to_first += u32::from(to == 0);
            }
            assert_eq!(to_first == 1_000, traffic == Traffic::Hot);
        }
    }
}
