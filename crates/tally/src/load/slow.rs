//! The slowest requests of the server while a load ran, each with its longest stage.
//!
//! The server remembers the present and the last minute, and requests of other clients too. Not here: the latencies that the
//! load itself measured (`show`).

use crate::client::Client;
use serde_json::Value;
use std::time::SystemTime;
use tally_load::report::Table;
use ureq::http::Method;

/// The server's slow requests since then; `None` if it shows none to this key.
pub(super) fn read(client: &Client, since: SystemTime) -> Option<Table> {
    let status = client.send(&Method::GET, "/v1/status", None).ok().filter(|answer| answer.status == 200)?;
    let since = jiff::Timestamp::try_from(since).ok()?;
    let at = |one: &Value| one["at"].as_str().and_then(|at| at.parse::<jiff::Timestamp>().ok());
    let requests = status.body["slow_requests"].as_array()?.iter();
    table(requests.filter(|one| at(one).is_some_and(|at| at >= since)))
}

fn table<'a>(requests: impl Iterator<Item = &'a Value>) -> Option<Table> {
    let columns = ["request", "at", "ms", "longest stage", "its share", "meanwhile"];
    let mut table = Table::new("The server's slowest requests of the last two minutes", &columns);
    for one in requests {
        let text = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
        let (ms, cause) = (one["ms"].as_f64().unwrap_or_default(), text("cause"));
        let longest = one["stages_ms"][&cause].as_f64().unwrap_or_default();
        let beside: Vec<&str> = one["beside"].as_array()?.iter().filter_map(Value::as_str).collect();
        table.row(vec![
            format!("{} {}", text("method"), text("route")),
            text("at"),
            format!("{ms:.2}"),
            cause,
            format!("{:.0} %", (100.0 * longest / ms.max(0.001)).min(100.0)),
            beside.join(", "),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_request_has_its_longest_stage_and_its_share() {
        let one = json!({
            "at": "2026-11-21T08:20:00.000000Z", "method": "POST", "route": "/v1/transfers", "status": 201, "ms": 60.0,
            "cause": "commit", "stages_ms": {"queue": 10.0, "commit": 45.0}, "beside": ["flush", "checkpoint"],
        });
        let found = table([&one].into_iter()).expect("there is one");
        let row = [
            "POST /v1/transfers",
            "2026-11-21T08:20:00.000000Z",
            "60.00",
            "commit",
            "75 %",
            "flush, checkpoint",
        ];
        assert_eq!(found.rows, [row.map(str::to_owned).to_vec()]);
        assert!(table([].into_iter()).is_none());
    }
}
