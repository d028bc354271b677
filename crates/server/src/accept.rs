//! Which connections a listener serves: limits in total and for each address, and reserved slots.
//!
//! It accepts every connection, because only then its address is known. One address may have a share of all slots,
//! so one client cannot take all of them. In IPv6 the address is its /64, which is what one customer gets. When all slots
//! are taken, a limited number of connections waits, and the server closes the rest. The last slots are reserved for
//! commands of this machine, and for health checks where a listener has them. Not here: serving, and when to stop.

use crate::listener::{Listeners, PeerAddress};
use crate::transport::Transport;
use prometheus_client::metrics::counter::Counter;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

/// The pause after a failed accept.
const PAUSE: Duration = Duration::from_millis(100);
/// Errors of a process, and of a system, without a free file descriptor: `EMFILE` and `ENFILE`.
const NO_DESCRIPTOR: [i32; 2] = [24, 23];
/// The maximum number of slots reserved for this machine, and again for health checks.
const RESERVED_MAX: usize = 16;
/// One of so many slots is reserved for each of the two.
const RESERVED_OF: usize = 10;

/// How many connections a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// In total; further ones wait.
    pub all: usize,
    /// From one address, an IPv6 /64 for IPv6; further ones are closed.
    pub address: usize,
    /// The same for a loopback address; `None` is no limit.
    pub loopback: Option<usize>,
    /// Those that wait for a slot; further ones are closed.
    pub waiting: usize,
}

pub(crate) struct Acceptor {
    listeners: Listeners,
    limits: ConnectionLimits,
    all: Pool,
    /// Reserved for loopback addresses.
    local: Pool,
    /// Reserved for health checks.
    health: Pool,
    addresses: Addresses,
    waiting: JoinSet<Option<Accepted>>,
    /// What the server sends on a refused connection.
    rejection: &'static [u8],
    refused: Refused,
    /// Takes a descriptor, which is free for an accept when no other one is.
    spare: Option<File>,
}

/// The counts of refused connections, by the reason.
pub(crate) struct Refused {
    /// Its address has too many.
    pub(crate) address: Counter,
    /// All slots are taken, and too many connections wait.
    pub(crate) full: Counter,
    /// No file descriptor was free.
    pub(crate) descriptors: Counter,
}

/// Slots of one kind.
struct Pool {
    free: Arc<Semaphore>,
    all: u32,
}

/// An accepted connection. Dropping it frees its slot.
pub(crate) struct Accepted {
    pub(crate) stream: Transport,
    pub(crate) peer: PeerAddress,
    pub(crate) slot: Slot,
}

pub(crate) struct Slot {
    /// Whether it is a reserved slot.
    pub(crate) reserved: bool,
    _permit: OwnedSemaphorePermit,
    _address: AddressSlot,
}

impl Acceptor {
    /// For a listener; `health` reserves slots for health checks.
    pub(crate) fn new(
        listeners: Listeners,
        limits: ConnectionLimits,
        health: bool,
        rejection: &'static [u8],
        refused: Refused,
    ) -> Self {
        let reserved = (limits.all / RESERVED_OF).min(RESERVED_MAX);
        let reserved_for_health = if health { reserved } else { 0 };
        Self {
            listeners,
            limits,
            all: Pool::new(limits.all - reserved - reserved_for_health),
            local: Pool::new(reserved),
            health: Pool::new(reserved_for_health),
            addresses: Addresses::default(),
            waiting: JoinSet::new(),
            rejection,
            refused,
            spare: spare(),
        }
    }

