//! Scopes: the single permissions of API keys. A role is a named set of them.
//!
//! Reading leaderboards, ranks and contests needs no scope. Managing keys is none either: a key that makes keys can give itself
//! all of them, so it has the role admin. Not here: which routes need which scope (the listeners).

use crate::named;

named! {
    /// One permission of an API key. The names are stored, so a released one never changes.
    pub enum Scope { /// Submit, change and remove scores; import them; profiles of players.
        ScoresWrite = "scores:write", /// Make, change and delete leaderboards; ban, restore and erase players.
        BoardsAdmin = "boards:admin", /// Read members.
        MembersRead = "members:read", /// Make, change and close members.
        MembersWrite = "members:write", /// Read wallets, transfers, holds and the ledger.
        MoneyRead = "money:read", /// Transfers between members, withdrawals, holds, reversals.
        MoneyMove = "money:move", /// Deposits, and every other source of new money.
        MoneyMint = "money:mint", /// Make, change and run contests; act for players.
        ContestsManage = "contests:manage", /// Read the audit log.
        AuditRead = "audit:read" }
}

/// A set of scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes(u16);

impl Scopes {
    /// No scope.
    pub const NONE: Self = Self(0);
    /// Every scope.
    pub const ALL: Self = Self((1 << Scope::ALL.len()) - 1);
    /// The scopes of the role server.
    pub const SERVER: Self = Self::ALL.without(Scope::AuditRead);

    const fn without(self, scope: Scope) -> Self {
        Self(self.0 & !(1 << scope as u16))
    }

    /// Whether the scope is in the set.
    pub const fn contains(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u16) != 0
    }

    /// The scopes in the set, in the order of [`Scope::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.iter().copied().filter(move |scope| self.contains(*scope))
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |set, scope| set | 1 << scope as u16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_names_and_the_scopes_of_a_server_are_pinned() {
        let server = [
            "scores:write",
            "boards:admin",
            "members:read",
            "members:write",
            "money:read",
            "money:move",
            "money:mint",
            "contests:manage",
        ];
        assert_eq!(Scopes::SERVER.iter().map(Scope::as_str).collect::<Vec<_>>(), server);
        let all: Vec<_> = Scopes::ALL.iter().map(Scope::as_str).collect();
        assert_eq!(all, [&server[..], &["audit:read"]].concat());
        assert_eq!(Scopes::NONE.iter().count(), 0);
    }

    #[test]
    fn a_set_has_what_it_is_made_of() {
        for one in Scope::ALL {
            let set: Scopes = [*one, *one].into_iter().collect();
            assert_eq!(set.iter().collect::<Vec<_>>(), [*one]);
        }
        assert_eq!(Scope::ALL.iter().copied().collect::<Scopes>(), Scopes::ALL);
    }
}
