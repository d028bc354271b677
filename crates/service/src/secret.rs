//! A secret of a store, and its derived keys. Not here: which secrets a store has (`keyring`, `rotation`).
//!
//! Each use has a separate key (BLAKE3 key derivation, by a fixed sentence per use), so that no use can be turned
//! against another. The store has the secret's fingerprint; with another secret it is not opened, because
//! everything that was protected by the old one would silently be lost.

use std::fmt;

/// Bytes of a secret.
pub const SECRET_BYTES: usize = 32;

/// Secrets of a store at a time.
pub const SECRETS_MAX: usize = 2;

/// The secret, never printed.
#[derive(Clone)]
pub struct Secret([u8; SECRET_BYTES]);

/// What the secret is used for.
#[derive(Clone, Copy, Debug)]
pub enum Use {
    /// Comparing a request with the one stored under its idempotency key.
    RequestFingerprint,
    /// Making an API key that a retry of its creation can make again.
    ApiKey,
    /// The stored form of a PIN.
    Pin,
    /// Signing what members present after they have signed in.
    Token,
    /// Making the secrets of webhooks.
    Webhook,
    /// Recognising the secret itself.
    Fingerprint,
    /// Signing the requests between the servers of the store.
    Servers,
}

impl Use {
    /// Every use, in order.
    pub const ALL: [Self; 7] = [
        Self::RequestFingerprint,
        Self::ApiKey,
        Self::Pin,
        Self::Token,
        Self::Webhook,
        Self::Fingerprint,
        Self::Servers,
    ];
}

impl Secret {
    /// The secret of these bytes.
    pub fn new(bytes: [u8; SECRET_BYTES]) -> Self {
        Self(bytes)
    }

    /// A new one from the system's random numbers.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; SECRET_BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// Reads 64 hexadecimal digits, white space around them ignored.
    pub fn parse(text: &str) -> Option<Self> {
        unhex(text.trim()).map(Self)
    }

    /// Reads one secret, or two different ones with white space or a comma between them.
    pub fn parse_all(text: &str) -> Option<Vec<Self>> {
        let texts = text.split([',', ' ', '\n', '\r', '\t']).filter(|text| !text.is_empty());
        let all: Vec<Self> = texts.map(Self::parse).collect::<Option<_>>()?;
        let is_same = all.len() == SECRETS_MAX && all[0].0 == all[1].0;
        ((1..=SECRETS_MAX).contains(&all.len()) && !is_same).then_some(all)
    }

    /// 64 hexadecimal digits: for the file it is kept in.
    pub fn to_hex(&self) -> String {
        hex(&self.0)
    }

    /// The key for one use.
    pub fn derive(&self, what: Use) -> [u8; 32] {
        let sentence = match what {
            Use::RequestFingerprint => "tally 2026 fingerprint of a request under an idempotency key",
            Use::ApiKey => "tally 2026 secret part of an API key",
            Use::Pin => "tally 2026 digest of a member's PIN",
            Use::Token => "tally 2026 signature of a member's token",
            Use::Webhook => "tally 2026 secrets of webhooks",
            Use::Fingerprint => "tally 2026 fingerprint of the secret",
            Use::Servers => "tally 2026 signature of a request between servers",
        };
        blake3::derive_key(sentence, &self.0)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The bytes of 64 hexadecimal digits.
pub(crate) fn unhex(text: &str) -> Option<[u8; SECRET_BYTES]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * SECRET_BYTES {
        return None;
    }
    let mut bytes = [0; SECRET_BYTES];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
    }
    Some(bytes)
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes everything");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_reads_back_and_is_not_printed() {
        let secret = Secret::new([0xa5; SECRET_BYTES]);
        let read = Secret::parse(&format!("  {}\n", secret.to_hex())).unwrap();
        assert_eq!(read.0, secret.0);
        assert!(!format!("{secret:?}").contains("a5"));
        assert!(Secret::parse("a5").is_none());
        let (one, two) = ("a5".repeat(32), "5a".repeat(32));
        let count = |text: String| Secret::parse_all(&text).map(|all| all.len());
        assert_eq!(count(format!("{one}\n")), Some(1));
        assert_eq!((count(format!("{one}\n{two}\n")), count(format!("{one}, {two}"))), (Some(2), Some(2)));
        assert_eq!(
            (count(String::new()), count(format!("{one} {one}"))),
            (None, None),
            "none, and one twice"
        );
        assert_eq!(count(format!("{one} {two} {}", "00".repeat(32))), None);
        assert!(Secret::parse(&"zz".repeat(32)).is_none());
    }

    #[test]
    fn each_use_has_its_own_key() {
        let secret = Secret::new([1; SECRET_BYTES]);
        assert_ne!(secret.derive(Use::ApiKey), secret.derive(Use::Fingerprint));
        assert_ne!(secret.derive(Use::ApiKey), Secret::new([2; SECRET_BYTES]).derive(Use::ApiKey));
    }
}
