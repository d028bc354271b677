//! Passwords: argon2id in the PHC text form, for signing in and for imports of digests.
//!
//! Pure but for the salt, and slow on purpose: never called on a thread that serves connections. A digest contains its cost, so
//! the cost can be changed at any time. A digest that would cost far more than ours is rejected when it is imported.

use crate::failure::Fault;
use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Params, PasswordHasher, PasswordVerifier, Version};
use std::sync::Arc;
use tally_rules::ledger::member::PASSWORD_BYTES_MAX;

/// The most that an imported digest may cost. A check of a dearer one could stop the server.
const MEMORY_KIB_MAX: u32 = 256 * 1024;
const PASSES_MAX: u32 = 16;

/// The cost of computing a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    memory_kib: u32,
    passes: u32,
}

impl Default for Cost {
    /// The smallest that OWASP's list has for argon2id.
    fn default() -> Self {
        Self { memory_kib: 19_456, passes: 2 }
    }
}

impl Cost {
    /// `None` if argon2 cannot run with this memory and these passes, or if they exceed the limits.
    pub fn new(memory_kib: u32, passes: u32) -> Option<Self> {
        let possible = (8..=MEMORY_KIB_MAX).contains(&memory_kib) && (1..=PASSES_MAX).contains(&passes);
        possible.then_some(Self { memory_kib, passes })
    }
}

/// The digest of a new password.
pub fn digest(password: &str, cost: Cost) -> Result<Arc<str>, Fault> {
    let salt: [u8; 16] = random()?;
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params(cost)?);
    Ok(argon2.hash_password_with_salt(password.as_bytes(), &salt).map_err(failed)?.to_string().into())
}

/// A digest of no password that takes as long to check as a new one. Its bytes are random, so a start computes nothing.
pub fn placeholder(cost: Cost) -> Result<Arc<str>, Fault> {
    let (salt, output): ([u8; 16], [u8; Params::DEFAULT_OUTPUT_LEN]) = (random()?, random()?);
    let digest = PasswordHash {
        algorithm: Algorithm::Argon2id.ident(),
        version: Some(Version::V0x13.into()),
        params: ParamsString::try_from(&params(cost)?).map_err(failed)?,
        salt: Some(Salt::new(&salt).map_err(failed)?),
        hash: Some(Output::new(&output).map_err(failed)?),
    };
    Ok(digest.to_string().into())
}

fn random<const BYTES: usize>() -> Result<[u8; BYTES], Fault> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(|error| Fault::Broken(format!("no random numbers: {error}")))?;
    Ok(bytes)
}

fn params(cost: Cost) -> Result<Params, Fault> {
    Params::new(cost.memory_kib, cost.passes, 1, None).map_err(failed)
}

fn failed(error: impl std::fmt::Display) -> Fault {
    Fault::Broken(format!("no digest of a password: {error}"))
}

/// Whether the digest is of this password. A right and a wrong password take equally long.
pub fn is_right(password: &str, digest: &str) -> bool {
    let Ok(digest) = PasswordHash::new(digest) else { return false };
    Argon2::default().verify_password(password.as_bytes(), &digest).is_ok()
}

/// Whether a digest differs in algorithm or cost from a new one. Such a digest is replaced at the next sign-in: the time of its
/// check tells that the login exists.
pub fn is_outdated(digest: &str, cost: Cost) -> bool {
    let Ok(digest) = PasswordHash::new(digest) else { return false };
    let params = Params::try_from(&digest).map(|params| (params.m_cost(), params.t_cost(), params.p_cost()));
    let is_ours = digest.algorithm.as_str() == Algorithm::Argon2id.as_str()
        && digest.version == Some(Version::V0x13.into())
        && params.is_ok_and(|params| params == (cost.memory_kib, cost.passes, 1));
    !is_ours
}

/// Checks that a text is a usable digest; the error completes a sentence after "must".
pub fn check_digest(text: &str) -> Result<(), &'static str> {
    const WRONG: &str =
        "must be an argon2 digest in PHC form, such as $argon2id$v=19$m=19456,t=2,p=1$salt$digest";
    if text.len() > PASSWORD_BYTES_MAX {
        return Err("must be at most 255 bytes");
    }
    let digest = PasswordHash::new(text).map_err(|_| WRONG)?;
    Algorithm::new(digest.algorithm.as_str()).map_err(|_| WRONG)?;
    let params = Params::try_from(&digest).map_err(|_| WRONG)?;
    if digest.salt.is_none() || digest.hash.is_none() {
        return Err(WRONG);
    }
    if params.m_cost() > MEMORY_KIB_MAX || params.t_cost() > PASSES_MAX || params.p_cost() > 16 {
        return Err("must cost at most 256 MiB, 16 passes and 16 lanes");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_known_by_its_digest_and_no_other_is() {
        let cost = Cost::new(64, 1).unwrap();
        let (one, other) = (digest("correct horse", cost).unwrap(), digest("correct horse", cost).unwrap());
        assert_ne!(one, other, "each has a salt of its own");
        assert!(one.starts_with("$argon2id$v=19$m=64,t=1,p=1$") && one.len() < PASSWORD_BYTES_MAX, "{one}");
        assert!(is_right("correct horse", &one) && is_right("correct horse", &other));
        assert!(!is_right("correct hors", &one) && !is_right("", &one) && !is_right("correct horse", "x"));
        assert_eq!(check_digest(&one), Ok(()));
        assert!(!is_outdated(&one, cost) && is_outdated(&one, Cost::new(64, 2).unwrap()));
        for (ours, other) in [("argon2id", "argon2i"), ("v=19", "v=16"), ("p=1", "p=2"), ("m=64", "m=128")] {
            assert!(is_outdated(&one.replacen(ours, other, 1), cost), "{other}");
        }
    }

    #[test]
    fn a_placeholder_has_the_form_of_a_new_digest_and_is_of_no_password() {
        let cost = Cost::new(64, 1).unwrap();
        let (one, other) = (placeholder(cost).unwrap(), placeholder(cost).unwrap());
        assert_ne!(one, other);
        assert_eq!(one.len(), digest("", cost).unwrap().len());
        assert!(check_digest(&one).is_ok() && !is_outdated(&one, cost) && !is_right("", &one), "{one}");
    }

    #[test]
    fn digests_from_elsewhere_are_of_argon2_and_not_too_dear() {
        // "password" by the reference's command line: argon2 somesalt -t 2 -m 16 -p 1 -id
        let reference =
            "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
        assert_eq!(check_digest(reference), Ok(()));
        assert!(is_right("password", reference) && !is_right("passwort", reference));
        for wrong in [
            "",
            "password",
            "$2b$12$abcdefghijklmnopqrstuuOqyJTUnJuMsVJ6gDsD9xQ8Q7y1Q0K3a",
            "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ",
            "$argon2id$v=19$m=4194304,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
            "$argon2id$v=19$m=65536,t=200,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
        ] {
            assert!(check_digest(wrong).is_err(), "{wrong}");
        }
        assert!(Cost::new(7, 1).is_none() && Cost::new(8, 0).is_none() && Cost::new(1 << 20, 1).is_none());
    }
}
