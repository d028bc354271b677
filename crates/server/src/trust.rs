//! How far the origin of a connection can be trusted: the same for HTTP and RESP.
//!
//! Not here: signs of a proxy in a request (`http/guard.rs`), and the consequences.

use crate::limits::KeysRequired;
use crate::listener::PeerAddress;
use crate::readiness::Readiness;
use std::net::SocketAddr;
use tally_service::signed_requests::Behalf;

/// How far the origin of a connection or a request can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// From another machine.
    Foreign,
    /// From this machine, maybe on behalf of another one.
    Local,
    /// From this machine, on a listener that is trusted before the first key, without a sign of a proxy.
    Direct,
    /// From another server of the store, which signed it.
    Server(Behalf),
}

impl Trust {
    /// The trust in a connection from `peer` to a listener at the TCP address `address`.
    pub(crate) fn of(readiness: &Readiness, peer: PeerAddress, address: Option<SocketAddr>) -> Self {
        let required = readiness.limits.keys_required;
        // No other machine reaches a Unix socket. A listener for other machines may also serve a proxy on this machine. So may
        // one of the loopback interface, and a proxy need not leave a sign in its requests.
        let (local, trusted) = match peer {
            PeerAddress::Unix => (true, required != KeysRequired::Always),
            PeerAddress::Tcp(peer) => {
                (is_loopback(peer), required == KeysRequired::Never && address.is_some_and(is_loopback))
            }
        };
        match (local, trusted) {
            (true, true) => Self::Direct,
            (true, false) => Self::Local,
            (false, _) => Self::Foreign,
        }
    }
}

fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::HttpLimits;
    use std::sync::Arc;

    use KeysRequired::{Always, Never, OverTcp};

    fn readiness(keys_required: KeysRequired) -> Arc<Readiness> {
        Readiness::of_test(HttpLimits { keys_required, ..HttpLimits::default() }, "")
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn tcp(peer: &str) -> PeerAddress {
        PeerAddress::Tcp(address(peer))
    }

    #[test]
    fn a_loopback_address_on_a_loopback_listener_is_direct_if_no_key_is_required() {
        for (peer, listener) in [
            ("127.0.0.1:5", "127.0.0.1:8420"),
            ("127.9.9.9:5", "127.0.0.1:8420"),
            ("[::1]:5", "[::1]:8420"),
            // An IPv4 address as a socket of IPv6 shows it.
            ("[::ffff:127.0.0.1]:5", "[::ffff:127.0.0.1]:8420"),
        ] {
            for (required, trust) in [(Never, Trust::Direct), (OverTcp, Trust::Local), (Always, Trust::Local)]
            {
                let found = Trust::of(&readiness(required), tcp(peer), Some(address(listener)));
                assert_eq!(found, trust, "{peer} with {required:?}");
            }
        }
    }

    #[test]
    fn a_loopback_address_on_a_listener_for_others_is_local() {
        for listener in ["0.0.0.0:8420", "[::]:8420", "192.0.2.7:8420"] {
            for required in [Never, OverTcp, Always] {
                let trust = Trust::of(&readiness(required), tcp("127.0.0.1:5"), Some(address(listener)));
                assert_eq!(trust, Trust::Local, "{listener}");
            }
        }
    }

    #[test]
    fn an_address_that_is_not_of_the_loopback_interface_is_foreign_on_every_listener() {
        for peer in [
            "192.0.2.7:5",
            "10.0.0.1:5",
            "[2001:db8::1]:5",
            "[fe80::1]:5",
            "[::ffff:192.0.2.7]:5",
            "0.0.0.0:5",
        ] {
            for listener in ["127.0.0.1:8420", "0.0.0.0:8420", "192.0.2.7:8420", "[::1]:8420"] {
                let trust = Trust::of(&readiness(Never), tcp(peer), Some(address(listener)));
                assert_eq!(trust, Trust::Foreign, "{peer} on {listener}");
            }
        }
    }

    #[test]
    fn a_unix_socket_is_direct_beside_any_listener() {
        for listener in [None, Some(address("127.0.0.1:8420")), Some(address("0.0.0.0:8420"))] {
            for (required, trust) in
                [(Never, Trust::Direct), (OverTcp, Trust::Direct), (Always, Trust::Local)]
            {
                assert_eq!(Trust::of(&readiness(required), PeerAddress::Unix, listener), trust);
            }
        }
    }
}
