//! Members by number: what `tally seed wallets` gives them, so that a load can sign them in.
//!
//! All is written from the number, so nothing has to be kept between the two. Not here: making them.

/// So many members, alike but for their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct People {
    /// How many there are, from number 0.
    pub count: u64,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// What they sign in with.
    pub login: String,
    /// The same for all.
    pub password: String,
    /// Of the wallet; the same for all.
    pub pin: String,
    /// Unique.
    pub phone: String,
}

impl People {
    /// Those of a seeded store.
    #[must_use]
    pub const fn seeded(count: u64) -> Self {
        Self { count }
    }

    /// One of them, from 0.
    #[must_use]
    pub fn person(&self, number: u64) -> Person {
        Person {
            login: format!("user{:07}", number + 1),
            password: "tally-seed".to_owned(),
            pin: "1234".to_owned(),
            phone: format!("010{:08}", number + 1),
        }
    }
}
