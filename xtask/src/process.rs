//! Starting other programs, and timing the steps of a longer run.
//!
//! A failed command is an error with the whole command line, which a reader of a build log needs first. No child gets
//! standard input, so nothing can stop at a prompt.
//!
//! Not here: retries, and limits of time. The runs of tests have one (`testing/schedule.rs`); the build server has its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// The root of the workspace, from cargo's path of xtask. That also works with a target folder that clones share.
pub(crate) fn root() -> Result<PathBuf> {
    let manifest_dir = std::env::var_os("CARGO_MANIFEST_DIR").context("start this as `cargo xtask`")?;
    let root = Path::new(&manifest_dir).parent().context("find the folder above xtask")?;
    Ok(root.to_path_buf())
}

/// The cargo that started this process, at the root of the workspace.
pub(crate) fn cargo(args: &[&str]) -> Result<Command> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root()?).stdin(Stdio::null());
    Ok(command)
}

/// The folder of everything built or fetched.
pub(crate) fn target_folder() -> Result<PathBuf> {
    let mut command = cargo(&["metadata", "--format-version", "1", "--no-deps", "--locked"])?;
    let metadata: serde_json::Value = serde_json::from_slice(&output(&mut command)?)?;
    let folder = metadata.get("target_directory").and_then(serde_json::Value::as_str);
    Ok(PathBuf::from(folder.context("find the target folder in the metadata")?))
}

/// `--locked` on a build server, nothing elsewhere: there a new dependency may still enter Cargo.lock.
pub(crate) fn locked() -> &'static [&'static str] {
    if is_build_server() { &["--locked"] } else { &[] }
}

fn is_build_server() -> bool {
    std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false")
}

/// Runs a command with the output streams of this process.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = line_of(command);
    let status = command.status().with_context(|| format!("start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` ended with {status}");
    }
    Ok(())
}

/// Runs a command at the lowest priority, and prints its output at its end.
pub(crate) fn run_beside(command: &Command) -> Result<()> {
    let line = line_of(command);
    let mut nice = Command::new("nice");
    nice.args(["-n", "19"]).arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => nice.env(name, value),
            None => nice.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        nice.current_dir(folder);
    }
    let output = nice.output().with_context(|| format!("start `{line}`"))?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    // In one write, because the tests print as well.
    print!("\n-- {line}\n{text}");
    if !output.status.success() {
        bail!("`{line}` ended with {}", output.status);
    }
    Ok(())
}

/// Runs a command and returns its standard output.
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>> {
    let line = line_of(command);
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("start `{line}`"))?;
    if !output.status.success() {
        bail!("`{line}` ended with {}", output.status);
    }
    Ok(output.stdout)
}

/// The command as typed in a shell: variables first, the program by its name alone.
pub(crate) fn line_of(command: &Command) -> String {
    let mut words = Vec::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            words.push(format!("{}={}", name.to_string_lossy(), quoted(&value.to_string_lossy())));
        }
    }
    let program = Path::new(command.get_program());
    words.push(program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned());
    words.extend(command.get_args().map(|arg| quoted(&arg.to_string_lossy())));
    words.join(" ")
}

fn quoted(word: &str) -> String {
    if word.contains(char::is_whitespace) { format!("'{word}'") } else { word.to_owned() }
}

/// The steps of a run with their times. Steps may run side by side.
pub(crate) struct Steps {
    began: Instant,
    done: Mutex<Vec<(&'static str, Duration)>>,
}

impl Default for Steps {
    fn default() -> Self {
        Self { began: Instant::now(), done: Mutex::default() }
    }
}

impl Steps {
    /// Announces and runs one step. The time of a failed step is recorded too, because it is often the question.
    pub(crate) fn step<T>(&self, name: &'static str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        println!("== {name}");
        let start = Instant::now();
        let result = work();
        self.done.lock().unwrap_or_else(PoisonError::into_inner).push((name, start.elapsed()));
        result.with_context(|| format!("step `{name}`"))
    }

    /// The table of times, with their total.
    pub(crate) fn report(&self) -> String {
        let mut text = String::from("== times\n");
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, took) in done.iter().chain([&("total", self.began.elapsed())]) {
            text.push_str(&format!("{name:<24} {:>8.1} s\n", took.as_secs_f64()));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_command_names_its_line() {
        let mut command = Command::new("cargo");
        command.args(["no such task", "--now"]).env("COLOUR", "a b").stderr(Stdio::null());
        let error = run(&mut command).unwrap_err().to_string();
        assert!(error.starts_with("`COLOUR='a b' cargo 'no such task' --now` ended with"), "{error}");
    }

    #[test]
    fn a_command_beside_others_has_its_folder_and_variables_and_fails_as_itself() {
        let mut command = Command::new("sh");
        command
            .args(["-c", "test \"$(nice)/$PWD/$COLOUR\" = 19///red"])
            .current_dir("/")
            .env("COLOUR", "red");
        run_beside(&command).unwrap();
        let error = run_beside(Command::new("cargo").arg("no such task")).unwrap_err().to_string();
        assert!(error.starts_with("`cargo 'no such task'` ended with"), "{error}");
    }

    #[test]
    fn a_failed_step_is_named_and_timed() {
        let steps = Steps::default();
        let error = steps.step("paint", || -> Result<()> { bail!("no colour") }).unwrap_err();
        assert_eq!(format!("{error:#}"), "step `paint`: no colour");
        let report = steps.report();
        assert!(report.contains("\npaint "), "{report}");
        assert!(report.contains("\ntotal "), "{report}");
    }

    #[test]
    fn the_root_holds_the_lock_file() {
        assert!(root().unwrap().join("Cargo.lock").is_file());
    }
}