    /// Returns the next connection that has a slot.
    pub(crate) async fn next(&mut self) -> Accepted {
        loop {
            let accepted = tokio::select! {
                Some(waited) = self.waiting.join_next() => match waited {
                    Ok(Some(accepted)) => return accepted,
                    Ok(None) | Err(_) => continue,
                },
                accepted = self.listeners.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    if let Some(accepted) = self.admit(stream, peer) {
                        return accepted;
                    }
                }
                Err(error) if is_of_connection(&error) => {}
                Err(error) => {
                    if let Some(accepted) = self.without_descriptor(&error).await {
                        return accepted;
                    }
                }
            }
        }
    }

    /// Refuses a connection for which there is no file descriptor. Without this it would wait until one is free. The error does not
    /// say that there is a connection: the system looks for a descriptor first.
    async fn without_descriptor(&mut self, error: &io::Error) -> Option<Accepted> {
        let is_full = error.raw_os_error().is_some_and(|code| NO_DESCRIPTOR.contains(&code));
        let accepted = if is_full && self.spare.take().is_some() {
            tokio::time::timeout(PAUSE, self.listeners.accept()).await
        } else {
            tokio::time::sleep(PAUSE).await;
            Ok(Err(io::ErrorKind::Other.into()))
        };
        self.spare = self.spare.take().or_else(spare);
        match accepted {
            Ok(Ok((stream, peer))) if self.spare.is_some() => self.admit(stream, peer),
            Ok(Ok((stream, _))) => {
                tracing::warn!(%error, "accept: a connection is refused");
                self.refused.descriptors.inc();
                self.reject(&stream);
                drop(stream);
                self.spare = spare();
                None
            }
            Ok(Err(_)) => {
                tracing::warn!(%error, "accept: a connection may wait");
                tokio::time::sleep(PAUSE).await;
                None
            }
            Err(_) => None,
        }
    }

    /// Gives the connection a slot, lets it wait, or closes it.
    fn admit(&mut self, stream: Transport, peer: PeerAddress) -> Option<Accepted> {
        let local = peer.ip().to_canonical().is_loopback();
        let most = if local { self.limits.loopback } else { Some(self.limits.address) };
        let Some(address) = self.addresses.take(peer.ip(), most.unwrap_or(usize::MAX)) else {
            self.refused.address.inc();
            self.reject(&stream);
            return None;
        };
        let free = self.all.take().map(|permit| (permit, false));
        let free = free.or_else(|| Some((self.local.take().filter(|_| local)?, true)));
        if let Some((permit, reserved)) = free.or_else(|| Some((self.health.take()?, true))) {
            return Some(Accepted {
                stream,
                peer,
                slot: Slot { reserved, _permit: permit, _address: address },
            });
        }
        if self.waiting.len() >= self.limits.waiting {
            self.refused.full.inc();
            self.reject(&stream);
            return None;
        }
        let all = Arc::clone(&self.all.free);
        self.waiting.spawn(async move {
            let permit = all.acquire_owned().await.ok()?;
            Some(Accepted {
                stream,
                peer,
                slot: Slot { reserved: false, _permit: permit, _address: address },
            })
        });
        None
    }

    /// Sends the reason, if the socket takes it without waiting.
    fn reject(&self, stream: &Transport) {
        let _said = stream.try_write(self.rejection);
    }

    /// Stops accepting, and waits until all connections have ended.
    pub(crate) async fn ended(self) {
        drop((self.listeners, self.waiting));
        for pool in [self.all, self.local, self.health] {
            // All permits are back when all connections have ended.
            let _closed = pool.free.acquire_many(pool.all).await;
        }
    }
}

/// A file that takes a descriptor.
fn spare() -> Option<File> {
    File::open("/dev/null").ok()
}

/// Whether an error of accept is of one connection, which broke before it was accepted.
fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}

impl Pool {
    fn new(slots: usize) -> Self {
        let all = u32::try_from(slots).unwrap_or(u32::MAX);
        Self { free: Arc::new(Semaphore::new(all as usize)), all }
    }

    fn take(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).try_acquire_owned().ok()
    }
}

/// The number of connections of each address.
#[derive(Clone, Default)]
struct Addresses(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// One connection of an address.
struct AddressSlot {
    addresses: Addresses,
    of: IpAddr,
}

impl Addresses {
    fn take(&self, ip: IpAddr, most: usize) -> Option<AddressSlot> {
        let of = network(ip);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = all.entry(of).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(AddressSlot { addresses: self.clone(), of })
    }
}

impl Drop for AddressSlot {
    fn drop(&mut self) {
        let mut all = self.addresses.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = all.get_mut(&self.of) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.of);
            }
        }
    }
}

