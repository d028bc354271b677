//! The home shard of a player: a jump consistent hash (Lamping and Veach) of the digest of the player's id.
//!
//! The hash needs no table and spreads players evenly. A shard that is added or removed at the end of the list moves only
//! its own players: one of n, for n shards with it. Shards are added and removed only at the end. The digest is BLAKE3,
//! whose upper bits are as good as its lower ones. Databases depend on the result for an id and a count, so it never
//! changes. Not here: moving records (`reshard`).

use tally_rules::PlayerId;

/// The home shard of a player among `shards` shards.
pub(crate) fn home(player: &PlayerId, shards: usize) -> usize {
    if shards == 1 {
        return 0;
    }
    let digest = blake3::hash(player.as_bytes());
    let first = digest.as_bytes().first_chunk().expect("a digest is 32 bytes long");
    jump(u64::from_le_bytes(*first), shards)
}

fn jump(mut key: u64, shards: usize) -> usize {
    let (mut at, mut next) = (0_i64, 0_i64);
    while next < shards as i64 {
        at = next;
        key = key.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        let scale = (1_u64 << 31) as f64 / ((key >> 33) + 1) as f64;
        next = ((at + 1) as f64 * scale) as i64;
    }
    usize::try_from(at).expect("it only grows from 0")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn player(number: u32) -> PlayerId {
        PlayerId::new(&format!("player-{number}")).unwrap()
    }

    #[test]
    fn homes_are_pinned() {
        let homes = |name: &str| [2, 3, 5, 64].map(|shards| home(&PlayerId::new(name).unwrap(), shards));
        assert_eq!(homes("ann"), [1, 2, 2, 46]);
        assert_eq!(homes("Zoë"), [0, 2, 2, 37]);
        assert_eq!(homes("0"), [0, 0, 4, 51]);
        // The results of other implementations.
        for (key, shards, wanted) in [(1, 1, 0), (42, 57, 43), (0xdead_10cc, 666, 361), (256, 1024, 520)] {
            assert_eq!(jump(key, shards), wanted);
        }
    }

    #[test]
    fn shards_have_as_many_players() {
        for shards in 1..8 {
            let mut counts = vec![0_u32; shards];
            (0..20_000).for_each(|number| counts[home(&player(number), shards)] += 1);
            let even = 20_000 / shards as u32;
            assert!(counts.iter().all(|count| count.abs_diff(even) < even / 10 + 1), "{counts:?}");
        }
    }

    #[test]
    fn another_shard_takes_from_all_and_nothing_moves_between_the_others() {
        for shards in 1..8 {
            let moved = (0..20_000).map(player).filter(|player| {
                let (before, after) = (home(player, shards), home(player, shards + 1));
                assert!(after == before || after == shards, "{player:?} moves from {before} to {after}");
                before != after
            });
            let wanted = 20_000 / (shards + 1);
            assert!(moved.count().abs_diff(wanted) < wanted / 10);
        }
    }
}
