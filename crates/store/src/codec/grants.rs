//! What a key was made with, in columns: its role, and the whole beside it if there is more than the role.
//!
//! A key with scopes has the role `reader` in its row, which is the least that it may do.

use tally_rules::{Grant, Rights};

/// The column `granted`; a key with a role and without caps has none.
pub(crate) fn granted(grant: &Grant) -> Option<String> {
    let is_plain = matches!(grant.rights, Rights::Role(_)) && grant.mint_caps.is_empty();
    (!is_plain).then(|| grant.to_string())
}
