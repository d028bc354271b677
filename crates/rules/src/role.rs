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
    /// Read boards, ranks and the service's state.
    Read,
    /// Change boards and scores.
    Write,
    /// Keys and settings.
    Administer,
}

/// Whether the role has the right.
pub fn may(role: Role, right: Right) -> bool {
    match (role, right) {
        (Role::Admin, _) | (Role::Server, Right::Read | Right::Write) | (Role::Reader, Right::Read) => true,
        (Role::Server, Right::Administer) | (Role::Reader, Right::Write | Right::Administer) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_may_all_that_the_next_may() {
        for right in [Right::Read, Right::Write, Right::Administer] {
            let may: Vec<bool> = Role::ALL.iter().map(|role| may(*role, right)).collect();
            assert!(may.is_sorted_by(|a, b| a >= b), "{right:?}: {may:?}");
        }
        assert!(!may(Role::Reader, Right::Write));
        assert!(!may(Role::Server, Right::Administer));
    }
}
