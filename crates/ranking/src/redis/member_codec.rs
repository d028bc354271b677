//! A record as bytes that sort like the ranking.
//!
//! ```text
//! member = score · [subscore] · [instant] · player                     ties by time
//! member = score · [subscore] · player, closed · instant               ties by player
//! ```
//!
//! Every member of the sorted set has the score 0, so Redis orders by bytes alone. An i64 is eight bytes with its sign
//! flipped, inverted if the board counts backwards. The alternative puts the nearest double into the score and only the
//! rest into the member. It is six bytes shorter and readable. But counting the entries before a key then needs a
//! search among those that share a double. That search is in Lua, whose `<` on strings follows the server's locale.
//! Here every count is one `ZLEXCOUNT`, exact for all of i64, for float64 and for subscores.
//!
//! The hash has a player's bytes as the field and the rest as the value, so both together are the member. A bound is a
//! string too: whatever begins with `p` is between `p` and [`end_of_prefix`]`(p)`.
//!
//! Not here: versions, keys and connections.

use tally_rules::definition::{Definition, Order, Ties};
use tally_rules::{Micros, PlayerId, Record, order_key};

/// Bytes of an i64.
const WIDTH: usize = 8;

/// Longer than any run of `FF` after a prefix. At most subscore and instant are `FF`; then a byte below `FF` follows,
/// or nothing.
const AFTER: [u8; 17] = [0xff; 17];

/// Encodes the records of one board as members.
#[derive(Clone, Debug)]
pub(super) struct Codec {
    definition: Definition,
    timed: bool,
    score: usize,
}

impl Codec {
    pub(super) fn new(definition: &Definition) -> Self {
        let timed = matches!(definition.ties, Ties::First | Ties::Last);
        let score = if definition.has_subscore() { 2 * WIDTH } else { WIDTH };
        Self { definition: definition.clone(), timed, score }
    }

    pub(super) fn order(&self) -> Order {
        self.definition.order
    }

    /// The length of score and subscore in a member.
    pub(super) fn score_bytes(&self) -> usize {
        self.score
    }

    /// The length of a member before the player's bytes.
    pub(super) fn head_bytes(&self) -> usize {
        self.score + if self.timed { WIDTH } else { 0 }
    }

    fn tail_bytes(&self) -> usize {
        if self.timed { 0 } else { WIDTH }
    }

    /// The player's bytes in the order of the board. With ties by time they are unchanged. With ties by player each
    /// zero byte is followed by a one, and two zeros end the field. With ties by player backwards the bytes are
    /// complemented and end with `FF`, which exceeds the complement of any UTF-8 byte.
    pub(super) fn field(&self, player: &PlayerId) -> Vec<u8> {
        let bytes = player.as_bytes();
        match self.definition.ties {
            Ties::First | Ties::Last => bytes.to_vec(),
            Ties::Player => {
                let mut field = Vec::with_capacity(bytes.len() + 2);
                for byte in bytes {
                    field.push(*byte);
                    if *byte == 0 {
                        field.push(1);
                    }
                }
                field.extend([0, 0]);
                field
            }
            Ties::PlayerReversed => bytes.iter().map(|byte| 0xfe - byte).chain([0xff]).collect(),
        }
    }

    /// The player of a field; `None` if the bytes are invalid.
    pub(super) fn player(&self, field: &[u8]) -> Option<PlayerId> {
        let bytes = match self.definition.ties {
            Ties::First | Ties::Last => field.to_vec(),
            Ties::Player => {
                let mut bytes = Vec::with_capacity(field.len());
                let mut rest = field.strip_suffix(&[0, 0])?.iter();
                while let Some(byte) = rest.next() {
                    if *byte == 0 && rest.next() != Some(&1) {
                        return None;
                    }
                    bytes.push(*byte);
                }
                bytes
            }
            Ties::PlayerReversed => {
                let bytes = field.strip_suffix(&[0xff])?.iter();
                bytes.map(|byte| 0xfe_u8.checked_sub(*byte)).collect::<Option<_>>()?
            }
        };
        PlayerId::new(std::str::from_utf8(&bytes).ok()?).ok()
    }

    /// A member without the player's bytes, which follow its first [`head_bytes`](Self::head_bytes).
    pub(super) fn record_bytes(&self, record: &Record) -> Vec<u8> {
        let mut bytes = self.score_key(record);
        bytes.extend(ascending(self.instant(record.at.0)));
        bytes
    }

