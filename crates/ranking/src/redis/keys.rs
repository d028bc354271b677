//! The keys of a window, their slots, the partition of a player, and the keys of a contest.
//!
//! All keys of one partition have one hash tag, so a script may use them together. On a cluster, the tag of partition
//! `p` of `n` ends in the first number that hashes it into the `p`th of `n` equal ranges of slots. So partitions are
//! even over nodes that share the slots evenly, which plain names would not be. The number of partitions is part of the
//! tag, so servers that disagree about it do not mix their data. A test pins these names, because they are stored.

use tally_rules::ledger::Uuid;

/// Slots of a Redis Cluster.
pub(super) const SLOTS: u16 = 16_384;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartitionKeys {
    pub(super) slot: u16,
    /// The ranking, the players, and with dense ranks the distinct scores.
    pub(super) names: Vec<String>,
}

impl PartitionKeys {
    /// The players that changed recently, and whether a server watches.
    pub(super) fn watched(&self) -> [String; 2] {
        let tag = self.names[0].strip_suffix(":z").expect("the ranking comes first");
        [format!("{tag}:l"), format!("{tag}:w")]
    }
}

/// The keys of every partition of a window.
pub(super) fn of_window(
    prefix: &str,
    board: u32,
    window: u64,
    partitions: u16,
    dense: bool,
) -> Vec<PartitionKeys> {
    (0..partitions)
        .map(|partition| of_partition(prefix, board, window, (partition, partitions), dense))
        .collect()
}

fn of_partition(
    prefix: &str,
    board: u32,
    window: u64,
    (which, of): (u16, u16),
    dense: bool,
) -> PartitionKeys {
    let plain = format!("{prefix}:{board}.{window}");
    let mut tag = plain.clone();
    if of > 1 {
        // On average this takes as many tries as there are partitions.
        let hit = |tag: &String| slot(tag.as_bytes()) / SLOTS.div_ceil(of) == which;
        let tries = (0..u32::MAX).map(|number| format!("{plain}.{which}/{of}.{number}"));
        tag = tries.into_iter().find(hit).expect("a checksum takes every value");
    }
    let slot = slot(tag.as_bytes());
    let kinds: &[&str] = if dense { &["z", "m", "d"] } else { &["z", "m"] };
    PartitionKeys { slot, names: kinds.iter().map(|kind| format!("{{{tag}}}:{kind}")).collect() }
}

/// The keys of a contest's applications under one number, all in one slot: metadata, pending, accepted, rejected, and
/// the applications. Each opening has its own number, so late changes find no key.
pub(super) fn of_applications(prefix: &str, contest: Uuid, number: Uuid) -> PartitionKeys {
    let tag = contest_tag(prefix, contest);
    let names = ["d", "p", "a", "r", "b"].map(|kind| format!("{{{tag}}}:{number}:{kind}"));
    PartitionKeys { slot: slot(tag.as_bytes()), names: names.to_vec() }
}

/// The key of the outcome of a request about a contest's applications. It is in their slot, and it expires.
pub(super) fn of_request(prefix: &str, contest: Uuid, scope: &str, key: &str) -> PartitionKeys {
    let tag = contest_tag(prefix, contest);
    PartitionKeys { slot: slot(tag.as_bytes()), names: vec![format!("{{{tag}}}:q:{scope}\0{key}")] }
}

fn contest_tag(prefix: &str, contest: Uuid) -> String {
    format!("{prefix}:contest:{contest}")
}

/// The claim, and the store that has used the Redis last, with their slot.
pub(super) fn of_claim(prefix: &str) -> (u16, [String; 2]) {
    let tag = format!("{prefix}:claim");
    (slot(tag.as_bytes()), ["c", "u"].map(|kind| format!("{{{tag}}}:{kind}")))
}

/// The partition of a player.
pub(super) fn partition(player: &[u8], partitions: usize) -> usize {
    usize::from(crc16(player)) % partitions
}

fn slot(tag: &[u8]) -> u16 {
    crc16(tag) % SLOTS
}

/// CRC-16/XMODEM, as in the specification of Redis Cluster.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(slot(b"foo"), 12_182, "CLUSTER KEYSLOT foo");
    }

    #[test]
    fn partitions_lie_evenly_and_their_keys_together() {
        for count in [1, 3, 16, 100] {
            let all = of_window("tally", 7, 1 << 40, count, false);
            assert_eq!(all.len(), usize::from(count));
            for (which, keys) in all.iter().enumerate() {
                let tag = keys.names[0].strip_prefix('{').and_then(|rest| rest.split_once('}')).unwrap().0;
                assert!(keys.names.iter().all(|name| name.starts_with(&format!("{{{tag}}}:"))));
                assert_eq!(slot(tag.as_bytes()), keys.slot);
                assert!(count == 1 || usize::from(keys.slot / SLOTS.div_ceil(count)) == which);
            }
        }
    }

    #[test]
    fn what_is_stored_is_pinned() {
        let names = |count| of_window("tally", 7, 0, count, true).pop().unwrap().names;
        assert_eq!(names(1), ["{tally:7.0}:z", "{tally:7.0}:m", "{tally:7.0}:d"]);
        let (contest, number) = (Uuid([1; 16]), Uuid([2; 16]));
        let keys = of_applications("tally", contest, number);
        let tag = "{tally:contest:01010101-0101-0101-0101-010101010101}";
        assert_eq!(keys.names[1], format!("{tag}:02020202-0202-0202-0202-020202020202:p"));
        let request = of_request("tally", contest, "local", "a}b");
        assert_eq!((request.names[0].clone(), request.slot), (format!("{tag}:q:local\0a}}b"), keys.slot));
        assert_eq!(of_claim("tally").1, ["{tally:claim}:c", "{tally:claim}:u"]);
        assert_eq!(names(16)[0], "{tally:7.0.15/16.42}:z");
        assert_eq!(partition("zoé".as_bytes(), 16), 0);
    }
}
