//! The message about an address that is in use: which process has it, and which setting changes it.
//!
//! Linux lists the sockets in `/proc/net`, and the files of each process in `/proc`. Only root sees those of other accounts, so
//! the process may stay unknown. Not here: opening a listener (`tally_server::Listen`).

use anyhow::Error;
use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use tally_server::Listen;

/// The state of a listening socket.
const LISTENS: &str = "0A";

/// A socket of `/proc/net/tcp` or `tcp6`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Socket {
    local: SocketAddr,
    listens: bool,
    inode: u64,
}

/// The error of a listener with these addresses; `of` is the section of its settings.
pub(super) fn explain(why: std::io::Error, listen: &Listen, of: &str) -> Error {
    if why.kind() != ErrorKind::AddrInUse {
        return why.into();
    }
    // The error names the address that failed.
    let text = why.to_string();
    let tcp = listen.tcp.as_deref().filter(|at| text.starts_with(&format!("listen on {at}: ")));
    let Some(tcp) = tcp else { return Error::msg(format!("{text}; `{of}.socket` sets another path")) };
    let holder = tcp.to_socket_addrs().ok().and_then(|mut all| all.find_map(holder));
    let by = match holder {
        None => String::new(),
        Some(pid) if pid == std::process::id() => ", by another listener of this server".into(),
        Some(pid) => format!(", by process {pid}{}", name(pid)),
    };
    // The other listeners have no flag.
    let flag = if ["http", "resp"].contains(&of) { format!("`--{of}` or ") } else { String::new() };
    Error::msg(format!("{text}{by}; {flag}`{of}.listen` sets another address"))
}

/// The process that has a socket on this address, if this account may see it.
fn holder(address: SocketAddr) -> Option<u32> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    let mut sockets: Vec<Socket> = tables.iter().flat_map(|table| table.lines()).filter_map(socket).collect();
    sockets.retain(|socket| clash(socket.local, address));
    // A connection may have the port, too, and so may those that a listener has accepted.
    sockets.sort_by_key(|socket| !socket.listens);
    let link = format!("socket:[{}]", sockets.first()?.inode);
    let has_it = |pid: &u32| {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        files
            .map(|file| file.path())
            .any(|file| fs::read_link(file).is_ok_and(|to| to.as_os_str() == link.as_str()))
    };
    let entries = fs::read_dir("/proc").ok()?.flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(has_it)
}

/// The name of a process in parentheses.
fn name(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    if name.is_empty() { name } else { format!(" ({})", name.trim_end().escape_debug()) }
}

/// Reads a line of the list; `None` for its head, and for a socket that no process has any more.
fn socket(line: &str) -> Option<Socket> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (address, port) = words.get(1)?.split_once(':')?;
    let local = SocketAddr::new(ip(address)?, u16::from_str_radix(port, 16).ok()?);
    let inode = words.get(9)?.parse().ok().filter(|inode| *inode != 0)?;
    Some(Socket { local, listens: *words.get(3)? == LISTENS, inode })
}

/// Reads an address: numbers of 32 bits in the order of this machine, whose bytes are in the order of the network.
fn ip(text: &str) -> Option<IpAddr> {
    let word = |at: usize| Some(u32::from_str_radix(text.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    match text.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let mut bytes = [0; 16];
            for (at, four) in bytes.chunks_exact_mut(4).enumerate() {
                four.copy_from_slice(&word(at * 8)?);
            }
            Some(Ipv6Addr::from(bytes).to_canonical())
        }
        _ => None,
    }
}

/// Whether two sockets cannot both listen.
fn clash(one: SocketAddr, other: SocketAddr) -> bool {
    let (ip, other_ip) = (one.ip().to_canonical(), other.ip().to_canonical());
    one.port() == other.port() && (ip == other_ip || ip.is_unspecified() || other_ip.is_unspecified())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// The fields of a line on a machine of this byte order.
    fn line(words: &[u32], rest: &str) -> String {
        let address: String =
            words.iter().map(|word| format!("{:08X}", u32::from_ne_bytes(word.to_be_bytes()))).collect();
        format!("   0: {address}:20E4 {}:0000 {rest}", "0".repeat(address.len()))
    }

    #[test]
    fn a_line_has_its_address_its_state_and_its_inode() {
        let of =
            |address: &str, listens, inode| Some(Socket { local: address.parse().unwrap(), listens, inode });
        let listens =
            "0A 00000000:00000000 00:00000000 00000000  1000        0 31337 1 0000000000000000 100 0";
        assert_eq!(socket(&line(&[0x7f00_0001], listens)), of("127.0.0.1:8420", true, 31_337));
        assert_eq!(socket(&line(&[0, 0, 0, 1], listens)), of("[::1]:8420", true, 31_337));
        assert_eq!(socket(&line(&[0, 0, 0xffff, 0x0a00_0005], listens)), of("10.0.0.5:8420", true, 31_337));
        let connected = listens.replacen("0A", "01", 1);
        assert_eq!(socket(&line(&[0], &connected)), of("0.0.0.0:8420", false, 31_337));
        assert_eq!(socket(&line(&[0], &listens.replacen("31337", "0", 1))), None, "it is closed");
        assert_eq!(
            socket("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt"),
            None
        );
        assert_eq!(socket("   0: 7F00:20E4"), None);
    }

    #[test]
    fn addresses_clash_if_one_of_them_is_all_addresses() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert!(clash(at("127.0.0.1:1"), at("127.0.0.1:1")) && clash(at("0.0.0.0:1"), at("127.0.0.1:1")));
        assert!(clash(at("[::]:1"), at("127.0.0.1:1")) && clash(at("127.0.0.1:1"), at("[::]:1")));
        assert!(!clash(at("127.0.0.1:1"), at("127.0.0.1:2")) && !clash(at("127.0.0.1:1"), at("127.0.0.2:1")));
    }

    #[test]
    fn this_process_is_found_by_its_listener() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let found = holder(listener.local_addr().unwrap());
        assert_eq!(found, cfg!(target_os = "linux").then(std::process::id));
    }

    #[test]
    fn the_message_names_the_setting() {
        let listen = Listen::tcp("127.0.0.1:1");
        let of = |kind, text: &str| {
            explain(std::io::Error::new(kind, text.to_owned()), &listen, "resp").to_string()
        };
        let tcp = of(ErrorKind::AddrInUse, "listen on 127.0.0.1:1: it is in use");
        assert!(tcp.starts_with("listen on 127.0.0.1:1: it is in use"), "{tcp}");
        assert!(tcp.ends_with("; `--resp` or `resp.listen` sets another address"), "{tcp}");
        let socket = of(ErrorKind::AddrInUse, "listen on here: another process listens there");
        assert!(socket.ends_with("listens there; `resp.socket` sets another path"), "{socket}");
        assert_eq!(of(ErrorKind::PermissionDenied, "listen on 127.0.0.1:1: no"), "listen on 127.0.0.1:1: no");
    }
}
