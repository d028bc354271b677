//! The list of scenarios, and running some of them.

use crate::cpu::Cpu;
use crate::error::{During, Error};
use crate::options::Options;
use crate::{
    contest_clear, contest_start, database, drivers, endurance, events, expiry, followers, http,
    hundred_million, index, mixed, page, periods, resp, store, submit, transfer, upsert,
};
use tally_load::report::Report;

/// One measurement with its baseline.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name on a command line and in files.
    pub name: &'static str,
    /// What it measures, in one line.
    pub about: &'static str,
    /// Fails if a requirement is missing, before anything runs.
    needs: fn(&Options) -> Result<(), Error>,
    measure: fn(&Options) -> Result<Report, Error>,
}

/// Every scenario.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "index",
        about: "the order in memory: bytes per member, rank, update, around; beside std maps and Redis",
        needs: |_| Ok(()),
        measure: index::measure,
    },
    Scenario {
        name: "store",
        about: "the write path of the store: the journal beside direct upserts; rates, latencies, bytes per row",
        needs: |_| Ok(()),
        measure: store::measure,
    },
    Scenario {
        name: "submit",
        about: "durable submits on SQLite: the service's lane beside one upsert per transaction",
        needs: |_| Ok(()),
        measure: submit::measure,
    },
    Scenario {
        name: "periods",
        about: "the end of a period of a million players while others submit; beside one big transaction",
        needs: |_| Ok(()),
        measure: periods::measure,
    },
    Scenario {
        name: "http",
        about: "the server over HTTP: submit, top 10, rank, around; beside figures of Nakama",
        needs: http::needs,
        measure: http::measure,
    },
    Scenario {
        name: "events",
        about: "submits beside a thousand open streams of events; beside none, and beside callers that ask again",
        needs: events::needs,
        measure: events::measure,
    },
    Scenario {
        name: "endurance",
        about: "two hours of submits and keyed transfers: memory, descriptors, journal and tables; beside its own begin",
        needs: endurance::needs,
        measure: endurance::measure,
    },
    Scenario {
        name: "resp",
        about: "the server in the Redis protocol: sorted sets; beside redis-server, burst by burst",
        needs: resp::needs,
        measure: resp::measure,
    },
    Scenario {
        name: "page",
        about: "a page of 100 look-ups in Redis and in a cluster: in a loop, in one command, in a pipeline",
        needs: page::needs,
        measure: page::measure,
    },
    Scenario {
        name: "contest-clear",
        about: "a contest's applications in Redis, read and cleared beside up to a million other keys; beside SCAN",
        needs: contest_clear::needs,
        measure: contest_clear::measure,
    },
    Scenario {
        name: "upsert",
        about: "durable submits on MariaDB: the service's lanes beside single and bulk upserts, and the bulk load",
        needs: database::needs,
        measure: upsert::measure,
    },
    Scenario {
        name: "mixed",
        about: "half ranks around a player, half durable submits: memory, Redis, MariaDB, SQLite; beside upsert and ZADD",
        needs: mixed::needs,
        measure: mixed::measure,
    },
    Scenario {
        name: "drivers",
        about: "durable submits on MariaDB: the service's lanes beside a driver that blocks, an ORM, and one that does not",
        needs: database::needs,
        measure: drivers::measure,
    },
    Scenario {
        name: "transfer",
        about: "transfers of money on a filled MariaDB: the ledger's lane beside three flows of statements",
        needs: transfer::needs,
        measure: transfer::measure,
    },
    Scenario {
        name: "hundred-million",
        about: "a hundred million players: filling, memory, recovery, R3's load, a period's end; beside R3 and Redis",
        needs: hundred_million::needs,
        measure: hundred_million::measure,
    },
    Scenario {
        name: "expiry",
        about: "outcomes of requests expire while as many are stored, on SQLite and MariaDB; beside fixed steps",
        needs: expiry::needs,
        measure: expiry::measure,
    },
    Scenario {
        name: "followers",
        about: "a follower of the server that writes: lag, costs, takeovers under load; beside one server started again",
        needs: followers::needs,
        measure: followers::measure,
    },
    Scenario {
        name: "contest-start",
        about: "the start of a contest on SQLite and MariaDB; beside a commit for each member, and a loop of saves",
        needs: database::needs,
        measure: contest_start::measure,
    },
];

impl Scenario {
    /// Runs it.
    ///
    /// # Errors
    ///
    /// If a requirement is missing, an operation fails, or its check does.
    pub fn run(&self, options: &Options) -> Result<Report, Error> {
        options.say(self.name);
        let before = Cpu::now();
        let mut report = (self.measure)(options)?;
        report.others_percent = Cpu::now().zip(before).map(|(now, before)| now.others_percent(before));
        Ok(report)
    }
}

/// Runs scenarios one after the other. Without names it runs all of them; the reports of those with a missing requirement
/// say so. Each report is written to the report directory, if there is one, before the next scenario begins.
///
/// # Errors
///
/// At the first unknown or failed scenario. Names, and the requirements of named scenarios, are checked before anything
/// runs.
pub fn run(names: &[String], options: &Options) -> Result<Vec<Report>, Error> {
    let named = |name: &String| {
        let found = SCENARIOS.iter().find(|scenario| scenario.name == name);
        found.ok_or_else(|| Error::UnknownScenario(name.clone()))
    };
    let chosen: Vec<&Scenario> = if names.is_empty() {
        SCENARIOS.iter().collect()
    } else {
        names.iter().map(named).collect::<Result<_, _>>()?
    };
    let mut missing = Vec::with_capacity(chosen.len());
    for scenario in &chosen {
        missing.push(match (scenario.needs)(options) {
            // `all` means all that can run here.
            Err(Error::Missing(why)) if names.is_empty() => Some(why),
            needs => needs.map(|()| None)?,
        });
    }
    let mut reports = Vec::with_capacity(chosen.len());
    for (scenario, missing) in chosen.into_iter().zip(missing) {
        let report = match missing {
            Some(why) => {
                options.say(&format!("{} is skipped: {why}", scenario.name));
                Report::skipped(scenario.name, scenario.about, why, options)
            }
            None => scenario.run(options)?,
        };
        if let Some(folder) = &options.report_dir {
            report.write(folder).during("write the report")?;
        }
        reports.push(report);
    }
    Ok(reports)
}
