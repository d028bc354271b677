//! Other commands of the binary: run to their end, with their output.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// How long a command may take before the test fails. Some move many rows on a machine that does other work, so this is longer
/// than the wait for a state.
const ENDS_WITHIN: Duration = Duration::from_secs(600);
/// How long the output of a killed command is waited for: another process may hold it open.
const CLOSES_WITHIN: Duration = Duration::from_secs(10);

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The exit code; `None` after a signal.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Finished {
    /// Standard output, after checking the exit code.
    #[track_caller]
    pub fn expect(&self, code: i32) -> &str {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        &self.stdout
    }
}

/// A setting of the allocator, for a test of memory: huge pages as in production. Other tests do without, because a server that
/// runs for a moment uses little of each, and the system fills all of it with zeros.
pub const HUGE_PAGES: (&str, &str) = ("MIMALLOC_ALLOW_THP", "1");

/// A command of the binary with an empty environment.
pub fn command(binary: &str, args: &[&str]) -> Command {
    let mut command = Command::new(binary);
    command.args(args).stdin(Stdio::null()).env(HUGE_PAGES.0, "0");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TALLY_")) {
        command.env_remove(name);
    }
    command
}

/// Writes a script that can be run. A process of its own writes it: while another thread starts a program, that one has each file
/// that this process is writing, and the system runs no file that is written.
///
/// # Panics
///
/// If it cannot be written.
#[track_caller]
pub fn write_script(file: &Path, text: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"printf %s "$1" >"$0" && chmod 755 "$0""#]).arg(file).arg(text);
    assert!(shell.status().expect("there is a shell").success(), "{}", file.display());
}

/// Runs a command to its end.
#[track_caller]
pub fn run(binary: &str, args: &[&str]) -> Finished {
    finished(command(binary, args))
}

/// Runs a command on a data directory to its end, with environment variables.
#[track_caller]
pub fn run_set(binary: &str, data: &Path, args: &[&str], settings: &[(&str, &str)]) -> Finished {
    let mut command = command(binary, args);
    command.arg("--data").arg(data).envs(settings.iter().copied());
    finished(command)
}

/// Waits for the end of a process whose output is piped; one that does not end is killed, and the test fails.
#[track_caller]
pub(crate) fn output(child: Child) -> Output {
    let (id, (ended, has_ended)) = (child.id(), channel());
    // After the timeouts there is no receiver.
    std::thread::spawn(move || drop(ended.send(child.wait_with_output())));
    if let Ok(output) = has_ended.recv_timeout(ENDS_WITHIN) {
        return output.expect("it ends");
    }
    drop(Command::new("kill").args(["-s", "KILL", &id.to_string()]).status());
    panic!("it does not end after {ENDS_WITHIN:?}: {:?}", has_ended.recv_timeout(CLOSES_WITHIN))
}

#[track_caller]
fn finished(mut command: Command) -> Finished {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let output = output(child.expect("the binary starts"));
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("commands print UTF-8");
    Finished { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}
