//! What arrived together on a connection of the Redis protocol, followed: one command, or a pipeline.
//!
//! A caller cannot say a parent there, so the ratio decides. Names are those of the list of commands, never what a client
//! has sent; keys and members are left out.

use super::Followed;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;
use tally_service::traces::Sink;
use tally_traces::Traces;

/// Commands that are followed, until they are answered.
pub(crate) struct Pipeline {
    followed: Arc<Followed>,
    /// Of the first.
    name: Option<&'static str>,
    /// Whether all are of that name.
    alike: bool,
    commands: usize,
}

impl Pipeline {
    /// Follows what has just arrived, if it is to be.
    pub(crate) fn begin(traces: Option<&Arc<Traces>>) -> Option<Self> {
        let traces = traces?;
        let trace = traces.follow(None, String::new)?;
        let followed = Followed::new(traces, trace, Instant::now());
        Some(Self { followed, name: None, alike: true, commands: 0 })
    }

    /// Who hears of lanes.
    pub(crate) fn sink(&self) -> Arc<dyn Sink> {
        Arc::<Followed>::clone(&self.followed)
    }

    /// One more command, by its name in the list.
    pub(crate) fn command(&mut self, name: &'static str) {
        self.commands += 1;
        self.alike &= *self.name.get_or_insert(name) == name;
    }

    /// Says that all were answered; where none was whole yet, nothing is told.
    pub(crate) fn answered(self, peer: IpAddr, protocol: &'static str, out: &[u8]) {
        let Some(name) = self.name else { return };
        let mut root = self.followed.root();
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
