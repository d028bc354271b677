//! What the buffers of all connections hold together: unfinished commands, open transactions, replies that are not read.
//!
//! Past the bound the connection that holds most is closed, as Redis does with `maxmemory-clients`: the one that asks for
//! a little more is rarely the one that is too much. Small buffers are not counted, so most connections never touch the
//! shared count, and however many they are, they are no reason to close one. Not here: the bounds of one connection.

use super::listen::Door;
use super::session::Client;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes of one connection that are not counted.
pub(super) const FREE_BYTES: usize = 160 << 10;

/// The count of all, and its bound.
#[derive(Debug)]
pub(super) struct Buffers {
    most: usize,
    held: AtomicUsize,
}

/// What one connection holds. Dropping it gives everything back.
pub(super) struct Holding {
    pub(super) door: Arc<Door>,
    pub(super) client: Arc<Client>,
    counted: usize,
}

impl Buffers {
    pub(super) fn new(most: usize) -> Self {
        Self { most, held: AtomicUsize::new(0) }
    }
}

impl Holding {
    pub(super) fn new(door: Arc<Door>, client: Arc<Client>) -> Self {
        Self { door, client, counted: 0 }
    }

    /// The connection holds so many bytes now; whether it may.
    pub(super) fn set(&mut self, bytes: usize) -> bool {
        let bytes = if bytes > FREE_BYTES { bytes } else { 0 };
        // A client that goes on sending is always ready to be read, so its connection is not waiting to be told.
        if bytes > 0 && self.client.doomed.load(Relaxed) {
            return false;
        }
        let before = std::mem::replace(&mut self.counted, bytes);
        if bytes == before {
            return true;
        }
        self.client.held.store(bytes, Relaxed);
        let buffers = &self.door.buffers;
        if bytes < before {
            buffers.held.fetch_sub(before - bytes, Relaxed);
            return true;
        }
        let all = buffers.held.fetch_add(bytes - before, Relaxed) + (bytes - before);
        all <= buffers.most || self.make_room()
    }

    /// Closes the connection that holds most; whether that is another one.
    fn make_room(&self) -> bool {
        let clients = self.door.clients();
        let Some(largest) = clients.iter().max_by_key(|client| client.held.load(Relaxed)) else {
            return false;
        };
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

impl Drop for Holding {
    fn drop(&mut self) {
        self.set(0);
    }
}
