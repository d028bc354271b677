//! Samples beside a load, every second: memory, bytes written, the disk, and slow transactions.

use super::place::get;
use crate::device::{Device, DeviceCounts};
use crate::server::Server;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tally_service::clock;

/// The interval of samples, far below the time that the server keeps its slow log.
const INTERVAL: Duration = Duration::from_secs(1);

/// The samples.
#[derive(Debug, Default)]
pub(super) struct Watched {
    /// Resident bytes of each sample.
    pub(super) resident: Vec<u64>,
    /// Slow transactions, by their end in microseconds since 1970: milliseconds and cause.
    pub(super) slow: BTreeMap<i64, (f64, String)>,
    /// Bytes that the server wrote through to the disk, from the first sample to the last.
    pub(super) written: Option<u64>,
    /// What the disk under the data did between two samples, by the time of the later one.
    pub(super) disk: BTreeMap<i64, DeviceCounts>,
}

/// Takes samples until `over` is set.
pub(super) fn watch(server: &Server, data: &Path, over: &AtomicBool) -> Watched {
    let mut watched = Watched::default();
    let pid = server.process.0.id();
    let before = crate::spent::written_by(pid);
    let wall = clock::system();
    let device = Device::of(data);
    let mut then = device.as_ref().and_then(Device::counts);
    loop {
        let last = over.load(Ordering::SeqCst);
        watched.resident.extend(server.process.resident_bytes());
        let now = device.as_ref().and_then(Device::counts);
        watched.disk.extend(now.zip(then).map(|(now, then)| (wall.now().0, now.since(then))));
        then = now;
        // A server that is too busy now reports it in the next sample.
        if let Ok(status) = get(server, "/v1/status") {
            status["store"]["slow"].as_array().into_iter().flatten().for_each(|one| watched.note(one));
        }
        if last {
            watched.written = crate::spent::written_by(pid).zip(before).map(|(now, then)| now - then);
            return watched;
        }
        std::thread::sleep(INTERVAL);
    }
}

impl Watched {
    fn note(&mut self, slow: &Value) {
        let at = slow["at"].as_str().and_then(tally_wire::time::parse);
        let (Some(at), Some(ms), Some(cause)) = (at, slow["ms"].as_f64(), slow["cause"].as_str()) else {
            return;
        };
        let cause = match slow["beside"].as_str() {
            Some(beside) if beside != cause => format!("{cause}, beside a {beside}"),
            _ => cause.to_owned(),
        };
        self.slow.insert(at.0, (ms, cause));
    }

    /// The slowest transaction that ended between these microseconds.
    pub(super) fn cause(&self, from: i64, until: i64) -> Option<&(f64, String)> {
        self.slow.range(from..=until).map(|(_, slow)| slow).max_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// The second of the disk in these microseconds in which a write waited longest.
    pub(super) fn disk_in(&self, from: i64, until: i64) -> Option<DeviceCounts> {
        // A sample covers the second before it.
        let near = self.disk.range(from..=until + INTERVAL.as_micros() as i64).map(|(_, counts)| *counts);
        near.max_by(|a, b| a.ms_a_write().total_cmp(&b.ms_a_write()))
    }

    /// The median of a figure over the seconds of the disk.
    pub(super) fn disk_median(&self, figure: impl Fn(DeviceCounts) -> f64) -> Option<f64> {
        let mut all: Vec<f64> = self.disk.values().map(|counts| figure(*counts)).collect();
        all.sort_unstable_by(f64::total_cmp);
        all.get(all.len() / 2).copied()
    }
}
