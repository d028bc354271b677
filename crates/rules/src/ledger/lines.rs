//! Lines of a file that is imported: a new member, and money from one member to another.
//!
//! Whoever reads the file has seen that each field can be what it is; whether it may be is known where it is taken. Not
//! here: numbers of lines, and how far an import is.

use super::member::Login;
use super::money::Amount;
use crate::ids::PlayerId;

/// A new member as a file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberLine {
    /// What it signs in with.
    pub login: Login,
    /// The digest of its password.
    pub password_hash: Option<String>,
    /// Its PIN.
    pub pin: Option<String>,
    /// Its phone number, as people write it.
    pub phone_number: Option<String>,
    /// A name for people; the login where there is none.
    pub name: Option<String>,
    /// The player it is; its id where there is none.
    pub player: Option<PlayerId>,
    /// What is deposited at once.
    pub balance: Option<Amount>,
}

/// A transfer by the logins of the payer and the recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferLine {
    /// The login of the payer.
    pub from: Login,
    /// The login of the recipient.
    pub to: Login,
    /// How much.
    pub amount: Amount,
}
