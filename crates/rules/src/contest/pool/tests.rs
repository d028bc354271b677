//! Pools: wrong definitions by table, amounts by table, and random rankings of which no unit is lost or made.

use super::*;
use crate::contest::Contest;
use crate::instant::Micros;
use crate::ledger::Uuid;
use proptest::prelude::*;

fn krw() -> Currency {
    Currency::parse("KRW").unwrap()
}

fn amount(units: i64) -> Amount {
    Amount::new(units).unwrap()
}

fn pool(shares: &[(u32, u32, u32)], rake: u32, min: i64) -> PrizePool {
    let prizes = shares.iter().map(|(from, to, share)| PoolPrize { from: *from, to: *to, share: *share });
    PrizePool { prizes: prizes.collect(), rake, min: Amount::new(min).ok() }
}

#[test]
fn pools_that_cannot_be() {
    let fee = |units| Some(Fee { currency: krw(), amount: amount(units) });
    type Case<'a> = (&'a [(u32, u32, u32)], u32, Option<Fee>, u32, &'a [&'a str]);
    let whole: &[(u32, u32, u32)] = &[(1, 1, 5_000), (2, 3, 2_500)];
    let rows: &[Case<'_>] = &[
        (whole, 0, fee(1), 10, &[]),
        (whole, WHOLE, fee(AMOUNT_MAX), 1, &[]),
        (whole, 0, fee(AMOUNT_MAX), 2, &["/pool"]),
        (whole, WHOLE + 1, None, 1, &["/pool", "/pool/rake"]),
        (&[], 0, fee(1), 1, &["/pool/prizes"]),
        (&[(1, 1, 5_000), (2, 3, 2_501)], 0, fee(1), 1, &["/pool/prizes/1/share"]),
        (&[(1, u32::MAX, u32::MAX)], 0, fee(1), 1, &["/pool/prizes/0/share"]),
        (
            &[(0, 1, 1), (2, 1, 1), (3, 3, 0)],
            0,
            fee(1),
            1,
            &["/pool/prizes/0/from", "/pool/prizes/1/to", "/pool/prizes/2/share"],
        ),
        (&[(1, 4, 1), (4, 4, 1)], 0, fee(1), 1, &["/pool/prizes/1/from"]),
    ];
    for (shares, rake, fee, capacity, wanted) in rows {
        let wrong = pool(shares, *rake, 0).check(*fee, *capacity);
        assert_eq!(wrong.iter().map(|one| one.pointer.as_str()).collect::<Vec<_>>(), *wanted, "{shares:?}");
    }
    let many = vec![(1, 1, 1); PRIZES_MAX + 1];
    assert!(pool(&many, 0, 0).check(fee(1), 1).iter().any(|one| one.pointer == "/pool/prizes"));
}

#[test]
fn what_is_to_be_won() {
    // (fees, rake, minimum, what is to be won)
    let rows = [
        (1_000, 0, 0, 1_000),
        (1_000, 1_000, 0, 900),
        (999, 1_000, 0, 900),
        (9, 1_000, 0, 9),
        (1_000, WHOLE, 0, 0),
        (1_000, 1_000, 900, 900),
        (1_000, 1_000, 950, 950),
        (0, 0, 70, 70),
        (AMOUNT_MAX, 1, 0, AMOUNT_MAX - AMOUNT_MAX / 10_000),
    ];
    for (fees, rake, min, wanted) in rows {
        assert_eq!(pool(&[(1, 1, 1)], rake, min).to_win(fees), wanted, "{fees} {rake} {min}");
    }
    assert_eq!(
        [(2, 3), (1, 3), (0, 3), (0, 0)].map(|(some, all)| PrizePool::of_division(100, some, all)),
        [66, 33, 0, 0]
    );
}

#[test]
fn ranks_get_their_shares_rounded_down() {
    let table = [(1, 1, 5_000), (2, 3, 2_000), (5, 5, 1_000)];
    type Case<'a> = (i64, &'a [bool], &'a [(usize, u32, i64)]);
    let rows: &[Case<'_>] = &[
        // Whether each player shares the rank before; (player, rank, amount).
        (1_001, &[false; 5], &[(0, 1, 500), (1, 2, 200), (2, 3, 200), (4, 5, 100)]),
        (1_001, &[false, true, false], &[(0, 1, 350), (1, 1, 350), (2, 3, 200)]),
        // The last of them shares the rank with no share: a third of half a part is not rounded twice.
        (
            1_000,
            &[false, false, false, true, true],
            &[(0, 1, 500), (1, 2, 200), (2, 3, 100), (3, 3, 100), (4, 3, 100)],
        ),
        (4, &[false; 3], &[(0, 1, 2)]),
        (0, &[false; 3], &[]),
    ];
    for (to_win, same, wanted) in rows {
        let ranked: Vec<(usize, bool)> = same.iter().copied().enumerate().collect();
        let found = pool(&table, 0, 0).shares(krw(), *to_win, &ranked);
        let found: Vec<_> = found.iter().map(|one| (one.player, one.rank, one.amount.units())).collect();
        assert_eq!(found, *wanted, "{to_win} {same:?}");
    }
}