/// The address that limits are counted by.
fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64)),
        ip => ip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listener::Listen;
    use tokio::io::AsyncReadExt;
    use tokio::net::UnixStream;

    const FULL: &[u8] = b"full";

    async fn acceptor(all: usize, address: usize, loopback: Option<usize>, health: bool) -> Acceptor {
        let (listeners, _, _) = Listen::default().open().await.unwrap();
        let limits = ConnectionLimits { all, address, loopback, waiting: 512 };
        let refused = Refused {
            address: Counter::default(),
            full: Counter::default(),
            descriptors: Counter::default(),
        };
        Acceptor::new(listeners, limits, health, FULL, refused)
    }

    /// A connection from this address to the acceptor, and its other end.
    fn connect(acceptor: &mut Acceptor, from: &str) -> (Option<Accepted>, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let peer = PeerAddress::Tcp((from.parse::<IpAddr>().unwrap(), 5).into());
        (acceptor.admit(Transport::Unix(ours), peer), theirs)
    }

    /// Opens so many that get a slot; whether the slots are reserved ones.
    fn fill(acceptor: &mut Acceptor, count: usize, from: &str, reserved: bool) -> Vec<Accepted> {
        let open = (0..count).map(|_| connect(acceptor, from).0.expect("there is a slot"));
        open.inspect(|open| assert_eq!(open.slot.reserved, reserved, "{from}")).collect()
    }

    #[tokio::test]
    async fn the_last_slots_are_reserved_for_this_machine_and_for_health_checks() {
        let mut acceptor = acceptor(30, 30, None, true).await;
        let mut ordinary = fill(&mut acceptor, 24, "192.0.2.1", false);
        let health = fill(&mut acceptor, 3, "192.0.2.2", true);
        assert!(
            connect(&mut acceptor, "192.0.2.3").0.is_none(),
            "no other address gets those of this machine"
        );
        assert_eq!(acceptor.waiting.len(), 1);
        let local = fill(&mut acceptor, 3, "127.0.0.1", true);
        assert!(connect(&mut acceptor, "127.0.0.1").0.is_none(), "then this machine waits, too");
        assert_eq!(acceptor.waiting.len(), 2);
        drop((health, local));
        assert_eq!(acceptor.waiting.len(), 2, "a connection that waits gets an ordinary slot");
        ordinary.pop();
        let next = acceptor.next().await;
        assert!(
            !next.slot.reserved && next.peer.ip() == IpAddr::from([192, 0, 2, 3]),
            "the first comes first"
        );
    }

    #[tokio::test]
    async fn a_listener_that_knows_no_health_check_has_slots_for_this_machine_only() {
        let mut acceptor = acceptor(30, 30, None, false).await;
        let _ordinary = fill(&mut acceptor, 27, "192.0.2.1", false);
        assert!(connect(&mut acceptor, "192.0.2.2").0.is_none());
        let _local = fill(&mut acceptor, 3, "::1", true);
        assert!(connect(&mut acceptor, "::1").0.is_none());
    }

    #[tokio::test]
    async fn what_is_beyond_the_limit_of_its_address_is_told_and_closed() {
        let mut acceptor = acceptor(30, 2, None, true).await;
        let mut open = fill(&mut acceptor, 2, "2001:db8::1", false);
        let (refused, mut end) = connect(&mut acceptor, "2001:db8::ffff:2");
        assert!(refused.is_none() && acceptor.waiting.is_empty(), "it is of the same /64");
        let mut received = Vec::new();
        end.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, FULL);
        open.extend(fill(&mut acceptor, 1, "2001:db8:0:1::1", false));
        open.extend(fill(&mut acceptor, 10, "127.0.0.1", false));
        open.remove(0);
        assert!(connect(&mut acceptor, "2001:db8::3").0.is_some(), "its slot is free again");
    }

    #[tokio::test]
    async fn loopback_addresses_have_a_limit_of_their_own() {
        let mut acceptor = acceptor(30, 3, Some(1), true).await;
        let _open = (fill(&mut acceptor, 1, "127.0.0.1", false), fill(&mut acceptor, 1, "127.0.0.2", false));
        assert!(connect(&mut acceptor, "127.0.0.1").0.is_none());
        assert!(acceptor.waiting.is_empty());
        fill(&mut acceptor, 3, "192.0.2.1", false);
    }

    #[test]
    fn addresses_are_counted_by_network_and_given_back() {
        let addresses = Addresses::default();
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let first = addresses.take(ip("2001:db8::1"), 2).unwrap();
        let second = addresses.take(ip("2001:db8::ffff:2"), 2).unwrap();
        assert!(addresses.take(ip("2001:db8::3"), 2).is_none(), "one customer has a /64");
        assert!(addresses.take(ip("2001:db8:0:1::3"), 2).is_some());
        drop(first);
        assert!(addresses.take(ip("2001:db8::3"), 2).is_some());
        drop(second);
        let mapped = addresses.take(ip("::ffff:192.0.2.1"), 1).unwrap();
        assert!(
            addresses.take(ip("192.0.2.1"), 1).is_none(),
            "an IPv4 address is one, however it is written"
        );
        drop(mapped);
        assert_eq!(addresses.0.lock().unwrap().len(), 0);
    }
}
