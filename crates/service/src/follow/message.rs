//! A message of the leader to a follower: changes with their numbers.
//!
//! The version of the bytes, and whether the leader ends: a byte each. The fencing token, the end of the leader's lease and the
//! time for which marks are kept ([`Leading`]), the number of its newest change, the age of the oldest transaction on its way, the
//! number of the first change of the message and how many there are: numbers of 8 bytes, big-endian. Then each change
//! with its length, a number of 4 bytes. The first number is 0 if the leader does not have the changes that were asked for.

use super::Position;
use tally_store::CHANGES_VERSION;

/// Bytes before the changes.
const HEAD: usize = 2 + 7 * 8;

/// What a leader says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leading {
    /// The end of its lease in the database, since its last renewal.
    pub renewed: u64,
    /// For how many microseconds the database has the names of records that a transaction has changed.
    pub marks: u64,
}

/// Changes of the leader, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The newest change of the leader.
    pub newest: Position,
    /// Whether no change comes after it: the leader gives its place to a follower that has them all.
    pub ends: bool,
    /// What the leader says of itself.
    pub leading: Leading,
    /// How long ago the oldest transaction began that may be committed and is not among the changes yet, in microseconds; 0 if there is
    /// none.
    pub pending: u64,
    /// The number of the first change, or of the next one if there is none; 0 if the leader does not have those that were asked for.
    pub first: u64,
    /// The changes.
    pub changes: Vec<Vec<u8>>,
}

/// Why a message cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageFault {
    /// It is of another version of tally.
    #[error("the leader sends changes of version {0}, and this server reads {CHANGES_VERSION}")]
    Version(u8),
    /// It is no message, or a part of one.
    #[error("the leader's answer is no list of changes")]
    Form,
}

impl Message {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let length: usize = self.changes.iter().map(|changes| 4 + changes.len()).sum();
        let mut out = Vec::with_capacity(HEAD + length);
        out.push(CHANGES_VERSION);
        out.push(self.ends.into());
        let Position { token, number } = self.newest;
        let Leading { renewed, marks } = self.leading;
        let count = self.changes.len() as u64;
        for number in [token, renewed, marks, number, self.pending, self.first, count] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        for changes in &self.changes {
            // One is a transaction, so a few MB at most.
            out.extend_from_slice(&u32::try_from(changes.len()).unwrap_or(u32::MAX).to_be_bytes());
            out.extend_from_slice(changes);
        }
        out
    }

    /// Reads them.
    pub fn decode(bytes: &[u8]) -> Result<Self, MessageFault> {
        match bytes.first() {
            Some(&version) if version != CHANGES_VERSION => Err(MessageFault::Version(version)),
            _ => Self::decode_known(bytes).ok_or(MessageFault::Form),
        }
    }

    fn decode_known(bytes: &[u8]) -> Option<Self> {
        let (head, mut rest) = bytes.split_at_checked(HEAD)?;
        let ends = match head[1] {
            0 => false,
            1 => true,
            _ => return None,
        };
        let number = |nth: usize| u64::from_be_bytes(head[2 + nth * 8..][..8].try_into().expect("8 bytes"));
        let [token, renewed, marks, newest, pending, first, count] = [0, 1, 2, 3, 4, 5, 6].map(number);
        let mut changes = Vec::new();
        for _ in 0..count {
            let (length, after) = rest.split_first_chunk::<4>()?;
            let (one, after) = after.split_at_checked(u32::from_be_bytes(*length) as usize)?;
            changes.push(one.to_vec());
            rest = after;
        }
        let newest = Position { token, number: newest };
        let leading = Leading { renewed, marks };
        rest.is_empty().then_some(Self { newest, ends, leading, pending, first, changes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_reads_back_and_a_part_of_one_is_refused() {
        let newest = Position { token: 7, number: 9 };
        let ends = true;
        let leading = Leading { renewed: 6, marks: 7 };
        let changes = vec![vec![1, 2], Vec::new()];
        let whole = Message { newest, ends, leading, pending: 5, first: 8, changes };
        let bytes = whole.encode();
        assert_eq!(Message::decode(&bytes), Ok(whole));
        for length in 0..bytes.len() {
            assert_eq!(Message::decode(&bytes[..length]), Err(MessageFault::Form), "{length}");
        }
        let other = [&[CHANGES_VERSION + 1], &bytes[1..]].concat();
        assert_eq!(Message::decode(&other), Err(MessageFault::Version(CHANGES_VERSION + 1)));
    }
}
