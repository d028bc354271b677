//! How far the origin of a connection can be trusted: the same for HTTP and RESP.
//!
//! Not here: signs of a proxy in a request (`http/guard.rs`), and the consequences.

use crate::listener::PeerAddress;
use crate::readiness::Readiness;
use std::net::SocketAddr;

/// How far the origin of a connection or a request can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// From another machine.
    Foreign,
    /// From this machine, maybe on behalf of another one.
    Local,
    /// From this machine, on a listener that no other machine reaches, without a sign of a proxy.
    Direct,
}

impl Trust {
    /// The trust in a connection from `peer` to a listener at the TCP address `address`.
    pub(crate) fn of(readiness: &Readiness, peer: PeerAddress, address: Option<SocketAddr>) -> Self {
        // No other machine reaches a Unix socket. A listener for other machines may also serve a proxy on this machine.
        let (local, private) = match peer {
            PeerAddress::Unix => (true, true),
            PeerAddress::Tcp(peer) => (is_loopback(peer), address.is_some_and(is_loopback)),
        };
        match (local, private && !readiness.limits.keys_required) {
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
    use crate::limits::Limits;
    use std::sync::Arc;

    fn readiness(keys_required: bool) -> Arc<Readiness> {
        Readiness::of_test(Limits { keys_required, ..Limits::default() }, "")
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn tcp(peer: &str) -> PeerAddress {
        PeerAddress::Tcp(address(peer))
    }

    #[test]
    fn a_loopback_address_on_a_loopback_listener_is_direct() {
        for (peer, listener) in [
            ("127.0.0.1:5", "127.0.0.1:8420"),
            ("127.9.9.9:5", "127.0.0.1:8420"),
            ("[::1]:5", "[::1]:8420"),
            // An IPv4 address as a socket of IPv6 shows it.
            ("[::ffff:127.0.0.1]:5", "[::ffff:127.0.0.1]:8420"),
        ] {
            assert_eq!(
                Trust::of(&readiness(false), tcp(peer), Some(address(listener))),
                Trust::Direct,
                "{peer}"
            );
            assert_eq!(
                Trust::of(&readiness(true), tcp(peer), Some(address(listener))),
                Trust::Local,
                "{peer}"
            );
        }
    }

    #[test]
    fn a_loopback_address_on_a_listener_for_others_is_local() {
        for listener in ["0.0.0.0:8420", "[::]:8420", "192.0.2.7:8420"] {
            for required in [false, true] {
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
                let trust = Trust::of(&readiness(false), tcp(peer), Some(address(listener)));
                assert_eq!(trust, Trust::Foreign, "{peer} on {listener}");
            }
        }
    }

    #[test]
    fn a_unix_socket_is_direct_beside_any_listener() {
        for listener in [None, Some(address("127.0.0.1:8420")), Some(address("0.0.0.0:8420"))] {
            assert_eq!(Trust::of(&readiness(false), PeerAddress::Unix, listener), Trust::Direct);
            assert_eq!(Trust::of(&readiness(true), PeerAddress::Unix, listener), Trust::Local);
        }
    }
}
