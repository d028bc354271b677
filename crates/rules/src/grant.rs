//! What an API key was made with: a role or a list of scopes, and caps of the money that it makes.
//!
//! A grant is stored as one text, such as `server` or `money:mint members:read KRW=1000000`. Not here: how much of a cap is used
//! (`ledger::mint`).

use crate::ledger::{Amount, Currency};
use crate::role::Role;
use crate::scope::{Scope, Scopes};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The most money that a key may make on one UTC day, by currency. A currency without an entry has no cap.
pub type MintCaps = Arc<BTreeMap<Currency, Amount>>;

/// The permissions of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Those of a role.
    Role(Role),
    /// Those of scopes, and reading leaderboards.
    Scopes(Scopes),
}

impl Rights {
    /// The scopes of the key.
    pub fn scopes(self) -> Scopes {
        match self {
            Self::Role(Role::Admin) => Scopes::ALL,
            Self::Role(Role::Server) => Scopes::SERVER,
            Self::Role(Role::Reader) => Scopes::NONE,
            Self::Scopes(scopes) => scopes,
        }
    }

    /// Whether the key may manage keys.
    pub fn is_admin(self) -> bool {
        self == Self::Role(Role::Admin)
    }

    /// The role of the key, or the one that may do less than its scopes.
    pub fn role(self) -> Role {
        match self {
            Self::Role(role) => role,
            Self::Scopes(_) => Role::Reader,
        }
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Role(role) => role.fmt(f),
            Self::Scopes(scopes) => {
                let names: Vec<_> = scopes.iter().map(Scope::as_str).collect();
                f.write_str(&names.join(" "))
            }
        }
    }
}

/// What a key was made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Its permissions.
    pub rights: Rights,
    /// Its caps of new money.
    pub mint_caps: MintCaps,
}

impl From<Rights> for Grant {
    fn from(rights: Rights) -> Self {
        Self { rights, mint_caps: MintCaps::default() }
    }
}

impl From<Role> for Grant {
    fn from(role: Role) -> Self {
        Rights::Role(role).into()
    }
}

impl Grant {
    /// Reads the text form.
    pub fn parse(text: &str) -> Option<Self> {
        let (mut role, mut scopes, mut caps) = (None, Vec::new(), BTreeMap::new());
        for word in text.split(' ') {
            if let Some((currency, cap)) = word.split_once('=') {
                caps.insert(Currency::parse(currency)?, Amount::new(cap.parse().ok()?).ok()?);
            } else if let Some(scope) = Scope::parse(word) {
                scopes.push(scope);
            } else if role.replace(Role::parse(word)?).is_some() {
                return None;
            }
        }
        let rights = match role {
            Some(role) if scopes.is_empty() => Rights::Role(role),
            None if !scopes.is_empty() => Rights::Scopes(scopes.into_iter().collect()),
            _ => return None,
        };
        Some(Self { rights, mint_caps: Arc::new(caps) })
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rights.fmt(f)?;
        self.mint_caps.iter().try_for_each(|(currency, cap)| write!(f, " {currency}={}", cap.units()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_grant_reads_back_from_its_text() {
        for text in [
            "admin",
            "server",
            "reader",
            "server GEM=5 KRW=1000000",
            "money:mint",
            "scores:write audit:read",
            "members:read money:mint KRW=1",
        ] {
            assert_eq!(Grant::parse(text).unwrap().to_string(), text);
        }
        for bad in [
            "",
            "KRW=1",
            "root",
            "admin server",
            "server money:mint",
            "money:mint  KRW=1",
            "money:mint KRW=0",
            "money:mint KRW",
            "money:mint krw=1",
            "money:mint KRW=x",
        ] {
            assert_eq!(Grant::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_role_of_scopes_may_read_alone() {
        assert_eq!(Rights::Scopes(Scopes::ALL).role(), Role::Reader);
        assert!(!Rights::Scopes(Scopes::ALL).is_admin());
        assert!(Rights::Role(Role::Admin).is_admin() && !Rights::Role(Role::Server).is_admin());
    }
}
