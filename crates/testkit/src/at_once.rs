//! Requests of many clients at one moment.

use crate::http::{Client, Request, Response};
use std::sync::Barrier;

/// Sends each request by its client, all at the same moment. Returns the answers in order.
///
/// All clients connect before: a thread that fails before the barrier would keep the others there for ever.
///
/// # Panics
///
/// If a server does not answer.
#[track_caller]
pub fn at_once(mut calls: Vec<(Client, Request)>) -> Vec<Response> {
    for (client, _) in &mut calls {
        client.get("/healthz").expect(200);
    }
    let barrier = Barrier::new(calls.len());
    std::thread::scope(|scope| {
        let send = |(mut client, request): (Client, Request)| {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                client.send(&request)
            })
        };
        let sent: Vec<_> = calls.into_iter().map(send).collect();
        sent.into_iter().map(|sent| sent.join().expect("it is answered")).collect()
    })
}
