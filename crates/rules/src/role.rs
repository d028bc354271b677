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
pub enum Permission {
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
pub fn may(role: Role, right: Permission) -> bool {
    match right {
        Permission::Open | Permission::Observe | Permission::Read => true,
        Permission::Write | Permission::Members | Permission::Play => role != Role::Reader,
        Permission::Administer => role == Role::Admin,
        Permission::Own => false,
    }
}

/// Whether a member who has signed in has the right.
pub fn member_may(right: Permission) -> bool {
    match right {
        Permission::Open | Permission::Read | Permission::Own | Permission::Play => true,
        Permission::Observe | Permission::Write | Permission::Members | Permission::Administer => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_may_all_that_the_next_may() {
        let rights = [
            Permission::Open,
            Permission::Observe,
            Permission::Read,
            Permission::Write,
            Permission::Members,
            Permission::Play,
            Permission::Administer,
        ];
        for right in rights {
            let may: Vec<bool> = Role::ALL.iter().map(|role| may(*role, right)).collect();
            assert!(may.is_sorted_by(|a, b| a >= b), "{right:?}: {may:?}");
        }
        assert!(!may(Role::Reader, Permission::Write));
        assert!(!may(Role::Reader, Permission::Members));
        assert!(!may(Role::Reader, Permission::Play) && member_may(Permission::Play));
        assert!(!may(Role::Server, Permission::Administer));
    }

    #[test]
    fn what_is_a_members_own_is_no_keys() {
        assert!(Role::ALL.iter().all(|role| !may(*role, Permission::Own)));
        assert!(member_may(Permission::Own) && member_may(Permission::Read));
        assert!(
            !member_may(Permission::Members)
                && !member_may(Permission::Observe)
                && !member_may(Permission::Write)
        );
    }
}
