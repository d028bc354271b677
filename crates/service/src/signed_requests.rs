//! Signed requests between the servers of a store: a request that a follower forwards, and its poll of the leader.
//!
//! All servers of a store have its secret, and nothing else has it. So a signature by it proves that a server sent the request, and
//! the receiver believes what the signature covers: the address of the client, and as what its sender knows the client, beside the
//! method, the path and the headers that the operation reads. The value has the digest of the body, so that the receiver checks the
//! head before it takes the body. A captured value works for [`SKEW_MAX`] and for the same request only. Not here: HTTP, and whether the caller of a forwarded request may do it.

use crate::keyring::{Keyring, Numbered};
use crate::secret::Use;
use std::net::IpAddr;
use std::time::Duration;
use tally_rules::Micros;
use thiserror::Error;

/// The header with the signature.
pub const HEADER: &str = "tally-forwarded";

/// How far the clocks of two servers may differ, with the time that a request takes.
pub const SKEW_MAX: Duration = Duration::from_secs(30);

/// The form of the value and what it covers. A change of either is another version.
const VERSION: &str = "v1";

/// On whose behalf a server sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behalf {
    /// A client, with the credential that the request has, if any.
    Client,
    /// A client on the machine of the sender, without a credential: protected mode.
    Local,
    /// A subcommand on the machine of the sender, which had the token of the data directory.
    CommandLine,
    /// The server itself.
    Server,
}

/// A request as its signature covers it.
#[derive(Clone, Copy, Debug)]
pub struct SignedRequest<'a> {
    /// The method.
    pub method: &'a str,
    /// The path with its query, as it is sent.
    pub target: &'a str,
    /// The headers that its operation reads, in an order that both servers know.
    pub headers: &'a [(&'a str, &'a [u8])],
}

/// What a valid signature says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signed {
    /// On whose behalf the server sent it.
    pub behalf: Behalf,
    /// The address of the client, or of the server.
    pub client: IpAddr,
    body: blake3::Hash,
}

/// Why a signature is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// Not of the form that this version sends.
    #[error("`Tally-Forwarded` has another form than this version reads: update the servers")]
    Malformed,
    /// Not of this request, or by another secret.
    #[error("`Tally-Forwarded` is not the signature of this request: all servers of a store have one secret")]
    Forged,
    /// Too old, or of the future.
    #[error(
        "`Tally-Forwarded` is more than 30 s from the time of this server: compare the clocks of the servers"
    )]
    Stale,
}

impl Behalf {
    const ALL: [Self; 4] = [Self::Client, Self::Local, Self::CommandLine, Self::Server];

    fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Local => "local",
            Self::CommandLine => "command_line",
            Self::Server => "server",
        }
    }
}

impl Signed {
    /// Whether the request was signed with this body.
    pub fn has_body(&self, body: &[u8]) -> bool {
        self.body == blake3::hash(body)
    }
}

