//! Classes of commands: the durability of both servers, and the targets of the ratio.
//!
//! One pair of servers serves all classes, one after the other, so that they are filled once. Redis gets settings from
//! class to class, tally from the connection. Not here: measuring.

use super::commands::BenchCommand;
use crate::targets::{DURABLE_TIMES_REDIS, READS_TIMES_REDIS, RELAXED_TIMES_REDIS};
use tally_load::report::RatioTarget;

#[derive(Debug)]
pub(super) struct Class {
    pub(super) name: &'static str,
    pub(super) kinds: &'static [BenchCommand],
    /// Settings of Redis, and their name in a report.
    pub(super) redis: &'static [(&'static str, &'static str)],
    pub(super) redis_is: &'static str,
    /// The argument of `LB.DURABILITY` on tally's connections.
    pub(super) durability: &'static str,
    /// Tally's rate divided by Redis' rate, with one command at a time, and with 16.
    targets: [RatioTarget; 2],
}

const WRITES: &[BenchCommand] = &[BenchCommand::Zadd, BenchCommand::Zincrby, BenchCommand::Mix];

/// In the order of Redis' durability.
pub(super) const CLASSES: [Class; 3] = [
    Class {
        name: "reads",
        kinds: &[BenchCommand::Zrevrank, BenchCommand::Zscore, BenchCommand::Zrevrange],
        redis: &[("appendonly", "no")],
        redis_is: "no log",
        durability: "commit",
        targets: READS_TIMES_REDIS,
    },
    Class {
        name: "relaxed",
        kinds: WRITES,
        redis: &[("appendfsync", "everysec"), ("appendonly", "yes")],
        redis_is: "appendfsync everysec",
        durability: "relaxed",
        targets: RELAXED_TIMES_REDIS,
    },
    Class {
        name: "durable",
        kinds: WRITES,
        redis: &[("appendfsync", "always")],
        redis_is: "appendfsync always",
        durability: "commit",
        targets: DURABLE_TIMES_REDIS,
    },
];

impl Class {
    /// Whether its commands change the store.
    pub(super) fn writes(&self) -> bool {
        self.kinds == WRITES
    }

    /// The target with this pipeline, if there is one.
    pub(super) fn target(&self, pipeline: u64) -> Option<RatioTarget> {
        match pipeline {
            1 => Some(self.targets[0]),
            16 => Some(self.targets[1]),
            _ => None,
        }
    }
}
