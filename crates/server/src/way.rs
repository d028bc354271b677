//! How far the way of a connection can be trusted: the same for both protocols.
//!
//! Not here: what a request says of its way (`http/guard.rs`), and what follows from all that.

use crate::listener::PeerAddress;
use crate::readiness::Readiness;
use std::net::SocketAddr;

/// How far the way of a connection or a request can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From another machine.
    Foreign,
    /// From this machine, maybe on behalf of another one.
    Local,
    /// From this machine, on a listener that no other machine reaches, without a sign of a proxy.
    Direct,
}

impl Way {
    /// The way of a connection from `peer`, where `address` is that of TCP.
    pub(crate) fn of(gate: &Readiness, peer: PeerAddress, address: Option<SocketAddr>) -> Self {
        // No other machine reaches a Unix socket. A listener for other machines is one that is used by others: also by
        // proxies on this machine.
        let (local, private) = match peer {
            PeerAddress::Unix => (true, true),
            PeerAddress::Tcp(peer) => (is_loopback(peer), address.is_some_and(is_loopback)),
        };
        match (local, private && !gate.limits.keys_required) {
            (true, true) => Self::Direct,
            (true, false) => Self::Local,
            (false, _) => Self::Foreign,
        }
    }
}

fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}
