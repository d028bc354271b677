//! Clients that generators make from the served OpenAPI document: they compile, their types hold strictly, and they run a story.
//!
//! The story is that of `docs/tutorial.md`, in each language once: a board of the week with friends, wallets, the prizes of a
//! closed round and a contest. It compiles only if the document says what a user may leave out, and it runs only if the document
//! says what the server does. The generated code stays in a temporary folder: a user generates it from their own server. Not here: the packages in `clients/`, and each answer against the
//! document, which `api` compares.

use crate::TALLY;
use crate::libraries::{fetched, run, tool_of_node, tool_of_python};
use std::path::Path;
use tally_testkit::TestTally;
use tempfile::TempDir;

/// A server, and a folder with the document that it serves.
fn stage() -> (TestTally, TempDir) {
    let server = TestTally::start(TALLY);
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let document = server.client().get("/openapi.json").body;
    std::fs::write(folder.path().join("openapi.json"), document).expect("the document can be written");
    (server, folder)
}

fn write(folder: &TempDir, name: &str, text: &str) {
    std::fs::write(folder.path().join(name), text).expect("the file can be written");
}

/// Where mypy keeps what it knows of libraries, so that only the first run reads them.
fn known_types(name: &str) -> String {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name).display().to_string()
}

#[test]
fn openapi_python_client() {
    let (server, folder) = stage();
    write(&folder, "config.yaml", include_str!("python.yaml"));
    write(&folder, "story.py", include_str!("story.py"));
    let python = |program: &str| {
        let mut command = tool_of_python(program);
        command.current_dir(folder.path());
        command
    };
    // A warning says what of the document the client lacks.
    let generate = ["generate", "--path", "openapi.json", "--config", "config.yaml", "--meta", "none"];
    let mut generator = python("openapi-python-client");
    run(generator.args(generate).args(["--output-path", "tally_client", "--fail-on-warning"]), "");
    run(
        python("mypy")
            .args(["--strict", "--cache-dir", &known_types("mypy-generated")])
            .args(["tally_client", "story.py"]),
        "",
    );
    let told = run(python("python").args(["story.py", &format!("http://{}", server.address())]), "");
    assert_eq!(told, "end\n");
}

#[test]
fn openapi_typescript() {
    let (server, folder) = stage();
    write(&folder, "story.mts", include_str!("story.mts"));
    // The package for TypeScript has types of its own, which must be those of the document.
    write(&folder, "agree.mts", include_str!("agree.mts"));
    write(&folder, "types.ts", include_str!("../../../../../clients/typescript/src/types.ts"));
    let libraries = fetched("tools-node/node_modules");
    std::os::unix::fs::symlink(libraries, folder.path().join("node_modules")).expect("a link can be made");
    let tool = |name: &str| {
        let mut command = tool_of_node(name);
        command.current_dir(folder.path());
        command
    };
    run(tool("openapi-typescript/bin/cli.js").args(["openapi.json", "--output", "api.ts"]), "");
    let strict = ["--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--skipLibCheck"];
    let target = ["--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom,dom.iterable"];
    run(
        tool("typescript/bin/tsc").args(strict).args(target).args([
            "--types",
            "node",
            "api.ts",
            "agree.mts",
            "story.mts",
        ]),
        "",
    );
    let address = format!("http://{}", server.address());
    let told = run(std::process::Command::new("node").current_dir(&folder).args(["story.mjs", &address]), "");
    assert_eq!(told, "end\n");
}
