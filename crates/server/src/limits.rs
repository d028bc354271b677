//! Every bound of the doors, with its unit and what happens at it.

use crate::accept::ConnectionLimits;
use crate::http::proxies::Network;
use std::time::Duration;

/// Bounds and access settings of the HTTP door.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a request's body; above it, 413.
    pub body_bytes_max: usize,
    /// Bytes of all bodies that are being received; above it, 503.
    pub bodies_bytes_max: usize,
    /// Connections at once.
    pub connections: ConnectionLimits,
    /// Time for a request's head to arrive, and for an idle connection to stay; past it the connection closes.
    pub head_timeout: Duration,
    /// Time for a request's body to arrive; past it 408 and the connection closes.
    pub body_timeout: Duration,
    /// Time for a client to read every 64 KiB of its answers, or the last of them; past it the connection closes.
    pub write_timeout: Duration,
    /// Streams of events at once; above it, 503.
    pub streams_max: usize,
    /// The same of one key; past it 429.
    pub key_streams_max: usize,
    /// The same of one member; past it 429.
    pub member_streams_max: usize,
    /// Time that running requests get when the service goes down; past it their connections are cut. Their work is
    /// done all the same.
    pub drain_timeout: Duration,
    /// Whether this machine needs a credential even before the first key was made.
    pub keys_required: bool,
    /// Host names under which a caller without a credential may ask, beside loopback names and IP addresses.
    pub hosts: Vec<String>,
    /// Web origins that may read with a browser.
    pub cors_origins: Vec<String>,
    /// Proxies whose `X-Forwarded-For` says the client's address.
    pub trusted_proxies: Vec<Network>,
    /// Whether `/metrics` needs no key.
    pub metrics_open: bool,
}

/// Bytes of a request's head: request line and header fields.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Header fields of a request; past it 431.
pub const HEADERS_MAX: usize = 100;

/// Bytes of a body that are read after its request was refused, so that the connection can be used again. After a longer one it closes.
pub const DRAINED_BYTES_MAX: usize = 64 * 1024;

/// How long they may take.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Bytes of each body that count for none of the bodies that are being received.
pub const BODY_BYTES_FREE: usize = 64 * 1024;

/// Time for a head on a reserved connection for health checks and this machine.
pub const RESERVED_HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of a body that signs in, which needs no credential; above it, 413.
pub const SIGN_IN_BYTES_MAX: usize = 4 * 1024;

/// Rows of one batch.
pub const BATCH_ROWS_MAX: usize = 1_000;

/// Players of one `among`.
pub const AMONG_MAX: usize = 1_000;

/// Entries above and below a player.
pub const AROUND_MAX: u64 = 100;

/// Entries above and below a player where nobody says.
pub const AROUND_DEFAULT: u64 = 5;

/// Between two signs of life of a stream of events that has nothing to say.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Events of a stream that wait for its client, beside what the system has taken.
pub const EVENTS_WAITING_MAX: usize = 16;

/// How long a stream's client may take nothing; past it its connection is closed.
pub const SLOW_READER: Duration = Duration::from_secs(10);

/// Between two looks whether a stream's caller still may listen.
pub const JUDGED_AGAIN: Duration = Duration::from_millis(500);

/// The same of members where other servers may change them, because the store is asked then; whether a token has run out is looked at
/// as often as above.
pub const MEMBER_JUDGED_AGAIN: Duration = Duration::from_secs(5);

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes_max: 2 << 20,
            bodies_bytes_max: 256 << 20,
            connections: ConnectionLimits { all: 10_000, address: 2_500, loopback: None },
            head_timeout: Duration::from_secs(60),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(60),
            streams_max: 4_000,
            key_streams_max: 2_000,
            member_streams_max: 10,
            drain_timeout: Duration::from_secs(20),
            keys_required: false,
            hosts: Vec::new(),
            cors_origins: Vec::new(),
            trusted_proxies: Vec::new(),
            metrics_open: false,
        }
    }
}
