//! Runs test binaries side by side, so that no processor waits for the slowest test of one of them.
//!
//! Each run writes into a file, and the schedule prints that file whole when the run has ended. So the output of two binaries
//! never mixes, and the file can be read meanwhile. A run that does not end is killed after [`LIMIT`], so that what it has printed
//! is seen: a build server that ends the whole run keeps nothing of it.
//!
//! Not here: which binaries there are, and on which stores they run.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::totals::Totals;

/// The longest time of one binary, several times that of the slowest one.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// How often the end of a binary is looked for.
const POLL: Duration = Duration::from_millis(20);

/// One run of one test binary.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) name: String,
    pub(super) command: Command,
}

/// The result of a job.
struct Ended {
    name: String,
    printed: Vec<u8>,
    totals: Totals,
    took: Duration,
}

/// Runs the jobs in this order, `at_once` at a time.
pub(super) fn run(jobs: Vec<Job>, at_once: usize, folder: &Path) -> Result<Totals> {
    run_within(LIMIT, jobs, at_once, folder)
}

fn run_within(limit: Duration, jobs: Vec<Job>, at_once: usize, folder: &Path) -> Result<Totals> {
    std::fs::create_dir_all(folder).context("make the folder of what tests print")?;
    let waiting = Mutex::new(VecDeque::from(jobs));
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let (send, ended) = mpsc::channel();
    let mut totals = Totals::default();
    let mut times = Vec::new();
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            let send = send.clone();
            scope.spawn(move || {
                while let Some(job) = next() {
                    // The receiver is gone after a failure to print.
                    if send.send(run_one(limit, job, folder)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        for ended in ended {
            let ended: Ended = ended?;
            print(&ended);
            totals.add(ended.totals);
            times.push((ended.took, ended.name));
        }
        anyhow::Ok(())
    })?;
    times.sort_by(|one, other| other.cmp(one));
    println!("\nseconds of each test binary:");
    for (took, name) in times {
        println!("{:>8.1} {name}", took.as_secs_f64());
    }
    Ok(totals)
}

fn run_one(limit: Duration, mut job: Job, folder: &Path) -> Result<Ended> {
    let path = file_of(&job.name, folder);
    let file = File::create(&path).with_context(|| format!("make {}", path.display()))?;
    job.command.stdin(Stdio::null()).stdout(file.try_clone().context("hold a file twice")?).stderr(file);
    let started = Instant::now();
    let mut tests = job.command.spawn().with_context(|| format!("start the tests {}", job.name))?;
    let status =
        ended_within(limit, &mut tests).with_context(|| format!("wait for the tests {}", job.name))?;
    let mut printed = std::fs::read(&path).with_context(|| format!("read {}", path.display()))?;
    let success = status.is_some_and(|status| status.success());
    if !success {
        let end = status.map_or_else(
            || format!("was killed after {} s", limit.as_secs()),
            |status| format!("ended with {status}"),
        );
        printed.extend(format!("{} {end}\n", job.name).bytes());
    }
    let totals = Totals::of(&printed, success);
    Ok(Ended { name: job.name, printed, totals, took: started.elapsed() })
}

/// The status of the process; `None` if it was killed.
fn ended_within(limit: Duration, process: &mut Child) -> io::Result<Option<ExitStatus>> {
    let started = Instant::now();
    while started.elapsed() < limit {
        if let Some(status) = process.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(POLL);
    }
    process.kill()?;
    process.wait()?;
    Ok(None)
}

fn file_of(name: &str, folder: &Path) -> PathBuf {
    folder.join(format!("{}.log", name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-")))
}

/// Prints nothing for a binary without a test that matches the filter.
fn print(ended: &Ended) {
    if ended.totals != Totals::default() {
        let printed = String::from_utf8_lossy(&ended.printed);
        println!("\n-- {} ({:.1} s)\n{printed}", ended.name, ended.took.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(name: &str, script: &str) -> Job {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Job { name: name.into(), command }
    }

    #[test]
    fn results_of_all_jobs_are_added_and_one_that_dies_has_failed() {
        let folder = std::env::temp_dir().join(format!("xtask-schedule-{}", std::process::id()));
        let good = "echo 'test result: ok. 3 passed; 0 failed;'";
        let jobs = vec![job("a b", good), job("dies", "kill -9 $$"), job("c", &format!("{good} >&2"))];
        assert_eq!(run(jobs, 2, &folder).unwrap(), Totals { passed: 6, failed: 1 });
        assert!(std::fs::read_to_string(folder.join("a-b.log")).unwrap().contains("3 passed"));
        assert_eq!(run(Vec::new(), 2, &folder).unwrap(), Totals::default());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn one_that_does_not_end_is_killed_and_has_failed() {
        let folder = std::env::temp_dir().join(format!("xtask-schedule-limit-{}", std::process::id()));
        let jobs = vec![job("hangs", "echo begun; exec sleep 1000"), job("ends", "true")];
        let totals = run_within(Duration::from_millis(300), jobs, 1, &folder).unwrap();
        assert_eq!(totals, Totals { passed: 0, failed: 1 });
        assert_eq!(std::fs::read_to_string(folder.join("hangs.log")).unwrap(), "begun\n");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
