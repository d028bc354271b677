//! Cursors: the end of a page, as text that is opaque to clients.
//!
//! A cursor contains the key of the last entry, so the next page begins after that key even if entries have moved.
//! It is not signed: a forged one reads only what the caller may read. It contains its list, so a cursor of another
//! board, window or direction is refused instead of giving a wrong page.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tally_rules::ledger::WalletKey;
use tally_rules::{Micros, PlayerId, Record};

/// The end of a page of scores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScoreCursor {
    /// A digest of the list: board, window, direction.
    pub list: u64,
    /// The last entry's record.
    pub record: Record,
    /// The last entry's player.
    pub player: PlayerId,
}

const SCORES: u8 = 1;
const HISTORY: u8 = 5;

/// Lists whose cursors are names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Names {
    /// Leaderboards.
    Leaderboards = 2,
    /// API keys.
    Keys = 3,
    /// Periods of a board.
    Periods = 4,
    /// Boards that rank a player.
    Ranks = 20,
    /// Contests.
    Contests = 21,
    /// Applications to a contest.
    Applications = 22,
    /// Members of a contest.
    Entrants = 23,
    /// Prizes of a contest.
    Prizes = 24,
    /// Fees that a contest has refunded.
    Refunds = 25,
    /// Series of contests.
    Series = 26,
    /// Prizes of a period of a board.
    PeriodPrizes = 27,
    /// Unpaid prizes and fees.
    Owed = 28,
    /// The audit log.
    Audit = 29,
    /// Transfers.
    Transactions = 30,
    /// Holds.
    Holds = 31,
    /// Deliveries of a webhook.
    Deliveries = 32,
    /// Banned players of a board.
    Bans = 33,
    /// Members.
    Members = 34,
}

impl ScoreCursor {
    /// The text.
    pub fn encode(&self) -> String {
        let mut bytes = vec![SCORES];
        bytes.extend_from_slice(&self.list.to_le_bytes());
        for number in [self.record.score, self.record.subscore, self.record.at.0] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(self.player.as_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads the text; `None` if it is not a cursor of this list.
    pub fn decode(text: &str, list: u64) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (head, player) = bytes.split_at_checked(33)?;
        let number = |at: usize| i64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes"));
        if head[0] != SCORES || number(1).cast_unsigned() != list {
            return None;
        }
        let record = Record { score: number(9), subscore: number(17), at: Micros(number(25)) };
        let player = PlayerId::new(std::str::from_utf8(player).ok()?).ok()?;
        Some(Self { list, record, player })
    }
}

/// The cursor of a wallet's history: the number of the last entry shown.
pub fn encode_history(wallet: WalletKey, last: u64) -> String {
    let (member, currency) = (wallet.member.0.0, wallet.currency.bytes());
    URL_SAFE_NO_PAD.encode([&[HISTORY][..], &member, &currency, &last.to_le_bytes()].concat())
}

/// Reads the cursor of this wallet's history.
pub fn decode_history(wallet: WalletKey, text: &str) -> Option<u64> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let last = u64::from_le_bytes(*bytes.last_chunk()?);
    (encode_history(wallet, last) == text).then_some(last)
}

/// The cursor of a list of names.
pub fn encode_name(list: Names, name: &str) -> String {
    let mut bytes = vec![list as u8];
    bytes.extend_from_slice(name.as_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads the cursor of a list of names.
pub fn decode_name(list: Names, text: &str) -> Option<String> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (kind, name) = bytes.split_first()?;
    if *kind != list as u8 || name.is_empty() {
        return None;
    }
    String::from_utf8(name.to_vec()).ok()
}

/// The cursor of one of several lists of the same kind. `of` names the list, and ends at the first `/`.
pub fn encode_name_of(list: Names, of: &str, name: &str) -> String {
    encode_name(list, &format!("{of}/{name}"))
}

/// Reads the cursor of that list.
pub fn decode_name_of(list: Names, of: &str, text: &str) -> Option<String> {
    let name = decode_name(list, text)?;
    Some(name.strip_prefix(of)?.strip_prefix('/')?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tally_rules::ledger::{Currency, MemberId, Uuid};

    proptest! {
        #[test]
        fn a_cursor_reads_back_for_its_own_list_only(
            score in any::<i64>(), at in any::<i64>(), player in "\\PC{1,30}", list in any::<u64>()
        ) {
            prop_assume!(PlayerId::new(&player).is_ok());
            let record = Record { score, subscore: score ^ at, at: Micros(at) };
            let cursor = ScoreCursor { list, record, player: PlayerId::new(&player).unwrap() };
            let text = cursor.encode();
            prop_assert_eq!(ScoreCursor::decode(&text, list), Some(cursor));
            prop_assert_eq!(ScoreCursor::decode(&text, list ^ 1), None);
        }

        #[test]
        fn a_cursor_of_a_history_is_of_its_wallet_only(member in any::<[u8; 16]>(), last in any::<u64>()) {
            let wallet = |byte: u8, currency| {
                let member = MemberId(Uuid(member.map(|one| one ^ byte)));
                WalletKey { member, currency: Currency::parse(currency).unwrap() }
            };
            let text = encode_history(wallet(0, "KRW"), last);
            prop_assert_eq!(decode_history(wallet(0, "KRW"), &text), Some(last));
            prop_assert_eq!(decode_history(wallet(1, "KRW"), &text), None);
            prop_assert_eq!(decode_history(wallet(0, "USD"), &text), None);
        }

        #[test]
        fn garbage_is_refused_without_a_panic(text in "[A-Za-z0-9_-]{0,80}") {
            let _ = ScoreCursor::decode(&text, 0);
            let _ = decode_name(Names::Keys, &text);
            let wallet = WalletKey { member: MemberId(Uuid([0; 16])), currency: Currency::parse("KRW").unwrap() };
            assert_eq!(decode_history(wallet, &text), None);
        }
    }

    #[test]
    fn names_read_back_and_are_no_score_cursors() {
        let text = encode_name(Names::Leaderboards, "points");
        assert_eq!(decode_name(Names::Leaderboards, &text).as_deref(), Some("points"));
        assert_eq!(decode_name(Names::Keys, &text), None);
        assert_eq!(decode_name(Names::Keys, &encode_name(Names::Keys, "")), None);
        let text = encode_name_of(Names::Entrants, "cup", "a/b");
        assert_eq!(decode_name_of(Names::Entrants, "cup", &text).as_deref(), Some("a/b"));
        for (list, of) in [(Names::Entrants, "cu"), (Names::Entrants, "cup2"), (Names::Prizes, "cup")] {
            assert_eq!(decode_name_of(list, of, &text), None);
        }
        assert_eq!(ScoreCursor::decode(&text, 0), None);
    }
}
