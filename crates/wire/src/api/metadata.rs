//! Metadata of transfers and holds: an object of the caller, which decides nothing.

use crate::fields::Fields;
use serde_json::Value;
use std::sync::Arc;
use tally_rules::Origin;
use tally_rules::ledger::entry::METADATA_BYTES_MAX;

/// Takes the metadata of a request, as JSON text.
pub(super) fn metadata(fields: &mut Fields) -> Option<Arc<str>> {
    fields.optional("metadata", |value| {
        let text = value.to_string();
        let is_one = value.is_object() && text.len() <= METADATA_BYTES_MAX;
        if is_one { Ok(text.into()) } else { Err("must be an object of at most 2048 bytes of JSON") }
    })
}

/// The metadata of an origin in a reply.
pub fn shown(origin: &Origin) -> Option<Value> {
    // It was JSON when it was stored.
    origin.metadata.as_deref().and_then(|text| serde_json::from_str(text).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn metadata_are_an_object_of_bounded_size_and_read_back() {
        let read = |value: &Value| {
            let mut fields = Fields::new("", json!({"metadata": value})).unwrap();
            let metadata = metadata(&mut fields);
            fields.finish().map(|()| shown(&Origin { metadata, ..Origin::default() }))
        };
        let of_bytes = |bytes: usize| json!({"a": "x".repeat(bytes - 8)});
        // A number keeps its digits.
        let exact: Value = serde_json::from_str("{\"n\":12345678901234567890.10}").unwrap();
        for good in [json!({}), json!({"order": {"lines": [1, "ä"]}}), exact, of_bytes(METADATA_BYTES_MAX)] {
            assert_eq!(read(&good), Ok(Some(good)));
        }
        for bad in [json!(null), json!(1), json!("{}"), json!([]), of_bytes(METADATA_BYTES_MAX + 1)] {
            assert_eq!(read(&bad).unwrap_err()[0].pointer, "/metadata");
        }
    }
}
