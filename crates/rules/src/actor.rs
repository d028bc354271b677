//! The actor of a change: the credential, or the part of the server, that asked for it.
//!
//! Rows of money keep it for as long as they exist, so an auditor learns which key made money long after the outcome of the
//! request has expired. An actor is no permission: roles decide what a caller may do, and contests have roles of their own.
//! Not here: how a caller is authenticated.

use crate::ledger::{MemberId, Uuid};
use std::fmt;
use std::sync::Arc;

/// Hexadecimal digits of a key's id.
pub const KEY_ID_CHARS: usize = 12;

/// The id of an API key, as its token names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub [u8; KEY_ID_CHARS / 2]);

impl KeyId {
    /// Reads the text form: 12 hexadecimal digits in lower case.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != KEY_ID_CHARS {
            return None;
        }
        let mut bytes = [0; KEY_ID_CHARS / 2];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(bytes))
    }
}

fn digit(letter: u8) -> Option<u8> {
    match letter {
        b'0'..=b'9' => Some(letter - b'0'),
        b'a'..=b'f' => Some(letter - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The actor of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Actor {
    /// It was not recorded: the row is from before actors were.
    #[default]
    Unknown,
    /// An API key.
    Key(KeyId),
    /// A member that has signed in.
    Member(MemberId),
    /// A subcommand on the machine of the server, with the token of the data directory.
    CommandLine,
    /// A caller on the machine of the server without a credential, in protected mode.
    Local,
    /// A background task of a server: a schedule, or what an earlier request left to do.
    Background,
}

const KEY: &str = "key:";
const MEMBER: &str = "member:";

impl Actor {
    /// Reads the text form.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "unknown" => Some(Self::Unknown),
            "command_line" => Some(Self::CommandLine),
            "local" => Some(Self::Local),
            "background" => Some(Self::Background),
            _ => match (text.strip_prefix(KEY), text.strip_prefix(MEMBER)) {
                (Some(key), _) => KeyId::parse(key).map(Self::Key),
                (None, Some(member)) => Uuid::parse(member).map(|id| Self::Member(MemberId(id))),
                (None, None) => None,
            },
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("unknown"),
            Self::Key(id) => write!(f, "{KEY}{id}"),
            Self::Member(id) => write!(f, "{MEMBER}{}", id.0),
            Self::CommandLine => f.write_str("command_line"),
            Self::Local => f.write_str("local"),
            Self::Background => f.write_str("background"),
        }
    }
}

/// The actor of a change, and its reason and data in the words of the caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The actor.
    pub actor: Actor,
    /// The reason.
    pub reason: Option<Arc<str>>,
    /// Data of the caller, as JSON text. Only new transfers and holds have it; the end of a hold has none.
    pub metadata: Option<Arc<str>>,
}

impl Origin {
    /// A change of a background task.
    pub const BACKGROUND: Self = Self { actor: Actor::Background, reason: None, metadata: None };
}

impl From<Actor> for Origin {
    fn from(actor: Actor) -> Self {
        Self { actor, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_actor_reads_back_from_its_text() {
        let key = KeyId::parse("0123456789ab").unwrap();
        assert_eq!(key.0, [0x01, 0x23, 0x45, 0x67, 0x89, 0xab]);
        let member = MemberId(Uuid([0xab; 16]));
        for (actor, text) in [
            (Actor::Unknown, "unknown"),
            (Actor::Key(key), "key:0123456789ab"),
            (Actor::Member(member), "member:abababab-abab-abab-abab-abababababab"),
            (Actor::CommandLine, "command_line"),
            (Actor::Local, "local"),
            (Actor::Background, "background"),
        ] {
            assert_eq!(actor.to_string(), text);
            assert_eq!(Actor::parse(text), Some(actor));
        }
        for bad in
            ["", "key:", "key:0123456789AB", "key:0123456789abc", "key:é1234567890", "member:x", "Local"]
        {
            assert_eq!(Actor::parse(bad), None, "{bad}");
        }
    }
}
