//! How much memory this process may use, and the bounds that follow it.
//!
//! A container has less memory than its machine, and the kernel kills what uses more. So the limit is the lowest of its control
//! groups and of the machine, and settings with the value `auto` follow it. Not here: the memory of ranks, which the number of
//! records decides (`tally_service::footprint`).

use std::path::Path;

/// The value of settings that follow the limit.
pub(crate) const AUTO: &str = "auto";

const MIB: u64 = 1 << 20;
/// From this limit on, each bound has its full size. All of them together then take less than half of it.
const FULL_AT: u64 = 4096 * MIB;

/// Each setting with its full size and the least, below which a server would refuse plain requests.
const BOUNDS: [(&str, u64, u64); 7] = [
    ("store.cache_mib", 64, 4),
    ("store.memtable_mib", 256, 8),
    ("http.bodies_bytes_max", 256 * MIB, 8 * MIB),
    ("http.responses_bytes_max", 256 * MIB, 8 * MIB),
    ("resp.buffer_bytes_max", 512 * MIB, 16 * MIB),
    ("lane.queue_bytes_max", 64 * MIB, 8 * MIB),
    ("members.cache_entries", 200_000, 5_000),
];

/// The memory that this process may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    /// In bytes.
    pub(crate) bytes: u64,
    /// What sets it.
    pub(crate) by: &'static str,
}

impl Limit {
    /// No limit is known: each bound has its full size.
    pub(crate) const NONE: Self = Self { bytes: u64::MAX, by: "none" };
}