impl SignedRequest<'_> {
    /// The value of [`HEADER`] for this request with this body.
    pub fn sign(
        &self,
        ring: &Keyring,
        body: &[u8],
        (behalf, client): (Behalf, IpAddr),
        now: Micros,
    ) -> String {
        let (millis, body) = ((now.0 / 1_000).to_string(), blake3::hash(body).to_hex());
        let client = client.to_string();
        let said = [millis.as_str(), behalf.as_str(), &client, &body];
        let mac = self.mac(ring.active(), said).to_hex();
        format!("{VERSION} {} {mac}", said.join(" "))
    }

    /// Checks the value of [`HEADER`] of this request, but for its body.
    ///
    /// # Errors
    ///
    /// Why the value proves nothing.
    pub fn verify(&self, ring: &Keyring, value: &str, now: Micros) -> Result<Signed, Refused> {
        let parts: Vec<&str> = value.split(' ').collect();
        let &[VERSION, millis, behalf, client, body, mac] = parts.as_slice() else {
            return Err(Refused::Malformed);
        };
        let said = [millis, behalf, client, body];
        let mac = blake3::Hash::from_hex(mac).map_err(|_| Refused::Malformed)?;
        let (active, other) = ring.both();
        // Hashes are compared in constant time.
        let is_ours = [Some(active), other].into_iter().flatten().any(|by| mac == self.mac(by, said));
        if !is_ours {
            return Err(Refused::Forged);
        }
        let behalf =
            Behalf::ALL.into_iter().find(|known| known.as_str() == behalf).ok_or(Refused::Malformed)?;
        let client = client.parse().map_err(|_| Refused::Malformed)?;
        let body = blake3::Hash::from_hex(body).map_err(|_| Refused::Malformed)?;
        let millis: i64 = millis.parse().map_err(|_| Refused::Malformed)?;
        if u128::from((now.0 / 1_000).abs_diff(millis)) > SKEW_MAX.as_millis() {
            return Err(Refused::Stale);
        }
        Ok(Signed { behalf, client, body })
    }

    /// Each part is written with its length before it, so that shifting bytes between them changes it.
    fn mac(&self, by: Numbered<'_>, said: [&str; 4]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(by.key(Use::Servers));
        let head = [VERSION, self.method, self.target].into_iter().chain(said).map(str::as_bytes);
        let headers = self.headers.iter().flat_map(|(name, value)| [name.as_bytes(), value]);
        for part in head.chain(headers) {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        hasher.finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rotation::{Known, RotationRow};
    use crate::secret::Secret;

    const NOW: Micros = Micros(1_795_000_000_000_000);
    const SCORES: SignedRequest<'_> = SignedRequest {
        method: "POST",
        target: "/v1/leaderboards/b/scores?x=1",
        headers: &[("idempotency-key", b"k")],
    };

    fn client() -> IpAddr {
        "192.0.2.7".parse().unwrap()
    }

    fn ring(byte: u8) -> Keyring {
        Keyring::new(&[Secret::new([byte; 32])])
    }

    fn signed() -> String {
        SCORES.sign(&ring(1), b"{}", (Behalf::Client, client()), NOW)
    }

    fn after(time: Duration) -> Micros {
        Micros(NOW.0 + i64::try_from(time.as_micros()).unwrap())
    }

    #[test]
    fn a_signature_says_what_was_signed() {
        for behalf in Behalf::ALL {
            for client in [client(), "2001:db8::1".parse().unwrap()] {
                let value = SCORES.sign(&ring(1), b"{}", (behalf, client), NOW);
                let read = SCORES.verify(&ring(1), &value, NOW).unwrap();
                assert_eq!((read.behalf, read.client), (behalf, client));
                assert!(read.has_body(b"{}") && !read.has_body(b"{ }") && !read.has_body(b""));
            }
        }
    }

    #[test]
    fn another_request_or_another_secret_is_forged() {
        let value = signed();
        for other in [
            SignedRequest { method: "PUT", ..SCORES },
            SignedRequest { target: "/v1/leaderboards/b/scores", ..SCORES },
            SignedRequest { method: "POS", target: "T/v1/leaderboards/b/scores?x=1", ..SCORES },
            SignedRequest { headers: &[], ..SCORES },
            SignedRequest { headers: &[("idempotency-key", b"l")], ..SCORES },
            SignedRequest { headers: &[("idempotency-key", b"k"), ("tally-acting-player", b"p")], ..SCORES },
        ] {
            assert_eq!(other.verify(&ring(1), &value, NOW), Err(Refused::Forged), "{other:?}");
        }
        assert_eq!(SCORES.verify(&ring(2), &value, NOW), Err(Refused::Forged));
    }

    #[test]
    fn no_part_of_the_value_can_be_changed() {
        let value = signed();
        let parts: Vec<&str> = value.split(' ').collect();
        let other_body = blake3::hash(b"").to_hex();
        let changed =
            ["v2", "1795000000001", "command_line", "192.0.2.8", other_body.as_str(), other_body.as_str()];
        for (at, other) in changed.into_iter().enumerate() {
            let mut parts = parts.clone();
            parts[at] = other;
            let wanted = if at == 0 { Refused::Malformed } else { Refused::Forged };
            assert_eq!(SCORES.verify(&ring(1), &parts.join(" "), NOW), Err(wanted), "{parts:?}");
        }
        for malformed in ["", "v1", &value[..value.len() - 1], &format!("{value} "), &format!(" {value}")] {
            assert_eq!(SCORES.verify(&ring(1), malformed, NOW), Err(Refused::Malformed), "{malformed:?}");
        }
    }

    #[test]
    fn a_signature_is_good_for_thirty_seconds_around_its_time() {
        let (value, more) = (signed(), Duration::from_millis(1));
        for early in [false, true] {
            let at = |time| if early { Micros(2 * NOW.0 - after(time).0) } else { after(time) };
            assert!(SCORES.verify(&ring(1), &value, at(SKEW_MAX)).is_ok());
            assert_eq!(SCORES.verify(&ring(1), &value, at(SKEW_MAX + more)), Err(Refused::Stale));
        }
    }

    #[test]
    fn both_secrets_are_accepted_while_one_is_replaced() {
        let (old, new) = (Secret::new([1; 32]), Secret::new([2; 32]));
        let known = |secret: &Secret, number| Known { number, fingerprint: secret.derive(Use::Fingerprint) };
        let both = Keyring::new(&[new.clone(), old.clone()]);
        let row = RotationRow {
            active: known(&new, 1),
            other: Some(known(&old, 0)),
            since: NOW,
            objected: false,
            dropped: None,
        };
        both.follow(&row);
        assert!(SCORES.verify(&both, &signed(), NOW).is_ok(), "a server that still signs by the old one");
        let value = SCORES.sign(&both, b"{}", (Behalf::Server, client()), NOW);
        assert!(
            SCORES.verify(&ring(2), &value, NOW).is_ok() && SCORES.verify(&ring(1), &value, NOW).is_err()
        );
        both.follow(&row.dropping());
        assert_eq!(SCORES.verify(&both, &signed(), NOW), Err(Refused::Forged), "the old one was dropped");
    }
}
