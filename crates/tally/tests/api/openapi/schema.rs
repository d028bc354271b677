//! JSON Schema 2020-12, as much of it as the document uses: whether a value is as its schema says.
//!
//! A keyword that is not known here is a panic, not a pass, so the document cannot outgrow its tests unseen. A library
//! that knows the whole language brings some forty packages; this is one file and a small one for patterns. Answers are
//! read strictly: a member that the schema does not name is wrong, though clients are free to ignore it.

use regex_lite::Regex;
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Keywords that say nothing about a value.
const SILENT: [&str; 4] = ["description", "default", "example", "deprecated"];
const INSTANT: &str = r"^[0-9]{4}-[01][0-9]-[0-3][0-9][Tt][0-2][0-9]:[0-5][0-9]:[0-6][0-9](\.[0-9]+)?([Zz]|[+-][0-2][0-9]:[0-5][0-9])$";

/// The schemas of a document.
pub(crate) struct Schemas {
    pub(crate) document: Value,
    patterns: RefCell<HashMap<String, Rc<Regex>>>,
}

/// Whether members that a schema does not name are wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unnamed {
    /// As the schema says.
    AsSaid,
    /// Wrong wherever a schema names any.
    Wrong,
}

impl Schemas {
    pub(crate) fn new(document: Value) -> Self {
        Self { document, patterns: RefCell::default() }
    }

    /// The target of a `$ref`, or the schema itself.
    pub(crate) fn resolve<'a>(&'a self, thing: &'a Value) -> &'a Value {
        match thing["$ref"].as_str() {
            Some(reference) => self.resolve(self.target(reference)),
            None => thing,
        }
    }

    fn target(&self, reference: &str) -> &Value {
        let pointer = reference.strip_prefix('#').unwrap_or_else(|| panic!("{reference} is outside"));
        self.document.pointer(pointer).unwrap_or_else(|| panic!("{reference} leads nowhere"))
    }

    /// Checks a value; returns where and why it is not as the schema says.
    pub(crate) fn check(&self, schema: &Value, value: &Value, unnamed: Unnamed) -> Result<(), String> {
        self.check_at(schema, value, unnamed, "")
    }

    fn fits(&self, schema: &Value, value: &Value, unnamed: Unnamed) -> bool {
        self.check_at(schema, value, unnamed, "").is_ok()
    }

    fn check_at(&self, schema: &Value, value: &Value, unnamed: Unnamed, at: &str) -> Result<(), String> {
        if *schema == Value::Bool(true) {
            return Ok(());
        }
        let schema = schema.as_object().unwrap_or_else(|| panic!("{schema} is no schema"));
        for (keyword, said) in schema {
            let holds = match keyword.as_str() {
                "$ref" => {
                    let target = self.target(said.as_str().expect("a reference is a text"));
                    self.check_at(target, value, unnamed, at)?;
                    true
                }
                "properties" => {
                    self.check_members(said, value, unnamed, at)?;
                    true
                }
                "items" => {
                    for (index, one) in value.as_array().into_iter().flatten().enumerate() {
                        self.check_at(said, one, unnamed, &format!("{at}/{index}"))?;
                    }
                    true
                }
                "additionalProperties" => {
                    self.check_additional(schema, said, value, unnamed, at)?;
                    true
                }
                "oneOf" => {
                    let choices = said.as_array().expect("oneOf is a list");
                    choices.iter().filter(|choice| self.fits(choice, value, unnamed)).count() == 1
                }
                "not" => !self.fits(said, value, unnamed),
                "pattern" => value.as_str().is_none_or(|text| self.pattern(said).is_match(text)),
                "format" => self.has_format(said, value),
                silent if SILENT.contains(&silent) => true,
                simple => holds(simple, said, value),
            };
            if !holds {
                let shown: String = value.to_string().chars().take(200).collect();
                return Err(format!("{at:?} is not {keyword} {said}: {shown}"));
            }
        }
        if unnamed == Unnamed::Wrong
            && schema.contains_key("type")
            && !schema.contains_key("additionalProperties")
        {
            self.check_additional(schema, &Value::Bool(false), value, unnamed, at)?;
        }
        Ok(())
    }

