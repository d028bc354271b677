//! The packages in `clients/`: what they promise, and their tutorial, each in its own language against a real server.
//!
//! A story reaches the server through a proxy. It requests the faults that it cannot make itself by a line on its standard output:
//! a reply that is lost after the commit, or a server that is killed and starts again. The examples of each page compile beside
//! it. Not here: generated clients (`generated`).

mod browser;
mod publishing;

use crate::TALLY;
use crate::libraries::{fetched, run, spawn, tool_of_node, tool_of_python};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use tally_testkit::{Cut, Proxy, TestTally};
use tempfile::TempDir;

/// What each tutorial prints.
const TUTORIAL: &str = include_str!("../../../../../clients/tutorial.txt");

fn package(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients").join(path)
}

/// Runs a tutorial on a new server.
#[track_caller]
fn tutorial(program: &mut Command) {
    let server = TestTally::start(TALLY);
    assert_eq!(run(program.arg(format!("http://{}", server.address())), ""), TUTORIAL);
}

/// Runs a story on a new server behind a proxy, and makes the faults that it requests.
#[track_caller]
fn story(program: &mut Command) {
    let mut server = TestTally::start(TALLY);
    server.stay();
    let proxy = Proxy::start(server.address());
    let mut child = spawn(program.arg(format!("http://{}", proxy.address())));
    let mut asking = child.stdin.take().expect("it is piped");
    let mut ended = false;
    for line in BufReader::new(child.stdout.take().expect("it is piped")).lines() {
        let line = line.expect("it prints text");
        let answer = match (line.as_str(), line.strip_prefix("cut ")) {
            (_, Some(mark)) => {
                proxy.cut_at(mark.as_bytes(), Cut::Answer);
                "armed"
            }
            ("kill", _) => {
                server.kill9();
                server.restart();
                "restarted"
            }
            ("end", _) => {
                assert!(!proxy.is_armed(), "a fault that the story requested did not happen");
                ended = true;
                continue;
            }
            _ => panic!("the story prints {line:?}"),
        };
        // A story that failed has ended; its own message is below.
        drop(writeln!(asking, "{answer}"));
    }
    let mut stderr = String::new();
    child.stderr.take().expect("it is piped").read_to_string(&mut stderr).expect("it prints text");
    let status = child.wait().expect("it ends");
    assert!(status.success() && ended, "{program:?}: {status}\n{stderr}");
}

/// The code of a page in one language, as one program.
fn code(page: &str, language: &str) -> String {
    let text = std::fs::read_to_string(package(page)).expect("the page can be read");
    let (open, mut inside, mut code) = (format!("```{language}"), false, String::new());
    for line in text.lines() {
        if line == open || inside && line == "```" {
            inside = !inside;
        } else if inside {
            code.push_str(line);
            code.push('\n');
        }
    }
    assert!(!code.is_empty(), "{page} has no {language}");
    code
}

/// A folder with these files of the packages and the code of the page.
fn folder(files: &[&str], page: &str, language: &str, name: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    for file in files {
        let path = package(file);
        std::fs::copy(&path, folder.path().join(path.file_name().expect("a file")))
            .expect("it can be copied");
    }
    std::fs::write(folder.path().join(name), code(page, language)).expect("the code can be written");
    folder
}

/// Installs the package for TypeScript into a folder as a user has it, built and without its sources, and compiles these files.
#[track_caller]
fn compile_typescript(folder: &TempDir, files: &[&str]) {
    let installed = folder.path().join("node_modules/tally-client");
    std::fs::create_dir_all(&installed).expect("the folder can be made");
    std::fs::copy(package("typescript/package.json"), installed.join("package.json")).expect("it is copied");
    let types = folder.path().join("node_modules/@types");
    std::os::unix::fs::symlink(fetched("tools-node/node_modules/@types"), types).expect("a link can be made");
    let mut build = tool_of_node("typescript/bin/tsc");
    run(build.arg("-p").arg(package("typescript")).arg("--outDir").arg(installed.join("dist")), "");
    let strict = ["--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--skipLibCheck"];
    let target = ["--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom,dom.iterable"];
    let mut compile = tool_of_node("typescript/bin/tsc");
    compile.args(strict).args(target).args(["--types", "node"]).args(files);
    run(compile.current_dir(folder), "");
}

#[test]
fn typescript() {
    let files = ["typescript/tests/story.mts", "typescript/examples/tutorial.mts"];
    let folder = folder(&files, "typescript/README.md", "ts", "page.mts");
    compile_typescript(&folder, &["page.mts", "story.mts", "tutorial.mts"]);
    let node = |script: &str| {
        let mut command = Command::new("node");
        command.current_dir(&folder).arg(script);
        command
    };
    tutorial(&mut node("tutorial.mjs"));
    story(&mut node("story.mjs"));
}

#[test]
fn python() {
    let files = ["python/tests/story.py", "python/tests/agree.py", "python/examples/tutorial.py"];
    let folder = folder(&files, "python/README.md", "python", "page.py");
    let source = package("python/src");
    let known_types = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mypy-package");
    let mut check = tool_of_python("mypy");
    // The oldest release that the package promises; any Python may run the rest.
    check.args(["--strict", "--python-version", "3.9", "--cache-dir"]).arg(known_types);
    check.arg(source.join("tally_client")).args(["story.py", "agree.py", "tutorial.py", "page.py"]);
    run(check.env("MYPYPATH", &source).current_dir(&folder), "");
    let python = |script: &str| {
        let mut command = Command::new("python3");
        command.env("PYTHONPATH", &source).env("PYTHONDONTWRITEBYTECODE", "1");
        command.current_dir(&folder).arg(script);
        command
    };
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/openapi/openapi.json");
    assert_eq!(run(python("agree.py").arg(document), ""), "end\n");
    tutorial(&mut python("tutorial.py"));
    story(&mut python("story.py"));
}

#[test]
fn csharp() {
    let files = ["csharp/Tests~/Story.cs", "csharp/Samples~/Tutorial/Tutorial.cs"];
    let folder = folder(&files, "csharp/README.md", "cs", "page");
    let page = std::fs::read_to_string(folder.path().join("page")).expect("the code can be read");
    let page = format!(
        "using System; using System.Threading.Tasks; using TallyClient;\n\
         static class Page {{ static async Task Run() {{\n{page}\n}} }}\n"
    );
    std::fs::write(folder.path().join("Page.cs"), page).expect("the code can be written");
    // The language of the oldest Unity that has .NET Standard 2.1 is newer than what Mono compiles.
    let compile = |kind: &str, out: &str, sources: &[&str]| {
        let mut mcs = Command::new("mcs");
        mcs.args(["-langversion:7.2", "-r:System.Net.Http"]).arg(format!("-target:{kind}"));
        run(mcs.arg(format!("-out:{out}")).args(sources).current_dir(&folder), "");
    };
    let library = package("csharp/Runtime/*.cs");
    let library = library.to_str().expect("a path is text");
    compile("library", "TallyClient.dll", &["-warn:4", "-warnaserror", library]);
    compile("library", "Page.dll", &["-r:TallyClient.dll", "Page.cs"]);
    compile("exe", "tutorial.exe", &["-r:TallyClient.dll", "Tutorial.cs"]);
    compile("exe", "story.exe", &["-r:TallyClient.dll", "Story.cs"]);
    let mono = |program: &str| {
        let mut command = Command::new("mono");
        command.current_dir(&folder).arg(program);
        command
    };
    tutorial(&mut mono("tutorial.exe"));
    story(&mut mono("story.exe"));
}
