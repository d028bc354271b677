//! The `Host` header of a request: its name without the port.
//!
//! Not here: which names are the server's own.

use std::net::{Ipv4Addr, Ipv6Addr};

/// The name, or the address in brackets, of `name`, `name:port`, `127.0.0.1:port` or `[::1]:port`; `None` for other forms.
pub fn name(host: &str) -> Option<&str> {
    let end = if host.starts_with('[') { host.find(']')? + 1 } else { host.find(':').unwrap_or(host.len()) };
    let (name, rest) = host.split_at(end);
    if let Some(port) = rest.strip_prefix(':') {
        let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        port.parse::<u16>().ok().filter(|_| digits)?;
    } else if !rest.is_empty() {
        return None;
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (is_address(name) || (!name.is_empty() && name.bytes().all(plain))).then_some(name)
}

/// Whether a name is an IP address.
pub fn is_address(name: &str) -> bool {
    match name.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').is_some_and(|address| address.parse::<Ipv6Addr>().is_ok()),
        None => name.parse::<Ipv4Addr>().is_ok(),
    }
}
