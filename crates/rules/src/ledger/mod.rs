//! Money: wallets, transfers, holds and the double entry behind them, as pure functions.
//!
//! A movement of money debits one account and credits another by the same amount, so debits equal credits whatever is
//! done ([`account`]). What a member has is a wallet per currency ([`wallet`]): a balance that is the sum of its entries
//! ([`entry`]) and what is held of it ([`hold`]). [`working_set`] applies [`transfer_request`]s in turn to the wallets of
//! one transaction and returns what is to be written. [`pin`] and [`limits`] decide who may pay, [`member`] says who a member is.
//! [`lines`] are what files say of both.
//!
//! Amounts are integers of the smallest unit and every sum is checked: what does not fit is refused, never rounded.
//! Not here: how passwords and PINs are compared (this crate has no digests), and where rows are kept.

pub mod account;
pub mod entry;
pub mod hold;
pub mod id;
pub mod limits;
pub mod lines;
pub mod member;
pub mod money;
pub mod pin;
pub mod transfer_request;
pub mod wallet;
pub mod working_set;

pub use account::Account;
pub use entry::{Entry, EntryKey, Kind, Transfer};
pub use hold::Hold;
pub use id::{HoldId, MemberId, TransferId, Uuid};
pub use member::Member;
pub use money::{Amount, Currencies, Currency};
pub use transfer_request::{TransferKind, TransferRequest};
pub use wallet::{Wallet, WalletKey};
