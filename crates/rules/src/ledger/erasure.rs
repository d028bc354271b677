//! The erasure of a member: what its row has in place of what named the person.
//!
//! The row stays under the member's id, because the ledger refers to it. While rows that name the person are left, the row keeps
//! the player and its handle. So no other member can get the name and inherit scores that are still to be erased. Not here: which
//! rows these are (the service).

use super::id::MemberId;
use super::member::{Handle, Login, Member};
use super::pin::Attempts;
use crate::actor::Origin;
use crate::ids::PlayerId;
use crate::instant::Micros;

/// The name of an erased member.
pub const ERASED: &str = "erased member";

/// Its name while rows that name the person are left.
pub const BEING_ERASED: &str = "member being erased";

/// The same if another member has the name of its player by now.
const RELEASED: &str = "member being erased, its player is another member's";

/// The begin of its login. A login is chosen before its member has an id, so no member has this login of its own by chance.
const LOGIN: &str = "erased:";

/// How far the ids of earlier rows may be ahead: those of a large batch are one microsecond apart, and clocks of servers differ.
const AHEAD_MICROS: i64 = 1_000_000;

/// How far a member is erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Erasure {
    /// Rows that name the person are left.
    Running,
    /// None that can be found is left.
    Done,
}

impl Erasure {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
        }
    }
}

/// The player of an erased member.
pub fn pseudonym(id: MemberId) -> PlayerId {
    PlayerId::new(&id.0.to_string()).expect("an id is a name")
}

fn login(id: MemberId) -> Login {
    Login::new(&format!("{LOGIN}{}", id.0)).expect("an id is a name")
}

impl Member {
    /// How far the member is erased, if it is.
    pub fn erasure(&self, id: MemberId) -> Option<Erasure> {
        let is_erased = self.closed_at.is_some() && self.login == login(id);
        let runs = [BEING_ERASED, RELEASED].contains(&&*self.name);
        is_erased.then_some(if runs { Erasure::Running } else { Erasure::Done })
    }

    /// Whether what has the name of its player is its own, and not of another member that got the name after the closing.
    pub fn owns_player(&self) -> bool {
        &*self.name != RELEASED
    }

    /// The handle that a closed member keeps while it is being erased.
    pub(super) fn kept_handle(&self) -> Option<Handle> {
        let is_running = &*self.name == BEING_ERASED && self.login.as_str().starts_with(LOGIN);
        is_running.then(|| Handle::Player(self.player.clone()))
    }

    /// The member as its erasure begins. It keeps the name of its player, to find the rows that have it.
    #[must_use]
    pub fn erase(&self, id: MemberId, owns_player: bool, now: Micros) -> Self {
        Self {
            login: login(id),
            phone: None,
            player: self.player.clone(),
            name: if owns_player { BEING_ERASED } else { RELEASED }.into(),
            password: None,
            pin: None,
            attempts: Attempts::default(),
            // Tokens have ended. From here on the instant says which rows of money are from before the erasure.
            tokens_from: now.max(self.tokens_from.plus(1)).plus(AHEAD_MICROS),
            closed_at: self.closed_at.or(Some(now)),
        }
    }

    /// The member once nothing that can be found names the person.
    #[must_use]
    pub fn erased(&self, id: MemberId) -> Self {
        Self { player: pseudonym(id), name: ERASED.into(), ..self.clone() }
    }

    /// Whether a row of this instant is from before the erasure of an erased member.
    pub fn is_before_erasure(&self, at: Micros) -> bool {
        at < self.tokens_from
    }
}

impl Origin {
    /// Whether it has words of a caller.
    pub fn has_words(&self) -> bool {
        self.reason.is_some() || self.metadata.is_some()
    }

    /// The origin without the words of the caller.
    #[must_use]
    pub fn without_words(&self) -> Self {
        self.actor.into()
    }
}

