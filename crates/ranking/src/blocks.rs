//! Entries of a closed period, packed into blocks of equal length.
//!
//! An entry is its score, subscore and instant as differences to the entry before (zigzag, LEB128, as in Protocol
//! Buffers), then the player's length and bytes. Neighbours have similar scores, so most differences take one or two
//! bytes. The format is part of stored files: a test pins it.

use tally_rules::{Micros, PlayerId, Record};

/// Entries of every block but the last.
pub const BLOCK_ENTRIES: usize = 512;

/// Packs entries in order.
pub fn pack(entries: &[(PlayerId, Record)]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(entries.len() * 24);
    let mut last = [0_i64; 3];
    for (player, record) in entries {
        let now = numbers(record);
        for (number, before) in now.iter().zip(last) {
            put(&mut bytes, zigzag(number.wrapping_sub(before)));
        }
        last = now;
        let id = player.as_bytes();
        bytes.push(u8::try_from(id.len()).expect("ids are at most 128 bytes"));
        bytes.extend_from_slice(id);
    }
    bytes
}

/// Unpacks entries; `None` if the bytes are invalid.
pub fn unpack(mut bytes: &[u8]) -> Option<Vec<(PlayerId, Record)>> {
    let mut entries = Vec::with_capacity(BLOCK_ENTRIES);
    let mut last = [0_i64; 3];
    while !bytes.is_empty() {
        entries.push(entry(&mut bytes, &mut last)?);
    }
    Some(entries)
}

/// Unpacks the first entry alone.
pub fn unpack_first(mut bytes: &[u8]) -> Option<(PlayerId, Record)> {
    entry(&mut bytes, &mut [0; 3])
}

/// Decodes one entry; `last` has the numbers of the entry before.
fn entry(bytes: &mut &[u8], last: &mut [i64; 3]) -> Option<(PlayerId, Record)> {
    for number in last.iter_mut() {
        *number = number.wrapping_add(unzigzag(take(bytes)?));
    }
    let (length, rest) = bytes.split_first()?;
    let (id, rest) = rest.split_at_checked(usize::from(*length))?;
    *bytes = rest;
    let player = PlayerId::new(std::str::from_utf8(id).ok()?).ok()?;
    Some((player, Record { score: last[0], subscore: last[1], at: Micros(last[2]) }))
}

fn numbers(record: &Record) -> [i64; 3] {
    [record.score, record.subscore, record.at.0]
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(player: &str, score: i64, subscore: i64, at: i64) -> (PlayerId, Record) {
        (PlayerId::new(player).unwrap(), Record { score, subscore, at: Micros(at) })
    }

    #[test]
    fn the_stored_bytes_are_pinned() {
        let packed = pack(&[one("ab", 100, 0, -1), one("c", 99, 0, 300)]);
        assert_eq!(packed, [200, 1, 0, 1, 2, b'a', b'b', 1, 0, 218, 4, 1, b'c']);
    }

    proptest! {
        #[test]
        fn what_is_packed_unpacks(
            list in proptest::collection::vec(("\\PC{1,20}", any::<i64>(), any::<i64>(), any::<i64>()), 0..40)
        ) {
            let entries: Vec<_> = list.iter().filter(|line| PlayerId::new(&line.0).is_ok())
                .map(|(player, score, subscore, at)| one(player, *score, *subscore, *at)).collect();
            prop_assert_eq!(unpack_first(&pack(&entries)), entries.first().cloned());
            prop_assert_eq!(unpack(&pack(&entries)), Some(entries));
        }

        #[test]
        fn garbage_unpacks_to_something_or_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = (unpack(&bytes), unpack_first(&bytes));
        }
    }
}
