//! Encodings that several backends store: rows and columns in bytes.
//!
//! `bytes` has numbers, texts and options. Each other file has one kind of row. The bytes of a released version are never changed, so
//! that a later version reads them; a new form gets a new number. Not here: what a single backend encodes in its own way.

pub(crate) mod archives;
pub(crate) mod audit;
pub(crate) mod boards;
mod bytes;
mod contest_extras;
pub(crate) mod contests;
pub(crate) mod credits;
pub(crate) mod events;
pub(crate) mod grants;
pub(crate) mod holds;
pub(crate) mod origins;
pub(crate) mod payments;
pub(crate) mod pins;
pub(crate) mod reversals;
pub(crate) mod series;
pub(crate) mod transfers;
pub(crate) mod webhooks;
pub(crate) mod windows;

pub(crate) use bytes::{Input, put_bytes, put_number, put_option, put_signed};