    /// Score and subscore alone: what shared ranks compare.
    pub(super) fn score_key(&self, record: &Record) -> Vec<u8> {
        let [score, subscore] = order_key::normal(&self.definition, record);
        let mut bytes = Vec::with_capacity(self.score + WIDTH);
        bytes.extend(ascending(score));
        if self.score > WIDTH {
            bytes.extend(ascending(subscore));
        }
        bytes
    }

    /// The score key of a member.
    pub(super) fn score_of<'a>(&self, member: &'a [u8]) -> &'a [u8] {
        &member[..self.score.min(member.len())]
    }

    /// The prefix of every member with this score, which is a value of the board.
    pub(super) fn score_prefix(&self, score: i64) -> Vec<u8> {
        ascending(order_key::directed(self.definition.order, score)).to_vec()
    }

    /// A member from its two halves; `None` if `record_bytes` has the wrong length.
    pub(super) fn join(&self, field: &[u8], record_bytes: &[u8]) -> Option<Vec<u8>> {
        let (head, tail) = record_bytes.split_at_checked(self.head_bytes())?;
        (tail.len() == self.tail_bytes()).then(|| [head, field, tail].concat())
    }

    pub(super) fn member(&self, player: &PlayerId, record: &Record) -> Vec<u8> {
        self.join(&self.field(player), &self.record_bytes(record)).expect("its own halves fit")
    }

    /// The player and record of a member; `None` if the bytes are invalid.
    pub(super) fn decode(&self, member: &[u8]) -> Option<(PlayerId, Record)> {
        let end = member.len().checked_sub(self.tail_bytes())?;
        let (body, tail) = member.split_at(end);
        let (head, field) = body.split_at_checked(self.head_bytes())?;
        let player = self.player(field)?;
        Some((player, self.record(head, tail)?))
    }

    /// The record in a hash value, which is given without its version.
    pub(super) fn record_of(&self, record_bytes: &[u8]) -> Option<Record> {
        let (head, tail) = record_bytes.split_at_checked(self.head_bytes())?;
        self.record(head, tail)
    }

    fn record(&self, head: &[u8], tail: &[u8]) -> Option<Record> {
        let (score, rest) = number(head)?;
        let (subscore, rest) = if self.score > WIDTH { number(rest)? } else { (0, rest) };
        let (at, _) = number(if self.timed { rest } else { tail })?;
        // Without a subscore its half of the normal form stays 0 in both directions.
        let (score, subscore) = order_key::from_normal(&self.definition, [score, subscore]);
        Some(Record { score, subscore, at: Micros(self.instant(at)) })
    }

    /// All members before this key are below these bytes. The instant counts only if it decides ties.
    pub(super) fn lower(&self, player: &PlayerId, record: &Record) -> Vec<u8> {
        let mut bytes = self.record_bytes(record);
        bytes.truncate(self.head_bytes());
        bytes.extend(self.field(player));
        bytes
    }

    /// All members before this key, and the key itself, are below these bytes.
    pub(super) fn upper(&self, player: &PlayerId, record: &Record) -> Vec<u8> {
        let mut bytes = self.lower(player, record);
        if self.timed {
            // The next greater string.
            bytes.push(0);
        } else {
            bytes.extend(AFTER);
        }
        bytes
    }

    /// Its own inverse.
    fn instant(&self, at: i64) -> i64 {
        if self.definition.ties == Ties::Last { !at } else { at }
    }
}

/// A bound after everything that begins with these bytes.
pub(super) fn end_of_prefix(prefix: &[u8]) -> Vec<u8> {
    [prefix, &AFTER].concat()
}

/// Bytes that sort like the numbers.
fn ascending(number: i64) -> [u8; WIDTH] {
    (number ^ i64::MIN).to_be_bytes()
}

