//! The idempotency key of a row of a batch, which has an older name beside the present one.
//!
//! Not here: the key of a row without one, which is that of its request with the number of the row.

use crate::api::scores::read_key;
use crate::fields::{Fields, text};
use serde_json::Value;
use tally_rules::idempotency::KEY_BYTES_MAX;

/// The names of the idempotency key of a row of a batch: the present and the older one.
const NAMES: [&str; 2] = ["idempotency_key", "id"];

/// Takes the idempotency key of a row of a batch, under either name.
pub(super) fn take_row_key(fields: &mut Fields) -> Option<String> {
    let [present, older] = NAMES.map(|name| fields.optional(name, |value| read_key(&text(value)?)));
    if present.is_some() && older.is_some() && present != older {
        fields.wrong(
            "id",
            "is the older name of `idempotency_key` and has another value; send `idempotency_key` alone",
        );
    }
    present.or(older)
}

/// The idempotency key that a row of a batch sent, for its answer: if it is text, and cut at the length of a key.
pub fn sent_row_key(row: &Value) -> Option<String> {
    let key = NAMES.into_iter().find_map(|name| row.get(name)?.as_str())?;
    Some(key.chars().take(KEY_BYTES_MAX).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::scores::read_row;
    use serde_json::json;

    #[test]
    fn a_row_has_its_key_under_either_name() {
        let row = |keys: &[(&str, &str)]| {
            let mut row = json!({"board": "b", "player": "p", "score": 1});
            keys.iter().for_each(|(name, key)| row[*name] = json!(key));
            row
        };
        let (new, old) = (("idempotency_key", "k"), ("id", "k"));
        for keys in [&[new][..], &[old], &[new, old]] {
            assert_eq!(read_row(row(keys)).unwrap().id.as_deref(), Some("k"));
            assert_eq!(sent_row_key(&row(keys)).as_deref(), Some("k"));
        }
        assert_eq!((read_row(row(&[])).unwrap().id, sent_row_key(&row(&[]))), (None, None));
        let errors = read_row(row(&[new, ("id", "other")])).unwrap_err();
        assert_eq!(errors.iter().map(|error| &*error.pointer).collect::<Vec<_>>(), ["/id"]);
        assert_eq!(sent_row_key(&json!({"idempotency_key": 1, "id": "x".repeat(300)})).unwrap().len(), 255);
    }
}