    fn check_members(&self, said: &Value, value: &Value, unnamed: Unnamed, at: &str) -> Result<(), String> {
        for (name, member) in value.as_object().into_iter().flatten() {
            if let Some(schema) = said.get(name) {
                self.check_at(schema, member, unnamed, &format!("{at}/{name}"))?;
            }
        }
        Ok(())
    }

    /// Members that `properties` does not name; a schema that names none leaves them free.
    fn check_additional(
        &self,
        schema: &Map<String, Value>,
        said: &Value,
        value: &Value,
        unnamed: Unnamed,
        at: &str,
    ) -> Result<(), String> {
        let named = schema.get("properties");
        if named.is_none() && *said == Value::Bool(false) {
            return Ok(());
        }
        for (name, member) in value.as_object().into_iter().flatten() {
            if named.is_some_and(|named| named.get(name).is_some()) {
                continue;
            }
            if *said == Value::Bool(false) {
                return Err(format!("{at:?} has `{name}`, which is not in the document"));
            }
            self.check_at(said, member, unnamed, &format!("{at}/{name}"))?;
        }
        Ok(())
    }

    fn has_format(&self, said: &Value, value: &Value) -> bool {
        match said.as_str() {
            Some("date-time") => {
                value.as_str().is_none_or(|text| self.pattern(&Value::from(INSTANT)).is_match(text))
            }
            // Their bounds are beside them, or are those of any number here.
            Some("int64" | "uint64" | "uri" | "binary") => true,
            _ => panic!("the format {said} is not known here"),
        }
    }

    fn pattern(&self, said: &Value) -> Rc<Regex> {
        let text = said.as_str().expect("a pattern is a text");
        let mut patterns = self.patterns.borrow_mut();
        let compile = || Rc::new(Regex::new(text).unwrap_or_else(|error| panic!("{text}: {error}")));
        Rc::clone(patterns.entry(text.to_owned()).or_insert_with(compile))
    }
}

/// Keywords that need nothing but their value.
fn holds(keyword: &str, said: &Value, value: &Value) -> bool {
    let length = |least: bool, length: Option<usize>| {
        let bound = usize::try_from(said.as_u64().expect("a bound is a number")).expect("bounds are small");
        length.is_none_or(|length| if least { length >= bound } else { length <= bound })
    };
    let chars = || value.as_str().map(|text| text.chars().count());
    let items = || value.as_array().map(Vec::len);
    match keyword {
        "type" => {
            said.as_array().map_or_else(|| is(said, value), |types| types.iter().any(|one| is(one, value)))
        }
        "enum" => said.as_array().expect("enum is a list").contains(value),
        "const" => said == value,
        "required" => {
            let names = said.as_array().expect("required is a list");
            let has = |name: &Value| value.get(name.as_str().expect("a name")).is_some();
            !value.is_object() || names.iter().all(has)
        }
        "minLength" => length(true, chars()),
        "maxLength" => length(false, chars()),
        "minItems" => length(true, items()),
        "maxItems" => length(false, items()),
        "minimum" => !value.is_number() || !less(value, said),
        "maximum" => !value.is_number() || !less(said, value),
        _ => panic!("the keyword `{keyword}` is not known here"),
    }
}

fn is(kind: &Value, value: &Value) -> bool {
    match kind.as_str().expect("a type is a text") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        // Stricter than JSON Schema, as the server is: 1.0 is no integer.
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("the type `{other}` is not known here"),
    }
}

