//! Members and players by number: the values that `tally seed` gives them, so that a load run can act as them.
//!
//! All values derive from the number, so the two share no stored state. Not here: creating them.

/// The password of all members.
pub const PASSWORD: &str = "tally-seed";
/// The PIN of all members.
pub const PIN: &str = "1234";

/// The login of the n-th member, from 1; also its player.
#[must_use]
pub fn login(number: u64) -> String {
    format!("user{number:07}")
}

/// The phone number of the n-th member, from 1.
#[must_use]
pub fn phone(number: u64) -> String {
    format!("010{number:08}")
}

/// The player with this number on a leaderboard of `tally seed scores`, from 1: 16 to 24 letters and digits, in the order of
/// numbers.
#[must_use]
pub fn player(number: u64) -> String {
    const SIGNS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut bits = crate::random::bits_of(number, 10);
    let mut name = format!("player{number:010}");
    for _ in 0..bits % 9 {
        bits >>= 5;
        name.push(char::from(SIGNS[(bits % 32) as usize]));
    }
    name
}

/// Members that differ only by their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct People {
    /// Their number.
    pub count: u64,
}

/// One member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// The login.
    pub login: String,
    /// The same for all.
    pub password: String,
    /// The PIN of the wallet; the same for all.
    pub pin: String,
    /// Unique.
    pub phone: String,
}

impl People {
    /// The members of a seeded store.
    #[must_use]
    pub const fn seeded(count: u64) -> Self {
        Self { count }
    }

    /// The member with this number, from 0.
    #[must_use]
    pub fn person(&self, number: u64) -> Person {
        Person {
            login: login(number + 1),
            password: PASSWORD.to_owned(),
            pin: PIN.to_owned(),
            phone: phone(number + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::player;

    #[test]
    fn players_are_named_in_order_with_16_to_24_signs() {
        let names: Vec<String> = (1..2_000).map(player).collect();
        assert!(names.is_sorted() && names.iter().all(|name| (16..=24).contains(&name.len())));
        for length in 16..=24 {
            assert!(names.iter().any(|name| name.len() == length), "{length}");
        }
        assert_eq!(player(7), player(7));
    }
}
