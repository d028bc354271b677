//! The reason of an administrative act: a field of its body, or a parameter of a request without one.
//!
//! It is taken before the body is read, so each act reads its own fields only. It has the limits of the reason of a transfer.

use super::wallets::read_reason;
use crate::Query;
use crate::fields::{FieldError, Fields};
use serde_json::Value;
use std::sync::Arc;

/// The name of the field and of the parameter.
const REASON: &str = "reason";

/// Takes the reason from a body; a body that is no object is refused by its own reader.
pub fn take_reason(body: &mut Value) -> Result<Option<Arc<str>>, Vec<FieldError>> {
    let given = body.as_object_mut().and_then(|object| object.remove(REASON));
    let wrong = |detail: &'static str| vec![FieldError::invalid("/reason", detail)];
    given.map(|value| read_reason(&value).map_err(wrong)).transpose()
}

/// Reads the body of an act that needs none, from which the reason was taken: nothing is left.
pub fn read_rest(body: Option<Value>) -> Result<(), Vec<FieldError>> {
    body.map_or(Ok(()), |body| Fields::new("", body)?.finish())
}

/// Takes the reason from the query.
pub fn query_reason(query: &mut Query) -> Option<Arc<str>> {
    let reason = query.text(REASON).map(|text| read_reason(&text.into()))?;
    reason.map_err(|detail| query.wrong(REASON, detail)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_reason_leaves_its_body_and_has_a_limit() {
        let mut body = json!({"reason": "why", "name": "x"});
        assert_eq!(take_reason(&mut body), Ok(Some("why".into())));
        assert_eq!(body, json!({"name": "x"}));
        assert_eq!(take_reason(&mut body), Ok(None));
        assert_eq!(take_reason(&mut json!(1)), Ok(None));
        for bad in [json!(1), json!(null), json!("x".repeat(256))] {
            assert_eq!(take_reason(&mut json!({"reason": bad})).unwrap_err()[0].pointer, "/reason");
        }
        let longest = "x".repeat(255);
        assert_eq!(take_reason(&mut json!({"reason": &longest})), Ok(Some(longest.as_str().into())));
    }

    #[test]
    fn a_reason_in_the_query_has_the_same_limit() {
        let mut query = Query::parse("reason=a+b&force=true");
        assert_eq!(query_reason(&mut query).as_deref(), Some("a b"));
        assert!(query.flag("force"));
        assert_eq!(query.finish(), Ok(()));
        assert_eq!(query_reason(&mut Query::default()), None);
        let mut query = Query::parse(&format!("reason={}", "x".repeat(256)));
        assert_eq!(query_reason(&mut query), None);
        assert_eq!(query.finish().unwrap_err()[0].pointer, "reason");
    }
}
