//! Passes the bytes of connections: two threads for each, one per direction.
//!
//! Not here: the settings of the test (`proxy.rs`), and finding patterns (`armed.rs`).

use super::{Cut, Shared};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The timeout of a connection to the server; then the client's connection is closed.
const CONNECT_MAX: Duration = Duration::from_secs(10);
const PIECE_BYTES: usize = 64 << 10;

/// The silence after which a response is complete: a database answers each statement of a message separately.
const ANSWERED: Duration = Duration::from_millis(250);

pub(super) fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for client in listener.incoming() {
        let mut state = shared.lock();
        if state.ended {
            return;
        }
        // A client may have gone already; a refused connection is closed by its drop.
        let Ok((client, end)) = client.and_then(|client| Ok((client.try_clone()?, client))) else { continue };
        if state.refuses {
            continue;
        }
        let id = state.connections_ever;
        state.connections_ever += 1;
        state.connections.insert(id, vec![end]);
        drop(state);
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            if serve(id, &client, &shared).is_err() {
                shared.lock().cut(id);
            }
        });
    }
}

/// Connects to the server and passes bytes in both directions until both have ended.
fn serve(id: u64, client: &TcpStream, shared: &Arc<Shared>) -> std::io::Result<()> {
    shared.wait_to_pass();
    let upstream = shared.lock().upstream;
    let server = TcpStream::connect_timeout(&upstream, CONNECT_MAX)?;
    let end = server.try_clone()?;
    match shared.lock().connections.get_mut(&id) {
        Some(ends) => ends.push(end),
        // It was cut meanwhile.
        None => return Ok(()),
    }
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let swallows = Mutex::new(false);
    // A failure of one direction ends the other.
    let ended = |result: std::io::Result<()>| {
        if result.is_err() {
            shared.lock().cut(id);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| ended(requests(id, client, &server, shared, &swallows)));
        scope.spawn(|| ended(answers(id, &server, client, shared, &swallows)));
    });
    shared.lock().cut(id);
    Ok(())
}

/// From the client to the server, with a check for the bytes at which to cut.
fn requests(
    id: u64,
    mut client: &TcpStream,
    mut server: &TcpStream,
    shared: &Shared,
    swallows: &Mutex<bool>,
) -> std::io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    // The end of the passed bytes, in which the pattern may begin.
    let mut passed: Vec<u8> = Vec::new();
    loop {
        let length = client.read(&mut piece)?;
        shared.wait_to_pass();
        if length == 0 {
            return server.shutdown(Shutdown::Write);
        }
        let piece = &piece[..length];
        let mut state = shared.lock();
        state.count(&passed, piece);
        shared.changed.notify_all();
        match state.armed.as_mut().and_then(|armed| armed.place(&passed, piece)) {
            Some((before, Cut::Before)) => {
                state.armed = None;
                state.refuses |= std::mem::take(&mut state.refuses_then);
                drop(state);
                server.write_all(&piece[..before])?;
                shared.lock().cut(id);
                return Ok(());
            }
            Some((_, Cut::Answer)) => {
                state.armed = None;
                state.refuses |= std::mem::take(&mut state.refuses_then);
                *swallows.lock().unwrap_or_else(PoisonError::into_inner) = true;
                drop(state);
            }
            Some((_, Cut::Held)) => {
                state.armed = None;
                drop(state);
                shared.wait_for_release();
            }
            None => drop(state),
        }
        server.write_all(piece)?;
        passed.extend_from_slice(piece);
        let kept = passed.len().min(PIECE_BYTES);
        passed.drain(..passed.len() - kept);
    }
}

/// From the server to the client, unless the response is to be dropped.
fn answers(
    id: u64,
    mut server: &TcpStream,
    mut client: &TcpStream,
    shared: &Shared,
    swallows: &Mutex<bool>,
) -> std::io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let length = server.read(&mut piece)?;
        shared.wait_to_pass();
        shared.wait_for_requests();
        if *swallows.lock().unwrap_or_else(PoisonError::into_inner) {
            server.set_read_timeout(Some(ANSWERED))?;
            while server.read(&mut piece).is_ok_and(|length| length > 0) {}
            shared.lock().cut(id);
            return Ok(());
        }
        if length == 0 {
            return client.shutdown(Shutdown::Write);
        }
        client.write_all(&piece[..length])?;
    }
}
