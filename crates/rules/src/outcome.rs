//! The outcome of a request, and the bytes in which it is stored for retries.
//!
//! Ranks are not part of it: a replay renders the same outcome with the current ranks. The first byte is the format. A
//! test pins the numbers, because later versions must read files that are written today.

use crate::contest::application::{Application, Status};
use crate::definition::ScoreType;
use crate::instant::Micros;
use crate::ledger::entry::EntryKey;
use crate::ledger::{Currency, HoldId, MemberId, Uuid, WalletKey};
use crate::record::Record;

/// The outcome of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A submit was accepted.
    Submitted {
        /// The player's record after it.
        record: Record,
        /// The record before it.
        previous: Option<Record>,
        /// Whether it changed the record.
        changed: bool,
        /// The board's type of score: the outcome outlives the board.
        score: ScoreType,
        /// Whether the board has a subscore.
        subscore: bool,
    },
    /// Something was deleted or removed.
    Removed,
    /// A board was put.
    BoardPut {
        /// It did not exist before.
        created: bool,
    },
    /// A profile was put.
    ProfilePut {
        /// It did not exist before.
        created: bool,
    },
    /// An API key was created. The outcome does not contain its secret.
    KeyCreated,
    /// A transfer was made. Entries are immutable, so the key of its entry is enough.
    Posted(EntryKey),
    /// A hold was placed.
    HoldPlaced(HoldId),
    /// A hold ended. It ends once, so the hold says how.
    HoldEnded(HoldId),
    /// A member was created.
    MemberMade(MemberId),
    /// A contest was changed, or prizes of a period were paid again; a replay shows the current state.
    ContestChanged,
    /// A player applied.
    Applied(Application),
    /// A webhook was made or changed; a replay shows its current state.
    WebhookChanged,
}

const SUBMITTED: u8 = 1;
/// Bits of the second byte of a submit.
const CHANGED: u8 = 1;
const FLOAT64: u8 = 2;
const SUBSCORE: u8 = 4;
const REMOVED: u8 = 2;
const BOARD_PUT: u8 = 3;
const KEY_CREATED: u8 = 4;
const PROFILE_PUT: u8 = 5;
const POSTED: u8 = 6;
const HOLD_PLACED: u8 = 7;
const HOLD_ENDED: u8 = 8;
const MEMBER_MADE: u8 = 9;
const CONTEST_CHANGED: u8 = 10;
const APPLIED: u8 = 11;
const ACCEPTED: u8 = 12;
const WEBHOOK_CHANGED: u8 = 13;

impl Outcome {
    /// The stored form.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Submitted { record, previous, changed, score, subscore } => {
                let float = u8::from(*score == ScoreType::Float64);
                let flags = u8::from(*changed) | (float * FLOAT64) | (u8::from(*subscore) * SUBSCORE);
                let mut bytes = vec![SUBMITTED, flags];
                put(&mut bytes, record);
                if let Some(previous) = previous {
                    put(&mut bytes, previous);
                }
                bytes
            }
            Self::Removed => vec![REMOVED],
            Self::BoardPut { created } => vec![BOARD_PUT, u8::from(*created)],
            Self::KeyCreated => vec![KEY_CREATED],
            Self::ProfilePut { created } => vec![PROFILE_PUT, u8::from(*created)],
            Self::Posted(EntryKey { wallet, sequence }) => {
                let (member, currency) = (wallet.member.0.0, wallet.currency.bytes());
                [&[POSTED][..], &member, &currency, &sequence.to_le_bytes()].concat()
            }
            Self::HoldPlaced(id) => with_id(HOLD_PLACED, id.0),
            Self::HoldEnded(id) => with_id(HOLD_ENDED, id.0),
            Self::MemberMade(id) => with_id(MEMBER_MADE, id.0),
            Self::ContestChanged => vec![CONTEST_CHANGED],
            Self::WebhookChanged => vec![WEBHOOK_CHANGED],
            Self::Applied(Application { status, place, applied_at, member, hold }) => {
                let format = if *status == Status::Accepted { ACCEPTED } else { APPLIED };
                let mut bytes = vec![format, u8::from(member.is_some()), u8::from(hold.is_some())];
                bytes.extend_from_slice(&place.to_le_bytes());
                bytes.extend_from_slice(&applied_at.0.to_le_bytes());
                let ids = member.map(|id| id.0.0).into_iter().chain(hold.map(|id| id.0.0));
                ids.for_each(|id| bytes.extend_from_slice(&id));
                bytes
            }
        }
    }

    /// Reads the stored form; `None` if the bytes are invalid.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [SUBMITTED, flags @ 0..=7, rest @ ..] => {
                let (record, rest) = take(rest)?;
                let previous = if rest.is_empty() { None } else { Some(take(rest)?) };
                let (previous, rest) = previous.map_or((None, rest), |(record, rest)| (Some(record), rest));
                let score = if flags & FLOAT64 == 0 { ScoreType::Int64 } else { ScoreType::Float64 };
                let (changed, subscore) = (flags & CHANGED != 0, flags & SUBSCORE != 0);
                rest.is_empty().then_some(Self::Submitted { record, previous, changed, score, subscore })
            }
            [REMOVED] => Some(Self::Removed),
            [BOARD_PUT, created @ (0 | 1)] => Some(Self::BoardPut { created: *created == 1 }),
            [KEY_CREATED] => Some(Self::KeyCreated),
            [PROFILE_PUT, created @ (0 | 1)] => Some(Self::ProfilePut { created: *created == 1 }),
            [POSTED, rest @ ..] => {
                let (member, rest) = rest.split_first_chunk()?;
                let (currency, sequence) = rest.split_first_chunk()?;
                let (member, currency) = (MemberId(Uuid(*member)), Currency::of_bytes(*currency)?);
                let sequence = u64::from_le_bytes(sequence.try_into().ok()?);
                Some(Self::Posted(EntryKey { wallet: WalletKey { member, currency }, sequence }))
            }
            [HOLD_PLACED, id @ ..] => Some(Self::HoldPlaced(HoldId(Uuid(id.try_into().ok()?)))),
            [HOLD_ENDED, id @ ..] => Some(Self::HoldEnded(HoldId(Uuid(id.try_into().ok()?)))),
            [CONTEST_CHANGED] => Some(Self::ContestChanged),
            [WEBHOOK_CHANGED] => Some(Self::WebhookChanged),
            [format @ (APPLIED | ACCEPTED), has_member @ (0 | 1), has_hold @ (0 | 1), rest @ ..] => {
                let (place, rest) = rest.split_first_chunk()?;
                let (at, rest) = rest.split_first_chunk()?;
                let (ids, after) = rest.as_chunks::<16>();
                let mut ids = ids.iter().map(|id| Uuid(*id));
                let mut id = |there: &u8| if *there == 1 { ids.next().map(Some) } else { Some(None) };
                let (member, hold) = (id(has_member)?.map(MemberId), id(has_hold)?.map(HoldId));
                let (place, applied_at) = (u64::from_le_bytes(*place), Micros(i64::from_le_bytes(*at)));
                let status = if *format == ACCEPTED { Status::Accepted } else { Status::Pending };
                let application = Application { status, place, applied_at, member, hold };
                (after.is_empty() && ids.next().is_none()).then_some(Self::Applied(application))
            }
            [MEMBER_MADE, id @ ..] => Some(Self::MemberMade(MemberId(Uuid(id.try_into().ok()?)))),
            _ => None,
        }
    }
}

