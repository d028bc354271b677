//! Contests, applications, players and prizes in replies.

use super::pool;
use crate::api::leaderboards::write_definition;
use crate::time;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tally_rules::contest::application::ApplicationCounts;
use tally_rules::contest::member::UnpaidReason;
use tally_rules::contest::record::StartReport;
use tally_rules::contest::start::InvalidApplication;
use tally_rules::contest::{
    Application, Contest, ContestId, ContestPlayer, ContestRecord, Payout, Prize, division,
};
use tally_rules::{Micros, PlayerId};

/// A contest; `counts` are its counters of applications, if available.
pub fn write(id: &ContestId, record: &ContestRecord, counts: Option<ApplicationCounts>) -> Value {
    let mut answer = json!({"id": id.as_str(), "state": record.state.as_str()});
    let object = answer.as_object_mut().expect("it is one");
    object.extend(write_definition_of(&record.contest));
    object.extend(boards(id, record));
    let count = |of: fn(&ApplicationCounts) -> u32| counts.map(|all| of(&all));
    // `members` is the older name of `players`.
    object.insert(
        "counts".into(),
        json!({"pending": count(|all| all.pending), "accepted": count(|all| all.accepted),
            "rejected": count(|all| all.rejected), "players": record.members, "members": record.members}),
    );
    object.extend(pool::write_account(record));
    object.extend(record.series.as_ref().map(|series| ("series".into(), json!(series.as_str()))));
    object.extend(record.report.as_ref().map(|report| ("start_report".into(), write_report(report))));
    object.insert("created_at".into(), time::format(record.created_at).into());
    object.insert("updated_at".into(), time::format(record.updated_at).into());
    answer
}

pub(super) fn write_definition_of(contest: &Contest) -> Map<String, Value> {
    let at = |at: Option<Micros>| json!(at.map(time::format));
    let fee = contest
        .entry_fee
        .map(|fee| json!({"currency": fee.currency.as_str(), "amount": fee.amount.units().to_string()}));
    let fields = [
        ("title", json!(contest.title)),
        ("staff", contest.staff.iter().map(PlayerId::as_str).collect()),
        ("capacity", json!(contest.capacity)),
        ("on_invalid", json!(contest.on_invalid.as_str())),
        ("auto_accept", json!(contest.auto_accept)),
        ("players_min", json!(contest.players_min)),
        // The older name.
        ("members_min", json!(contest.players_min)),
        ("below_min", json!(contest.below_min.as_str())),
        ("join_s", json!(contest.join_s)),
        ("attempts_max", json!(contest.attempts_max)),
        ("entry_fee", json!(fee)),
        ("leaderboard", write_definition(&contest.leaderboard).into()),
        ("prizes", write_prizes(&contest.prizes)),
        ("prize_ties", json!(contest.prize_ties.as_str())),
        ("pool", pool::write(contest)),
        ("division_size", json!(contest.division_size)),
        ("opens_at", at(contest.opens_at)),
        ("starts_at", at(contest.starts_at)),
        ("ends_at", at(contest.ends_at)),
        ("review_s", json!(contest.review_s)),
    ];
    fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
}

/// A table of prizes.
pub(crate) fn write_prizes(prizes: &[Prize]) -> Value {
    let prize = |one: &Prize| json!({"from": one.from, "to": one.to, "currency": one.currency.as_str(), "amount": one.amount.units().to_string()});
    prizes.iter().map(prize).collect()
}

/// The name of its board, or the names of its divisions' boards, which are known once it has members.
fn boards(id: &ContestId, record: &ContestRecord) -> Vec<(String, Value)> {
    let Some(size) = record.contest.division_size else {
        return vec![("board".into(), json!(id.board(None).as_str()))];
    };
    // `n` and `members` are older names.
    let one = |(n, players)| {
        let board = id.board(Some(n));
        json!({"division": n, "board": board.as_str(), "players": players, "n": n, "members": players})
    };
    let divisions: Value = division::sizes(record.members, size).map(one).collect();
    vec![("board".into(), Value::Null), ("divisions".into(), divisions)]
}

/// The result of a start, with the number of failed applications and the first of them.
fn write_report(report: &StartReport) -> Value {
    let failed: Value = report.first_failed.iter().map(write_failed).collect();
    json!({"enrolled": report.enrolled, "failed_total": report.failed, "failed": failed})
}

/// An application that did not become a member.
pub fn write_failed(row: &InvalidApplication) -> Value {
    json!({"player": row.player.as_str(), "code": row.why.as_str(), "detail": row.why.detail()})
}

/// An application.
#[derive(Clone, Debug, Serialize)]
pub struct ApplicationJson<'a> {
    player: &'a str,
    state: &'static str,
    /// The older name of `state`.
    status: &'static str,
    applied_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hold_id: Option<String>,
}

impl<'a> ApplicationJson<'a> {
    /// An application in a reply.
    pub fn new(player: &'a PlayerId, application: &Application) -> Self {
        Self {
            player: player.as_str(),
            state: application.status.as_str(),
            status: application.status.as_str(),
            applied_at: time::format(application.applied_at),
            hold_id: application.hold.map(|hold| hold.0.to_string()),
        }
    }
}

/// A member of a contest, whether it is banned, and its attempts if they are counted. With `money`, also the member of its wallet.
pub fn write_member(
    player: &PlayerId,
    enrolled: &ContestPlayer,
    (banned, attempts): (bool, Option<u32>),
    money: bool,
) -> Value {
    let mut answer = json!({"player": player.as_str(), "place": enrolled.place + 1, "banned": banned});
    let more = [
        ("division", enrolled.division.map(|n| json!(n))),
        ("attempts", attempts.map(|n| json!(n))),
        ("member", enrolled.member.filter(|_| money).map(|member| json!(member.0.to_string()))),
    ];
    let object = answer.as_object_mut().expect("it is one");
    object.extend(more.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    answer
}

/// A prize or a refund; `of_pool` marks those that a pool pays. With `money`, also its member, its transfer or why there is none,
/// and what was reversed of it.
pub fn write_payout(payout: &Payout, of_pool: bool, money: bool, reversed: Option<i64>) -> Value {
    let mut answer = json!({
        "player": payout.player.as_str(),
        "currency": payout.currency.as_str(),
        "amount": payout.amount.units().to_string(),
    });
    let object = answer.as_object_mut().expect("it is one");
    object.extend((payout.rank > 0).then(|| ("rank".into(), json!(payout.rank))));
    object.extend(of_pool.then(|| ("pool".into(), json!(true))));
    object.extend(payout.division.map(|n| ("division".into(), json!(n))));
    if !money {
        return answer;
    }
    object.extend(payout.has_member().then(|| ("member".into(), json!(payout.member.0.to_string()))));
    object.insert("paid".into(), json!(matches!(payout.paid, Some(Ok(_)))));
    match payout.paid {
        Some(Ok(id)) => drop(object.insert("group_id".into(), json!(id.0.to_string()))),
        // `reason` is the older name of `code`.
        Some(Err(why)) => {
            object.extend(["code", "reason"].map(|name| (name.into(), json!(UnpaidReason::as_str(why)))));
        }
        None => {}
    }
    object.extend(reversed.map(|units| ("reversed".into(), json!(units.to_string()))));
    answer
}
