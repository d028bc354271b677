//! The next connection of a listener, within a bound: the same for both doors.
//!
//! Not here: what is done with it, and when to stop.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Between two tries when the system gives no connection.
const PAUSE: Duration = Duration::from_millis(10);

/// Waits for a connection. The permit comes before it: past the bound nothing is accepted, the system's queue holds it.
pub(crate) async fn next(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> (OwnedSemaphorePermit, TcpStream, SocketAddr) {
    loop {
        let permit = Arc::clone(permits).acquire_owned().await;
        match (permit, listener.accept().await) {
            (Ok(permit), Ok((stream, peer))) => return (permit, stream, peer),
            // Out of file descriptors or a connection that broke at once: others may still come.
            (_, _) => tokio::time::sleep(PAUSE).await,
        }
    }
}
