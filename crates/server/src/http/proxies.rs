//! The client's address behind proxies: `X-Forwarded-For`, read from the right, past the trusted proxies.
//!
//! Each proxy appends the address that connected to it. So only text that trusted proxies appended is true; text to its
//! left comes from the client. Not here: what counts as this machine (`guard`), for which no header counts.

use hyper::HeaderMap;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Once;

const FORWARDED_FOR: &str = "x-forwarded-for";

const UNTRUSTED: &str = "a sign-in has an `X-Forwarded-For` from an address that is not in `http.trusted_proxies`: if that is a \
     proxy, add it; until then all clients behind it count as one";

/// An address or a network, such as `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

impl FromStr for Network {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(left, right)| (left, Some(right)));
        let address: IpAddr = address.parse().map_err(|_| ())?;
        let bits_max = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(bits_max), str::parse).map_err(|_| ())?;
        if bits > bits_max { Err(()) } else { Ok(Self { address, bits }) }
    }
}

impl Network {
    fn has(self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (own.to_bits() ^ other.to_bits()).checked_shr(32 - self.bits).unwrap_or(0) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (own.to_bits() ^ other.to_bits()).checked_shr(128 - self.bits).unwrap_or(0) == 0
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

/// The address of the client.
pub(super) fn client(peer: IpAddr, headers: &HeaderMap, trusted: &[Network]) -> IpAddr {
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.has(address));
    let mut client = peer.to_canonical();
    if headers.contains_key(FORWARDED_FOR) && !is_trusted(client) {
        // Logged once, because any client may send the header.
        static WARNED: Once = Once::new();
        WARNED.call_once(|| tracing::warn!(%peer, "{UNTRUSTED}"));
    }
    let fields = headers.get_all(FORWARDED_FOR).iter().rev();
    let mut hops = fields.flat_map(|field| field.to_str().unwrap_or("?").rsplit(','));
    while is_trusted(client) {
        // A hop that is not an address ends the search: text to its left is not reliable.
        let Some(hop) = hops.next().and_then(|text| address(text.trim())) else { break };
        client = hop;
    }
    client
}

/// Parses an address with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().or_else(|_| text.parse().map(|socket: SocketAddr| socket.ip()));
    address.ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client_of(peer: &str, fields: &[&'static str], trusted: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for field in fields {
            headers.append(FORWARDED_FOR, field.parse().unwrap());
        }
        let trusted: Vec<Network> = trusted.iter().map(|text| text.parse().unwrap()).collect();
        client(peer.parse().unwrap(), &headers, &trusted).to_string()
    }

    #[test]
    fn only_what_trusted_proxies_appended_counts() {
        let (own, edge) = (["10.0.0.0/8", "fd00::/8"], "10.0.0.1");
        for (peer, fields, trusted, wanted) in [
            ("192.0.2.1", &["198.51.100.7"][..], &[][..], "192.0.2.1"),
            ("192.0.2.1", &["198.51.100.7"], &own, "192.0.2.1"),
            (edge, &[], &own, edge),
            (edge, &["198.51.100.7"], &own, "198.51.100.7"),
            ("::ffff:10.0.0.1", &["198.51.100.7"], &own, "198.51.100.7"),
            // The client itself wrote the left part.
            (edge, &["127.0.0.1, 198.51.100.7"], &own, "198.51.100.7"),
            (edge, &["127.0.0.1", "198.51.100.7,10.9.9.9", "fd00::1"], &own, "198.51.100.7"),
            (edge, &["198.51.100.7:4711"], &own, "198.51.100.7"),
            (edge, &["[2001:db8::1]:4711"], &own, "2001:db8::1"),
            (edge, &["[2001:db8::1]"], &own, "2001:db8::1"),
            (edge, &["198.51.100.7, unknown, 10.9.9.9"], &own, "10.9.9.9"),
            (edge, &["198.51.100.7,"], &own, edge),
            (edge, &["198.51.100.7"], &["10.0.0.2"], edge),
            (edge, &["198.51.100.7"], &["0.0.0.0/0", "::/0"], "198.51.100.7"),
            (edge, &["198.51.100.7"], &["10.0.0.1/32"], "198.51.100.7"),
        ] {
            assert_eq!(client_of(peer, fields, trusted), wanted, "{peer} {fields:?} {trusted:?}");
        }
    }

    #[test]
    fn a_network_is_an_address_with_at_most_its_bits() {
        for wrong in ["", "proxy", "10.0.0.0/33", "::/129", "10.0.0.0/-1", "10.0.0.0/", "10.0.0/8"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }
}
