//! A name between two other names, in the order of names. Pure.

use tally_rules::PlayerId;

/// All signs, counted from 1, and the end of a name as 0.
const ALL: u128 = 0x11_0001;
/// The same of ASCII: halfway between two names of letters and digits is another one.
const ASCII: u128 = 129;
/// Signs after the common prefix that are compared: so many fit into the number.
const SIGNS: usize = 5;

/// A name about halfway between two, or between one and the end of all names: not before the first, and before the other.
/// `None` if the compared signs have no such name, or it would be too long.
pub(super) fn middle(from: &PlayerId, to: Option<&PlayerId>) -> Option<PlayerId> {
    let (from, to) = (from.as_str(), to.map(PlayerId::as_str));
    let same = to.map_or(0, |to| {
        let pairs = from.char_indices().zip(to.chars()).take_while(|((_, a), b)| a == b);
        pairs.last().map_or(0, |((at, sign), _)| at + sign.len_utf8())
    });
    let (from_there, to_there) = (&from[same..], to.map(|to| &to[same..]));
    let plain = from_there.is_ascii() && to_there.is_some_and(str::is_ascii);
    let base = if plain { ASCII } else { ALL };
    let low = number(from_there, base);
    let high = to_there.map_or(base.pow(SIGNS as u32) - 1, |to| number(to, base));
    let half = low + high.checked_sub(low)? / 2;
    let name = PlayerId::new(&format!("{}{}", &from[..same], text(half, base))).ok()?;
    (from <= name.as_str() && to.is_none_or(|to| name.as_str() < to)).then_some(name)
}

/// Names after all names with the same prefix as this one: for the prefix of one sign, then of two, and so on. Each is nearer
/// than the one before.
pub(super) fn beyond(name: &PlayerId) -> impl Iterator<Item = PlayerId> {
    name.as_str().char_indices().filter_map(|(at, sign)| {
        let next = (sign as u32 + 1..=u32::from(char::MAX)).find_map(char::from_u32)?;
        PlayerId::new(&format!("{}{next}", &name.as_str()[..at])).ok()
    })
}

/// The first signs as digits of a number.
fn number(text: &str, base: u128) -> u128 {
    let mut signs = text.chars();
    (0..SIGNS).fold(0, |number, _| number * base + signs.next().map_or(0, |sign| sign as u128 + 1))
}

/// The signs of a number, up to the first number that is no sign.
fn text(mut number: u128, base: u128) -> String {
    let mut digits = [0; SIGNS];
    for digit in digits.iter_mut().rev() {
        *digit = (number % base) as u32;
        number /= base;
    }
    // Numbers that are no signs are between two that are; the lower one replaces them.
    let sign = |digit: u32| Some(char::from_u32(digit.checked_sub(1)?).unwrap_or('\u{d7ff}'));
    digits.into_iter().map_while(sign).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(text: &str) -> PlayerId {
        PlayerId::new(text).unwrap()
    }

    #[test]
    fn it_lies_between() {
        let half = middle(&name("player0000000001"), Some(&name("player0100000000"))).unwrap();
        assert!(half > name("player000000") && half < name("player010000"), "{half:?}");
        let half = middle(&name("player0010000000"), Some(&name("player0090000000"))).unwrap();
        assert!(half > name("player0040000000") && half < name("player0060000000"), "{half:?}");
        assert_eq!(middle(&name("a"), Some(&name("a"))), None);
        // Nothing is between these, and the first itself is before the other.
        assert_eq!(middle(&name("a"), Some(&name("a\0"))), Some(name("a")));
    }

    #[test]
    fn names_beyond_come_nearer_sign_by_sign() {
        let all: Vec<_> = beyond(&name("ab\u{d7ff}\u{10ffff}")).collect();
        assert_eq!(all, [name("b"), name("ac"), name("ab\u{e000}")]);
    }

    /// Not every text is a name: `.` is none.
    fn names() -> impl Strategy<Value = PlayerId> {
        ".{1,12}".prop_filter_map("no name", |text| PlayerId::new(&text).ok())
    }

    proptest! {
        #[test]
        fn it_is_never_outside(a in names(), b in names()) {
            let (from, to) = if a < b { (a, b) } else { (b, a) };
            if let Some(half) = middle(&from, Some(&to)) {
                prop_assert!(from <= half && half < to);
            }
            if let Some(half) = middle(&from, None) {
                prop_assert!(from <= half);
            }
        }
    }
}
