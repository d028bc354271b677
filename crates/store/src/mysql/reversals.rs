//! The table `reversals`: the links between transfers and their reversals, by transfer.
//!
//! Not here: their bytes (`codec::reversals`).

use super::fault::damaged;
use super::row::Fields;
use super::table::Table;
use super::text::RowScript;
use crate::StoreError;
use crate::codec::reversals;
use tally_rules::ledger::{ReversalLink, TransferId, Uuid};

pub(super) struct Reversals;

impl Table for Reversals {
    const NAME: &'static str = "reversals";
    const KEY: &'static str = "id";
    const READ: &'static str = "id, body";
    const REPLACED: &'static [&'static str] = &["body"];
    const BLANK: &'static str = "''";
    type Key = TransferId;
    type Value = ReversalLink;

    fn put_key(row: &mut RowScript<'_>, id: &TransferId) {
        row.bytes(&id.0.0);
    }

    fn put(row: &mut RowScript<'_>, link: &ReversalLink) {
        row.bytes(&reversals::encode(link));
    }

    fn decode(row: &mut Fields<'_>) -> Result<(TransferId, ReversalLink), StoreError> {
        let id = TransferId(Uuid(row.fixed()?));
        let link = reversals::decode(row.bytes()?);
        Ok((id, link.ok_or_else(|| damaged("reversals", "a reversal that cannot be"))?))
    }
}
