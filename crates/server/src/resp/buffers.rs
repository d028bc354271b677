//! The limit for the buffers of all connections: unfinished commands, open transactions, unread replies.
//!
//! Above the limit the server closes the connection with the largest buffers, as Redis does with `maxmemory-clients`. The
//! connection that needs a little more is rarely the one with too much. Small buffers are not counted, so most connections
//! never touch the shared count and never cause a close. Not here: the limits of one connection.

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

    /// Closes the connection with the largest buffers. Returns whether that is another one.
    fn make_room(&self) -> bool {
        let clients = self.listener.clients();
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

impl Drop for BufferUse {
    fn drop(&mut self) {
        self.set(0);
    }
}