/// Exact where both are integers.
fn less(left: &Value, right: &Value) -> bool {
    let whole = |value: &Value| value.as_i64().map(i128::from).or(value.as_u64().map(i128::from));
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => left < right,
        _ => left.as_f64() < right.as_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn accepts(schema: &Value, good: &[Value], bad: &[Value]) {
        let schemas = Schemas::new(json!({"named": {"type": "string"}}));
        for value in good {
            assert_eq!(schemas.check(schema, value, Unnamed::AsSaid), Ok(()), "{schema}");
        }
        for value in bad {
            assert!(schemas.check(schema, value, Unnamed::AsSaid).is_err(), "{schema} {value}");
        }
    }

    #[test]
    fn each_keyword_accepts_and_refuses() {
        accepts(&json!({"type": "integer"}), &[json!(1), json!(u64::MAX)], &[json!(1.5), json!("1")]);
        accepts(&json!({"type": ["number", "null"]}), &[json!(1.5), json!(null)], &[json!("1")]);
        accepts(&json!({"type": "boolean"}), &[json!(true)], &[json!(0), json!([]), json!({})]);
        accepts(
            &json!({"minimum": 1, "maximum": i64::MAX}),
            &[json!(1), json!("x")],
            &[json!(0), json!(1u64 << 63)],
        );
        accepts(
            &json!({"minLength": 2, "maxLength": 2}),
            &[json!("äö"), json!(1)],
            &[json!("a"), json!("abc")],
        );
        accepts(&json!({"minItems": 1, "maxItems": 1}), &[json!([1])], &[json!([]), json!([1, 2])]);
        accepts(&json!({"pattern": "^a+$"}), &[json!("aa")], &[json!("ab")]);
        accepts(&json!({"enum": ["a", 1]}), &[json!("a"), json!(1)], &[json!("b")]);
        accepts(&json!({"const": "a"}), &[json!("a")], &[json!("b")]);
        accepts(&json!({"not": {"const": "a"}}), &[json!("b")], &[json!("a")]);
        accepts(&json!({"$ref": "#/named", "minLength": 1}), &[json!("a")], &[json!(""), json!(1)]);
        accepts(&json!({"items": {"type": "string"}}), &[json!(["a"])], &[json!(["a", 1])]);
        accepts(&json!({"required": ["a"]}), &[json!({"a": 1}), json!(1)], &[json!({})]);
        accepts(&json!({"properties": {"a": {"type": "string"}}}), &[json!({"b": 1})], &[json!({"a": 1})]);
        accepts(
            &json!({"additionalProperties": {"type": "string"}}),
            &[json!({"b": "x"})],
            &[json!({"b": 1})],
        );
        accepts(
            &json!({"oneOf": [{"type": "string"}, {"const": "a"}]}),
            &[json!("b")],
            &[json!("a"), json!(1)],
        );
        let at = json!({"format": "date-time"});
        accepts(&at, &[json!("2026-11-21T08:20:00.5+09:00")], &[json!("2026-11-21"), json!("now")]);
    }

    #[test]
    fn unnamed_members_are_wrong_where_that_is_asked() {
        let schemas = Schemas::new(json!({}));
        let open = json!({"type": "object", "properties": {"a": true}});
        assert_eq!(schemas.check(&open, &json!({"b": 1}), Unnamed::AsSaid), Ok(()));
        assert!(schemas.check(&open, &json!({"b": 1}), Unnamed::Wrong).is_err());
        assert_eq!(schemas.check(&json!({"type": "object"}), &json!({"b": 1}), Unnamed::Wrong), Ok(()));
        let closed = json!({"type": "object", "properties": {}, "additionalProperties": false});
        assert!(schemas.check(&closed, &json!({"b": 1}), Unnamed::AsSaid).is_err());
    }

    #[test]
    #[should_panic(expected = "is not known here")]
    fn an_unknown_keyword_does_not_pass() {
        drop(Schemas::new(json!({})).check(&json!({"multipleOf": 2}), &json!(1), Unnamed::AsSaid));
    }
}