/// The bounds for a limit: in proportion to it, and never below the least.
pub(crate) fn choose(limit: u64) -> [(&'static str, u64); BOUNDS.len()] {
    let share = |full: u64| u128::from(full) * u128::from(limit.min(FULL_AT)) / u128::from(FULL_AT);
    BOUNDS.map(|(name, full, least)| (name, u64::try_from(share(full)).unwrap_or(full).max(least)))
}

/// The bound of a setting, if that follows the limit.
pub(crate) fn bound(limit: u64, name: &str) -> Option<u64> {
    choose(limit).into_iter().find(|(one, _)| *one == name).map(|(_, bound)| bound)
}

/// The limit of this process: the lowest one of its control groups and the machine. `root` is `/`.
pub(crate) fn limit(root: &Path) -> Limit {
    let read = |path: &str| std::fs::read_to_string(root.join(path)).ok();
    let groups = read("proc/self/cgroup").unwrap_or_default();
    let mut lowest = Limit::NONE;
    let mut note = |bytes: Option<u64>, by| {
        if let Some(bytes) = bytes.filter(|bytes| *bytes < lowest.bytes) {
            lowest = Limit { bytes, by };
        }
    };
    note(read("proc/meminfo").as_deref().and_then(memory_total), "machine");
    for line in groups.lines() {
        // Number of the hierarchy, its controllers, the path of the group.
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (folders, file, by): (&[&str], _, _) = if controllers.is_empty() {
            (&["sys/fs/cgroup", "sys/fs/cgroup/unified"], "memory.max", "cgroup memory.max")
        } else if controllers.split(',').any(|one| one == "memory") {
            (&["sys/fs/cgroup/memory"], "memory.limit_in_bytes", "cgroup memory.limit_in_bytes")
        } else {
            continue;
        };
        // In a container the path may be that of the machine, where only its end is mounted: the root is read in any case.
        for group in Path::new(path.trim_start_matches('/')).ancestors() {
            for folder in folders {
                let text = std::fs::read_to_string(root.join(folder).join(group).join(file));
                // `max` is no limit.
                note(text.ok().and_then(|text| text.trim().parse().ok()), by);
            }
        }
    }
    lowest
}

/// The line `MemTotal` of `/proc/meminfo`, in bytes.
fn memory_total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(limit: u64) -> Vec<u64> {
        choose(limit).into_iter().map(|(_, bound)| bound).collect()
    }

    #[test]
    fn bounds_follow_the_limit_down_to_the_least() {
        let full = [64, 256, 256 * MIB, 256 * MIB, 512 * MIB, 64 * MIB, 200_000];
        assert_eq!(chosen(u64::MAX), full);
        assert_eq!(chosen(4096 * MIB), full);
        assert_eq!(chosen(1024 * MIB), [16, 64, 64 * MIB, 64 * MIB, 128 * MIB, 16 * MIB, 50_000]);
        let least = [4, 8, 8 * MIB, 8 * MIB, 16 * MIB, 8 * MIB, 5_000];
        assert_eq!((chosen(64 * MIB), chosen(0)), (least.to_vec(), least.to_vec()));
        assert_eq!(bound(1024 * MIB, "store.memtable_mib"), Some(64));
        assert_eq!(bound(0, "store.wal_mib"), None);
    }

    #[test]
    fn bounds_leave_room() {
        for limit in [512, 1024, 4096].map(|mib| mib * MIB) {
            let [cache, memtable, bodies, responses, buffers, queue, _] =
                choose(limit).map(|(_, bound)| bound);
            let sum = (cache + memtable) * MIB + bodies + responses + buffers + queue;
            assert!(sum < limit / 2, "{sum} of {limit}");
        }
    }

    #[test]
    fn every_bound_is_a_setting_with_the_default_auto() {
        for (name, ..) in BOUNDS {
            let setting = crate::settings::SETTINGS.iter().find(|one| one.name == name);
            assert_eq!(setting.map(|one| one.default), Some(AUTO), "{name}");
        }
    }

    /// The limit on a machine with these files.
    fn read(files: &[(&str, &str)]) -> (u64, &'static str) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let Limit { bytes, by } = limit(root.path());
        (bytes, by)
    }

    #[test]
    fn the_lowest_limit_counts() {
        let machine = ("proc/meminfo", "MemFree: 1 kB\nMemTotal:        8192 kB\n");
        let v2 = ("proc/self/cgroup", "0::/a/b/c\n");
        let (machine_max, group, v1) = ("machine", "cgroup memory.max", "cgroup memory.limit_in_bytes");
        assert_eq!(read(&[]), (u64::MAX, "none"));
        assert_eq!(read(&[machine]), (8192 * 1024, machine_max));
        let at = |path, text| [machine, v2, (path, text)];
        assert_eq!(read(&at("sys/fs/cgroup/a/b/c/memory.max", "4096\n")), (4096, group));
        assert_eq!(read(&at("sys/fs/cgroup/a/memory.max", "4096\n")), (4096, group), "of a group above");
        assert_eq!(read(&at("sys/fs/cgroup/memory.max", "4096\n")), (4096, group), "of a container");
        assert_eq!(read(&at("sys/fs/cgroup/a/b/memory.max", "max\n")), (8192 * 1024, machine_max));
        assert_eq!(read(&at("sys/fs/cgroup/a/x/memory.max", "4096\n")).1, machine_max, "another group");
        let lowest = [
            machine,
            v2,
            ("sys/fs/cgroup/a/b/c/memory.max", "max"),
            ("sys/fs/cgroup/a/b/memory.max", "3000"),
            ("sys/fs/cgroup/a/memory.max", "5000"),
        ];
        assert_eq!(read(&lowest), (3000, group));
        let first = ("proc/self/cgroup", "9:cpu,cpuacct:/x\n4:memory:/docker/1\n0::/\n");
        let of_v1 = |path, text| read(&[machine, first, (path, text)]);
        assert_eq!(of_v1("sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "2000"), (2000, v1));
        assert_eq!(of_v1("sys/fs/cgroup/memory/memory.limit_in_bytes", "2000"), (2000, v1));
        let no_limit = "9223372036854771712\n";
        assert_eq!(of_v1("sys/fs/cgroup/memory/memory.limit_in_bytes", no_limit).1, machine_max);
    }
}
