//! Lines of an imported file: a new member, or a transfer from one member to another.
//!
//! The reader of the file has checked the form of each field; the use case checks the rules. Not here: line numbers, and the
//! progress of an import.

use super::member::Login;
use super::money::Amount;
use crate::ids::PlayerId;

/// A new member in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberLine {
    /// Its login.
    pub login: Login,
    /// The digest of its password.
    pub password_hash: Option<String>,
    /// Its PIN.
    pub pin: Option<String>,
    /// Its phone number, not normalised.
    pub phone_number: Option<String>,
    /// Its display name; the default is the login.
    pub name: Option<String>,
    /// Its player; the default is its id.
    pub player: Option<PlayerId>,
    /// The balance to deposit.
    pub balance: Option<Amount>,
}

/// A transfer by the logins of the payer and the recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferLine {
    /// The login of the payer.
    pub from: Login,
    /// The login of the recipient.
    pub to: Login,
    /// The amount.
    pub amount: Amount,
}
