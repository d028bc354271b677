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
