//! Players: found, ranked on many leaderboards at once, banned and corrected.

use super::operations::Tour;
use serde_json::json;
use tally_testkit::Request;

/// They have scores already.
pub(super) fn found(tour: &mut Tour<'_>) {
    tour.good("findPlayers", 200, Request::new("GET", "/v1/players?prefix=PE&limit=5"));
    tour.example("listPlayerRanks", 200);
    let again = Request::new("GET", "/v1/players/zico/ranks?limit=1").header("Tally-Int64", "string");
    tour.good("listPlayerRanks", 200, again);
    tour.good("listPlayerRanks", 200, Request::new("GET", "/v1/players/zico/ranks?closed=true"));
    tour.example("listRanks", 200);
}

pub(super) fn banned(tour: &mut Tour<'_>) {
    let ban = |verb: &str| Request::new("POST", format!("/v1/leaderboards/goals/players/{verb}"));
    tour.good("banPlayer", 200, ban("zico/ban"));
    tour.good("banPlayer", 200, ban("pele/ban"));
    let page = tour.good("listBans", 200, Request::new("GET", "/v1/leaderboards/goals/bans?limit=1"));
    let cursor = page["next_cursor"].as_str().expect("there are two");
    let next = format!("/v1/leaderboards/goals/bans?cursor={cursor}");
    tour.good("listBans", 200, Request::new("GET", next));
    tour.good("listPlayerRanks", 200, Request::new("GET", "/v1/players/zico/ranks"));
    tour.good("restorePlayer", 200, ban("zico/restore"));
    tour.good("restorePlayer", 200, ban("pele/restore"));
    tour.example("correctPlayerScore", 200);
    tour.good("listAudit", 200, Request::new("GET", "/v1/audit?limit=1&subject_prefix=pe"));
}

pub(super) fn refused(tour: &mut Tour<'_>) {
    let closed = json!({"score": 1, "reason": "r", "period": "monthly:1971-07-01"});
    let closed = Request::new("POST", "/v1/leaderboards/months/players/pele/correct").json(&closed);
    tour.refused("correctPlayerScore", 409, "period_closed", &closed);
    let shorter = Request::new("PUT", "/v1/leaderboards/goals").json(&json!({"periods": []}));
    tour.refused("putLeaderboard", 409, "period_has_history", &shorter);
}
