//! The credential of a member after signing in: a JWT of HS256, under a key derived from the secret of the store.
//!
//! So it is valid on every server of a store and after every restart. It has the member, its end, and the instant from
//! which the member's tokens were valid. A changed password makes that another instant, which ends the token. The
//! signature is ring's, which is here for TLS already. Not here: whether the member still has that instant.

use crate::failure::Fault;
use crate::keyring::{Keyring, Numbered};
use crate::secret::Use;
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{Error as Bad, Signer, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use ring::hmac;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tally_rules::Micros;
use tally_rules::instant::SECOND;
use tally_rules::ledger::{MemberId, Uuid};

/// The longest accepted token, in bytes.
const TOKEN_BYTES_MAX: usize = 1_024;

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: signer,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

struct Mac(hmac::Key);

impl Mac {
    fn new(algorithm: Algorithm, secret: &[u8]) -> Result<Self, Error> {
        if algorithm != Algorithm::HS256 {
            return Err(ErrorKind::InvalidAlgorithm.into());
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, secret)))
    }
}

impl Signer<Vec<u8>> for Mac {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, Bad> {
        Ok(hmac::sign(&self.0, message).as_ref().to_vec())
    }
}

impl Verifier<Vec<u8>> for Mac {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), Bad> {
        hmac::verify(&self.0, message, signature).map_err(|_| Bad::new())
    }
}

impl JwtSigner for Mac {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl JwtVerifier for Mac {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    Ok(Box::new(Mac::new(*algorithm, key.as_bytes())?))
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    Ok(Box::new(Mac::new(*algorithm, key.try_get_as_bytes()?)?))
}

/// The claims of a token. Seconds, but for `from`.
#[derive(Debug, Serialize, Deserialize)]
struct Claims {
    sub: String,
    iat: i64,
    exp: i64,
    /// Microseconds: from when on the member's tokens were good.
    from: i64,
}

/// The claims of a valid token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenSubject {
    /// The member that it belongs to.
    pub member: MemberId,
    /// From when on the member's tokens were good when it was given.
    pub tokens_from: Micros,
}

/// Makes and reads tokens.
pub struct Tokens {
    ring: Arc<Keyring>,
    rules: Validation,
    time: Duration,
}

impl Tokens {
    /// Tokens of these secrets that are good for so long.
    pub fn new(ring: Arc<Keyring>, time: Duration) -> Self {
        // Another of this process did the same.
        let _ = PROVIDER.install_default();
        let mut rules = Validation::new(Algorithm::HS256);
        // The end is checked by the service's own time, below.
        rules.validate_exp = false;
        rules.validate_aud = false;
        rules.required_spec_claims = HashSet::new();
        Self { ring, rules, time }
    }

    /// How long one is good, in whole seconds.
    pub fn seconds(&self) -> u64 {
        self.time.as_secs().max(1)
    }

    /// One for a member.
    pub fn give(&self, subject: TokenSubject, now: Micros) -> Result<String, Fault> {
        let iat = now.0.div_euclid(SECOND);
        let exp = iat.saturating_add(i64::try_from(self.seconds()).unwrap_or(i64::MAX));
        let claims = Claims { sub: subject.member.0.to_string(), iat, exp, from: subject.tokens_from.0 };
        let key = EncodingKey::from_secret(self.ring.active().key(Use::Token));
        let token = jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &key);
        token.map_err(|error| Fault::Broken(format!("no token: {error}")))
    }

    /// Its claims, if it is ours and has not ended.
    pub fn read(&self, token: &str, now: Micros) -> Option<TokenSubject> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let read = |by: Numbered<'_>| {
            let key = DecodingKey::from_secret(by.key(Use::Token));
            Some(jsonwebtoken::decode::<Claims>(token, &key, &self.rules).ok()?.claims)
        };
        let (active, other) = self.ring.both();
        let claims = read(active).or_else(|| other.and_then(read))?;
        let is_good = now.0.div_euclid(SECOND) < claims.exp;
        let member = MemberId(Uuid::parse(&claims.sub)?);
        is_good.then_some(TokenSubject { member, tokens_from: Micros(claims.from) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    const NOW: Micros = Micros(1_700_000_000 * SECOND);

    fn tokens(secret: u8) -> Tokens {
        Tokens::new(Secret::new([secret; 32]).into(), Duration::from_secs(60))
    }

    #[test]
    fn a_token_is_good_until_its_end_and_under_its_own_secret() {
        let subject = TokenSubject { member: MemberId(Uuid([7; 16])), tokens_from: Micros(42) };
        let token = tokens(1).give(subject, NOW).unwrap();
        assert_eq!(tokens(1).read(&token, NOW), Some(subject));
        assert_eq!(tokens(1).read(&token, NOW.plus(59 * SECOND)), Some(subject));
        assert_eq!(tokens(1).read(&token, NOW.plus(60 * SECOND)), None);
        assert_eq!(tokens(2).read(&token, NOW), None);
        let (head, rest) = token.split_once('.').unwrap();
        let (claims, _) = rest.split_once('.').unwrap();
        for bad in ["", ".", "..", &format!("{head}.{claims}."), &format!("{head}.{claims}"), &token[1..]] {
            assert_eq!(tokens(1).read(bad, NOW), None, "{bad}");
        }
        // {"alg":"none"}, {"alg":"HS512","typ":"JWT"}
        for head in ["eyJhbGciOiJub25lIn0", "eyJhbGciOiJIUzUxMiIsInR5cCI6IkpXVCJ9"] {
            let signature = token.rsplit('.').next().unwrap();
            for signature in ["", signature] {
                assert_eq!(tokens(1).read(&format!("{head}.{claims}.{signature}"), NOW), None, "{head}");
            }
        }
    }
}
