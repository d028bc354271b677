//! PINs: keyed by the secret, because a slow digest cannot protect a few digits.
//!
//! The stored form is a keyed digest of login and digits. Equal PINs of two members differ, and the database without the secret
//! is not enough to try one. The login is included because it never changes. Pure. Not here: counting attempts
//! (`tally_rules::ledger::pin`).

use crate::secret::{Secret, Use};
use tally_rules::ledger::member::{Login, Pin};
use tally_rules::ledger::pin::{DIGITS, Given};

/// Makes and compares PINs by the key of one secret.
#[derive(Clone)]
pub struct PinKey([u8; 32]);

/// An attempt at a PIN: its digest for each number of digits it may have.
#[derive(Clone)]
pub struct Guess([Option<blake3::Hash>; 5]);

impl std::fmt::Debug for Guess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Guess(..)")
    }
}

impl PinKey {
    /// The key of this secret.
    pub fn new(secret: &Secret) -> Self {
        Self(secret.derive(Use::Pin))
    }

    /// The stored form of a PIN; `digits` is one.
    pub fn pin(&self, login: &Login, digits: &str) -> Pin {
        let count = u8::try_from(digits.len()).expect("a PIN has 4 to 8 digits");
        Pin { mac: *self.mac(login, digits).as_bytes(), digits: count }
    }

    /// An attempt, to compare while the member is locked.
    pub fn guess(&self, login: &Login, given: &Given) -> Guess {
        let mut macs = [None; 5];
        for (mac, digits) in macs.iter_mut().zip(DIGITS) {
            let text = match given {
                Given::Digits(text) => text.clone(),
                Given::Number(number) => format!("{number:0digits$}"),
            };
            *mac = (text.len() == digits).then(|| self.mac(login, &text));
        }
        Guess(macs)
    }

    fn mac(&self, login: &Login, digits: &str) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(login.as_str().as_bytes());
        // No login has this byte, so no login runs into the digits.
        hasher.update(&[0]);
        hasher.update(digits.as_bytes());
        hasher.finalize()
    }
}

impl Guess {
    /// Whether it is this PIN, in constant time: the comparison of digests is.
    pub fn is(&self, pin: &Pin) -> bool {
        let at = usize::from(pin.digits).wrapping_sub(*DIGITS.start());
        let mac = self.0.get(at).copied().flatten();
        mac.is_some_and(|mac| mac == blake3::Hash::from_bytes(pin.mac))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_rules::ledger::pin::is_pin;

    fn key() -> PinKey {
        PinKey::new(&Secret::new([3; 32]))
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
        assert_ne!(pin, PinKey::new(&Secret::new([4; 32])).pin(&ann, "1234"));
        assert!(is_pin("0000") && is_pin("12345678"));
        assert!(["123", "123456789", "12a4", "", "１２３４"].iter().all(|text| !is_pin(text)));
    }
}
