//! Checks that a running server repeats: the database's settings, its pool, the Redis of rankings and of applications. And the warning of its start.
//!
//! Each round is a few cheap queries, off the threads that serve requests. A finding stays until a later round no longer
//! has it. Not here: checks that read everything (ranks against rows, the ledger) or need a target rate.

use super::{DoctorReport, pool, redis_of, settings};
use crate::config::Config;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tally_ranking::RedisApplications;
use tally_server::{Finding, Readiness};
use tally_service::RankingBackend;
use tally_store::mysql::MySqlStore;

/// The interval of rounds.
const PAUSE: Duration = Duration::from_secs(60);

/// The components to check.
#[derive(Clone)]
pub(crate) struct RepeatedChecks {
    pub(crate) config: Config,
    pub(crate) databases: Vec<Arc<MySqlStore>>,
    pub(crate) ranking: RankingBackend,
    pub(crate) applications: Option<RedisApplications>,
    /// Of the start: why limits of connections were lowered.
    pub(crate) warning: Option<String>,
}

impl RepeatedChecks {
    /// Repeats the checks, and passes the findings to the readiness gate.
    pub(crate) async fn watch(self, gate: &Readiness) -> Infallible {
        loop {
            let this = self.clone();
            let found = tokio::task::spawn_blocking(move || this.findings()).await;
            if let Ok(Some(findings)) = found {
                gate.set_findings(findings);
            }
            gate.security.flush();
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The present findings; `None` if a database does not respond, which is reported elsewhere.
    fn findings(&self) -> Option<Vec<Finding>> {
        let mut report = DoctorReport::default();
        for (number, database) in (1..).zip(&self.databases) {
            let before = report.findings.len();
            settings::check(&mut report, &database.probe().ok()?);
            if self.databases.len() > 1 {
                let of_this = report.findings[before..].iter_mut();
                of_this.for_each(|one| one.text = format!("shard {number}: {}", one.text));
            }
        }
        if !self.databases.is_empty() {
            pool::check(&mut report, &self.config).ok()?;
        }
        redis_of(&mut report, &self.ranking, self.applications.as_ref());
        report.findings.extend(self.warning.clone().map(|text| Finding {
            wrong: false,
            code: "file_descriptors",
            text,
        }));
        Some(report.findings)
    }
}