/// The detail of an act that lists players, such as `2 players: ann, bob`, with another name for one of them; `None` if it is
/// not listed.
pub fn renamed_in_list(detail: &str, player: &str, other: &str) -> Option<String> {
    const BETWEEN: &str = ", ";
    let (head, names) = detail.split_once(": ")?;
    let (count, word) = head.split_once(' ')?;
    if count.parse::<usize>().is_err() || !matches!(word, "player" | "players") {
        return None;
    }
    let is_whole = |at: &usize| {
        let (before, after) = (&names[..*at], &names[at + player.len()..]);
        (before.is_empty() || before.ends_with(BETWEEN)) && (after.is_empty() || after.starts_with(BETWEEN))
    };
    let at = names.match_indices(player).map(|(at, _)| at).find(is_whole)?;
    Some(format!("{head}: {}{other}{}", &names[..at], &names[at + player.len()..]))
}

/// Whether the detail of an act lists a player.
pub fn lists(detail: &str, player: &str) -> bool {
    renamed_in_list(detail, player, "").is_some()
}

#[cfg(test)]
mod tests {
    use super::super::id::Uuid;
    use super::super::member::{Phone, Pin};
    use super::*;

    fn ann() -> Member {
        Member {
            login: Login::new("ann@example.org").unwrap(),
            phone: Some(Phone::parse("010-1234", None).unwrap()),
            player: PlayerId::new("ann").unwrap(),
            name: "Ann".into(),
            password: Some("digest".into()),
            pin: Some(Pin { mac: [1; 32], digits: 4, secret: 0 }),
            attempts: Attempts { wrong: 3, locked_until: Some(Micros(5)) },
            tokens_from: Micros(7),
            closed_at: None,
        }
    }

    #[test]
    fn nothing_of_the_person_is_left_and_the_row_says_how_far_it_is() {
        let (id, ann) = (MemberId(Uuid([7; 16])), ann());
        assert_eq!(ann.erasure(id), None);
        let closed = Member { closed_at: Some(Micros(8)), ..ann.clone() };
        assert_eq!(closed.erasure(id), None);
        for before in [ann, closed] {
            let running = before.erase(id, true, Micros(9));
            assert_eq!(running.erasure(id), Some(Erasure::Running));
            assert_eq!(running.handles(id), [Handle::Player(before.player.clone())]);
            assert_eq!(running.closed_at, before.closed_at.or(Some(Micros(9))));
            let done = running.erased(id);
            assert_eq!((done.erasure(id), done.handles(id)), (Some(Erasure::Done), vec![]));
            for member in [&running, &done] {
                let text = format!("{member:?}");
                let words = ["Ann", "ann@", "0101234", "digest"];
                assert!(words.iter().all(|word| !text.contains(word)), "{text}");
                assert_eq!((member.pin, member.attempts), (None, Attempts::default()));
            }
            assert!(!format!("{done:?}").contains("ann"));
            let from = Micros(9).plus(AHEAD_MICROS);
            assert!(done.is_before_erasure(from.plus(-1)) && !done.is_before_erasure(from));
            // A name that another member has by now is no handle.
            let other = before.erase(id, false, Micros(9));
            assert_eq!((other.erasure(id), other.handles(id)), (Some(Erasure::Running), vec![]));
            assert!(running.owns_player() && done.owns_player() && !other.owns_player());
            assert_eq!(other.erased(id), done);
            // With another id it is a member with a strange login.
            assert_eq!(done.erasure(MemberId(Uuid([8; 16]))), None);
        }
    }

    #[test]
    fn a_player_is_renamed_in_a_list_as_a_whole() {
        let row = |detail, player| renamed_in_list(detail, player, "X");
        assert_eq!(row("1 player: ann", "ann").as_deref(), Some("1 player: X"));
        assert_eq!(row("3 players: joann, ann, anna", "ann").as_deref(), Some("3 players: joann, X, anna"));
        assert_eq!(row("2 players: a, b, c", "b, c").as_deref(), Some("2 players: a, X"));
        assert_eq!(row("2 players: bob, joann", "ann"), None);
        assert_eq!(row("contest:cup: 9 to 3", "9 to 3"), None);
        assert_eq!(row("force", "force"), None);
    }
}
