//! A sampled pipeline of RESP commands, maybe of only one command.
//!
//! The protocol has no field for a parent span, so the sampling ratio decides. Names come from the table of commands, never
//! from the client; keys and members are left out.

use super::SampledRequest;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;
use tally_service::traces::Sink;
use tally_traces::Traces;

/// Sampled commands, until their replies.
pub(crate) struct Pipeline {
    sampled: Arc<SampledRequest>,
    /// The name of the first.
    name: Option<&'static str>,
    /// Whether all have that name.
    alike: bool,
    commands: usize,
}

impl Pipeline {
    /// Starts the spans of a pipeline, if it is sampled.
    pub(crate) fn begin(traces: Option<&Arc<Traces>>) -> Option<Self> {
        let traces = traces?;
        let trace = traces.sample(None, String::new)?;
        let sampled = SampledRequest::new(traces, trace, Instant::now());
        Some(Self { sampled, name: None, alike: true, commands: 0 })
    }

    /// The receiver of lane timings.
    pub(crate) fn sink(&self) -> Arc<dyn Sink> {
        Arc::<SampledRequest>::clone(&self.sampled)
    }

    /// Adds a command by its name in the table.
    pub(crate) fn command(&mut self, name: &'static str) {
        self.commands += 1;
        self.alike &= *self.name.get_or_insert(name) == name;
    }

    /// Records the replies. Without a complete command there is no span.
    pub(crate) fn answered(self, peer: IpAddr, protocol: &'static str, out: &[u8]) {
        let Some(name) = self.name else { return };
        let mut root = self.sampled.root();
        root.ended = Some(Instant::now());
        root.name = match (self.commands, self.alike) {
            (1, _) => name.to_ascii_uppercase(),
            (_, true) => format!("PIPELINE {}", name.to_ascii_uppercase()),
            (_, false) => "PIPELINE".into(),
        };
        let operation = root.name.clone();
        root.attributes = vec![
            ("db.operation.name", operation.into()),
            ("network.protocol.name", "resp".into()),
            ("network.protocol.version", protocol.into()),
            ("client.address", peer.to_canonical().to_string().into()),
        ];
        if self.commands > 1 {
            root.attributes.push(("db.operation.batch.size", self.commands.into()));
        } else if let Some(code) = error(out) {
            root.attributes.push(("db.response.status_code", code.into()));
        }
    }
}

/// The first word of a reply that is an error.
fn error(reply: &[u8]) -> Option<String> {
    let text = reply.strip_prefix(b"-")?;
    let word = text.split(|byte| !byte.is_ascii_uppercase()).next()?;
    Some(String::from_utf8_lossy(word).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_a_word() {
        assert_eq!(error(b"-WRONGTYPE Operation against\r\n").as_deref(), Some("WRONGTYPE"));
        assert_eq!(error(b"-ERR x\r\n").as_deref(), Some("ERR"));
        assert_eq!(error(b"+OK\r\n"), None);
        assert_eq!(error(b""), None);
    }
}
