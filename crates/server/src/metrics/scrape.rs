//! The figures of lanes, boards, members, contests and the store, read at a scrape.
//!
//! Each figure becomes a family of a registry that lives as long as the scrape, so one library writes all of the text. Not
//! here: what is counted as it happens.

use crate::machine::Machine;
use crate::readiness::{Parts, Readiness};
use prometheus_client::encoding::{EncodeCounterValue, EncodeGaugeValue, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use tally_service::contests::counts::{COUNTED_MAX, ContestCounts, DUE_MAX};
use tally_service::ledger::archive;
use tally_service::maintenance::expiry_lag;
use tally_service::{COUNTERS, Cut, Probe, Stats, Tally, Times, webhooks};
use tally_traces::SpanCounts;

/// What the figures of all kinds of stores are; a test finds one that is missing.
const OF_STORES: &[(&str, &str)] = &[
    ("file_bytes", "Bytes of the store's file"),
    ("wal_bytes", "Bytes of the write-ahead log of the tables"),
    ("wal_bytes_max", "Bound of the write-ahead log of the tables, in bytes: store.wal_mib"),
    ("checkpoints", "Checkpoints that emptied the write-ahead log of the tables"),
    (
        "checkpoints_hindered",
        "Checkpoints that failed, or that a reader kept from emptying the write-ahead log",
    ),
    ("checkpoint_seconds_last", "Duration of the last checkpoint"),
    ("journal_files", "Files of the journal"),
    ("journal_bytes", "Bytes of the files of the journal"),
    ("unflushed_rows", "Rows of the memtables: changes that are not in the tables yet"),
    ("unflushed_bytes", "Bytes of the memtables"),
    ("unflushed_ratio", "Used part of the room for changes that are not in the tables yet"),
    ("flushes", "Flushes of a memtable into the tables"),
    ("flush_rows", "Rows that flushes wrote into the tables"),
    ("flush_failures", "Flushes that failed; each is tried again"),
    ("flush_seconds_last", "Duration of the last flush"),
    ("slowed_seconds", "Time that writers were slowed because the flush was behind"),
    ("unsynced_transactions", "Relaxed transactions that are answered and not on the disk yet"),
    ("unsynced_bytes", "Bytes of relaxed transactions that are answered and not on the disk yet"),
    ("unsynced_seconds", "Age of the oldest relaxed transaction that is not on the disk yet"),
    ("slow_transactions", "Transactions that took more than 50 ms"),
    ("damaged_rows", "Rows that could not be read since the start"),
    ("connections", "Open connections to databases"),
    ("connections_max", "Bound of connections to databases: store.pool_max"),
    ("connections_used", "Connections to databases that a request or a task uses"),
    ("connections_idle", "Connections to databases that are free"),
    ("connects", "Connections to databases that were opened"),
    ("connection_waits", "Waits for a free connection"),
    ("connection_wait_seconds", "Time of waits for a free connection"),
    ("round_trips", "Messages to databases and their answers"),
    ("transactions_again", "Transactions that began again on a new connection"),
    ("commits_lost", "Commits whose answer was lost"),
    ("commits_unresolved", "Commits whose answer was lost and whose outcome was not known at once"),
    ("lease_seconds", "Time that the lease of this server is still valid"),
    ("clock_ahead_seconds", "How far the clock of this machine is at least ahead of that of the database"),
    ("shards", "Databases of the store"),
    ("shards_silent", "Databases of the store that do not answer"),
    (
        "shards_lagging",
        "Databases of the store that lack a change of a leaderboard, which they get before they are used again",
    ),
];

/// The labels of one sample.
type Labels = Vec<(&'static str, String)>;

/// Histograms that another component recorded.
#[derive(Debug)]
struct Histograms(Vec<(Labels, Times)>);

impl EncodeMetric for Histograms {
    fn encode(&self, mut encoder: MetricEncoder) -> fmt::Result {
        for (labels, times) in &self.0 {
            let mut below = 0;
            let bounds = times.cumulative().map(|(bound, count)| (bound.as_secs_f64(), count));
            let buckets: Vec<(f64, u64)> = bounds
                .chain([(f64::INFINITY, times.count())])
                .map(|(bound, count)| (bound, count - std::mem::replace(&mut below, count)))
                .collect();
            let (sum, count) = (times.sum.as_secs_f64(), times.count());
            if labels.is_empty() {
                encoder.encode_histogram::<Labels>(sum, count, &buckets, None)?;
            } else {
                encoder.encode_family(labels)?.encode_histogram::<Labels>(sum, count, &buckets, None)?;
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

/// The traits that the library needs of a stored value.
trait Figure: fmt::Debug + Send + Sync + 'static {}
impl<T: fmt::Debug + Send + Sync + 'static> Figure for T {}

/// The registry of one scrape.
struct Scrape(Registry);

impl Scrape {
    fn gauge(&mut self, name: &str, help: &str, value: impl EncodeGaugeValue + Figure) {
        self.0.register(name, help, ConstGauge::new(value));
    }

    fn counter(&mut self, name: &str, help: &str, value: impl EncodeCounterValue + Figure) {
        self.0.register(name, help, ConstCounter::new(value));
    }

    fn gauges(&mut self, name: &str, help: &str, samples: impl IntoIterator<Item = (Labels, u64)>) {
        let family = Family::<Labels, Gauge<u64, AtomicU64>>::default();
        for (labels, value) in samples {
            family.get_or_create(&labels).set(value);
        }
        self.0.register(name, help, family);
    }

    fn counters(&mut self, name: &str, help: &str, samples: impl IntoIterator<Item = (Labels, u64)>) {
        let family = Family::<Labels, Counter>::default();
        for (labels, value) in samples {
            family.get_or_create(&labels).inc_by(value);
        }
        self.0.register(name, help, family);
    }

    fn histograms(&mut self, name: &str, help: &str, samples: impl IntoIterator<Item = (Labels, Times)>) {
        self.0.register(name, help, Histograms(samples.into_iter().collect()));
    }
}

fn labels<const N: usize>(labels: [(&'static str, &dyn fmt::Display); N]) -> Labels {
    labels.map(|(name, value)| (name, value.to_string())).into()
}

/// All figures of a scrape; until the server has loaded, those that exist without it.
pub(super) fn registry(readiness: &Readiness) -> Registry {
    let mut scrape = Scrape(Registry::with_prefix("tally"));
    listeners(&mut scrape, readiness);
    start(&mut scrape, readiness);
    readiness.machine.get().inspect(|machine| self::machine(&mut scrape, machine));
    findings(&mut scrape, readiness);
    if let Some(tally) = readiness.loaded() {
        lanes(&mut scrape, &tally);
        boards(&mut scrape, &tally);
        clock(&mut scrape, &tally);
        members(&mut scrape, &tally);
        contests(&mut scrape, tally.contest_counts());
        ledger_and_store(&mut scrape, &tally);
        let help = "1 while this server cannot archive a month of the ledger";
        scrape.gauge("archives_failing", help, u64::from(archive::failure(&tally).is_some()));
        let help = "Time since no outcome of a request or event was left that is past its end";
        scrape.gauge("expiry_lag_seconds", help, expiry_lag(&tally).as_secs_f64());
        redis(&mut scrape, &tally);
        webhooks(&mut scrape, &tally.webhooks.counts);
    }
    scrape.0
}

fn listeners(scrape: &mut Scrape, readiness: &Readiness) {
    let off = SpanCounts::default();
    let spans = readiness.traces.as_ref().map_or(&off, |traces| traces.counts()).all();
    let spans = spans.map(|(outcome, count)| (labels([("outcome", &outcome)]), count));
    scrape.counters("trace_spans", "Spans of sampled requests by outcome", spans);
    let lines = crate::LOG_LINES.all().map(|(outcome, count)| (labels([("outcome", &outcome)]), count));
    scrape.counters("log_lines", "Lines of the log by outcome", lines);
    let counts = &readiness.metrics.resp_counts;
    let answered = counts
        .answered()
        .into_iter()
        .map(|(class, outcome, count)| (labels([("class", &class), ("outcome", &outcome)]), count));
    scrape.counters(
        "resp_commands",
        "Commands of the Redis protocol answered, by class and outcome",
        answered,
    );
    let help = "Time of what arrived together from its arrival until its replies were there";
    scrape.histograms("resp_seconds", help, [(Vec::new(), counts.seconds())]);
}

fn webhooks(scrape: &mut Scrape, counts: &webhooks::DeliveryCounts) {
    let outcomes = [("delivered", &counts.delivered), ("failed", &counts.failed)];
    let outcomes =
        outcomes.map(|(outcome, count)| (labels([("outcome", &outcome)]), count.load(Ordering::Relaxed)));
    scrape.counters("webhook_deliveries", "Attempts to deliver events to webhooks by outcome", outcomes);
    let help = "Disabled webhooks, as seen by the server that delivers";
    scrape.gauge("webhooks_disabled", help, counts.disabled.load(Ordering::Relaxed));
}

fn start(scrape: &mut Scrape, readiness: &Readiness) {
    let parts = Parts::of(readiness.ready().as_deref().ok());
    let help = "1 while the server answers: it has loaded, and is sure of its store";
    scrape.gauge("ready", help, u64::from(parts.store));
    scrape.gauge("ranking_ready", "1 while ranks are answered", u64::from(parts.ranking));
    let help = "1 while applications of contests are answered";
    scrape.gauge("applications_ready", help, u64::from(parts.applications));
    let progress = readiness.progress.snapshot();
    scrape.gauge("loading_rows_done", "Rows loaded in the present phase", progress.done);
    scrape.gauge("loading_rows_total", "Rows to load in the present phase", progress.total);
    let tally = readiness.loaded();
    let following = tally.as_ref().and_then(|tally| tally.following.as_ref());
    scrape.gauge("follows", "1 while the server follows another one", u64::from(following.is_some()));
    let age = following.map_or(0.0, |following| following.age().as_secs_f64());
    scrape.gauge("follow_age_seconds", "How old the ranks of a server that follows may be", age);
    let help = "How often the store was read anew because its database had lost commits";
    scrape.counter("lost_commits_reloads", help, readiness.losses());
    let seconds = readiness.lost().and_then(|lost| lost.seconds()).unwrap_or(0.0);
    let help = "Seconds of commits that were lost at most, the last time";
    scrape.gauge("lost_commits_seconds", help, seconds);
}

/// The disk, the last backup and the certificate.
fn machine(scrape: &mut Scrape, machine: &Machine) {
    if let Some((free, size)) = machine.disk() {
        scrape.gauge("data_disk_free_bytes", "Free space where the data directory is", free);
        scrape.gauge("data_disk_size_bytes", "All space where the data directory is", size);
    }
    if let Some(at) = machine.last_backup() {
        let help = "When `tally backup` last made a checked copy, in seconds since 1970; 0 is never";
        scrape.gauge("backup_last_success_timestamp_seconds", help, at);
    }
    if let Some(at) = machine.last_followed() {
        let help =
            "When `tally backup --follow` last had copied everything, in seconds since 1970; 0 is never";
        scrape.gauge("backup_followed_timestamp_seconds", help, at);
    }
    if let Some(at) = machine.certificate_end() {
        let help = "When the certificate of the listeners ends, in seconds since 1970";
        scrape.gauge("tls_certificate_not_after_timestamp_seconds", help, at);
    }
}

/// The last findings about what the service depends on.
fn findings(scrape: &mut Scrape, readiness: &Readiness) {
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    let findings = readiness.findings();
    for finding in &findings {
        *counts.entry((finding.level(), finding.code)).or_default() += 1;
    }
    let samples = counts
        .into_iter()
        .map(|((level, code), count)| (labels([("level", &level), ("code", &code)]), count));
    scrape.gauges("findings", "Findings of the repeated checks of `tally doctor`", samples);
}

fn lanes(scrape: &mut Scrape, tally: &Tally) {
    let (scores, ledger) = (tally.lane_stats(), tally.ledger_stats());
    let queued_max = tally.settings.lane.queue_requests_max as u64;
    lane(scrape, "lane", &scores, queued_max * tally.lanes() as u64);
    lane(scrape, "ledger_lane", &ledger, queued_max);
    let cuts = [("scores", &scores), ("ledger", &ledger)].into_iter().flat_map(|(lane, stats)| {
        Cut::ALL.map(|cut| (labels([("lane", &lane), ("cut", &cut.name())]), stats.cut(cut)))
    });
    scrape.counters("batch_cut", "Why batches ended", cuts);
    let stage =
        |lane: &'static str| move |(stage, times)| (labels([("lane", &lane), ("stage", &stage)]), times);
    let times = tally.lane_times().map(stage("scores")).into_iter();
    scrape.histograms(
        "lane_seconds",
        "Time of requests in the queue, of batches in the store (read, commit) and in publishing",
        times.chain(tally.ledger_times().map(stage("ledger"))),
    );
}

/// The queue and the counters of a lane; `name` is the prefix of its families.
fn lane(scrape: &mut Scrape, name: &str, lane: &Stats, queued_max: u64) {
    let mut gauge = |what: &str, help: &str, value: u64| scrape.gauge(&format!("{name}_{what}"), help, value);
    gauge("queued_requests", "Requests that wait for a batch", lane.queued_requests);
    gauge("queued_requests_max", "Requests that may wait; more are refused", queued_max);
    gauge("queued_bytes", "Bytes that wait for a batch", lane.queued_bytes);
    gauge("in_flight", "Requests of the batch in flight", lane.in_flight);
    let mut counter =
        |what: &str, help: &str, value: u64| scrape.counter(&format!("{name}_{what}"), help, value);
    counter("refused_full", "Requests refused by a full queue", lane.refused_full);
    counter("requests", "Requests answered", lane.requests);
    counter("rows", "Rows of answered requests", lane.rows);
    counter("batches", "Batches", lane.batches);
    counter("splits", "Batches split to find a poison request", lane.splits);
    counter("retries", "Commits tried again", lane.retries);
    counter("faults", "Requests that failed with the store", lane.faults);
    scrape.counter(&format!("{name}_commit_seconds"), "Time spent in commits", lane.committing.as_secs_f64());
}

fn boards(scrape: &mut Scrape, tally: &Tally) {
    let (boards, now) = (tally.boards.list(None, usize::MAX), tally.now());
    let players: u64 = boards.iter().map(|board| board.members(now)).sum();
    let bytes: u64 = boards.iter().map(|board| board.bytes()).sum();
    scrape.gauge("boards", "Leaderboards", boards.len());
    scrape.gauge("board_members", "Players on all leaderboards", players);
    scrape.gauge("board_bytes", "Memory of all rankings", bytes);
}

fn clock(scrape: &mut Scrape, tally: &Tally) {
    let jump = tally.clock_jump();
    scrape.gauge("clock_believed", "1 while the clock is trusted", u64::from(jump.is_none()));
    let now = tally.now().0 as f64 / 1e6;
    scrape.gauge("clock_timestamp_seconds", "The clock, in seconds since 1970", now);
    let help = "By how much the clock has jumped, while that keeps it in doubt";
    scrape.gauge("clock_jump_seconds", help, jump.unwrap_or(0) as f64 / 1e6);
    let help = "By how much the newest instant that was stored at the start lay ahead of the clock";
    scrape.gauge("clock_newest_ahead_seconds", help, tally.newest_ahead() as f64 / 1e6);
}

fn members(scrape: &mut Scrape, tally: &Tally) {
    let rates = tally.members.cache.rates();
    let found = rates.iter().flat_map(|(cache, rate)| {
        [("hit", rate.hits), ("miss", rate.misses)]
            .map(|(found, count)| (labels([("cache", cache), ("found", &found)]), count))
    });
    scrape.counters("cache_requests", "Lookups by what was found", found);
    let entries = rates.iter().map(|(cache, rate)| (labels([("cache", cache)]), rate.entries));
    scrape.gauges("cache_entries", "Cached entries", entries);
    let waiting = tally.members.waiting();
    scrape.gauge("passwords_waiting", "Passwords that wait to be digested", waiting);
}

/// The number of contests in each state, and what this server has done for them.
fn contests(scrape: &mut Scrape, counts: &ContestCounts) {
    if let Some(now) = counts.state_counts() {
        let states = now.states.iter().map(|(state, count)| (labels([("state", state)]), *count as u64));
        let help = format!("Contests by state, at most {COUNTED_MAX} of each counted");
        scrape.gauges("contests", &help, states);
        let help = format!("Contests with work that runs or is due, at most {DUE_MAX} counted");
        scrape.gauge("contests_due", &help, now.due);
    }
    let entered = counts.entered();
    let entered = entered.iter().map(|(state, count)| (labels([("to", state)]), *count));
    scrape.counters("contests_turned", "How often this server brought a contest into a state", entered);
    let payments = [("prize", counts.prizes()), ("refund", counts.refunds())];
    let payments = payments.iter().flat_map(|(kind, payments)| {
        let paid = (labels([("kind", kind), ("outcome", &"paid")]), payments.paid);
        let unpaid = payments.unpaid.iter();
        [paid]
            .into_iter()
            .chain(unpaid.map(move |(why, count)| (labels([("kind", kind), ("outcome", why)]), *count)))
    });
    scrape.counters("contest_payments", "Prizes and refunds by outcome on this server", payments);
}

fn ledger_and_store(scrape: &mut Scrape, tally: &Tally) {
    if let Some(balanced) = tally.balance.known() {
        let help = "1 while debits and credits of the ledger differ";
        scrape.gauge("ledger_out_of_balance", help, u64::from(!balanced));
    }
    let faults = tally.applications_faults.load(Ordering::Relaxed);
    scrape.counter("applications_faults", "Requests to the Redis of applications that failed", faults);
    for (name, value) in tally.store.gauges() {
        let family = format!("store_{name}");
        let help = OF_STORES.iter().find(|(known, _)| *known == name).map_or("", |(_, help)| help);
        if COUNTERS.contains(&name) {
            scrape.counter(&family, help, value);
        } else {
            scrape.gauge(&family, help, value);
        }
    }
}

/// What each Redis reports of its memory.
fn redis(scrape: &mut Scrape, tally: &Tally) {
    let both = [("ranking", tally.redis.ranking()), ("applications", tally.redis.applications())];
    let of = |name: &str| -> Vec<(Labels, u64)> {
        let of = |part: &str, node: &Probe| {
            Some((labels([("part", &part), ("node", &node.node)]), node.number(name)?))
        };
        both.iter().flat_map(|(part, state)| state.nodes.iter().filter_map(|node| of(part, node))).collect()
    };
    scrape.gauges("redis_memory_used_bytes", "Memory that a Redis uses", of("used_memory"));
    scrape.gauges("redis_memory_max_bytes", "Bound of the memory of a Redis; 0 is none", of("maxmemory"));
}
