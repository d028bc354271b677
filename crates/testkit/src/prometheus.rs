//! A Prometheus of Debian that scrapes servers under test and evaluates rules, removed with the value.
//!
//! Rules are those that are shipped, with shorter times: a test must not wait for minutes. Their thresholds stay. Not here: what
//! the rules say, and `promtool`.

use crate::http::{Client, segment};
use crate::process::{ProcessPlan, Server};
use crate::{GIVE_UP, wait_until};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The window of rates and increases.
const WINDOW: &str = "[10s]";
const INTERVAL: &str = "500ms";
const POLL_PAUSE: Duration = Duration::from_millis(20);

/// A running server.
#[derive(Debug)]
pub struct ScratchPrometheus(Server);

impl ScratchPrometheus {
    /// One that scrapes these servers, each under a name, with these rules.
    ///
    /// # Panics
    ///
    /// If it is missing or does not start; the message has its log.
    #[track_caller]
    pub fn start(rules: &str, targets: &[(&str, SocketAddr)]) -> Self {
        let mut config = format!(
            "global: {{ scrape_interval: {INTERVAL}, scrape_timeout: {INTERVAL}, evaluation_interval: {INTERVAL} }}\n\
             rule_files: [rules.yml]\nscrape_configs:\n  - job_name: tally\n    static_configs:\n"
        );
        for (name, address) in targets {
            let target = format!("      - {{ targets: ['{address}'], labels: {{ instance: {name} }} }}");
            writeln!(config, "{target}").expect("a string takes everything");
        }
        let rules = shortened(rules);
        Self(Server::start("prometheus", |folder, port| {
            std::fs::write(folder.join("prometheus.yml"), &config).expect("the folder can be written");
            std::fs::write(folder.join("rules.yml"), &rules).expect("the folder can be written");
            let args = [
                "--config.file=prometheus.yml".to_owned(),
                "--storage.tsdb.path=data".to_owned(),
                format!("--web.listen-address=127.0.0.1:{port}"),
            ];
            let args = args.map(Into::into).into();
            ProcessPlan {
                program: "prometheus".into(),
                args,
                ready: "Server is ready to receive web requests",
            }
        }))
    }

    /// The value of an expression with one sample; `None` without one.
    pub fn value(&self, expression: &str) -> Option<f64> {
        let target = format!("/api/v1/query?query={}", segment(expression));
        let answer = Client::new(self.0.address()).get(&target).expect(200);
        answer["data"]["result"][0]["value"][1].as_str().map(|text| text.parse().expect("a number"))
    }

    /// The names of alerts that fire now, of at most some of them.
    pub fn firing(&self) -> Vec<String> {
        let target = "/api/v1/query?query=".to_owned()
            + &segment(r#"topk(9, count by (alertname) (ALERTS{alertstate="firing"}))"#);
        let answer = Client::new(self.0.address()).get(&target).expect(200);
        let result = answer["data"]["result"].as_array().cloned().unwrap_or_default();
        result.iter().map(|one| one["metric"]["alertname"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Waits until each of these alerts has fired for this server: some end soon after their cause, in any order.
    #[track_caller]
    pub fn wait_firing(&self, alerts: &[&str], instance: &str) {
        let fires = |alert: &str| {
            let labels = format!(r#"alertstate="firing",alertname="{alert}",instance=~"{instance}""#);
            self.value(&format!("count(ALERTS{{{labels}}})")).is_some()
        };
        let (started, mut left) = (Instant::now(), alerts.to_vec());
        loop {
            left.retain(|alert| !fires(alert));
            if left.is_empty() {
                return;
            }
            assert!(started.elapsed() < GIVE_UP, "of {instance} never fire: {left:?}");
            std::thread::sleep(POLL_PAUSE);
        }
    }

    /// Waits until each server was scraped several times.
    #[track_caller]
    pub fn wait_scraped(&self, servers: usize) {
        let expression = "count(count_over_time(tally_ready[1m]) >= 4)";
        wait_until("all are scraped", || self.value(expression) == Some(servers as f64));
    }
}

/// Rules with short times.
fn shortened(rules: &str) -> String {
    let line = |line: &str| -> String {
        if line.trim_start().starts_with("for: ") {
            return "        for: 1s".to_owned();
        }
        let mut text = String::new();
        let mut rest = line;
        while let Some((before, behind)) = rest.split_once('[').filter(|_| line.contains("expr: ")) {
            text.push_str(before);
            text.push_str(WINDOW);
            rest = behind.split_once(']').map_or("", |(_, behind)| behind);
        }
        text + rest
    };
    rules.lines().map(|one| line(one) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_times_are_shortened() {
        let rule =
            "        expr: 'rate(a[5m]) + rate(b[1h]) > 300'\n        for: 10m\n        summary: '[5m]'\n";
        let short =
            "        expr: 'rate(a[10s]) + rate(b[10s]) > 300'\n        for: 1s\n        summary: '[5m]'\n";
        assert_eq!(shortened(rule), short);
    }
}
