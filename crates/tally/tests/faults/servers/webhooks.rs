//! Webhooks of several servers: one of them delivers, and another goes on when it is killed.

use super::world::{Servers, get, send};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use tally_testkit::{Client, Request, wait_until};

/// The numbers of the events that it has taken, in order, and the connections from which they came at once.
#[derive(Default)]
struct Taken {
    numbers: Vec<u64>,
    under_way: usize,
    at_once: usize,
}

/// A receiver that takes everything, slowly.
fn receiver() -> (String, Arc<Mutex<Taken>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let taken = Arc::<Mutex<Taken>>::default();
    let of_thread = Arc::clone(&taken);
    let lock = |taken: &Arc<Mutex<Taken>>, change: &dyn Fn(&mut Taken)| {
        change(&mut taken.lock().unwrap_or_else(PoisonError::into_inner));
    };
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let taken = Arc::clone(&of_thread);
            std::thread::spawn(move || {
                let mut reader = BufReader::new(&stream);
                let (mut length, mut line) = (0, String::new());
                while reader.read_line(&mut line).is_ok_and(|bytes| bytes > 2) {
                    let header = line.to_ascii_lowercase();
                    length = header
                        .strip_prefix("content-length: ")
                        .map_or(length, |text| text.trim().parse().expect("a length"));
                    line.clear();
                }
                let mut body = vec![0; length];
                if length == 0 || reader.read_exact(&mut body).is_err() {
                    return;
                }
                let event: Value = serde_json::from_slice(&body).expect("the body is JSON");
                let number = event["number"].as_u64().expect("a number");
                lock(&taken, &|taken| {
                    taken.numbers.push(number);
                    taken.under_way += 1;
                    taken.at_once = taken.at_once.max(taken.under_way);
                });
                std::thread::sleep(std::time::Duration::from_millis(20));
                lock(&taken, &|taken| taken.under_way -= 1);
                // The server may be killed.
                drop((&stream).write_all(b"HTTP/1.1 204 No Content\r\n\r\n"));
            });
        }
    });
    (url, taken)
}

fn change(client: &mut Client, number: u64) {
    let title = json!({"title": format!("Title {number}")});
    send(client, &Request::new("PATCH", "/v1/contests/cup").json(&title)).expect(200);
}

#[test]
fn one_server_delivers_at_a_time_and_another_goes_on() {
    let mut servers = Servers::start(2);
    for server in &mut servers.all {
        server.terminate();
        server.set("TALLY_WEBHOOKS_PRIVATE", "true");
        server.restart();
    }
    let (url, taken) = receiver();
    let mut clients = servers.clients();
    let body = json!({"url": url, "events": ["contest"]});
    let made = send(&mut clients[0], &Request::new("POST", "/v1/webhooks").json(&body)).expect(201);
    let path = format!("/v1/webhooks/{}", made["id"].as_str().expect("an id"));
    assert_eq!(get(&mut clients[1], &path).expect(200)["enabled"], true);
    let contest = json!({"id": "cup", "title": "Cup"});
    send(&mut clients[1], &Request::new("POST", "/v1/contests").json(&contest)).expect(201);
    let last = || taken.lock().unwrap_or_else(PoisonError::into_inner).numbers.iter().max().copied();
    for number in 2..=10 {
        change(&mut clients[usize::from(number % 2 == 0)], number);
    }
    wait_until("they arrive", || last() == Some(10));
    assert_eq!(taken.lock().unwrap_or_else(PoisonError::into_inner).numbers, (1..=10).collect::<Vec<_>>());
    // Whichever delivers: each is killed once, and the other one goes on.
    for (at, number) in [(0, 11), (1, 12)] {
        servers.all[at].kill9();
        let mut other = servers.all[1 - at].client();
        change(&mut other, number);
        wait_until("the other one delivers", || last() == Some(number));
        servers.all[at].restart();
    }
    let taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(taken.numbers.is_sorted(), "{:?}", taken.numbers);
    assert_eq!(taken.at_once, 1, "the events of a topic come one after the other");
}
