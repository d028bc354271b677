//! Players, scores and the sequence of requests: the same for the index and for its baseline.
//!
//! Ids of 16 bytes without a pattern, uniform scores, stamps of a season in microseconds: the worst case for caches.

use std::hash::{DefaultHasher, Hash, Hasher};
use tally_index::Entry;
use tally_load::Random;

/// A player's name.
pub(crate) type Id = [u8; 16];

/// Scores are below this.
const SCORE_END: u64 = 1_000_000_000;
/// Ninety days.
const SEASON_MICROS: u64 = 90 * 86_400 * 1_000_000;
const SEASON_BEGIN: i64 = 1_700_000_000_000_000;

/// The name of a player: 16 hexadecimal digits, different for every number.
pub(crate) fn id(number: u64) -> Id {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mixed = Random::new(number).draw();
    std::array::from_fn(|at| DIGITS[(mixed >> (4 * at)) as usize & 15])
}

/// A random entry.
pub(super) fn entry(random: &mut Random) -> Entry<i64> {
    let score = random.below(SCORE_END) as i64;
    Entry { score, stamp: SEASON_BEGIN + random.below(SEASON_MICROS) as i64 }
}

/// Every player once, with a score.
pub(super) fn all(members: u64, seed: u64) -> impl Iterator<Item = (Id, Entry<i64>)> {
    let mut random = Random::new(seed);
    (0..members).map(move |number| (id(number), entry(&mut random)))
}

/// Random changes of random players.
pub(super) fn changes(members: u64, count: usize, random: &mut Random) -> Vec<(Id, Entry<i64>)> {
    (0..count).map(|_| (id(random.below(members)), entry(random))).collect()
}

/// Random players.
pub(super) fn some(members: u64, count: usize, random: &mut Random) -> Vec<Id> {
    (0..count).map(|_| id(random.below(members))).collect()
}

/// A hash of a ranking: equal for the same entries in the same order.
#[derive(Default)]
pub(super) struct Digest {
    hasher: DefaultHasher,
    last: Option<(i64, i64, Vec<u8>)>,
    pub(super) count: u64,
    pub(super) ascends: bool,
}

impl Digest {
    pub(super) fn new() -> Self {
        Self { ascends: true, ..Self::default() }
    }

    pub(super) fn add(&mut self, id: &[u8], score: i64, stamp: i64) {
        (score, stamp, id).hash(&mut self.hasher);
        let before = self.last.as_ref().is_none_or(|(s, t, i)| (*s, *t, i.as_slice()) < (score, stamp, id));
        self.ascends &= before;
        let (last_score, last_stamp, bytes) = self.last.get_or_insert_default();
        (*last_score, *last_stamp) = (score, stamp);
        bytes.clear();
        bytes.extend_from_slice(id);
        self.count += 1;
    }

    pub(super) fn hash(&self) -> u64 {
        self.hasher.finish()
    }
}
