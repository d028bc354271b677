//! Money: wallets, transfers, holds and the double entry behind them, as pure functions.
//!
//! A transfer debits one account and credits another by the same amount, so debits always equal credits ([`account`]).
//! A member has a wallet for each currency ([`wallet`]): a balance that is the sum of its entries ([`entry`]), and the
//! held amount ([`hold`]). Promotional credit is a part of the balance ([`credit`]). [`working_set`] applies [`transfer_request`]s in order to the wallets of one transaction and
//! returns the rows to write. [`reversal`] takes a transfer back. [`pin`] and [`limits`] decide who may pay, [`mint`] how much
//! money a key makes, [`member`] is the member, [`erasure`] its erasure, and [`lines`] are the
//! lines of imported files. A [`month`] is what is archived.
//!
//! Amounts are integers of the smallest unit. Every sum is checked: an overflow is refused, never rounded.
//! Not here: how passwords and PINs are compared (this crate has no digests), and storage.

pub mod account;
pub mod credit;
pub mod entry;
pub mod erasure;
pub mod hold;
pub mod id;
pub mod limits;
pub mod lines;
pub mod member;
pub mod member_name;
pub mod mint;
pub mod money;
pub mod month;
pub mod pin;
pub mod reversal;
pub mod transfer_request;
pub mod wallet;
pub mod working_set;

pub use account::Account;
pub use entry::{Entry, EntryKey, EntryKind, Transfer};
pub use erasure::Erasure;
pub use hold::Hold;
pub use id::{HoldId, MemberId, TransferId, Uuid};
pub use member::Member;
pub use member_name::NameKey;
pub use mint::{MintCap, MintKey};
pub use money::{Amount, Currencies, Currency};
pub use month::Month;
pub use reversal::{ReversalLink, ReversalRequest};
pub use transfer_request::{TransferKind, TransferRequest};
pub use wallet::{Wallet, WalletKey};
