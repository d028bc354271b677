//! The Redis of applications: whether it responds, whether it may evict them, and what happens to them when it ends.
//!
//! They are stored nowhere else. An evicted key is detected and reported as a loss. So is every restart, because a file of
//! Redis may lack what was acknowledged. So persistence is worth its cost only for other data in it. Not here: the Redis of
//! rankings, which is loaded again after any loss.

use super::Report;
use tally_ranking::redis::{Probe, RedisApplications};

/// Reports the settings of each node, and what they should be.
pub(super) fn examine(report: &mut Report, redis: Option<&RedisApplications>) {
    let Some(redis) = redis else { return report.ok("applications: in the store") };
    let address = redis.address();
    match redis.probe() {
        Ok(nodes) => {
            for node in &nodes {
                check(report, &address, node);
            }
        }
        Err(error) => report.wrong(&format!(
            "applications {address}: {error}: contests that have their applications there take none, and do not start"
        )),
    }
}

fn check(report: &mut Report, address: &str, node: &Probe) {
    let text = |name: &str| node.says.get(name).map_or("(not told)", String::as_str);
    let number = |name: &str| text(name).parse::<u64>().unwrap_or(0);
    let name = if node.says.contains_key("valkey_version") { "valkey" } else { "redis" };
    let version = text(if name == "valkey" { "valkey_version" } else { "redis_version" });
    report.ok(&format!("applications {address}: {} is {name} {version}", node.node));
    let (policy, most, evicted) = (text("maxmemory_policy"), number("maxmemory"), number("evicted_keys"));
    let line = format!("{}: maxmemory-policy = {policy}, maxmemory = {most}", node.node);
    if policy == "noeviction" {
        report.ok(&line);
    } else if evicted > 0 {
        report.wrong(&format!(
            "{line}: it has evicted {evicted} keys, which may be applications; set noeviction"
        ));
    } else if most == 0 {
        report.warn(&format!("{line}: with a bound it would evict applications; set noeviction"));
    } else {
        report.wrong(&format!("{line}: it evicts applications when it is full; set noeviction"));
    }
    let saves = if text("aof_enabled") == "1" { "appendonly = yes" } else { "appendonly = no" };
    let line = format!(
        "{}: {saves}: a restart or a failover loses the applications of contests that are open",
        node.node
    );
    report.warn(&format!(
        "{line}, saved or not, because its file may lack what was acknowledged; `applications.url = \"store\"` keeps them"
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_wrong(says: &[(&str, &str)]) -> bool {
        let says = says.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut report = Report::default();
        check(&mut report, "redis://here", &Probe { node: "here:1".into(), says });
        report.is_wrong()
    }

    #[test]
    fn what_evicts_applications_is_wrong() {
        let policy = |policy, most, evicted| {
            is_wrong(&[("maxmemory_policy", policy), ("maxmemory", most), ("evicted_keys", evicted)])
        };
        assert!(!policy("noeviction", "1048576", "0"));
        // Evictions from before the policy was set.
        assert!(!policy("noeviction", "1048576", "5"));
        assert!(!policy("allkeys-lru", "0", "0"), "nothing is evicted without a bound");
        assert!(policy("allkeys-lru", "1048576", "0"));
        assert!(policy("volatile-ttl", "1048576", "0"), "what is kept of requests has a time to live");
        assert!(policy("allkeys-lru", "0", "5"));
        assert!(
            !is_wrong(&[("redis_version", "7.0.0"), ("aof_enabled", "0")]),
            "a loss is told, never silent"
        );
    }
}
