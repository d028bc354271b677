//! Whether two sets of rows are the same, read in different orders and not kept: the sum of their digests.
//!
//! Two different sets have the same sum by chance alone, and the key of each reconciliation is random, so that it cannot be forced.

use crate::failure::{Failure, Fault};
use tally_rules::ledger::entry::EntryKey;
use tally_rules::ledger::member::Handle;
use tally_rules::ledger::{EntryKind, MemberId, TransferId};
use tally_rules::{PlayerId, Record};

/// A side of a transfer: what its entry must say, and what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TransferSide {
    pub(super) key: EntryKey,
    pub(super) transfer: TransferId,
    pub(super) kind: EntryKind,
    pub(super) amount: i64,
    pub(super) counterparty: Option<MemberId>,
}

/// The sum so far, and of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    count: u64,
    digests: u128,
}

/// A key for one reconciliation.
pub(super) fn key() -> Result<[u8; 32], Failure> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|error| Fault::Broken(format!("no random numbers: {error}")))?;
    Ok(key)
}

impl Sum {
    pub(super) fn add(&mut self, key: &[u8; 32], side: &TransferSide) {
        let TransferSide { key: place, transfer, kind, amount, counterparty } = side;
        let mut bytes = [0; 74];
        bytes[..16].copy_from_slice(&place.wallet.member.0.0);
        bytes[16..24].copy_from_slice(&place.wallet.currency.bytes());
        bytes[24..32].copy_from_slice(&place.sequence.to_be_bytes());
        bytes[32..48].copy_from_slice(&transfer.0.0);
        bytes[48] = kind.number();
        bytes[49..57].copy_from_slice(&amount.to_be_bytes());
        if let Some(member) = counterparty {
            bytes[57] = 1;
            bytes[58..74].copy_from_slice(&member.0.0);
        }
        self.add_digest(blake3::keyed_hash(key, &bytes));
    }

    /// What finds a member; a sum has these alone.
    pub(super) fn add_handle(&mut self, key: &[u8; 32], handle: &Handle, member: MemberId) {
        let mut hasher = blake3::Hasher::new_keyed(key);
        hasher.update(&member.0.0).update(&[handle.number()]).update(handle.as_str().as_bytes());
        self.add_digest(hasher.finalize());
    }

    /// A record of one window; a sum has these alone.
    pub(super) fn add_record(&mut self, key: &[u8; 32], player: &PlayerId, record: &Record) {
        let mut hasher = blake3::Hasher::new_keyed(key);
        for number in [record.score, record.subscore, record.at.0] {
            hasher.update(&number.to_be_bytes());
        }
        hasher.update(player.as_bytes());
        self.add_digest(hasher.finalize());
    }

    /// Of how many.
    pub(super) fn count(self) -> u64 {
        self.count
    }

    fn add_digest(&mut self, digest: blake3::Hash) {
        let (half, _) = digest.as_bytes().split_first_chunk().expect("a digest of 32 bytes");
        self.digests = self.digests.wrapping_add(u128::from_be_bytes(*half));
        self.count += 1;
    }
}