fn number(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let (first, rest) = bytes.split_first_chunk::<WIDTH>()?;
    Some((i64::from_be_bytes(*first) ^ i64::MIN, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::select;
    use tally_rules::definition::Subscore;

    fn definitions() -> impl Strategy<Value = Definition> {
        (select(Order::ALL), select(Subscore::ALL), select(Ties::ALL))
            .prop_map(|(order, subscore, ties)| Definition { order, subscore, ties, ..Definition::default() })
    }

    /// The ends of the range, the limit of exact doubles, and few enough numbers for ties.
    fn numbers() -> impl Strategy<Value = i64> {
        let edge = 1_i64 << 53;
        prop_oneof![
            select(vec![i64::MIN, i64::MIN + 1, i64::MAX, i64::MAX - 1, -1, 0, 1]),
            select(vec![-edge - 1, -edge, -edge + 1, edge - 1, edge, edge + 1]),
            any::<i64>(),
            -2_i64..3,
        ]
    }

    fn keys() -> impl Strategy<Value = (PlayerId, Record)> {
        let id = prop_oneof!["[a\\x00\\x01\u{7f}é\u{10ffff}]{1,4}", "\\PC{1,8}"];
        let id = id.prop_filter_map("an id", |id| PlayerId::new(&id).ok());
        (id, numbers(), numbers(), numbers())
            .prop_map(|(id, score, subscore, at)| (id, Record { score, subscore, at: Micros(at) }))
    }

    /// As the board stores it.
    fn fitting(definition: &Definition, (player, record): (PlayerId, Record)) -> (PlayerId, Record) {
        let subscore = if definition.has_subscore() { record.subscore } else { 0 };
        (player, Record { subscore, ..record })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn bytes_are_in_the_order_of_the_board(definition in definitions(), a in keys(), b in keys()) {
            let (a, b) = (fitting(&definition, a), fitting(&definition, b));
            let codec = Codec::new(&definition);
            let (left, right) = (codec.member(&a.0, &a.1), codec.member(&b.0, &b.1));
            let wanted = order_key::compare(&definition, (&a.1, a.0.as_bytes()), (&b.1, b.0.as_bytes()));
            if a.0 != b.0 || codec.timed {
                prop_assert_eq!(left.cmp(&right), wanted);
            }
            // Members before a key, and members not after it.
            prop_assert_eq!(left < codec.lower(&b.0, &b.1), wanted.is_lt());
            prop_assert_eq!(left < codec.upper(&b.0, &b.1), wanted.is_le());
            // Shared ranks compare scores and subscores alone.
            let normal = |record| order_key::normal(&definition, record);
            prop_assert_eq!(
                left.as_slice() < codec.score_key(&b.1).as_slice(), normal(&a.1) < normal(&b.1));
            prop_assert_eq!(left < end_of_prefix(&codec.score_key(&b.1)), normal(&a.1) <= normal(&b.1));
            prop_assert_eq!(
                left < end_of_prefix(&codec.score_prefix(b.1.score)), normal(&a.1)[0] <= normal(&b.1)[0]);
            prop_assert_eq!(left < codec.score_prefix(b.1.score), normal(&a.1)[0] < normal(&b.1)[0]);
        }

        #[test]
        fn what_is_encoded_decodes(definition in definitions(), key in keys()) {
            let (player, record) = fitting(&definition, key);
            let codec = Codec::new(&definition);
            let (field, record_bytes) = (codec.field(&player), codec.record_bytes(&record));
            prop_assert_eq!(codec.player(&field), Some(player.clone()));
            prop_assert_eq!(codec.record_of(&record_bytes), Some(record));
            prop_assert_eq!(codec.join(&field, &record_bytes), Some(codec.member(&player, &record)));
            let member = codec.member(&player, &record);
            prop_assert_eq!(codec.score_of(&member), codec.score_key(&record));
            prop_assert_eq!(codec.decode(&member), Some((player, record)));
            // The fields that are not players begin with this byte.
            prop_assert_ne!(field[0], 0xff);
        }

        #[test]
        fn garbage_decodes_to_something_or_nothing(
            definition in definitions(), bytes in proptest::collection::vec(any::<u8>(), 0..40)
        ) {
            let codec = Codec::new(&definition);
            let _ = (codec.decode(&bytes), codec.player(&bytes), codec.record_of(&bytes));
            let _ = codec.join(b"a", &bytes);
        }
    }

    #[test]
    fn the_bytes_are_pinned() {
        let member = |ties| {
            let definition = Definition { ties, ..Definition::default() };
            let record = Record { score: 5, subscore: 0, at: Micros(1) };
            Codec::new(&definition).member(&PlayerId::new("a\0").unwrap(), &record)
        };
        let score = [0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfa];
        let at = [0x80, 0, 0, 0, 0, 0, 0, 1];
        assert_eq!(member(Ties::First), [&score[..], &at, b"a\0"].concat());
        assert_eq!(
            member(Ties::Last),
            [&score[..], &[0x7f, 255, 255, 255, 255, 255, 255, 254], b"a\0"].concat()
        );
        assert_eq!(member(Ties::Player), [&score[..], b"a\0\x01\0\0", &at].concat());
        assert_eq!(member(Ties::PlayerReversed), [&score[..], &[0x9d, 0xfe, 0xff], &at].concat());
    }
}
