//! The signature of a delivery, in the form of Stripe's: `t=1764150000,v1=…`, HMAC-SHA256 over the time, a dot and the body.
//!
//! A receiver checks it with the secret, and the time against its clock, so that a recorded delivery is not taken later. While a
//! secret is replaced, there is one `v1` for each of both.

use crate::secret::hex;
use ring::hmac;
use tally_rules::Micros;
use tally_rules::instant::SECOND;

/// The value of the header with the signatures by these secrets, the present one first.
pub fn signature(secrets: &[String], at: Micros, body: &[u8]) -> String {
    let seconds = at.0.div_euclid(SECOND);
    let message = [format!("{seconds}.").as_bytes(), body].concat();
    let mut header = format!("t={seconds}");
    for secret in secrets {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        header.push_str(",v1=");
        header.push_str(&hex(hmac::sign(&key, &message).as_ref()));
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures are those of `openssl dgst -sha256 -hmac`.
    #[test]
    fn a_signature_is_that_of_other_programs() {
        let secrets = ["whsec_a".to_owned(), "whsec_b".to_owned()];
        let at = Micros(1_764_150_000_999_999);
        let first = "t=1764150000,v1=4efcdc60f451d7b69873bea8777d4cd591d79fec9271fb4b906f122c95893e76";
        let second = ",v1=7bfcc5dc4de7777068c148559e0209cd1171248ee99e2fe494e7b14504ad4d8d";
        assert_eq!(signature(&secrets[..1], at, b"{}"), first);
        assert_eq!(signature(&secrets, at, b"{}"), format!("{first}{second}"));
    }
}
