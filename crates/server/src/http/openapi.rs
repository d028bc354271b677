//! The description of this API: `/openapi.json`, and `/docs`, a page that shows it and loads nothing from outside.
//!
//! The document is written by hand and not derived from the code: the code is tested against it. Tests here compare it with
//! the list of routes, and tests of the binary compare responses with its schemas. Not here: authentication, because the
//! description is no secret.

use super::response::{self, Response};
use hyper::StatusCode;
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};

const DOCUMENT: &str = include_str!("../../openapi/openapi.json");
const PAGE: &str = include_str!("../../openapi/docs.html");
const STYLE: &str = include_str!("../../openapi/docs.css");
const SCRIPT: &str = include_str!("../../openapi/docs.js");
const PARTS: &str = include_str!("../../openapi/docs_parts.js");
const TRY: &str = include_str!("../../openapi/docs_try.js");

/// The page may use only files of this server; the icon is an empty `data:` address.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// The file of the description at this path, if there is one.
pub(super) fn file(path: &str) -> Option<Response> {
    let (content_type, text) = match path {
        "/openapi.json" => ("application/json", DOCUMENT),
        "/docs" => ("text/html; charset=utf-8", PAGE),
        "/docs/docs.css" => ("text/css; charset=utf-8", STYLE),
        "/docs/docs.js" => ("text/javascript; charset=utf-8", SCRIPT),
        "/docs/docs_parts.js" => ("text/javascript; charset=utf-8", PARTS),
        "/docs/docs_try.js" => ("text/javascript; charset=utf-8", TRY),
        _ => return None,
    };
    let mut response = response::with(StatusCode::OK, content_type, text);
    let headers = response.headers_mut();
    // The next request may reach another version.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Some(response)
}

#[cfg(test)]
mod tests {
    mod reference;

    use super::*;
    use crate::http::routes::{OPEN_PATHS, ROUTES};
    use serde_json::Value;
    use std::collections::{BTreeMap, BTreeSet};
    use tally_rules::role::Permission;

    const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

    fn document() -> Value {
        serde_json::from_str(DOCUMENT).expect("the document is JSON")
    }

    /// Every operation of the document by method and path.
    fn operations(document: &Value) -> BTreeMap<(String, String), &Value> {
        let paths = document["paths"].as_object().expect("there are paths");
        let of_path = |(path, item): (&String, &'_ Value)| {
            let path = path.clone();
            let item = item.as_object().expect("a path is an object").clone();
            let methods = item.keys().filter(|name| METHODS.contains(&name.as_str())).cloned();
            methods.map(move |method| (method.to_uppercase(), path.clone())).collect::<Vec<_>>()
        };
        let found = paths.iter().flat_map(of_path);
        found
            .map(|(method, path)| {
                let operation = &paths[&path][method.to_lowercase()];
                ((method, path), operation)
            })
            .collect()
    }

