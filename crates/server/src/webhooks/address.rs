//! Which addresses are public. Others are of this machine, of private networks, or reserved.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is one of the internet.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = match (a, b, c) {
        // This network, carrier-grade NAT, protocol assignments, 6to4 relays, benchmarks, and what is reserved.
        (0 | 240..=255, _, _) | (100, 64..=127, _) | (192, 0, 0) | (192, 88, 99) | (198, 18 | 19, _) => true,
        _ => address.is_private() || address.is_loopback() || address.is_link_local(),
    };
    !(special || address.is_multicast() || address.is_documentation())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = embedded(address) {
        return is_public_v4(inner);
    }
    let parts = address.segments();
    // Global unicast is 2000::/3. Of it, 2001::/23 has protocols of its own (Teredo among them), 2001:db8::/32 and 3fff::/20 are
    // for documentation.
    let is_global = parts[0] & 0xe000 == 0x2000;
    let is_special = parts[0] == 0x2001 && (parts[1] < 0x200 || parts[1] == 0xdb8);
    is_global && !is_special && !(parts[0] == 0x3fff && parts[1] < 0x1000)
}

/// The IPv4 address that packets to this address reach: mapped, behind NAT64, or 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let of = |high: u16, low: u16| Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match (a, b, [c, d, e, f]) {
        (0, 0, [0, 0, 0, 0xffff]) | (0x64, 0xff9b, [0, 0, 0, 0]) => of(g, h),
        (0x2002, _, _) => of(b, c),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_internet_are_public() {
        for text in [
            "1.1.1.1",
            "93.184.216.34",
            "172.32.0.1",
            "2606:4700::1111",
            "64:ff9b::101:101",
            "2002:101:101::1",
        ] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
        let private = [
            "0.0.0.0",
            "0.1.2.3",
            "127.0.0.1",
            "127.9.9.9",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "192.0.0.8",
            "192.0.2.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "fec0::1",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "2002:a00:1::1",
            "::7f00:1",
            "100::1",
            "3fff::1",
        ];
        for text in private {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
    }
}
