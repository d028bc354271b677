//! What the lanes and the contests have counted, for metrics and the status.

use crate::contests::counts::ContestCounts;
use crate::tally::Tally;
use tally_lanes::Times;

impl Tally {
    /// The counts of contests.
    pub fn contest_counts(&self) -> &ContestCounts {
        &self.contests.counts
    }

    /// Counters of the score lanes together.
    pub fn lane_stats(&self) -> tally_lanes::Stats {
        self.lane.stats()
    }

    /// How many score lanes there are.
    pub fn lanes(&self) -> usize {
        self.lane.count()
    }

    /// Counters of the ledger's lane.
    pub fn ledger_stats(&self) -> tally_lanes::Stats {
        self.ledger.stats()
    }

    /// The time of the score lanes' requests by stage, waiting first.
    pub fn lane_times(&self) -> [(&'static str, Times); 4] {
        let (stats, (read, commit)) = (self.lane.stats(), self.lane.times());
        [("queue", stats.queued), ("read", read), ("commit", commit), ("publish", stats.publishing)]
    }

    /// The same of the ledger's lane, which has nothing to publish.
    pub fn ledger_times(&self) -> [(&'static str, Times); 3] {
        let (stats, (read, commit)) = (self.ledger.stats(), self.ledger.times());
        [("queue", stats.queued), ("read", read), ("commit", commit)]
    }
}
