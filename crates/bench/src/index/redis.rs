//! A sorted set of Redis with the same members, where a redis-server is installed.
//!
//! It is started for the run, on a socket in a temporary folder, without persistence. The client is written by hand and
//! as lean as the server deserves: what is measured is the server. Not here: a fair race, since one side is a process
//! away; the bytes are what compares.

use super::players::{Id, all, some};
use crate::error::{During, Error, prove};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tally_load::Random;

/// Commands sent before answers are read, while filling.
const FILL_PIPELINE: usize = 500;
/// How long a server may take to start.
const START: Duration = Duration::from_secs(10);

/// Figures of one sorted set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    pub(super) bytes: f64,
    /// Ranks per second, one at a time.
    pub(super) ranks_single: f64,
    /// Ranks per second, 16 at a time.
    pub(super) ranks_pipelined: f64,
}

/// Fills a set and asks for ranks; `None` where there is no redis-server.
pub(super) fn measure(members: u64, ranks: usize, seed: u64) -> Result<Option<Figures>, Error> {
    let folder = tempfile::tempdir().during("make a folder for Redis")?;
    let socket = folder.path().join("redis.sock");
    let Ok(child) = start(&socket) else { return Ok(None) };
    let server = Server(child);
    let mut client = Client::open(&socket).during("connect to redis-server")?;
    let figures = ask(&mut client, members, ranks, seed).during("measure Redis")?;
    drop(server);
    prove(figures.bytes > 0.0, || "Redis stored nothing".to_owned())?;
    Ok(Some(figures))
}

fn start(socket: &Path) -> std::io::Result<Child> {
    Command::new("redis-server")
        .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
        .arg(socket)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// The process; it ends with the value.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It has nothing to save; if it is gone already, so much the better.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ask(client: &mut Client, members: u64, ranks: usize, seed: u64) -> std::io::Result<Figures> {
    let before = client.used_memory()?;
    let mut waiting = 0;
    for (id, entry) in all(members, seed) {
        client.add(&[b"ZADD", b"board", entry.score.to_string().as_bytes(), &id]);
        waiting += 1;
        if waiting == FILL_PIPELINE {
            client.exchange(waiting)?;
            waiting = 0;
        }
    }
    client.exchange(waiting)?;
    let bytes = (client.used_memory()? - before) as f64 / members as f64;
    let ids = some(members, ranks, &mut Random::new(!seed));
    let ranks_single = client.ranks(&ids, 1)?;
    let ranks_pipelined = client.ranks(&ids, 16)?;
    Ok(Figures { bytes, ranks_single, ranks_pipelined })
}

struct Client {
    stream: BufReader<UnixStream>,
    request: Vec<u8>,
    line: String,
}

impl Client {
    fn open(socket: &Path) -> std::io::Result<Self> {
        let deadline = Instant::now() + START;
        let stream = loop {
            match UnixStream::connect(socket) {
                Ok(stream) => break stream,
                Err(error) if Instant::now() > deadline => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        Ok(Self { stream: BufReader::new(stream), request: Vec::new(), line: String::new() })
    }

    fn add(&mut self, command: &[&[u8]]) {
        let request = &mut self.request;
        let header = format!("*{}\r\n", command.len());
        request.extend_from_slice(header.as_bytes());
        for part in command {
            request.extend_from_slice(format!("${}\r\n", part.len()).as_bytes());
            request.extend_from_slice(part);
            request.extend_from_slice(b"\r\n");
        }
    }

    /// Sends what was added and reads so many answers; gives the text of the last.
    fn exchange(&mut self, answers: usize) -> std::io::Result<String> {
        self.stream.get_mut().write_all(&self.request)?;
        self.request.clear();
        let mut text = String::new();
        for _ in 0..answers {
            self.line.clear();
            self.stream.read_line(&mut self.line)?;
            let line = self.line.trim_end();
            match line.split_at_checked(1) {
                Some((":", _)) => {}
                Some(("$", length)) if !length.starts_with('-') => {
                    let length: usize = length.parse().map_err(std::io::Error::other)?;
                    let mut bytes = vec![0; length + 2];
                    self.stream.read_exact(&mut bytes)?;
                    text = String::from_utf8_lossy(&bytes).into_owned();
                }
                _ => return Err(std::io::Error::other(format!("an unexpected answer: {line:?}"))),
            }
        }
        Ok(text)
    }

    fn used_memory(&mut self) -> std::io::Result<i64> {
        self.add(&[b"INFO", b"memory"]);
        let text = self.exchange(1)?;
        let used = text.lines().find_map(|line| line.strip_prefix("used_memory:")?.parse().ok());
        used.ok_or_else(|| std::io::Error::other("INFO tells no used_memory"))
    }

    fn ranks(&mut self, ids: &[Id], pipeline: usize) -> std::io::Result<f64> {
        let start = Instant::now();
        for some in ids.chunks(pipeline) {
            for id in some {
                self.add(&[b"ZREVRANK", b"board", id]);
            }
            self.exchange(some.len())?;
        }
        Ok(ids.len() as f64 / start.elapsed().as_secs_f64())
    }
}
