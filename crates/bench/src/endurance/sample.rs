//! What a server occupies at an instant.

use super::Sizes;
use crate::error::{During, Error, prove};
use crate::options::Options;
use crate::server::Server;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// One sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sample {
    /// Seconds since the start.
    pub(super) at: f64,
    /// Bytes of memory.
    pub(super) resident: f64,
    pub(super) descriptors: f64,
    pub(super) threads: f64,
    /// Bytes of the journal.
    pub(super) journal: f64,
    /// Bytes of the tables, with their write-ahead log.
    pub(super) tables: f64,
    /// Processor time so far, in seconds.
    pub(super) cpu: f64,
}

/// Samples until the flag is set, and one at the end.
pub(super) fn until(
    over: &AtomicBool,
    server: &Server,
    data: &Path,
    sizes: Sizes,
    options: &Options,
) -> Result<Vec<Sample>, Error> {
    let (began, mut samples) = (Instant::now(), Vec::new());
    loop {
        let last = over.load(Ordering::SeqCst);
        let at = began.elapsed();
        samples.push(sample(server, data, at.as_secs_f64()).during("take a sample")?);
        options.progress("load", at.min(sizes.lasts).as_secs(), sizes.lasts.as_secs());
        if last {
            prove(samples.len() > 6, || "the run is too short for its samples".to_owned())?;
            return Ok(samples);
        }
        std::thread::sleep(sizes.interval);
    }
}

fn sample(server: &Server, data: &Path, at: f64) -> std::io::Result<Sample> {
    let process = &server.process;
    let entries = |what: &str| {
        let folder = format!("/proc/{}/{what}", process.0.id());
        Ok::<_, std::io::Error>(std::fs::read_dir(folder)?.count() as f64)
    };
    let (mut journal, mut tables) = (0, 0);
    for file in std::fs::read_dir(data)? {
        let file = file?;
        let name = file.file_name();
        let name = name.to_string_lossy();
        // A file of the journal may be removed at any time.
        let Ok(bytes) = file.metadata().map(|file| file.len()) else { continue };
        if name.contains("journal") {
            journal += bytes;
        } else if name.starts_with("tally.db") {
            tables += bytes;
        }
    }
    Ok(Sample {
        at,
        resident: process.resident_bytes().unwrap_or_default() as f64,
        descriptors: entries("fd")?,
        threads: entries("task")?,
        journal: journal as f64,
        tables: tables as f64,
        cpu: process.cpu_s().unwrap_or_default(),
    })
}
