//! Receivers with TLS: only one with a certificate of a trusted authority for its name gets an event.

use super::{WebhookClient, WebhookSettings};
use crate::tls::Tls;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use tally_rules::Micros;
use tally_rules::contest::ContestState;
use tally_rules::event::{ContestChanged, EventKind};
use tally_rules::ledger::Uuid;
use tally_rules::webhook::EventType;
use tally_service::webhooks::{Delivery, EventOf, Happening, ReceiverResponse, Sender};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

fn file(name: &str) -> PathBuf {
    PathBuf::from(format!("{}/../testkit/tls/{name}", env!("CARGO_MANIFEST_DIR")))
}

/// A receiver with this certificate that takes one event; its address.
fn receiver(runtime: &Runtime, certificate: &str) -> String {
    let tls = Tls::load(&file(&format!("{certificate}.pem")), &file(&format!("{certificate}-key.pem")));
    let acceptor = tls.expect("the files are good").acceptor();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    runtime.spawn(async move {
        let (stream, _) = listener.accept().await.expect("a connection");
        // A client that does not trust it ends the handshake.
        let Ok(mut stream) = acceptor.accept(stream).await else { return };
        let mut bytes = [0; 4096];
        while stream.read(&mut bytes).await.is_ok_and(|count| !bytes[..count].ends_with(b"}")) {}
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.expect("the client reads");
    });
    format!("https://localhost:{port}/")
}

fn send(runtime: &Runtime, ca_file: Option<&str>, private: bool, url: &str) -> ReceiverResponse {
    let ca_file = ca_file.map(|name| file(name).to_str().expect("a path of text").to_owned());
    let settings = WebhookSettings { private, ca_file, version: "test" };
    let client = WebhookClient::new(&settings, runtime.handle().clone()).expect("the file is good");
    let (contest, before) = (None, None);
    let changed = ContestChanged { contest, before, state: ContestState::Open, at: Micros(0), members: 0 };
    let what = Happening::Stored(EventKind::Contest(changed));
    let (id, kind, subject, at) = ("c.1.1".into(), EventType::Contest, "cup".into(), Micros(1));
    let event = EventOf { id, kind, subject, number: 1, missed: 0, at, what };
    let delivery =
        Delivery { webhook: Uuid([1; 16]), url: url.into(), secrets: vec!["s".into()], at: Micros(2), event };
    let (answer, answered) = channel();
    client.send(delivery, Box::new(move |result| drop(answer.send(result))));
    answered.recv().expect("there is an answer")
}

#[test]
fn a_receiver_must_be_trusted() {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("threads");
    for (certificate, ca_file, word) in [
        ("server", Some("ca.pem"), None),
        ("server", Some("other-ca.pem"), Some("certificate")),
        ("server", None, Some("certificate")),
        ("elsewhere", Some("ca.pem"), Some("certificate")),
    ] {
        let url = receiver(&runtime, certificate);
        let answer = send(&runtime, ca_file, true, &url);
        match word {
            None => assert_eq!((answer.status, answer.failure), (Some(200), None)),
            Some(word) => {
                let why = answer.failure.unwrap_or_default();
                assert!(answer.status.is_none() && why.contains(word), "{certificate} {ca_file:?}: {why}");
            }
        }
    }
    let url = receiver(&runtime, "server");
    let why = send(&runtime, Some("ca.pem"), false, &url).failure.unwrap_or_default();
    assert!(why.contains("private address"), "{why}");
}
