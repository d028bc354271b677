//! PINs: keyed by the secret, because a slow digest cannot protect a few digits.
//!
//! The stored form is a keyed digest of login and digits. Equal PINs of two members differ, and the database without the secret
//! is not enough to try one. The login is included because it never changes. Pure. Not here: counting attempts
//! (`tally_rules::ledger::pin`).

use crate::keyring::{Keyring, Numbered};
use crate::secret::Use;
use std::sync::Arc;
use tally_rules::ledger::member::{Login, Member, Pin};
use tally_rules::ledger::pin::{DIGITS, Given};

/// Makes and compares PINs by the keys of secrets.
#[derive(Clone)]
pub struct Pins {
    ring: Arc<Keyring>,
}

/// An attempt at a PIN: its digests by the secret that makes, and by the other one that is accepted.
#[derive(Clone)]
pub struct Guess {
    active: Digests,
    other: Option<Digests>,
}

/// The digest for each number of digits that a PIN may have, by the secret of a number.
#[derive(Clone)]
struct Digests {
    secret: u8,
    macs: [Option<blake3::Hash>; 5],
}

impl std::fmt::Debug for Guess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Guess(..)")
    }
}

impl Pins {
    /// The keys of these secrets.
    pub fn new(ring: Arc<Keyring>) -> Self {
        Self { ring }
    }

    /// The stored form of a PIN; `digits` is one.
    pub fn pin(&self, login: &Login, digits: &str) -> Pin {
        let (count, by) = (u8::try_from(digits.len()).expect("a PIN has 4 to 8 digits"), self.ring.active());
        Pin { mac: *mac(by, login, digits).as_bytes(), digits: count, secret: by.number }
    }

    /// Whether a member has a PIN that can be checked. That of a dropped secret is none.
    pub fn has(&self, member: &Member) -> bool {
        member.pin.is_some_and(|pin| self.ring.of(pin.secret).is_some())
    }

    /// An attempt, to compare while the member is locked.
    pub fn guess(&self, login: &Login, given: &Given) -> Guess {
        let digests = |by: Numbered<'_>| {
            let mut macs = [None; 5];
            for (found, digits) in macs.iter_mut().zip(DIGITS) {
                let text = match given {
                    Given::Digits(text) => text.clone(),
                    Given::Number(number) => format!("{number:0digits$}"),
                };
                *found = (text.len() == digits).then(|| mac(by, login, &text));
            }
            Digests { secret: by.number, macs }
        };
        let (active, other) = self.ring.both();
        Guess { active: digests(active), other: other.map(digests) }
    }
}

fn mac(by: Numbered<'_>, login: &Login, digits: &str) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new_keyed(by.key(Use::Pin));
    hasher.update(login.as_str().as_bytes());
    // No login has this byte, so no login runs into the digits.
    hasher.update(&[0]);
    hasher.update(digits.as_bytes());
    hasher.finalize()
}

impl Guess {
    /// Whether it is this PIN, in constant time: the comparison of digests is.
    pub fn is(&self, pin: &Pin) -> bool {
        let by = [Some(&self.active), self.other.as_ref()];
        let mac = by.into_iter().flatten().find(|one| one.secret == pin.secret).and_then(|one| one.of(pin));
        mac.is_some_and(|mac| mac == blake3::Hash::from_bytes(pin.mac))
    }

    /// A PIN that this is, made by the present secret, if it is of the one before.
    pub fn renewed(&self, pin: &Pin) -> Option<Pin> {
        let is_old = pin.secret != self.active.secret;
        let mac = self.active.of(pin).filter(|_| is_old)?;
        Some(Pin { mac: *mac.as_bytes(), secret: self.active.secret, ..*pin })
    }
}

impl Digests {
    fn of(&self, pin: &Pin) -> Option<blake3::Hash> {
        let at = usize::from(pin.digits).wrapping_sub(*DIGITS.start());
        self.macs.get(at).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;
    use tally_rules::ledger::pin::is_pin;

    fn key() -> Pins {
        Pins::new(Secret::new([3; 32]).into())
    }

    #[test]
    fn a_number_is_filled_up_and_digits_are_taken_as_they_are() {
        let login = Login::new("ann").unwrap();
        let digits = |text: &str| Given::Digits(text.into());
        let rows = [
            ("0042", digits("0042"), true),
            ("0042", Given::Number(42), true),
            ("000042", Given::Number(42), true),
            ("0042", digits("42"), false),
            ("0042", digits("00042"), false),
            ("0042", digits("0043"), false),
            ("0000", Given::Number(0), true),
            ("1234", Given::Number(12_340), false),
            ("12345678", Given::Number(12_345_678), true),
            ("1234", Given::Number(u32::MAX), false),
            ("1234", digits("123456789"), false),
        ];
        for (pin, given, wanted) in rows {
            let right = key().guess(&login, &given).is(&key().pin(&login, pin));
            assert_eq!(right, wanted, "{pin}");
        }
    }

    #[test]
    fn a_pin_is_of_one_login_and_one_secret() {
        let (ann, bob) = (Login::new("ann").unwrap(), Login::new("bob").unwrap());
        let pin = key().pin(&ann, "1234");
        assert_ne!(pin, key().pin(&bob, "1234"));
        assert_ne!(pin, Pins::new(Secret::new([4; 32]).into()).pin(&ann, "1234"));
        assert!(is_pin("0000") && is_pin("12345678"));
        assert!(["123", "123456789", "12a4", "", "１２３４"].iter().all(|text| !is_pin(text)));
    }
}