    fn word(permission: Permission) -> &'static str {
        match permission {
            Permission::Open => "open",
            Permission::Observe => "observe",
            Permission::Read => "read",
            Permission::Scope(scope) => scope.as_str(),
            Permission::Own => "own",
            Permission::Play => "play",
            Permission::Administer => "administer",
        }
    }

    /// Calls `each` with every value of the document and the pointer to it.
    fn visit<'a>(value: &'a Value, at: &str, each: &mut impl FnMut(&str, &'a Value)) {
        each(at, value);
        match value {
            Value::Object(object) => {
                for (name, inner) in object {
                    visit(inner, &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), each);
                }
            }
            Value::Array(list) => {
                for (index, inner) in list.iter().enumerate() {
                    visit(inner, &format!("{at}/{index}"), each);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    #[test]
    fn the_document_has_exactly_the_routes() {
        let document = document();
        let described: BTreeSet<(String, String)> = operations(&document).into_keys().collect();
        let routes = ROUTES.iter().map(|route| (route.method.to_owned(), route.path.to_owned()));
        // Files of the page are no operations.
        let open = OPEN_PATHS.iter().filter(|path| !path.starts_with("/docs/"));
        let open = open.map(|path| ("GET".to_owned(), (*path).to_owned()));
        assert_eq!(described, routes.chain(open).collect());
    }

    #[test]
    fn every_operation_tells_its_right_and_open_ones_need_none() {
        let document = document();
        let operations = operations(&document);
        for route in ROUTES {
            let operation = operations[&(route.method.to_owned(), route.path.to_owned())];
            assert_eq!(operation["x-tally-right"], word(route.permission), "{} {}", route.method, route.path);
            let wanted = match route.permission {
                Permission::Open => Some(serde_json::json!([])),
                Permission::Own => Some(serde_json::json!([{"member": []}])),
                _ => None,
            };
            assert_eq!(operation.get("security"), wanted.as_ref(), "{} needs what all need", route.path);
        }
        for path in OPEN_PATHS.iter().filter(|path| !path.starts_with("/docs/")) {
            let operation = operations[&("GET".to_owned(), (*path).to_owned())];
            assert_eq!(operation["security"], serde_json::json!([]), "{path}");
        }
        assert_eq!(document["security"], serde_json::json!([{"apiKey": []}, {}]));
    }

    #[test]
    fn every_operation_is_whole() {
        let document = document();
        let mut ids = BTreeSet::new();
        let known: BTreeSet<&str> = document["tags"]
            .as_array()
            .expect("tags")
            .iter()
            .filter_map(|tag| tag["name"].as_str())
            .collect();
        for ((method, path), operation) in operations(&document) {
            let what = format!("{method} {path}");
            for member in ["operationId", "summary", "description"] {
                assert!(operation[member].as_str().is_some_and(|text| !text.is_empty()), "{what}: {member}");
            }
            assert!(ids.insert(operation["operationId"].to_string()), "{what}: an operationId twice");
            let tags = operation["tags"].as_array().expect("an operation has tags");
            assert!(
                tags.len() == 1 && known.contains(tags[0].as_str().unwrap_or_default()),
                "{what}: {tags:?}"
            );
            let item = &document["paths"][&path];
            let here = [&item["parameters"], &operation["parameters"]];
            let named: BTreeSet<&str> = here
                .iter()
                .filter_map(|list| list.as_array())
                .flatten()
                .filter_map(|one| one["$ref"].as_str()?.rsplit('/').next())
                .collect();
            for part in path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')) {
                assert!(named.contains(part), "{what}: {part}");
            }
            let right = operation["x-tally-right"].as_str().unwrap_or_default();
            let changes = right.contains(':') || ["own", "play", "administer"].contains(&right);
            let change = changes && method != "GET";
            assert_eq!(named.contains("Idempotency-Key"), change, "{what}");
            if let Some(content) = operation["requestBody"]["content"].as_object() {
                let shown = |media: &Value| media.get("example").or(media.get("examples")).is_some();
                assert!(content.values().all(shown), "{what}: the request has no example");
            }
            for (status, response) in operation["responses"].as_object().expect("there are responses") {
                let good = status.starts_with('2');
                for media in response["content"].as_object().into_iter().flat_map(|content| content.values())
                {
                    assert!(!good || media.get("example").is_some(), "{what}: {status} has no example");
                }
            }
        }
    }

    #[test]
    fn every_reference_leads_somewhere_and_every_component_is_used() {
        let document = document();
        let mut used = BTreeSet::new();
        visit(&document, "", &mut |at, value| {
            let Some(reference) = value.get("$ref").and_then(Value::as_str) else { return };
            let target =
                reference.strip_prefix('#').unwrap_or_else(|| panic!("{at}: {reference} is outside"));
            assert!(document.pointer(target).is_some(), "{at}: {reference} leads nowhere");
            used.insert(target.to_owned());
        });
        // These two belong to no operation: the text of `info` names them.
        used.extend(["NotFound", "MethodNotAllowed"].map(|name| format!("/components/responses/{name}")));
        for kind in ["schemas", "parameters", "headers", "responses"] {
            for name in document["components"][kind].as_object().expect("components").keys() {
                assert!(used.contains(&format!("/components/{kind}/{name}")), "{kind}/{name} is not used");
            }
        }
    }

    #[test]
    fn every_schema_and_every_field_says_what_it_is() {
        let document = document();
        let schemas = &document["components"]["schemas"];
        for (name, schema) in schemas.as_object().expect("components") {
            assert!(schema["description"].is_string(), "{name} has no description");
        }
        // A field that refers to a schema has the description of that schema, unless it has its own.
        let says = |field: &Value| field.get("description").or(field.get("$ref")).is_some();
        visit(schemas, "", &mut |at, value| {
            for (name, field) in value.get("properties").and_then(Value::as_object).into_iter().flatten() {
                let one_of = field["oneOf"].as_array();
                let is_said = says(field) || one_of.is_some_and(|kinds| kinds.iter().any(says));
                assert!(is_said, "{at}: the field `{name}` has no description");
            }
        });
    }

    #[test]
    fn older_names_are_deprecated_and_nothing_else_is() {
        let document = document();
        let mut found = 0;
        visit(&document, "", &mut |at, value| {
            let said = value.get("description").and_then(Value::as_str).unwrap_or_default();
            let is_older = said.starts_with("The older ");
            let is_deprecated = value.get("deprecated") == Some(&Value::Bool(true));
            assert_eq!(is_deprecated, is_older, "{at}");
            found += usize::from(is_older);
        });
        assert!(found > 0, "an older name begins its description so");
    }

    #[test]
    fn version_licence_and_server_are_ours() {
        let document = document();
        assert_eq!(document["openapi"], "3.1.0");
        assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(document["info"]["license"]["identifier"], env!("CARGO_PKG_LICENSE"));
        assert_eq!(document["servers"][0]["url"], "/");
    }

    #[test]
    fn the_page_reaches_nothing_outside_and_has_nothing_inline() {
        for text in [PAGE, STYLE, SCRIPT, PARTS, TRY] {
            for outside in ["http://", "https://", "@import"] {
                assert!(!text.contains(outside), "{outside}");
            }
        }
        assert!(!STYLE.contains("url("), "the style has no pictures");
        for inline in ["<style", "style=", "onclick", "onload", "<script>"] {
            assert!(!PAGE.contains(inline), "{inline}");
        }
        for markup in ["innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "document.write"] {
            assert!([SCRIPT, PARTS, TRY].iter().all(|script| !script.contains(markup)), "{markup}");
        }
        for path in OPEN_PATHS.iter().filter(|path| path.starts_with("/docs")) {
            let response = file(path).unwrap_or_else(|| panic!("{path} is a file"));
            assert_eq!(response.headers()[CONTENT_SECURITY_POLICY], POLICY);
            let module = format!("\".{}\"", path.strip_prefix("/docs").unwrap_or_default());
            let is_used = PAGE.contains(&format!("\"{path}\"")) || SCRIPT.contains(&module);
            assert!(*path == "/docs" || is_used, "{path} is used");
        }
    }
}
