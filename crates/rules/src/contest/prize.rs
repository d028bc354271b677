//! Prizes: what each rank gets, and what players that share a rank get.
//!
//! Ranks are those of competition ranking: players that share a rank fill the positions from it on. `split` gives each an
//! equal part of what those positions get together, for each currency separately; the remainder is not paid. `each` gives each
//! the prize of the shared rank. An ordinal board has no shared ranks. Amounts are integers of the smallest unit. The check of
//! a table bounds its total, so nothing overflows later.

use crate::ledger::money::BALANCE_MAX;
use crate::ledger::{Amount, Currency};
use crate::named;
use std::collections::BTreeMap;

/// The most ranges that a table may have.
pub const PRIZES_MAX: usize = 200;

/// What every rank from `from` to `to` gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prize {
    /// The first rank, from 1.
    pub from: u32,
    /// The last rank.
    pub to: u32,
    /// The currency.
    pub currency: Currency,
    /// The amount for each rank.
    pub amount: Amount,
}

named! {
    /// What players that share a rank get.
    pub enum PrizeTies { /// Equal parts of the positions that they fill.
        Split = "split", /// Each the prize of the shared rank.
        Each = "each" }
}

/// A wrong field of a table: the index in the list, the name, and the reason.
pub type WrongPrize = (usize, &'static str, String);

impl Prize {
    fn ranks(&self) -> i128 {
        i128::from(self.to) - i128::from(self.from) + 1
    }
}

/// Refuses a range of ranks that is empty, or that overlaps one before it.
pub(super) fn check_range(
    (from, to): (u32, u32),
    mut before: impl Iterator<Item = (u32, u32)>,
) -> Result<(), (&'static str, String)> {
    if from == 0 {
        return Err(("from", "ranks begin at 1".into()));
    }
    if to < from {
        return Err(("to", "must not be before `from`".into()));
    }
    match before.find(|other| other.0 <= to && from <= other.1) {
        Some(other) => Err(("from", format!("another prize is for ranks {} to {}", other.0, other.1))),
        None => Ok(()),
    }
}

/// Refuses an invalid table; `most` is the limit of members.
pub fn check(prizes: &[Prize], ties: PrizeTies, most: u32) -> Result<(), WrongPrize> {
    let mut sums: BTreeMap<Currency, i128> = BTreeMap::new();
    for (at, prize) in prizes.iter().enumerate() {
        let before = prizes[..at].iter().map(|one| (one.from, one.to));
        check_range((prize.from, prize.to), before).map_err(|(field, why)| (at, field, why))?;
        // With `each`, all members may share a rank.
        let ranks = match ties {
            PrizeTies::Split => prize.ranks(),
            PrizeTies::Each => prize.ranks().max(most.into()),
        };
        let sum = sums.entry(prize.currency).or_default();
        *sum += i128::from(prize.amount.units()) * ranks;
        if *sum > i128::from(BALANCE_MAX) {
            return Err((
                at,
                "amount",
                format!("all prizes in {} are more than {BALANCE_MAX}", prize.currency),
            ));
        }
    }
    Ok(())
}

/// The last rank with a prize; 0 if there is none.
pub fn last_rank(prizes: &[Prize]) -> u32 {
    prizes.iter().map(|prize| prize.to).max().unwrap_or(0)
}

/// What each of `tied` players gets that share the rank `rank`, in order of currency.
pub fn share(prizes: &[Prize], ties: PrizeTies, rank: u32, tied: u32) -> Vec<(Currency, Amount)> {
    let places = match ties {
        PrizeTies::Split => tied,
        PrizeTies::Each => 1,
    };
    let (first, last) = (i128::from(rank), i128::from(rank) + i128::from(places) - 1);
    let mut sums: BTreeMap<Currency, i128> = BTreeMap::new();
    for prize in prizes {
        let common = last.min(prize.to.into()) - first.max(prize.from.into()) + 1;
        if common > 0 {
            *sums.entry(prize.currency).or_default() += common * i128::from(prize.amount.units());
        }
    }
    let each = |(currency, sum): (Currency, i128)| {
        let units = i64::try_from(sum / i128::from(places)).ok()?;
        // Less than one unit is not paid. No part exceeds the largest prize.
        Some((currency, Amount::new(units).ok()?))
    };
    sums.into_iter().filter_map(each).collect()
}

/// One prize of one player.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share<T> {
    /// The player.
    pub player: T,
    /// The rank that it is for.
    pub rank: u32,
    /// The currency.
    pub currency: Currency,
    /// The amount.
    pub amount: Amount,
}

