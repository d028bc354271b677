//! Every limit of the listeners, with its unit and what happens when it is exceeded.

use crate::accept::ConnectionLimits;
use crate::http::proxies::Network;
use std::time::Duration;

/// Limits and access settings of the HTTP listener.
#[derive(Clone, Debug)]
pub struct HttpLimits {
    /// Bytes of a request's body; above it, 413.
    pub body_bytes_max: usize,
    /// Bytes of all bodies that are being received; above it, 503.
    pub bodies_bytes_max: usize,
    /// Bytes of all large responses that clients have not read; above it, reads get 503.
    pub responses_bytes_max: usize,
    /// Connections at once.
    pub connections: ConnectionLimits,
    /// Time for a request's head to arrive, and for an idle connection to stay; then the connection closes.
    pub head_timeout: Duration,
    /// Time for a request's body to arrive; then 408, and the connection closes.
    pub body_timeout: Duration,
    /// Time for a client to read every 64 KiB of its responses, or the last of them; then the connection closes.
    pub write_timeout: Duration,
    /// Open event streams; above it, 503.
    pub streams_max: usize,
    /// The same for one key; above it, 429.
    pub key_streams_max: usize,
    /// The same for one member; above it, 429.
    pub member_streams_max: usize,
    /// Time between the signal to stop and draining: not ready for balancers, and still serving.
    pub drain_delay: Duration,
    /// Time for running requests when the service drains; then their connections are closed. The lanes complete their
    /// changes all the same.
    pub drain_timeout: Duration,
    /// Where this machine needs a credential even before the first key is created.
    pub keys_required: KeysRequired,
    /// Host names that a caller without a credential may use, beside loopback names and IP addresses.
    pub hosts: Vec<String>,
    /// Web origins whose pages may read.
    pub cors_origins: Vec<String>,
    /// Proxies whose `X-Forwarded-For` gives the client's address.
    pub trusted_proxies: Vec<Network>,
    /// Whether `/metrics` needs no key.
    pub metrics_open: bool,
    /// Whether webhooks may have private addresses and `http://`.
    pub webhooks_private: bool,
}

/// Where callers of this machine need a credential even before the first key is created. All other callers always need one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysRequired {
    /// Nowhere: the loopback interface is trusted, with all accounts and proxies of this machine.
    Never,
    /// Over TCP. The mode of a Unix socket says which accounts may connect.
    OverTcp,
    /// Everywhere.
    Always,
}

/// Connections of a protocol that wait for a slot; above it, they are closed.
pub const WAITING_MAX: usize = 512;

/// Connections of the listener of operators.
pub const OPERATOR_CONNECTIONS: ConnectionLimits =
    ConnectionLimits { all: 100, address: 50, loopback: None, waiting: 20 };

/// Bytes of a request's head: request line and header fields.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Header fields of a request; above it, 431.
pub const HEADERS_MAX: usize = 100;

/// Bytes of a body that are read after its request was refused, to keep the connection usable. A longer body closes it.
pub const DRAINED_BYTES_MAX: usize = 64 * 1024;

/// Time to read such a body.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Bytes of each body that do not count towards [`HttpLimits::bodies_bytes_max`].
pub const BODY_BYTES_FREE: usize = 64 * 1024;

/// Bytes of each response that do not count towards [`HttpLimits::responses_bytes_max`]. A larger one is sent in such pieces.
pub const RESPONSE_BYTES_FREE: usize = 64 * 1024;

/// Time for a head on a reserved connection for health checks and this machine.
pub const RESERVED_HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of a sign-in body, which needs no credential; above it, 413.
pub const SIGN_IN_BYTES_MAX: usize = 4 * 1024;

/// Rows of one batch.
pub const BATCH_ROWS_MAX: usize = 1_000;

/// Rows of one batch that asks for its ranks in every window. Each row may have as many as a leaderboard has rules, and one more.
pub const RANKED_ROWS_MAX: usize = 200;

/// Players of one `among`.
pub const AMONG_MAX: usize = 1_000;

/// Players that one search finds.
pub const FOUND_MAX: u64 = 100;

/// Players that one search finds if the caller does not say how many.
pub const FOUND_DEFAULT: u64 = 20;

/// Rows of one `POST /v1/ranks`. Each may read the archive of a closed period.
pub const RANKS_MAX: usize = 200;

/// Entries above and below a player.
pub const AROUND_MAX: u64 = 100;

/// Entries above and below a player by default.
pub const AROUND_DEFAULT: u64 = 5;

/// The interval between two keep-alive messages of an idle event stream.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Events of a stream that wait for its client, beside those in the socket buffer.
pub const EVENTS_WAITING_MAX: usize = 16;

/// How long a subscriber may read nothing; then its connection is closed.
pub const SLOW_READER: Duration = Duration::from_secs(10);

/// The interval between two checks whether the caller of an event stream still has its permission.
pub const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// The same for members when other servers may change them, because this check reads the store. The expiry of a token is
/// checked as often as above.
pub const MEMBER_CHECK_INTERVAL: Duration = Duration::from_secs(5);

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            body_bytes_max: 2 << 20,
            bodies_bytes_max: 256 << 20,
            responses_bytes_max: 256 << 20,
            connections: ConnectionLimits {
                all: 10_000,
                address: 2_500,
                loopback: None,
                waiting: WAITING_MAX,
            },
            head_timeout: Duration::from_secs(75),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(60),
            streams_max: 4_000,
            key_streams_max: 2_000,
            member_streams_max: 10,
            drain_delay: Duration::ZERO,
            drain_timeout: Duration::from_secs(20),
            keys_required: KeysRequired::OverTcp,
            hosts: Vec::new(),
            cors_origins: Vec::new(),
            trusted_proxies: Vec::new(),
            metrics_open: false,
            webhooks_private: false,
        }
    }
}
