//! The roles of API keys, and the permissions that operations require.

use crate::grant::Rights;
use crate::named;
use crate::scope::Scope;

named! {
    /// The role of an API key.
    pub enum Role { /// All permissions.
        Admin = "admin", /// A game server: scores, boards, members, money, contests.
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
    /// A key with this scope.
    Scope(Scope),
    /// Read and change what belongs to the caller, a member.
    Own,
    /// Take part in a contest, or manage one. The state machine of the contest decides each action.
    Play,
    /// Manage API keys and settings.
    Administer,
}

impl Permission {
    /// The scope that gives a key this permission, if one does.
    pub fn scope(self) -> Option<Scope> {
        match self {
            Self::Scope(scope) => Some(scope),
            Self::Play => Some(Scope::ContestsManage),
            Self::Open | Self::Observe | Self::Read | Self::Own | Self::Administer => None,
        }
    }
}

/// Whether an API key with these rights has the permission. A key is not a member, so it never has `Own`.
pub fn may(rights: Rights, permission: Permission) -> bool {
    match permission {
        Permission::Open | Permission::Observe | Permission::Read => true,
        Permission::Administer => rights.is_admin(),
        Permission::Own => false,
        Permission::Scope(_) | Permission::Play => {
            permission.scope().is_some_and(|scope| rights.scopes().contains(scope))
        }
    }
}

/// Whether a signed-in member has the permission.
pub fn member_may(permission: Permission) -> bool {
    match permission {
        Permission::Open | Permission::Read | Permission::Own | Permission::Play => true,
        Permission::Observe | Permission::Scope(_) | Permission::Administer => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scope::Scopes;

    fn all() -> Vec<Permission> {
        let scopes = Scope::ALL.iter().copied().map(Permission::Scope);
        use Permission::{Administer, Observe, Open, Play, Read};
        scopes.chain([Open, Observe, Read, Play, Administer]).collect()
    }

    #[test]
    fn each_role_may_all_that_the_next_may() {
        for permission in all() {
            let may: Vec<bool> = Role::ALL.iter().map(|role| may(Rights::Role(*role), permission)).collect();
            assert!(may.is_sorted_by(|a, b| a >= b), "{permission:?}: {may:?}");
            assert!(may[0], "an admin has {permission:?}");
        }
        let may = |role, permission| may(Rights::Role(role), permission);
        assert!(!may(Role::Reader, Permission::Scope(Scope::ScoresWrite)));
        assert!(!may(Role::Reader, Permission::Play) && member_may(Permission::Play));
        assert!(
            may(Role::Server, Permission::Scope(Scope::MoneyMint)) && may(Role::Server, Permission::Play)
        );
        assert!(!may(Role::Server, Permission::Administer));
    }

    #[test]
    fn a_scope_gives_its_permission_and_no_other() {
        for scope in Scope::ALL {
            let rights = Rights::Scopes([*scope].into_iter().collect());
            for permission in all() {
                let reads = matches!(permission, Permission::Open | Permission::Observe | Permission::Read);
                let wanted = reads || permission.scope() == Some(*scope);
                assert_eq!(may(rights, permission), wanted, "{scope} at {permission:?}");
            }
        }
        assert!(!may(Rights::Scopes(Scopes::ALL), Permission::Administer));
    }

    #[test]
    fn what_is_a_members_own_is_no_keys() {
        assert!(Role::ALL.iter().all(|role| !may(Rights::Role(*role), Permission::Own)));
        assert!(member_may(Permission::Own) && member_may(Permission::Read));
        assert!(!member_may(Permission::Observe) && !member_may(Permission::Administer));
        assert!(Scope::ALL.iter().all(|scope| !member_may(Permission::Scope(*scope))));
    }
}
