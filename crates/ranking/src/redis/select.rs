//! K-way selection: where a position of the whole cuts each of several sorted lists, without reading them.
//!
//! Each round probes some positions of every list that is still open. A probed member has a known position in its own
//! list, and is between two probed ones in each other list. So its position in the whole has a lower and an upper
//! bound. The last probe surely before the cut and the first one surely after it narrow every list. A round narrows
//! some twentyfold, so a board of a hundred million takes five. Nothing here knows Redis; a list may shrink during the
//! search.

use std::ops::Range;

/// Positions probed per list and round.
const PROBES: u64 = 64;
/// Each round narrows at least a little; this many rounds find any cut of lists that do not change.
const ROUNDS_MAX: usize = 64;

/// A probed member.
struct Probe<'a> {
    member: &'a [u8],
    list: usize,
    place: u64,
}

/// The cut in every list with `before` members of all lists before it. The bounds are cuts with fewer and with more.
/// `probe` returns the members at some positions of every list, `None` past an end.
pub(super) fn select<E>(
    bounds: &[(u64, u64)],
    before: u64,
    mut probe: impl FnMut(&[Vec<u64>]) -> Result<Vec<Vec<Option<Vec<u8>>>>, E>,
) -> Result<Vec<u64>, E> {
    let mut open: Vec<Range<u64>> = bounds.iter().map(|(low, high)| *low..*high).collect();
    for _ in 0..ROUNDS_MAX {
        if open.iter().all(Range::is_empty) {
            break;
        }
        let places: Vec<Vec<u64>> = open.iter().map(spread).collect();
        let members = probe(&places)?;
        narrow(&mut open, &places, &members, before);
    }
    Ok(open.into_iter().map(|range| range.start).collect())
}

/// Evenly spread positions of a range; all of them if they are few.
fn spread(range: &Range<u64>) -> Vec<u64> {
    let length = range.end.saturating_sub(range.start);
    let count = length.min(PROBES);
    // Wide enough for any length.
    (0..count)
        .map(|nth| range.start + (u128::from(nth) * u128::from(length) / u128::from(count)) as u64)
        .collect()
}

fn narrow(open: &mut [Range<u64>], places: &[Vec<u64>], members: &[Vec<Option<Vec<u8>>>], before: u64) {
    let mut probes: Vec<Probe<'_>> = Vec::new();
    for (list, (places, members)) in places.iter().zip(members).enumerate() {
        for (place, member) in places.iter().zip(members) {
            match member {
                Some(member) => probes.push(Probe { member, list, place: *place }),
                // The list has become shorter.
                None => open[list].end = open[list].end.min(*place),
            }
        }
    }
    probes.sort_unstable_by(|a, b| a.member.cmp(b.member));
    // The cuts right after the last probe surely before, and right before the first one surely after.
    let (mut low, mut high) = (starts(open), ends(open));
    // The members of each list before the probe: at least, and at most.
    let (mut least, mut most) = (starts(open), firsts(open, &probes));
    for (nth, probe) in probes.iter().enumerate() {
        (least[probe.list], most[probe.list]) = (probe.place, probe.place);
        if least.iter().sum::<u64>() >= before {
            high.clone_from(&most);
            break;
        }
        let next = probes[nth + 1..].iter().find(|other| other.list == probe.list);
        let surely = most.iter().sum::<u64>() < before;
        least[probe.list] = probe.place + 1;
        if surely {
            low.clone_from(&least);
        }
        most[probe.list] = next.map_or(open[probe.list].end, |next| next.place);
    }
    for (range, (low, high)) in open.iter_mut().zip(low.into_iter().zip(high)) {
        *range = low..high.max(low);
    }
}

fn starts(open: &[Range<u64>]) -> Vec<u64> {
    open.iter().map(|range| range.start).collect()
}

fn ends(open: &[Range<u64>]) -> Vec<u64> {
    open.iter().map(|range| range.end).collect()
}

/// The position of the first probe of each list, or its end.
fn firsts(open: &[Range<u64>], probes: &[Probe<'_>]) -> Vec<u64> {
    let first = |list| probes.iter().find(|probe| probe.list == list).map(|probe| probe.place);
    open.iter().enumerate().map(|(list, range)| first(list).unwrap_or(range.end)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::convert::Infallible;

    fn member(number: u32) -> Vec<u8> {
        number.to_be_bytes().to_vec()
    }

    fn found(lists: &[Vec<u32>], bounds: &[(u64, u64)], before: u64) -> (Vec<u64>, usize) {
        let mut rounds = 0;
        let cuts = select(bounds, before, |places| {
            rounds += 1;
            let at = |list: usize, place: &u64| lists[list].get(*place as usize).map(|one| member(*one));
            let all = places.iter().enumerate();
            Ok::<_, Infallible>(
                all.map(|(list, places)| places.iter().map(|p| at(list, p)).collect()).collect(),
            )
        });
        (cuts.unwrap(), rounds)
    }

    /// Lists of distinct numbers, some long, some empty.
    fn lists() -> impl Strategy<Value = Vec<Vec<u32>>> {
        let sizes = proptest::collection::vec(prop_oneof![Just(0_u32), 1_u32..40, 200_u32..2_000], 1..8);
        (sizes, any::<u32>()).prop_map(|(sizes, seed)| {
            let mut lists: Vec<Vec<u32>> = sizes.iter().map(|_| Vec::new()).collect();
            let mut left: Vec<usize> =
                sizes.iter().enumerate().flat_map(|(list, size)| vec![list; *size as usize]).collect();
            let mut state = u64::from(seed);
            for number in 0..left.len() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let list = left.swap_remove((state >> 33) as usize % left.len());
                lists[list].push(number as u32 * 3);
            }
            lists
        })
    }

    proptest! {
        #[test]
        fn a_cut_is_where_a_sort_has_it(lists in lists(), share in 0_u64..=100, low in 0_u32..50, high in 0_u32..50) {
            let total: u64 = lists.iter().map(|list| list.len() as u64).sum();
            // Bounds are cuts by keys.
            let cut = |list: &Vec<u32>, key: u64| list.partition_point(|one| u64::from(*one) < key) as u64;
            let (low, high) = (u64::from(low) * total / 100 * 3, (100 - u64::from(high)) * total / 100 * 3);
            let bounds: Vec<(u64, u64)> =
                lists.iter().map(|list| (cut(list, low), cut(list, high).max(cut(list, low)))).collect();
            let (from, to) = bounds.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            let before = from + (to - from) * share / 100;
            // Each number is three times its position.
            let wanted: Vec<u64> = lists.iter().map(|list| cut(list, before * 3)).collect();
            let (cuts, rounds) = found(&lists, &bounds, before);
            prop_assert_eq!(cuts, wanted);
            prop_assert!(rounds <= 4, "{} rounds", rounds);
        }
    }

    #[test]
    fn a_list_that_becomes_shorter_ends_the_search_too() {
        let lists = [(0..1_000).collect::<Vec<u32>>(), Vec::new()];
        let (cuts, _) = found(&lists, &[(0, 2_000), (0, 500)], 900);
        assert_eq!(cuts, [900, 0]);
        let (cuts, _) = found(&lists, &[(0, 2_000), (0, 500)], 2_400);
        assert_eq!(cuts, [1_000, 0]);
    }
}
