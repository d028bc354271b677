//! Lines of a file, or of generated data, sent to a server in chunks, each line once.
//!
//! The server stores for each digest how many lines are done. Not here: the contents of lines.

use crate::client::Client;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use tally_service::secret::hex;
use ureq::http::Method;

/// Rows of one chunk: far below the server's limits, large enough to hide the round trip.
pub(crate) const CHUNK_ROWS: usize = 2_000;

/// The progress of an import by the server's last reply.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    pub(crate) lines: u64,
    pub(crate) taken: u64,
    pub(crate) refused: u64,
    pub(crate) finished: bool,
}

/// The destination of chunks, with their progress.
pub(crate) struct Chunks<'a> {
    client: &'a Client,
    path: &'static str,
    head: Value,
    /// By the last reply.
    pub(crate) done: Done,
    /// The shortest password of a member, in characters. Only an import of members has it.
    pub(crate) password_length_min: Option<usize>,
}

impl<'a> Chunks<'a> {
    /// Reads the progress of the file with that digest; `head` has the other members of a chunk's first line.
    pub(crate) fn find(
        client: &'a Client,
        path: &'static str,
        head: Value,
        digest: [u8; 32],
    ) -> Result<Self> {
        let mut chunks = Self::at(client, path, head, digest, Done::default());
        // A chunk without lines changes nothing.
        let answer = chunks.send("", 0, false)?;
        let length_min = answer.get("password_length_min").and_then(Value::as_u64);
        chunks.password_length_min = length_min.and_then(|min| usize::try_from(min).ok());
        Ok(chunks)
    }

    /// The same with known progress.
    pub(crate) fn at(
        client: &'a Client,
        path: &'static str,
        mut head: Value,
        digest: [u8; 32],
        done: Done,
    ) -> Self {
        head["digest"] = json!(hex(&digest));
        Self { client, path, head, done, password_length_min: None }
    }

    /// Sends rows, each on its line after a line break, for the lines up to `until`. Returns the reply.
    pub(crate) fn send(&mut self, rows: &str, until: u64, last: bool) -> Result<Value> {
        let mut head = self.head.clone();
        head["lines_before"] = json!(self.done.lines.min(until));
        head["lines_after"] = json!(until);
        head["last"] = json!(last);
        let body = format!("{head}{rows}");
        let answer = self
            .client
            .ask(&Method::POST, self.path, Some(("application/x-ndjson", body.as_bytes())))
            .with_context(|| format!("import up to line {until}; the same command continues from there"))?;
        self.done = read_done(&answer)?;
        Ok(answer)
    }
}

/// The rejected rows of a reply: line and reason.
pub(crate) fn refused(answer: &Value) -> impl Iterator<Item = (u64, &str)> {
    // Servers of earlier releases have `rows`.
    let rows = ["refused_rows", "rows"].into_iter().find_map(|name| answer.get(name)?.as_array());
    rows.into_iter().flatten().map(|row| {
        let line = row.get("line").and_then(Value::as_u64).unwrap_or_default();
        (line, row.get("detail").and_then(Value::as_str).unwrap_or_default())
    })
}

/// The progress in a reply.
pub(crate) fn read_done(answer: &Value) -> Result<Done> {
    let number = |name: &str| answer.get(name).and_then(Value::as_u64);
    let read = || {
        Some(Done {
            lines: number("lines")?,
            taken: number("taken")?,
            refused: number("refused")?,
            finished: answer.get("finished")?.as_bool()?,
        })
    };
    read().context("the answer does not say how far the import is")
}
