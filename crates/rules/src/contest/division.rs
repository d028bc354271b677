//! Divisions: members in groups of a fixed size, in order of acceptance, each with a board of its own.

use std::num::NonZeroU32;

/// The division, from 1, of the member with this number in the order of acceptance, from 0. Without a size there is one
/// division without a number.
pub fn of(place: u32, size: Option<NonZeroU32>) -> Option<u32> {
    size.map(|size| place / size + 1)
}

/// The divisions in order, each with its number of members; the last may have fewer.
pub fn sizes(members: u32, size: NonZeroU32) -> impl Iterator<Item = (u32, u32)> {
    let count = members.div_ceil(size.get());
    (0..count).map(move |place| (place + 1, size.get().min(members - place * size.get())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisions_are_filled_one_after_the_other() {
        for size in 1..6 {
            let size = NonZeroU32::new(size).unwrap();
            for members in 0..20 {
                let mut plain = Vec::new();
                for place in 0..members {
                    let division = of(place, Some(size)).unwrap();
                    match plain.last_mut() {
                        Some((last, count)) if *last == division => *count += 1,
                        _ => plain.push((division, 1)),
                    }
                }
                assert_eq!(sizes(members, size).collect::<Vec<_>>(), plain);
                assert!(plain.iter().rev().skip(1).all(|(_, count)| *count == size.get()));
            }
        }
        assert_eq!(of(7, None), None);
    }
}