/// All payouts of a final ranking, best first. The flag says whether a player shares the rank of the one before. `ranked` may
/// end after the last rank with a prize and the players that share it.
pub fn shares<T: Clone>(prizes: &[Prize], ties: PrizeTies, ranked: &[(T, bool)]) -> Vec<Share<T>> {
    distribute(last_rank(prizes), ranked, |rank, tied| share(prizes, ties, rank, tied))
}

/// The payouts of a ranking up to a rank, where `parts` says what each of so many players gets that share a rank.
pub(super) fn distribute<T: Clone>(
    last: u32,
    ranked: &[(T, bool)],
    parts: impl Fn(u32, u32) -> Vec<(Currency, Amount)>,
) -> Vec<Share<T>> {
    let last = last as usize;
    let mut shares = Vec::new();
    let mut first = 0;
    while first < ranked.len() && first < last {
        let tied = 1 + ranked[first + 1..].iter().take_while(|(_, same)| *same).count();
        let rank = u32::try_from(first + 1).expect("not past the last rank");
        let parts = parts(rank, u32::try_from(tied).expect("fewer members than 2^32"));
        for (player, _) in &ranked[first..first + tied] {
            let of = |(currency, amount): &(Currency, Amount)| Share {
                player: player.clone(),
                rank,
                currency: *currency,
                amount: *amount,
            };
            shares.extend(parts.iter().map(of));
        }
        first += tied;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn code(text: &str) -> Currency {
        Currency::parse(text).unwrap()
    }

    fn prize(from: u32, to: u32, currency: &str, amount: i64) -> Prize {
        Prize { from, to, currency: code(currency), amount: Amount::new(amount).unwrap() }
    }

    #[test]
    fn tables_that_cannot_be() {
        let big = 1_000_000_000_000_000;
        type Table<'a> = (&'a [Prize], PrizeTies, Option<(usize, &'a str)>);
        let rows: &[Table<'_>] = &[
            (&[prize(1, 1, "KRW", 5), prize(2, 3, "KRW", 5)], PrizeTies::Split, None),
            (&[prize(2, 3, "KRW", 5), prize(1, 1, "USD", 5)], PrizeTies::Split, None),
            (&[prize(0, 3, "KRW", 5)], PrizeTies::Split, Some((0, "from"))),
            (&[prize(1, 1, "KRW", 5), prize(3, 2, "KRW", 5)], PrizeTies::Split, Some((1, "to"))),
            (&[prize(1, 2, "KRW", 5), prize(2, 3, "USD", 5)], PrizeTies::Split, Some((1, "from"))),
            (&[prize(5, 9, "KRW", 5), prize(1, 5, "KRW", 5)], PrizeTies::Split, Some((1, "from"))),
            (&[prize(1, 9_000, "KRW", big)], PrizeTies::Split, None),
            (&[prize(1, 9_000, "KRW", big), prize(9_001, 9_001, "USD", 1)], PrizeTies::Split, None),
            (
                &[prize(1, 9_000, "KRW", big), prize(9_001, 9_001, "KRW", 1)],
                PrizeTies::Split,
                Some((1, "amount")),
            ),
            (&[prize(1, u32::MAX, "KRW", big)], PrizeTies::Split, Some((0, "amount"))),
            // Ten thousand members may share the first rank.
            (&[prize(1, 1, "KRW", big)], PrizeTies::Each, Some((0, "amount"))),
            (&[prize(1, 1, "KRW", big / 10)], PrizeTies::Each, None),
        ];
        for (table, ties, wanted) in rows {
            let found = check(table, *ties, 10_000).err().map(|(at, field, _)| (at, field));
            assert_eq!(found, *wanted, "{table:?}");
        }
    }

    #[test]
    fn players_of_one_rank() {
        let table = [prize(1, 1, "KRW", 500), prize(2, 3, "KRW", 50), prize(4, 4, "XP", 7)];
        type Case<'a> = (PrizeTies, u32, u32, &'a [(&'a str, i64)]);
        let rows: &[Case<'_>] = &[
            (PrizeTies::Split, 1, 1, &[("KRW", 500)]),
            (PrizeTies::Split, 1, 2, &[("KRW", 275)]),
            // 600 for three positions, 200 each. With the fourth: 150 each, and 7 of the other currency, of which 3 remain.
            (PrizeTies::Split, 1, 3, &[("KRW", 200)]),
            (PrizeTies::Split, 1, 4, &[("KRW", 150), ("XP", 1)]),
            // 7 for 8 players are 0 each.
            (PrizeTies::Split, 4, 8, &[]),
            (PrizeTies::Split, 3, 4, &[("KRW", 12), ("XP", 1)]),
            (PrizeTies::Split, 5, 2, &[]),
            (PrizeTies::Each, 1, 1_000, &[("KRW", 500)]),
            (PrizeTies::Each, 3, 2, &[("KRW", 50)]),
            (PrizeTies::Each, 5, 2, &[]),
        ];
        for (ties, rank, tied, wanted) in rows {
            let found = share(&table, *ties, *rank, *tied);
            let found: Vec<_> = found.iter().map(|(code, amount)| (code.as_str(), amount.units())).collect();
            assert_eq!(found, *wanted, "{ties} {rank} {tied}");
        }
    }

    fn any_table() -> impl Strategy<Value = Vec<Prize>> {
        let range = (0_u32..3, 1_u32..4, 0_usize..2, 1_i64..100);
        proptest::collection::vec(range, 0..5).prop_map(|ranges| {
            let mut next = 1;
            let mut table = Vec::new();
            for (gap, length, currency, amount) in ranges {
                let from = next + gap;
                next = from + length;
                table.push(prize(from, next - 1, ["KRW", "XP"][currency], amount));
            }
            table
        })
    }

    proptest! {
        /// Compares with the positions written out one by one.
        #[test]
        fn shares_are_those_of_the_places(
            table in any_table(), scores in proptest::collection::vec(0_u8..6, 0..14), each in any::<bool>()
        ) {
            let ties = if each { PrizeTies::Each } else { PrizeTies::Split };
            let mut scores = scores;
            scores.sort_unstable_by(|a, b| b.cmp(a));
            let ranked: Vec<(usize, bool)> =
                (0..scores.len()).map(|at| (at, at > 0 && scores[at] == scores[at - 1])).collect();
            let of_place = |place: usize, code: Currency| -> i64 {
                let rank = u32::try_from(place).unwrap() + 1;
                let of = |prize: &&Prize| (prize.from..=prize.to).contains(&rank) && prize.currency == code;
                table.iter().find(of).map_or(0, |prize| prize.amount.units())
            };
            let found = shares(&table, ties, &ranked);
            for code in ["KRW", "XP"].map(code) {
                let mut paid_in_all = 0;
                for (at, score) in scores.iter().enumerate() {
                    let group: Vec<usize> = (0..scores.len()).filter(|other| scores[*other] == *score).collect();
                    let wanted = match ties {
                        PrizeTies::Each => of_place(group[0], code),
                        PrizeTies::Split => {
                            let sum: i64 = group.iter().map(|place| of_place(*place, code)).sum();
                            sum / i64::try_from(group.len()).unwrap()
                        }
                    };
                    let mine = found.iter().filter(|share| share.player == at && share.currency == code);
                    let mine: Vec<i64> = mine.map(|share| share.amount.units()).collect();
                    prop_assert_eq!(mine, if wanted == 0 { vec![] } else { vec![wanted] });
                    paid_in_all += wanted;
                }
                if ties == PrizeTies::Split {
                    let whole: i64 = (0..scores.len()).map(|place| of_place(place, code)).sum();
                    prop_assert!(paid_in_all <= whole);
                }
            }
        }
    }
}
