//! R1's own two ways with a plain client: a key for each application.
//!
//! `SCAN` finds them by their prefix, 100 keys a round trip, as clients are commonly told to. The index names them in three
//! sets, read in one pipelined round trip. Then both read all values at once and delete everything at once.

use super::player;
use crate::redis::client::Client;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tally_wire::resp::Reply;

/// Keys of one step of `SCAN`.
const COUNT: &str = "100";
/// The prefix of the keys of applications.
const PREFIX: &str = "contest:7:application:";
/// The sets of the index: the pending by time, the accepted, the rejected.
const INDEX: [&str; 3] = ["contest:7:pending", "contest:7:accepted", "contest:7:rejected"];

pub(super) struct Plain(Client);

impl Plain {
    pub(super) fn open(address: SocketAddr) -> io::Result<Self> {
        Client::open(address).map(Self)
    }

    /// Writes applications, and then reads and clears them: what was read, and how long that took.
    pub(super) fn turn(&mut self, scan: bool, size: usize) -> io::Result<(Vec<String>, Duration)> {
        self.write(scan, size)?;
        let began = Instant::now();
        let mut keys = if scan { self.scan()? } else { self.index()? };
        let values = if keys.is_empty() { Vec::new() } else { self.values(&keys)? };
        if !scan {
            keys.extend(INDEX.map(|name| name.to_owned().into_bytes()));
        }
        let command: Vec<&[u8]> =
            std::iter::once(&b"DEL"[..]).chain(keys.iter().map(Vec::as_slice)).collect();
        self.0.call(&command)?;
        Ok((values, began.elapsed()))
    }

    fn write(&mut self, scan: bool, size: usize) -> io::Result<()> {
        let mut commands = 0;
        for number in 0..size {
            let (key, player) = (format!("{PREFIX}{}", player(number)), player(number));
            self.0.add(&["SET", &key, &player]);
            commands += 1;
            if !scan {
                self.0.add(&["SADD", INDEX[1], &player]);
                commands += 1;
            }
        }
        self.0.exchange(commands).map(drop)
    }

    fn scan(&mut self) -> io::Result<Vec<Vec<u8>>> {
        let (mut cursor, mut keys) = (b"0".to_vec(), Vec::new());
        let pattern = format!("{PREFIX}*");
        loop {
            let command: [&[u8]; 6] =
                [b"SCAN", &cursor, b"MATCH", pattern.as_bytes(), b"COUNT", COUNT.as_bytes()];
            let mut answer = list(self.0.call(&command)?)?.into_iter();
            let (Some(Reply::Bulk(next)), Some(found)) = (answer.next(), answer.next()) else {
                return Err(io::Error::other("SCAN was answered otherwise"));
            };
            keys.extend(texts(found)?);
            cursor = next;
            if cursor == b"0" {
                // `SCAN` may return a key twice.
                keys.sort_unstable();
                keys.dedup();
                return Ok(keys);
            }
        }
    }

    fn index(&mut self) -> io::Result<Vec<Vec<u8>>> {
        self.0.add(&["ZRANGE", INDEX[0], "0", "-1"]);
        self.0.add(&["SMEMBERS", INDEX[1]]);
        self.0.add(&["SMEMBERS", INDEX[2]]);
        self.0.send()?;
        let mut keys = Vec::new();
        for _ in INDEX {
            let players = texts(self.0.receive()?)?;
            keys.extend(players.into_iter().map(|player| [PREFIX.as_bytes(), &player].concat()));
        }
        Ok(keys)
    }

    fn values(&mut self, keys: &[Vec<u8>]) -> io::Result<Vec<String>> {
        let command: Vec<&[u8]> =
            std::iter::once(&b"MGET"[..]).chain(keys.iter().map(Vec::as_slice)).collect();
        let values = texts(self.0.call(&command)?)?;
        values.into_iter().map(|value| String::from_utf8(value).map_err(io::Error::other)).collect()
    }
}

fn list(reply: Reply) -> io::Result<Vec<Reply>> {
    match reply {
        Reply::Array(list) => Ok(list),
        other => Err(io::Error::other(format!("not a list: {other:?}"))),
    }
}

fn texts(reply: Reply) -> io::Result<Vec<Vec<u8>>> {
    let text = |reply| match reply {
        Reply::Bulk(text) => Ok(text),
        other => Err(io::Error::other(format!("not a text: {other:?}"))),
    };
    list(reply)?.into_iter().map(text).collect()
}
