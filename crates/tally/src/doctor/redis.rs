//! The Redis of rankings and that of applications: whether they respond, their memory, eviction, persistence and time.
//!
//! Applications are stored nowhere else. An evicted key is detected and reported as a loss. So is every restart, because a
//! file of Redis may lack what was acknowledged. Rankings are loaded again from the store after any loss, so an eviction or a
//! restart costs them time and never data. Persistence is worth nothing to them. Not here: whether ranks are right (`ranks`).

use super::DoctorReport;
use tally_ranking::redis::{Probe, RankingError};

/// A Redis with this share of its memory in use is worth a look.
const FULL_PERCENT: u64 = 90;

/// What a Redis is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// Rankings.
    Ranking,
    /// Applications.
    Applications,
}

impl Of {
    fn name(self) -> &'static str {
        match self {
            Self::Ranking => "ranking",
            Self::Applications => "applications",
        }
    }
}

/// Reports each node of a Redis at this address.
pub(super) fn examine(
    report: &mut DoctorReport,
    of: Of,
    address: &str,
    probed: Result<Vec<Probe>, RankingError>,
) {
    match probed {
        Ok(nodes) => nodes.iter().for_each(|node| check(report, of, address, node)),
        Err(error) => {
            let (code, effect) = match of {
                Of::Ranking => {
                    ("ranking_unavailable", "ranks are refused, and scores are taken without them")
                }
                Of::Applications => (
                    "applications_unavailable",
                    "contests that have their applications there take none, and do not start",
                ),
            };
            report.wrong(code, &format!("{} {address}: {error}: {effect}", of.name()));
        }
    }
}

fn check(report: &mut DoctorReport, of: Of, address: &str, node: &Probe) {
    let text = |name: &str| node.says.get(name).map_or("(unknown)", String::as_str);
    let number = |name: &str| node.number(name).unwrap_or(0);
    let name = if node.says.contains_key("valkey_version") { "valkey" } else { "redis" };
    let version = text(if name == "valkey" { "valkey_version" } else { "redis_version" });
    report.ok(&format!("{} {address}: {} is {name} {version}", of.name(), node.node));
    memory(report, of, node);
    match of {
        Of::Ranking => ranking_policy(report, node),
        Of::Applications => applications_policy(report, node),
    }
    let saves = if text("aof_enabled") == "1" { "appendonly = yes" } else { "appendonly = no" };
    let line = format!("{}: {saves}", node.node);
    match of {
        Of::Ranking if number("aof_enabled") == 1 => report.warn(
            "ranking_saved",
            &format!("{line}: rankings are loaded from the store after a restart, so saving them only costs time"),
        ),
        Of::Ranking => report.ok(&line),
        Of::Applications => report.warn(
            "applications_saved",
            &format!(
                "{line}: a restart or a failover loses the applications of contests that are open, saved or not, \
                 because its file may lack what was acknowledged; `applications.url = \"store\"` keeps them"
            ),
        ),
    }
}

/// The bound is the place where writes are refused, or keys evicted.
fn memory(report: &mut DoctorReport, of: Of, node: &Probe) {
    let (used, most) = (node.number("used_memory").unwrap_or(0), node.number("maxmemory").unwrap_or(0));
    let line = format!("{}: used_memory = {used}, maxmemory = {most}", node.node);
    if most > 0 && used >= most / 100 * FULL_PERCENT {
        let what = match of {
            Of::Ranking => "rankings that do not fit are not read",
            Of::Applications => "applications that do not fit are refused",
        };
        report.warn("redis_memory", &format!("{line}: almost full; {what}, so raise maxmemory"));
    } else {
        report.ok(&line);
    }
}

fn ranking_policy(report: &mut DoctorReport, node: &Probe) {
    let policy = node.says.get("maxmemory_policy").map_or("(unknown)", String::as_str);
    let evicted = node.number("evicted_keys").unwrap_or(0);
    let line = format!("{}: maxmemory-policy = {policy}", node.node);
    if policy == "noeviction" {
        report.ok(&line);
    } else if evicted > 0 {
        report.warn(
            "ranking_evicts",
            &format!("{line}: it has evicted {evicted} keys; ranks are refused while a ranking is loaded again; set noeviction"),
        );
    } else {
        report.warn(
            "ranking_evicts",
            &format!("{line}: when it is full it evicts rankings, which are loaded again and evicted again; set noeviction"),
        );
    }
}

fn applications_policy(report: &mut DoctorReport, node: &Probe) {
    let text = |name: &str| node.says.get(name).map_or("(unknown)", String::as_str);
    let number = |name: &str| node.number(name).unwrap_or(0);
    let (policy, most, evicted) = (text("maxmemory_policy"), number("maxmemory"), number("evicted_keys"));
    let line = format!("{}: maxmemory-policy = {policy}, maxmemory = {most}", node.node);
    let code = "applications_evicts";
    if policy == "noeviction" {
        report.ok(&line);
    } else if evicted > 0 {
        let text =
            format!("{line}: it has evicted {evicted} keys, which may be applications; set noeviction");
        report.wrong(code, &text);
    } else if most == 0 {
        report.warn(code, &format!("{line}: with a bound it would evict applications; set noeviction"));
    } else {
        report.wrong(code, &format!("{line}: it evicts applications when it is full; set noeviction"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether it is wrong, and the codes.
    fn found(of: Of, says: &[(&str, &str)]) -> (bool, Vec<&'static str>) {
        let says = says.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut report = DoctorReport::default();
        check(&mut report, of, "redis://here", &Probe { node: "here:1".into(), says });
        (report.is_wrong(), report.findings.iter().map(|one| one.code).collect())
    }

    #[test]
    fn what_evicts_applications_is_wrong() {
        let policy = |policy, most, evicted| {
            let says = [("maxmemory_policy", policy), ("maxmemory", most), ("evicted_keys", evicted)];
            found(Of::Applications, &says).0
        };
        assert!(!policy("noeviction", "1048576", "0"));
        // Evictions from before the policy was set.
        assert!(!policy("noeviction", "1048576", "5"));
        assert!(!policy("allkeys-lru", "0", "0"), "nothing is evicted without a bound");
        assert!(policy("allkeys-lru", "1048576", "0"));
        assert!(policy("volatile-ttl", "1048576", "0"), "what is kept of requests has a time to live");
        assert!(policy("allkeys-lru", "0", "5"));
        let restarts = [("redis_version", "7.0.0"), ("aof_enabled", "0")];
        assert!(!found(Of::Applications, &restarts).0, "a loss is told, never silent");
    }

    #[test]
    fn a_ranking_loses_time_and_never_data() {
        let policy =
            |policy, saves| found(Of::Ranking, &[("maxmemory_policy", policy), ("aof_enabled", saves)]);
        assert_eq!(policy("noeviction", "0"), (false, vec![]));
        assert_eq!(policy("noeviction", "1"), (false, vec!["ranking_saved"]));
        assert_eq!(policy("allkeys-lru", "0"), (false, vec!["ranking_evicts"]));
    }

    #[test]
    fn memory_is_full_near_its_bound_only() {
        let memory = |used, most| {
            let says = [("maxmemory_policy", "noeviction"), ("used_memory", used), ("maxmemory", most)];
            found(Of::Ranking, &says).1
        };
        assert_eq!(memory("1000000", "0"), Vec::<&str>::new());
        assert_eq!(memory("899999", "1000000"), Vec::<&str>::new());
        assert_eq!(memory("900000", "1000000"), ["redis_memory"]);
    }
}
