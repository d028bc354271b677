//! For tests: scratch servers that are audited when they are dropped, plain clients, a naive model and seeded randomness.
//!
//! A test drives the real binary from outside, as a user does. [`TestTally`] starts it on its own data directory, [`http`] sends
//! it any bytes, and [`model`] has the expected responses. The model is written from the contract and shares no code with the
//! product, so that one mistake is not made twice. [`ScratchRedis`] starts the servers whose replies ours must match,
//! [`ScratchCluster`] several as one cluster, and [`ScratchDatabase`] those for a store. [`Proxy`] is a bad network before any of
//! them, and a [`Page`] a browser. A [`SimulatedDisk`] loses power when the test says so, and a [`WallClock`] jumps. Not here:
//! anything that the product uses; this crate is only ever a dev-dependency.

mod at_once;
pub mod audit;
pub mod backends;
pub mod browser;
pub mod cluster;
pub mod command;
pub mod database;
pub mod disk;
pub mod events;
pub mod http;
mod locks;
mod log_lines;
pub mod model;
pub mod own_log;
mod process;
pub mod prometheus;
pub mod proxy;
pub mod redis;
pub mod resp;
pub mod rng;
pub mod routes;
pub mod server;
mod server_log;
mod set_at_end;
pub mod table_reader;
pub mod tls;
mod wait;
pub mod wall_clock;

pub use at_once::at_once;
pub use browser::Page;
pub use cluster::ScratchCluster;
pub use database::{DatabaseKind, ScratchDatabase};
pub use disk::SimulatedDisk;
pub use events::{Event, EventStream};
pub use http::{Client, Request, Response};
pub use locks::HeldLocks;
pub use log_lines::{LogLine, LogLines};
pub use own_log::OwnLogServer;
pub use prometheus::ScratchPrometheus;
pub use proxy::{COMMIT, Cut, Proxy};
pub use redis::{RedisKind, ScratchRedis};
pub use resp::RespClient;
pub use rng::Rng;
pub use server::TestTally;
pub use set_at_end::SetAtEnd;
pub use table_reader::TableReader;
pub use tally_wire::resp::Reply;
pub use wait::{GIVE_UP, wait_for, wait_until};
pub use wall_clock::WallClock;

/// An address of this machine that is not of the loopback interface.
///
/// # Panics
///
/// If it has none: a test that needs one fails then, and never skips itself.
#[track_caller]
pub fn own_address() -> std::net::IpAddr {
    // A socket that is connected says where it would send from; nothing is sent.
    let of_route = || {
        let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
        socket.connect("192.0.2.1:9")?;
        socket.local_addr()
    };
    let found = of_route().map(|address| address.ip());
    let other = found.as_ref().ok().filter(|address| !address.is_loopback() && !address.is_unspecified());
    *other.unwrap_or_else(|| {
        panic!(
            "this test needs an address that is not of the loopback interface, and a route from it: {found:?}"
        )
    })
}
