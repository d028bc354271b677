//! A receiver of webhooks that misbehaves as a test says, and remembers what it got.

use serde_json::Value;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What it does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Takes it.
    Take,
    /// Takes it, and closes in the middle of a body that nothing needs.
    TakeAndCut,
    /// Answers this status.
    Status(u16),
    /// Sends the client to another address.
    Redirect(SocketAddr),
    /// Closes without an answer.
    Close,
    /// Closes in the middle of the head of its answer.
    Cut,
    /// Answers something else than HTTP.
    Garbage,
    /// Sends a head without an end.
    Endless,
    /// Never answers.
    Silent,
}

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Received {
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
    pub(super) event: Value,
    pub(super) act: Act,
}

impl Received {
    pub(super) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map_or_else(|| panic!("no header {name}: {:?}", self.headers), |(_, value)| value)
    }

    pub(super) fn number(&self) -> u64 {
        self.event["number"].as_u64().expect("a number")
    }

    pub(super) fn topic(&self) -> &str {
        self.event["topic"].as_str().expect("a topic")
    }

    pub(super) fn is_taken(&self) -> bool {
        matches!(self.act, Act::Take | Act::TakeAndCut)
    }
}

#[derive(Debug, Default)]
struct State {
    received: Vec<Received>,
    acts: VecDeque<Act>,
    otherwise: Option<Act>,
    connections: usize,
    held: Vec<TcpStream>,
}

/// The receiver; its thread ends with the process.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Receiver {
    /// Takes everything until it is told otherwise.
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let receiver = Self { address: listener.local_addr().expect("an address"), state: Arc::default() };
        let of_thread = receiver.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                of_thread.state().connections += 1;
                let receiver = of_thread.clone();
                // A connection of a killed server ends anyhow.
                std::thread::spawn(move || receiver.serve(stream));
            }
        });
        receiver
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/hook?x=1", self.address)
    }

    /// What it does with the next requests, and afterwards.
    pub(super) fn then(&self, acts: &[Act], otherwise: Act) {
        let mut state = self.state();
        state.acts = acts.iter().copied().collect();
        state.otherwise = Some(otherwise);
    }

    pub(super) fn received(&self) -> Vec<Received> {
        self.state().received.clone()
    }

    pub(super) fn connections(&self) -> usize {
        self.state().connections
    }

    /// The greatest number of a topic that it has taken.
    pub(super) fn taken(&self, topic: &str) -> u64 {
        let state = self.state();
        let taken = state.received.iter().filter(|one| one.is_taken() && one.topic() == topic);
        taken.map(Received::number).max().unwrap_or(0)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, stream: TcpStream) -> Option<()> {
        let (headers, body) = read(&stream)?;
        let event = serde_json::from_str(&body).expect("the body is JSON");
        let act = {
            let mut state = self.state();
            let act = state.acts.pop_front().or(state.otherwise).unwrap_or(Act::Take);
            state.received.push(Received { headers, body, event, act });
            act
        };
        let mut out = &stream;
        let answer = match act {
            Act::Take => "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
            Act::TakeAndCut => "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nok".to_owned(),
            Act::Status(status) => format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n"),
            Act::Redirect(to) => {
                format!("HTTP/1.1 307 X\r\nLocation: http://{to}/\r\nContent-Length: 0\r\n\r\n")
            }
            Act::Close => String::new(),
            Act::Cut => "HTTP/1.1 200 OK\r\nContent-Le".to_owned(),
            Act::Garbage => "220 mail.example ESMTP\r\n".to_owned(),
            Act::Endless => {
                let line = "X-Line: 0123456789012345678901234567890123456789\r\n";
                format!("HTTP/1.1 200 OK\r\n{}", line.repeat(10_000))
            }
            Act::Silent => {
                self.state().held.push(stream);
                return None;
            }
        };
        // The client may be gone.
        drop(out.write_all(answer.as_bytes()));
        Some(())
    }
}

/// The headers and the body of a request; `None` if it does not arrive.
fn read(stream: &TcpStream) -> Option<(Vec<(String, String)>, String)> {
    let mut reader = BufReader::new(stream);
    let (mut headers, mut line) = (Vec::new(), String::new());
    reader.read_line(&mut line).ok()?;
    assert!(line.is_empty() || line.starts_with("POST /hook?x=1 HTTP/1.1"), "{line:?}");
    loop {
        line.clear();
        reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_owned(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?;
    let mut body = vec![0; length.1.parse().expect("a length")];
    reader.read_exact(&mut body).ok()?;
    Some((headers, String::from_utf8(body).expect("the body is UTF-8")))
}
