//! The limit for the buffers of all connections: unfinished commands, open transactions, unread replies.
//!
//! Above the limit the server closes the connection with the largest buffers, as Redis does with `maxmemory-clients`. The
//! connection that needs a little more is rarely the one with too much. Small buffers are not counted, so most connections
//! never touch the shared count and never cause a close. A connection that has to close is chosen once.
//! Not here: the limits of one connection.

use super::listen::RespListener;
use super::session::Client;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes of one connection that are not counted.
pub(super) const FREE_BYTES: usize = 160 << 10;

/// The counted bytes of all connections, and their limit.
#[derive(Debug)]
pub(super) struct Buffers {
    most: usize,
    held: AtomicUsize,
}

/// The counted bytes of one connection. Dropping it releases them.
pub(super) struct BufferUse {
    pub(super) listener: Arc<RespListener>,
    pub(super) client: Arc<Client>,
    counted: usize,
}

impl Buffers {
    pub(super) fn new(most: usize) -> Self {
        Self { most, held: AtomicUsize::new(0) }
    }
}

impl BufferUse {
    pub(super) fn new(listener: Arc<RespListener>, client: Arc<Client>) -> Self {
        Self { listener, client, counted: 0 }
    }

    /// Sets the buffered bytes of the connection. Returns whether they are within the limit.
    pub(super) fn set(&mut self, bytes: usize) -> bool {
        let bytes = if bytes > FREE_BYTES { bytes } else { 0 };
        // The task of a client that keeps sending never waits for the notification.
        if bytes > 0 && self.client.doomed.load(Relaxed) {
            return false;
        }
        let before = std::mem::replace(&mut self.counted, bytes);
        if bytes == before {
            return true;
        }
        self.client.held.store(bytes, Relaxed);
        let buffers = &self.listener.buffers;
        if bytes < before {
            buffers.held.fetch_sub(before - bytes, Relaxed);
            return true;
        }
        let all = buffers.held.fetch_add(bytes - before, Relaxed) + (bytes - before);
        all <= buffers.most || self.make_room()
    }

    /// Closes the connection that holds most, unless there is room without that; whether this one stays.
    fn make_room(&self) -> bool {
        let clients = self.listener.clients();
        let Some(largest) = to_close(&clients, self.listener.buffers.most) else { return true };
        if !largest.doomed.swap(true, Relaxed) {
            let held = largest.held.load(Relaxed);
            tracing::info!(
                peer = %largest.peer, held,
                "a connection of the Redis protocol is closed: it holds most of `resp.buffer_bytes_max`"
            );
            largest.closing.notify_one();
        }
        largest.id != self.client.id
    }
}

/// The connection to close: the largest of those that are not closing yet, or none if there is room.
///
/// A connection that is closing holds its bytes until the store has answered it. They count as free, or other clients would
/// be closed in its place. They have the same bound again, because an unavailable store may hold many such connections.
fn to_close(clients: &[Arc<Client>], most: usize) -> Option<&Arc<Client>> {
    let (closing, open): (Vec<_>, Vec<_>) = clients.iter().partition(|client| client.doomed.load(Relaxed));
    let sum = |of: &[&Arc<Client>]| of.iter().map(|client| client.held.load(Relaxed)).sum::<usize>();
    if sum(&open) <= most && sum(&closing) <= most {
        return None;
    }
    open.into_iter().max_by_key(|client| client.held.load(Relaxed))
}

impl Drop for BufferUse {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listener::PeerAddress;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicU64};
    use std::time::Instant;
    use tokio::sync::Notify;

    /// Connections by what they hold, and whether they have to close. Their ids count from 0.
    fn clients(all: &[(usize, bool)]) -> Vec<Arc<Client>> {
        let client = |(id, (held, doomed)): (u64, &(usize, bool))| Client {
            id,
            peer: PeerAddress::Unix,
            since: Instant::now(),
            names: Mutex::default(),
            heard: AtomicU64::new(0),
            held: AtomicUsize::new(*held),
            doomed: AtomicBool::new(*doomed),
            closing: Notify::new(),
        };
        (0..).zip(all).map(client).map(Arc::new).collect()
    }

    fn closed(all: &[(usize, bool)], most: usize) -> Option<u64> {
        to_close(&clients(all), most).map(|client| client.id)
    }

    #[test]
    fn the_largest_connection_is_closed_and_only_if_there_is_no_room() {
        assert_eq!(closed(&[(30, false), (50, false), (20, false)], 100), None);
        assert_eq!(closed(&[(30, false), (51, false), (20, false)], 100), Some(1));
        assert_eq!(closed(&[], 100), None);
    }

    #[test]
    fn no_connection_is_closed_in_place_of_one_that_is_closing() {
        assert_eq!(closed(&[(90, true), (40, false), (60, false)], 100), None);
    }

    #[test]
    fn a_connection_that_is_closing_is_not_chosen_again() {
        assert_eq!(closed(&[(90, true), (40, false), (61, false)], 100), Some(2));
        assert_eq!(
            closed(&[(90, true), (61, true), (40, false)], 100),
            Some(2),
            "closing ones have a bound, too"
        );
        assert_eq!(closed(&[(90, true), (61, true)], 100), None);
    }
}
