//! A JSON object that is sent while it is written: fields, and lists of any length.
//!
//! Not here: what is in it (`sections`).

use crate::limits::SLOW_READER;
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use tally_service::Failure;
use tally_service::damaged::{self, CorruptRow};
use tokio::sync::mpsc;

/// The size from which written bytes are sent.
const PIECE_BYTES: usize = 64 * 1_024;

/// Corrupt rows that a document names. It says how many there are.
const DAMAGED_MAX: usize = 100;

/// Why a document was not completed.
#[derive(Debug)]
pub(super) enum Stopped {
    Disconnected,
    /// The client reads nothing.
    Slow,
    Failed(Failure),
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

pub(super) struct Document {
    send: mpsc::Sender<Bytes>,
    bytes: Vec<u8>,
    /// Rows that could not be read.
    damaged: Vec<Value>,
    damaged_count: usize,
}

impl Document {
    pub(super) fn new(send: mpsc::Sender<Bytes>) -> Self {
        Self { send, bytes: vec![b'{'], damaged: Vec::new(), damaged_count: 0 }
    }

    /// A field with a whole value.
    pub(super) fn field(&mut self, name: &str, value: &impl Serialize) {
        self.name(name);
        self.value(value);
    }

    fn name(&mut self, name: &str) {
        if self.bytes.last().is_none_or(|last| *last != b'{') {
            self.bytes.push(b',');
        }
        self.value(&name);
        self.bytes.push(b':');
    }

    fn value(&mut self, value: &impl Serialize) {
        serde_json::to_writer(&mut self.bytes, value).expect("it is made of strings and numbers");
    }

    /// Begins a list.
    pub(super) fn begin(&mut self, name: &str) {
        self.name(name);
        self.bytes.push(b'[');
    }

    /// An item of the list.
    pub(super) fn item(&mut self, value: &impl Serialize) {
        if self.bytes.last().is_none_or(|last| *last != b'[') {
            self.bytes.push(b',');
        }
        self.value(value);
    }

    pub(super) fn end(&mut self) {
        self.bytes.push(b']');
    }

    /// Notes rows that a list leaves out.
    pub(super) fn leave_out(&mut self, rows: &[CorruptRow]) {
        rows.iter().for_each(damaged::log);
        self.damaged_count += rows.len();
        let room = DAMAGED_MAX.saturating_sub(self.damaged.len());
        let name = |row: &CorruptRow| json!({"table": row.table, "row": row.key});
        self.damaged.extend(rows.iter().take(room).map(name));
    }

    /// To be called after each page: sends what is written, once it is enough.
    pub(super) async fn page(&mut self) -> Result<(), Stopped> {
        if self.bytes.len() < PIECE_BYTES {
            return Ok(());
        }
        // The last byte stays: the next field or item looks at it.
        let rest = self.bytes.split_off(self.bytes.len() - 1);
        let piece = std::mem::replace(&mut self.bytes, rest);
        self.send(piece.into()).await
    }

    /// The last fields.
    pub(super) async fn complete(&mut self) -> Result<(), Stopped> {
        let (damaged, count) = (std::mem::take(&mut self.damaged), self.damaged_count);
        if count > 0 {
            self.field("damaged", &damaged);
            self.field("damaged_count", &count);
        }
        self.field("complete", &true);
        self.bytes.push(b'}');
        let piece = std::mem::take(&mut self.bytes);
        self.send(piece.into()).await
    }

    async fn send(&self, piece: Bytes) -> Result<(), Stopped> {
        match tokio::time::timeout(SLOW_READER, self.send.send(piece)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Stopped::Disconnected),
            Err(_) => Err(Stopped::Slow),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_sent_in_pieces_is_one_document() {
        let (send, mut received) = mpsc::channel(100);
        let mut document = Document::new(send);
        document.field("a", &json!({"b": []}));
        for list in ["empty", "long"] {
            document.begin(list);
            for number in 0..if list == "long" { 30_000 } else { 0 } {
                document.item(&json!(["x", number]));
                document.page().await.unwrap();
            }
            document.end();
        }
        document.complete().await.unwrap();
        drop(document);
        let (mut text, mut pieces) = (Vec::new(), 0);
        while let Some(piece) = received.recv().await {
            pieces += 1;
            assert!(piece.len() < PIECE_BYTES + 100);
            text.extend_from_slice(&piece);
        }
        let value: Value = serde_json::from_slice(&text).unwrap();
        assert!(pieces > 3 && value["empty"] == json!([]) && value["a"] == json!({"b": []}));
        assert_eq!(value["long"].as_array().unwrap().len(), 30_000);
        assert_eq!((&value["long"][29_999], &value["complete"]), (&json!(["x", 29_999]), &json!(true)));
    }
}
