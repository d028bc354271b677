//! The roles of API keys, and the permissions that operations require.

use crate::named;

named! {
    /// The role of an API key.
    pub enum Role { /// All permissions.
        Admin = "admin", /// A game server: scores, boards, profiles.
        Server = "server", /// Reads boards and ranks.
        Reader = "reader" }
}

/// What an operation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Needs no permission: the caller is not known yet.
    Open,
    /// Read the service's state.
    Observe,
    /// Read boards and ranks.
    Read,
    /// Change boards and scores.
    Write,
    /// Read and change members, wallets and the ledger.
    Members,
    /// Read and change what belongs to the caller, a member.
    Own,
    /// Take part in a contest, or manage one. The state machine of the contest decides each action.
    Play,
    /// Manage API keys and settings.
    Administer,
}

/// Whether an API key with the role has the permission. A key is not a member, so it never has `Own`.
pub fn may(role: Role, permission: Permission) -> bool {
    match permission {
        Permission::Open | Permission::Observe | Permission::Read => true,
        Permission::Write | Permission::Members | Permission::Play => role != Role::Reader,
        Permission::Administer => role == Role::Admin,
        Permission::Own => false,
    }
}

/// Whether a signed-in member has the permission.
pub fn member_may(permission: Permission) -> bool {
    match permission {
        Permission::Open | Permission::Read | Permission::Own | Permission::Play => true,
        Permission::Observe | Permission::Write | Permission::Members | Permission::Administer => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_may_all_that_the_next_may() {
        let permissions = [
            Permission::Open,
            Permission::Observe,
            Permission::Read,
            Permission::Write,
            Permission::Members,
            Permission::Play,
            Permission::Administer,
        ];
        for permission in permissions {
            let may: Vec<bool> = Role::ALL.iter().map(|role| may(*role, permission)).collect();
            assert!(may.is_sorted_by(|a, b| a >= b), "{permission:?}: {may:?}");
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
