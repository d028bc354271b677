//! Events and their topics.

use super::{Input, put_bytes, put_number, put_option, put_signed};
use crate::BoardNo;
use crate::events::Topic;
use tally_rules::Micros;
use tally_rules::contest::{ContestId, ContestState};
use tally_rules::event::{ContestChanged, EventKind, PeriodClosed, PeriodPaid};
use tally_rules::ledger::{Currency, MemberId, Uuid, WalletKey};
use tally_rules::period::TimeSpan;

const BOARD: u8 = 1;
const CONTEST: u8 = 2;
const MEMBER: u8 = 3;
const WALLET: u8 = 4;
const TRANSFERS: u8 = 5;

/// A topic as a column; the order of the bytes is that of topics.
pub(crate) fn topic_bytes(topic: Topic) -> Vec<u8> {
    match topic {
        Topic::Board(BoardNo(no)) => [&[BOARD], &no.to_be_bytes()[..]].concat(),
        Topic::Contest(no) => [&[CONTEST], &no.0[..]].concat(),
        Topic::Member(id) => [&[MEMBER], &id.0.0[..]].concat(),
        Topic::Wallet(key) => [&[WALLET], &key.member.0.0[..], &key.currency.bytes()[..]].concat(),
        Topic::Transfers => vec![TRANSFERS],
    }
}

/// Reads what [`topic_bytes`] wrote.
pub(crate) fn read_topic(bytes: &[u8]) -> Option<Topic> {
    match bytes.split_first()? {
        (&BOARD, no) => Some(Topic::Board(BoardNo(u32::from_be_bytes(no.try_into().ok()?)))),
        (&CONTEST, no) => Some(Topic::Contest(Uuid(no.try_into().ok()?))),
        (&MEMBER, id) => Some(Topic::Member(MemberId(Uuid(id.try_into().ok()?)))),
        (&WALLET, key) => {
            let (id, currency) = key.split_at_checked(16)?;
            let member = MemberId(Uuid(id.try_into().ok()?));
            Some(Topic::Wallet(WalletKey {
                member,
                currency: Currency::of_bytes(currency.try_into().ok()?)?,
            }))
        }
        (&TRANSFERS, []) => Some(Topic::Transfers),
        _ => None,
    }
}

/// The formats of the bytes below. A released one is never changed; a new one gets a new number.
const OF_CONTEST: u8 = 1;
const OF_PERIOD: u8 = 2;
/// An event of a contest with its name.
const OF_NAMED_CONTEST: u8 = 3;
const OF_CLOSED_MEMBER: u8 = 4;
const OF_PAID_PERIOD: u8 = 5;

/// Encodes an event; its time is stored beside the bytes.
pub(crate) fn encode(what: &EventKind) -> Vec<u8> {
    let mut bytes = Vec::new();
    let out = &mut bytes;
    match what {
        EventKind::Contest(ContestChanged { contest, before, state, at, members }) => {
            out.push(if contest.is_some() { OF_NAMED_CONTEST } else { OF_CONTEST });
            put_option(*before, out, |state, out| put_bytes(state.as_str().as_bytes(), out));
            put_bytes(state.as_str().as_bytes(), out);
            put_signed(at.0, out);
            put_number((*members).into(), out);
            contest.iter().for_each(|id| put_bytes(id.as_str().as_bytes(), out));
        }
        EventKind::PeriodClosed(PeriodClosed { period, name, span, total }) => {
            out.push(OF_PERIOD);
            put_bytes(period.as_bytes(), out);
            put_bytes(name.as_bytes(), out);
            put_signed(span.start.0, out);
            put_signed(span.end.0, out);
            put_number(*total, out);
        }
        EventKind::MemberClosed => out.push(OF_CLOSED_MEMBER),
        EventKind::PeriodPaid(PeriodPaid { period, prizes }) => {
            out.push(OF_PAID_PERIOD);
            put_bytes(period.as_bytes(), out);
            put_number((*prizes).into(), out);
        }
    }
    bytes
}

/// Reads what [`encode`] wrote.
pub(crate) fn decode(bytes: &[u8]) -> Option<EventKind> {
    let mut input = Input::new(bytes);
    let input = &mut input;
    let what = match input.byte()? {
        form @ (OF_CONTEST | OF_NAMED_CONTEST) => {
            let before = input.option(|input| ContestState::parse(input.text()?))?;
            let state = ContestState::parse(input.text()?)?;
            let (at, members) = (Micros(input.signed()?), input.small()?);
            let is_named = form == OF_NAMED_CONTEST;
            let contest = if is_named { Some(ContestId::new(input.text()?).ok()?) } else { None };
            EventKind::Contest(ContestChanged { contest, before, state, at, members })
        }
        OF_PERIOD => {
            let (period, name) = (input.text()?.to_owned(), input.text()?.to_owned());
            let span = TimeSpan { start: Micros(input.signed()?), end: Micros(input.signed()?) };
            EventKind::PeriodClosed(PeriodClosed { period, name, span, total: input.number()? })
        }
        OF_CLOSED_MEMBER => EventKind::MemberClosed,
        OF_PAID_PERIOD => {
            EventKind::PeriodPaid(PeriodPaid { period: input.text()?.to_owned(), prizes: input.small()? })
        }
        _ => return None,
    };
    input.is_empty().then_some(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_and_topics_read_back_and_cut_ones_are_none() {
        let span = TimeSpan { start: Micros(-1), end: Micros(i64::MAX) };
        let (period, name) = ("weekly:2026-11-16".to_owned(), "weekly".to_owned());
        let closed = EventKind::PeriodClosed(PeriodClosed { period, name, span, total: u64::MAX });
        let of = |contest: Option<&str>, before| {
            let contest = contest.map(|id| ContestId::new(id).unwrap());
            EventKind::Contest(ContestChanged {
                contest,
                before,
                state: ContestState::Open,
                at: Micros(7),
                members: 9,
            })
        };
        let changed = [of(None, None), of(None, Some(ContestState::Draft)), of(Some("cup"), None)];
        assert_eq!(encode(&changed[0]), [1, 0, 4, b'o', b'p', b'e', b'n', 14, 9]);
        assert_eq!(
            (encode(&EventKind::MemberClosed), decode(&[4])),
            (vec![4], Some(EventKind::MemberClosed))
        );
        assert_eq!(encode(&changed[2]), [3, 0, 4, b'o', b'p', b'e', b'n', 14, 9, 3, b'c', b'u', b'p']);
        let paid = EventKind::PeriodPaid(PeriodPaid { period: "weekly:2026-11-16".into(), prizes: 7 });
        for what in changed.into_iter().chain([closed, paid]) {
            let bytes = encode(&what);
            assert_eq!(decode(&bytes), Some(what));
            assert!((0..bytes.len()).all(|end| decode(&bytes[..end]).is_none()));
        }
        let wallet =
            |code| WalletKey { member: MemberId(Uuid([0; 16])), currency: Currency::parse(code).unwrap() };
        let topics = [
            Topic::Board(BoardNo(1)),
            Topic::Board(BoardNo(256)),
            Topic::Contest(Uuid([0; 16])),
            Topic::Contest(Uuid([255; 16])),
            Topic::Member(MemberId(Uuid([0; 16]))),
            Topic::Wallet(wallet("KRW")),
            Topic::Wallet(wallet("USD")),
            Topic::Transfers,
        ];
        let bytes = topics.map(topic_bytes);
        assert!(topics.is_sorted() && bytes.is_sorted());
        assert_eq!(bytes.each_ref().map(|bytes| read_topic(bytes)), topics.map(Some));
    }
}
