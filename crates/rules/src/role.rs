//! Who may do what: the roles of keys and the rights that operations ask for.

use crate::named;

named! {
    /// The role of an API key.
    pub enum Role { /// Everything.
        Admin = "admin", /// A game server: scores, boards, profiles.
        Server = "server", /// Reads boards and ranks.
        Reader = "reader" }
}

/// What an operation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// Nothing: whoever asks is not known yet.
    Open,
    /// Read the service's state.
    Observe,
    /// Read boards and ranks.
    Read,
    /// Change boards and scores.
    Write,
    /// Read and change members, wallets and the ledger.
    Members,
    /// What is the caller's own: a member's.
    Own,
    /// Take part in a contest, or run one: who may do what there is the contest's to say.
    Play,
    /// Keys and settings.
    Administer,
}

/// Whether a key of the role has the right. A key is nobody, so nothing is its own.
pub fn may(role: Role, right: Right) -> bool {
    match right {
        Right::Open | Right::Observe | Right::Read => true,
        Right::Write | Right::Members | Right::Play => role != Role::Reader,
        Right::Administer => role == Role::Admin,
        Right::Own => false,
    }
}

/// Whether a member who has signed in has the right.
pub fn member_may(right: Right) -> bool {
    match right {
        Right::Open | Right::Read | Right::Own | Right::Play => true,
        Right::Observe | Right::Write | Right::Members | Right::Administer => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_may_all_that_the_next_may() {
        let rights = [
            Right::Open,
            Right::Observe,
            Right::Read,
            Right::Write,
            Right::Members,
            Right::Play,
            Right::Administer,
        ];
        for right in rights {
            let may: Vec<bool> = Role::ALL.iter().map(|role| may(*role, right)).collect();
            assert!(may.is_sorted_by(|a, b| a >= b), "{right:?}: {may:?}");
        }
        assert!(!may(Role::Reader, Right::Write));
        assert!(!may(Role::Reader, Right::Members));
        assert!(!may(Role::Reader, Right::Play) && member_may(Right::Play));
        assert!(!may(Role::Server, Right::Administer));
    }

    #[test]
    fn what_is_a_members_own_is_no_keys() {
        assert!(Role::ALL.iter().all(|role| !may(*role, Right::Own)));
        assert!(member_may(Right::Own) && member_may(Right::Read));
        assert!(!member_may(Right::Members) && !member_may(Right::Observe) && !member_may(Right::Write));
    }
}