proptest! {
    /// Each group gets the parts of its positions, written out one by one, and all together never more than is to be won.
    #[test]
    fn shares_are_those_of_the_positions_and_never_more_than_the_pool(
        parts in proptest::collection::vec((0_u32..2, 1_u32..3, 1_u32..2_500), 1..5),
        same in proptest::collection::vec(any::<bool>(), 0..12), to_win in 0_i64..AMOUNT_MAX,
    ) {
        let (mut next, mut left, mut table) = (1, WHOLE, Vec::new());
        for (gap, length, share) in parts {
            let (from, share) = (next + gap, share.min(left / length));
            next = from + length;
            left -= share * length;
            table.extend((share > 0).then_some((from, next - 1, share)));
        }
        prop_assume!(!table.is_empty());
        let pool = pool(&table, 0, 0);
        let ranked: Vec<(usize, bool)> = same.iter().enumerate().map(|(at, same)| (at, at > 0 && *same)).collect();
        let found = pool.shares(krw(), to_win, &ranked);
        let share_of = |place: usize| -> i128 {
            let rank = u32::try_from(place).unwrap() + 1;
            table.iter().find(|(from, to, _)| (*from..=*to).contains(&rank)).map_or(0, |one| one.2.into())
        };
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for (at, same) in &ranked {
            match groups.last_mut() {
                Some(last) if *same => last.push(*at),
                _ => groups.push(vec![*at]),
            }
        }
        for group in groups {
            let shares: i128 = group.iter().map(|place| share_of(*place)).sum();
            let wanted = i128::from(to_win) * shares / (i128::from(WHOLE) * group.len() as i128);
            for place in group {
                let mine: i128 = found.iter().filter(|one| one.player == place).map(|one| i128::from(one.amount.units())).sum();
                prop_assert_eq!(mine, wanted);
            }
        }
        prop_assert!(found.iter().map(|one| one.amount.units()).sum::<i64>() <= to_win);
    }

    /// The rake and the minimum never make the rest negative: what is won is not more than the fees or the minimum.
    #[test]
    fn what_is_won_is_the_fees_without_the_rake_or_the_minimum(fees in 0_i64..AMOUNT_MAX, rake in 0_u32..=WHOLE, min in 0_i64..AMOUNT_MAX) {
        let to_win = pool(&[(1, 1, WHOLE)], rake, min).to_win(fees);
        prop_assert!(to_win >= min && (to_win <= fees || to_win == min));
        let taken = i128::from(fees) * i128::from(rake);
        prop_assert!(to_win == min || i128::from(fees - to_win) == taken / i128::from(WHOLE));
    }
}

#[test]
fn which_transfers_of_a_pool_can_be_reversed() {
    let contest = Contest {
        entry_fee: Some(Fee { currency: krw(), amount: amount(9) }),
        pool: Some(pool(&[(1, 1, WHOLE)], 0, 0)),
        ..Contest::default()
    };
    let mut record = ContestRecord::new(Uuid([2; 16]), contest, None, Micros(1));
    let (pool, ann) = (record.pool_account().unwrap(), MemberId(Uuid([1; 16])));
    let transfer = |kind, debit: Option<MemberId>, credit: Option<MemberId>| {
        let [debit, credit] = [debit, credit].map(|member| member.map(|member| (member, 1)));
        let origin = crate::actor::Origin::default();
        Transfer { kind, reverses: None, currency: krw(), amount: 9, debit, credit, origin }
    };
    let fee = transfer(EntryKind::Fee, Some(ann), Some(pool));
    let prize = transfer(EntryKind::PrizeOut, Some(pool), Some(ann));
    let never = [transfer(EntryKind::Fee, Some(pool), None), transfer(EntryKind::Prize, None, Some(pool))];
    let (ok, over) = (Ok(()), |state| Err(Rejection::ContestState(state)));
    record.enter(ContestState::Running, Micros(2), Micros(2));
    assert_eq!(record.check_reversal(&fee), ok);
    record.members = 3;
    record.note_reversal(&fee, 4);
    assert_eq!((record.reversed_fee(ann), record.fees_left()), (4, 23));
    record.enter(ContestState::Finished, Micros(3), Micros(3));
    assert_eq!(record.check_reversal(&fee), ok);
    record.work = super::super::record::ContestTask::Determine;
    assert_eq!(record.check_reversal(&fee), over(ContestState::Settled));
    record.enter(ContestState::Settled, Micros(4), Micros(4));
    assert_eq!(
        (record.check_reversal(&fee), record.check_reversal(&prize)),
        (over(ContestState::Settled), ok)
    );
    record.note_reversal(&prize, 1);
    assert_eq!(record.reversed_payouts, 1);
    record.enter(ContestState::Cancelled, Micros(4), Micros(4));
    record.work = super::super::record::ContestTask::None;
    assert_eq!(record.check_reversal(&fee), over(ContestState::Cancelled));
    for one in &never {
        assert_eq!(record.check_reversal(one), Err(Rejection::NotReversible), "{one:?}");
    }
    // A prize of a period has nothing to do with the pool.
    assert_eq!(record.check_reversal(&transfer(EntryKind::Prize, None, Some(ann))), Ok(()));
}
