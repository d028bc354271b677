//! The files: open to all, kept by browsers, held by a strict policy.

use super::TALLY;
use tally_testkit::{Request, TestTally};

#[test]
fn the_guide_needs_no_key_and_has_the_policy_of_the_console() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    server.run(&["keys", "create", "--role", "reader"]).expect(0);
    let policy = client.get("/").header("content-security-policy").expect("there is a policy").to_owned();
    let moved = client.get("/docs/guide");
    assert_eq!((moved.status, moved.header("location")), (307, Some("/docs/guide/")));
    for (path, content_type) in [
        ("/docs/guide/", "text/html; charset=utf-8"),
        ("/docs/guide/operate/backup.html", "text/html; charset=utf-8"),
        ("/docs/guide/guide.js", "text/javascript; charset=utf-8"),
        ("/docs/guide/search.json", "application/json"),
    ] {
        let page = client.get(path);
        assert_eq!((page.status, page.header("content-type")), (200, Some(content_type)), "{path}");
        assert_eq!(page.header("content-security-policy"), Some(policy.as_str()), "{path}");
        let tag = page.header("etag").expect("there is a tag").to_owned();
        let again = client.send(&Request::new("GET", path).header("If-None-Match", &tag));
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
    }
    client.get("/docs/guide/nothing.html").refused(404, "not_found");
    client.send(&Request::new("POST", "/docs/guide/")).refused(405, "method_not_allowed");
}

#[test]
fn files_need_no_key_and_are_not_sent_twice() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    let page = client.get("/");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").expect("there is a policy").to_owned();
    for rule in [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ] {
        assert!(policy.split(';').any(|one| one.trim() == rule), "{rule} in {policy}");
    }
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-cache"),
    ] {
        assert_eq!(page.header(name), Some(value));
    }
    let tag = page.header("etag").expect("there is a tag").to_owned();
    let again = client.send(&Request::new("GET", "/").header("If-None-Match", &tag));
    assert_eq!((again.status, again.body.len(), again.header("etag")), (304, 0, Some(tag.as_str())));
    client.send(&Request::new("POST", "/")).refused(405, "method_not_allowed");

    server.run(&["keys", "create", "--role", "reader"]).expect(0);
    // From a foreign name, and as a foreign page would send it: they hold no data.
    let foreign = Request::new("GET", "/console/app.js")
        .header("Host", "elsewhere.example")
        .header("Origin", "http://elsewhere.example");
    let script = client.send(&foreign);
    assert_eq!((script.status, script.header("content-type")), (200, Some("text/javascript; charset=utf-8")));
    client.get("/v1/status").refused(401, "unauthorized");
    let head = client.send(&Request::new("HEAD", "/console/base.css"));
    assert_eq!((head.status, head.body.len()), (200, 0));
}
