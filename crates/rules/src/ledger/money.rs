//! Amounts with their bounds, and currencies.

use crate::rejection::{Limit, Rejection};

/// The largest amount of one transfer.
pub const AMOUNT_MAX: i64 = 1_000_000_000_000_000;

/// The largest balance.
pub const BALANCE_MAX: i64 = 9_000_000_000_000_000_000;

/// The longest code of a currency.
pub const CURRENCY_BYTES_MAX: usize = 8;

/// The most minor digits that a currency may have.
pub const DIGITS_MAX: u8 = 8;

/// An amount of money in the currency's smallest unit: 1 to [`AMOUNT_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(i64);

impl Amount {
    /// Checks an amount.
    pub fn new(units: i64) -> Result<Self, Rejection> {
        match units {
            1..=AMOUNT_MAX => Ok(Self(units)),
            ..=0 => Err(Rejection::InvalidAmount),
            _ => Err(Rejection::LimitExceeded(Limit::Amount(Some(units)))),
        }
    }

    /// The number of smallest units.
    pub fn units(self) -> i64 {
        self.0
    }
}

/// The code of a currency: 1 to 8 letters A to Z and digits, such as `KRW`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency([u8; CURRENCY_BYTES_MAX]);

impl Currency {
    /// Reads a code.
    pub fn parse(text: &str) -> Option<Self> {
        let is_code = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
        if text.is_empty() || text.len() > CURRENCY_BYTES_MAX || !text.bytes().all(is_code) {
            return None;
        }
        let mut bytes = [0; CURRENCY_BYTES_MAX];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Some(Self(bytes))
    }

    /// The code in a fixed number of bytes, the rest zeros.
    pub fn bytes(self) -> [u8; CURRENCY_BYTES_MAX] {
        self.0
    }

    /// Reads the bytes of [`bytes`](Self::bytes).
    pub fn of_bytes(bytes: [u8; CURRENCY_BYTES_MAX]) -> Option<Self> {
        let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        std::str::from_utf8(&bytes[..length]).ok().and_then(Self::parse).filter(|code| code.0 == bytes)
    }

    /// The code.
    pub fn as_str(&self) -> &str {
        let length = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        std::str::from_utf8(&self.0[..length]).expect("letters and digits")
    }
}

impl std::fmt::Display for Currency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::fmt::Debug for Currency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The configured currencies, each with its minor digits for display. Sums do not depend on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Currencies {
    home: Currency,
    digits: std::collections::BTreeMap<Currency, u8>,
}

impl Currencies {
    /// `home` is the currency whose wallet every member has from the start.
    pub fn new(home: (Currency, u8), others: impl IntoIterator<Item = (Currency, u8)>) -> Self {
        let mut digits: std::collections::BTreeMap<_, _> = others.into_iter().collect();
        digits.insert(home.0, home.1);
        Self { home: home.0, digits }
    }

    /// The home currency.
    pub fn home(&self) -> Currency {
        self.home
    }

    /// Minor digits of a configured currency.
    pub fn digits(&self, currency: Currency) -> Option<u8> {
        self.digits.get(&currency).copied()
    }

    /// Refuses a currency that is not configured.
    pub fn check(&self, currency: Currency) -> Result<(), Rejection> {
        match self.digits(currency) {
            Some(_) => Ok(()),
            None => Err(Rejection::CurrencyMismatch { currency, known: self.all().collect() }),
        }
    }

    /// Every configured currency, in order of code.
    pub fn all(&self) -> impl Iterator<Item = Currency> {
        self.digits.keys().copied()
    }
}

impl Default for Currencies {
    /// South Korean won, which has no smaller unit.
    fn default() -> Self {
        let won = Currency::parse("KRW").expect("three letters");
        Self::new((won, 0), [])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_both_ends() {
        let rows = [
            (i64::MIN, Err(Rejection::InvalidAmount)),
            (0, Err(Rejection::InvalidAmount)),
            (1, Ok(1)),
            (AMOUNT_MAX, Ok(AMOUNT_MAX)),
            (AMOUNT_MAX + 1, Err(Rejection::LimitExceeded(Limit::Amount(Some(AMOUNT_MAX + 1))))),
            (i64::MAX, Err(Rejection::LimitExceeded(Limit::Amount(Some(i64::MAX))))),
        ];
        for (units, wanted) in rows {
            assert_eq!(Amount::new(units).map(Amount::units), wanted);
        }
    }

    #[test]
    fn codes_are_short_and_plain() {
        for text in ["K", "KRW", "GOLD2026"] {
            let code = Currency::parse(text).unwrap();
            assert_eq!((code.as_str(), Currency::of_bytes(code.bytes())), (text, Some(code)));
        }
        for text in ["", "krw", "KRW ", "K\0", "GOLD20261", "KÖ"] {
            assert_eq!(Currency::parse(text), None, "{text:?}");
        }
        assert_eq!(Currency::of_bytes(*b"A\0B\0\0\0\0\0"), None);
        let order = ["A", "AA", "B"].map(|text| Currency::parse(text).unwrap());
        assert!(order.is_sorted());
    }

    #[test]
    fn the_home_currency_is_one_of_them() {
        let code = |text| Currency::parse(text).unwrap();
        let all = Currencies::new((code("KRW"), 0), [(code("USD"), 2), (code("KRW"), 5)]);
        assert_eq!(
            (all.digits(code("KRW")), all.digits(code("USD")), all.digits(code("EUR"))),
            (Some(0), Some(2), None)
        );
        assert_eq!(all.all().map(|one| one.to_string()).collect::<Vec<_>>(), ["KRW", "USD"]);
    }
}