fn with_id(format: u8, id: Uuid) -> Vec<u8> {
    [&[format][..], &id.0].concat()
}

fn put(bytes: &mut Vec<u8>, record: &Record) {
    for number in [record.score, record.subscore, record.at.0] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
}

fn take(bytes: &[u8]) -> Option<(Record, &[u8])> {
    let (record, rest) = bytes.split_at_checked(24)?;
    let number = |at: usize| i64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes"));
    Some((Record { score: number(0), subscore: number(8), at: Micros(number(16)) }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_stored_numbers_are_pinned() {
        assert_eq!(Outcome::Removed.encode(), [2]);
        assert_eq!(Outcome::BoardPut { created: true }.encode(), [3, 1]);
        assert_eq!(Outcome::KeyCreated.encode(), [4]);
        assert_eq!(Outcome::ProfilePut { created: false }.encode(), [5, 0]);
        let id = Uuid([9; 16]);
        let wallet = WalletKey { member: MemberId(id), currency: Currency::parse("KRW").unwrap() };
        let posted = Outcome::Posted(EntryKey { wallet, sequence: 258 });
        let bytes = posted.encode();
        assert_eq!(bytes[..17], [[6].as_slice(), &[9; 16]].concat());
        assert_eq!(bytes[17..], *b"KRW\0\0\0\0\0\x02\x01\0\0\0\0\0\0");
        assert_eq!(Outcome::decode(&bytes), Some(posted));
        let others = [
            (Outcome::HoldPlaced(HoldId(id)), 7),
            (Outcome::HoldEnded(HoldId(id)), 8),
            (Outcome::MemberMade(MemberId(id)), 9),
        ];
        for (outcome, number) in others {
            assert_eq!(outcome.encode(), [[number].as_slice(), &[9; 16]].concat());
            assert_eq!(Outcome::decode(&outcome.encode()), Some(outcome));
        }
        assert_eq!(Outcome::ContestChanged.encode(), [10]);
        assert_eq!(Outcome::WebhookChanged.encode(), [13]);
        assert_eq!(Outcome::decode(&[13]), Some(Outcome::WebhookChanged));
        for (member, hold) in
            [(None, None), (Some(MemberId(id)), None), (Some(MemberId(id)), Some(HoldId(id)))]
        {
            for (status, number) in [(Status::Pending, 11), (Status::Accepted, 12)] {
                let (place, applied_at) = (7, Micros(-1));
                let applied = Outcome::Applied(Application { status, place, applied_at, member, hold });
                assert_eq!(
                    applied.encode()[..4],
                    [number, member.is_some().into(), hold.is_some().into(), 7]
                );
                assert_eq!(Outcome::decode(&applied.encode()), Some(applied));
            }
        }
        let record = Record { score: 1, subscore: 2, at: Micros(3) };
        let (score, subscore) = (ScoreType::Float64, true);
        let encoded = Outcome::Submitted { record, previous: None, changed: true, score, subscore }.encode();
        assert_eq!(encoded[..3], [1, 7, 1]);
        assert_eq!((encoded[10], encoded[18], encoded.len()), (2, 3, 26));
    }

    fn any_record() -> impl Strategy<Value = Record> {
        any::<(i64, i64, i64)>().prop_map(|(score, subscore, at)| Record { score, subscore, at: Micros(at) })
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            record in any_record(), previous in proptest::option::of(any_record()), changed in any::<bool>()
        ) {
            let (score, subscore) = (ScoreType::Int64, changed);
            let outcome = Outcome::Submitted { record, previous, changed, score, subscore };
            prop_assert_eq!(Outcome::decode(&outcome.encode()), Some(outcome));
        }

        #[test]
        fn other_bytes_are_nothing_or_read_back_to_themselves(bytes in proptest::collection::vec(0u8..5, 0..60)) {
            if let Some(outcome) = Outcome::decode(&bytes) {
                prop_assert_eq!(outcome.encode(), bytes);
            }
        }
    }
}
