//! Traces of the binary, as a collector gets them.
//!
//! `collector` is one of the test's own; `requests` has the spans of HTTP, `pipelines` those of the Redis protocol. `away`
//! has their loss where the collector takes nothing. Not here: how spans get there (crate `traces`).

mod away;
mod collector;
mod pipelines;
mod requests;

use crate::TALLY;
use collector::Collector;
use tally_testkit::TestTally;

/// A server that sends its traces to this collector.
fn server(collector: &Collector, ratio: &str, settings: &[(&str, &str)]) -> TestTally {
    let mut all = vec![("TALLY_TRACES_URL", collector.url()), ("TALLY_TRACES_RATIO", ratio.to_owned())];
    all.extend(settings.iter().map(|(name, value)| (*name, (*value).to_owned())));
    let all: Vec<(&str, &str)> = all.iter().map(|(name, value)| (*name, value.as_str())).collect();
    TestTally::start_set(TALLY, &all)
}
