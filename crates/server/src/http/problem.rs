//! The only place that maps a rejection or a fault to an HTTP status.
//!
//! The `match` on rejections has no wildcard, so a new rejection does not compile before it has a status. Internal details
//! of a fault (SQL, addresses) go to the log with the request's id, not to the client.

use super::response::{self, Response};
use crate::faults;
use crate::readiness::NotReady;
use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, HeaderName, HeaderValue, RETRY_AFTER};
use serde_json::{Value, json};
use tally_rules::Rejection;
use tally_rules::contest::start::InvalidApplication;
use tally_rules::rejection::WrongField;
use tally_service::{Failure, Fault};
use tally_wire::Problem;
use tally_wire::fields::FieldError;

pub(super) fn of_rejection(rejection: &Rejection) -> Problem {
    let status = match rejection {
        Rejection::InvalidScore(why) => return Problem::field("/score", *why),
        Rejection::InvalidSubscore(why) => return Problem::field("/subscore", *why),
        Rejection::InvalidContest(wrong) => {
            return Problem::fields(wrong.iter().map(|one| wrong_field(rejection, one)).collect());
        }
        Rejection::LeaderboardNotFound(_)
        | Rejection::ContestNotFound
        | Rejection::SeriesNotFound
        | Rejection::NotApplied
        | Rejection::PeriodNotFound
        | Rejection::PlayerNotRanked
        | Rejection::PlayerNotFound
        | Rejection::KeyNotFound
        | Rejection::WebhookNotFound
        | Rejection::DeliveryNotFound
        | Rejection::TransactionNotFound
        | Rejection::HoldNotFound
        | Rejection::MemberNotFound
        | Rejection::RecipientNotFound
        | Rejection::WalletNotFound(_) => 404,
        Rejection::LeaderboardDamaged => 500,
        Rejection::InvalidPin | Rejection::Forbidden(_) | Rejection::NotAMember { .. } => 403,
        Rejection::PinLocked { .. } => 423,
        Rejection::IdempotencyInProgress
        | Rejection::PeriodClosed(_)
        | Rejection::DefinitionConflict(_)
        | Rejection::PeriodHasHistory(_)
        | Rejection::ImportRepeated { .. }
        | Rejection::ImportOutOfOrder(_)
        | Rejection::HoldExpired
        | Rejection::HoldResolved(..)
        | Rejection::MemberClosed(_)
        | Rejection::LoginTaken(_)
        | Rejection::PhoneTaken(_)
        | Rejection::PlayerTaken(_)
        | Rejection::PlayerInContest(_)
        | Rejection::WalletNotEmpty(_)
        | Rejection::ContestExists(_)
        | Rejection::SeriesExists(_)
        | Rejection::ContestState(_)
        | Rejection::ContestFrozen { .. }
        | Rejection::ApplicationsLost
        | Rejection::AlreadyApplied(_)
        | Rejection::NoAttemptsLeft { .. }
        | Rejection::AlreadyRejected
        | Rejection::BoardInUse(_)
        | Rejection::DeliveryWaits
        | Rejection::LastAdminKey => 409,
        Rejection::IdempotencyKeyReused
        | Rejection::InvalidDefinition(_)
        | Rejection::ReservedName
        | Rejection::TooManyBoards
        | Rejection::TooManyKeys
        | Rejection::TooManyWebhooks
        | Rejection::AtInFuture(_)
        | Rejection::ScoreOverflow(_)
        | Rejection::TooManyAtOnce(_)
        | Rejection::InvalidAmount
        | Rejection::ExceedsHold { .. }
        | Rejection::NotReversible
        | Rejection::ExceedsReversible { .. }
        | Rejection::HoldExpiryInPast { .. }
        | Rejection::CreditExpiryInPast { .. }
        | Rejection::CurrencyMismatch { .. }
        | Rejection::NotTransferable(_)
        | Rejection::NotWithdrawable(_)
        | Rejection::SameWallet(_)
        | Rejection::LimitExceeded(_)
        | Rejection::MintCapReached(_)
        | Rejection::InsufficientFunds { .. }
        | Rejection::LinkedFailed { .. }
        | Rejection::ContestTooLarge(_)
        | Rejection::StaffCannotApply
        | Rejection::ContestFull(_)
        | Rejection::PlayerWithoutWallet(_)
        | Rejection::InvalidApplications { .. } => 422,
    };
    with_more(Problem::new(status, rejection.code(), rejection.detail()), rejection)
}

/// Adds the members that some rejections have beside their code.
fn with_more(mut problem: Problem, rejection: &Rejection) -> Problem {
    match rejection {
        Rejection::ContestState(state) | Rejection::ContestFrozen { state, .. } => {
            problem.more.insert("state".into(), state.as_str().into());
            problem
        }
        Rejection::InsufficientFunds { needed, available } => {
            problem.more.insert("needed".into(), needed.to_string().into());
            problem.more.insert("available".into(), available.to_string().into());
            problem
        }
        Rejection::ExceedsReversible { left } => {
            problem.more.insert("left".into(), left.to_string().into());
            problem
        }
        Rejection::MintCapReached(reached) => {
            problem.more.insert("currency".into(), reached.currency.as_str().into());
            problem.more.insert("cap".into(), reached.cap.to_string().into());
            problem.more.insert("left".into(), reached.left.to_string().into());
            problem
        }
        Rejection::InvalidApplications { failed, .. } => {
            problem.more.insert("failed".into(), failed.iter().map(failed_row).collect());
            problem
        }
        Rejection::InvalidDefinition(wrong) => {
            Problem { errors: vec![wrong_field(rejection, wrong)], ..problem }
        }
        Rejection::IdempotencyInProgress => problem.retry_after(1),
        Rejection::PinLocked { retry_after_s } => problem.retry_after(*retry_after_s),
        _ => problem,
    }
}

/// Leaves out what is in a wallet, unless the caller sees the wallet.
pub(super) fn with_balance_if(sees: bool, problem: Problem) -> Problem {
    let detail = match problem.code {
        _ if sees => return problem,
        "insufficient_funds" => "the wallet can pay less for this than is needed: deposit first".into(),
        "wallet_not_empty" => Rejection::WalletNotEmpty(Vec::new()).detail(),
        _ => return problem,
    };
    Problem::new(problem.status, problem.code, detail)
}

/// A field that a rule rejects.
fn wrong_field(rejection: &Rejection, wrong: &WrongField) -> FieldError {
    FieldError { pointer: wrong.pointer.clone(), code: rejection.code(), detail: wrong.why.clone() }
}

/// An application that prevents a start.
fn failed_row(row: &InvalidApplication) -> Value {
    json!({"player": row.player.as_str(), "code": row.why.as_str(), "detail": row.why.detail()})
}

/// The problem of a failure. It ends here, so it is logged here.
pub(super) fn of_failure(failure: &Failure) -> Problem {
    faults::log(failure);
    match failure {
        Failure::Rejected(rejection) => of_rejection(rejection),
        Failure::Fault(fault) => of_fault(fault),
    }
}

fn of_fault(fault: &Fault) -> Problem {
    match fault {
        Fault::Overloaded => {
            Problem::new(503, "overloaded", "too many requests are waiting; nothing was done, try again").retry_after(1)
        }
        Fault::Draining => {
            let detail = "the server is shutting down; nothing was done, try again at another server or later";
            Problem::new(503, "draining", detail).retry_after(5)
        }
        Fault::StoreUnavailable(_) => {
            let detail = "the store cannot be used now; nothing was done, try again; see /readyz";
            Problem::new(503, "store_unavailable", detail).retry_after(5)
        }
        Fault::Contention(_) => {
            let detail = "other requests changed the same rows at the same time; nothing was done, try again";
            Problem::new(503, "contention", detail).retry_after(1)
        }
        Fault::ShardUnavailable { shard, .. } => {
            let detail = format!("{shard} of the store cannot be used now; nothing was done, try again");
            Problem::new(503, "store_unavailable", detail).retry_after(5)
        }
        Fault::Purging(_) => {
            let detail =
                "rows of a period that was forgotten are still being deleted; nothing was done, try again";
            Problem::new(503, "store_unavailable", detail).retry_after(1)
        }
        Fault::NotClosed => {
            let detail = "a period with prizes is over and not closed yet, because the clock is in doubt or another \
                          server closes it; nothing was done, try again";
            Problem::new(503, "store_unavailable", detail).retry_after(5)
        }
        Fault::ApplicationsUnavailable(_) => {
            let detail =
                "the Redis with the applications of this contest is unavailable; nothing was done, try again";
            Problem::new(503, "applications_unavailable", detail).retry_after(1)
        }
        Fault::RanksUnavailable(_) | Fault::RanksRefused(_) => {
            let detail = "the ranking is unavailable now, so ranks would not be exact; nothing was done; see /readyz";
            Problem::new(503, "loading", detail).retry_after(1)
        }
        Fault::OutcomeUnknown(_) => Problem::new(
            503,
            "outcome_unknown",
            "the store did not answer the commit; send the same request with its Idempotency-Key to learn the outcome",
        )
        .retry_after(5),
        Fault::Damaged(row) => {
            let detail = format!(
                "a stored row that this request needs is damaged (table `{}`); nothing was done; the log and \
                 `tally verify` report the row",
                row.table
            );
            Problem::new(500, "damaged", detail)
        }
        Fault::Archive { file, what } => {
            let detail = format!("`{file}` of the ledger's archive cannot be used: {what}; nothing was done");
            Problem::new(500, "damaged", detail)
        }
        Fault::Broken(_) => {
            Problem::new(500, "internal", "this is a bug; the log has more under the request's id")
        }
    }
}

/// The problem of a change that only the leader of a store may make.
pub(super) fn not_leader(detail: &str) -> Problem {
    Problem::new(503, "not_leader", detail).retry_after(1)
}

/// The problem of a forwarded change that the leader may have made.
pub(super) fn leader_lost() -> Problem {
    let detail = "the leader was lost before it answered, so the change may have been made; a request with an \
                  Idempotency-Key can be sent again to learn the outcome";
    Problem::new(503, "outcome_unknown", detail).retry_after(5)
}

/// The problem of a service that cannot answer now.
pub(super) fn of_not_ready(not_ready: &NotReady) -> Problem {
    let (detail, retry_after_s) = match not_ready {
        NotReady::Draining => return of_fault(&Fault::Draining),
        NotReady::Unsure => {
            ("the store does not answer, or another server has taken it over; ranks would not be exact", 1)
        }
        NotReady::Behind(_) => (
            "this server follows another one, which does not answer: ranks would be older than `follow.age_max`",
            1,
        ),
        NotReady::Lost(_) => (
            "the database has lost commits that it had acknowledged: nothing is answered until everything is read anew; \
             see /readyz",
            1,
        ),
        NotReady::Loading(at) => {
            let seconds = at.eta_s.map_or(1.0, |seconds| seconds.clamp(1.0, 60.0));
            ("ranks are being loaded and would not be exact; see /readyz", seconds as u32)
        }
    };
    let mut problem = Problem::new(503, "loading", detail).retry_after(retry_after_s);
    if let Value::Object(members) = not_ready.members() {
        problem.more = members;
    }
    problem
}

pub(super) fn render(problem: &Problem, instance: &str, request_id: &str) -> Response {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = problem.body(instance, request_id).to_string();
    let mut response = response::with(status, "application/problem+json", body);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(seconds) = problem.retry_after_s {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    for (name, value) in &problem.headers {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A caller must be able to tell it from an unavailable store, and a retry is right at once.
    #[test]
    fn contention_is_503_with_a_code_of_its_own_and_says_that_nothing_was_done() {
        let fault = Fault::Contention("Lock wait timeout exceeded; try restarting transaction".into());
        let problem = of_failure(&Failure::Fault(fault));
        assert_eq!((problem.status, problem.code, problem.retry_after_s), (503, "contention", Some(1)));
        let words = "other requests changed the same rows at the same time; nothing was done, try again";
        assert_eq!(problem.detail, words);
        assert_eq!(problem.row_error(), json!({"code": "contention", "detail": words}), "a row of a batch");
        let answer = render(&problem, "/v1/leaderboards/b/scores", "r");
        assert_eq!((answer.status().as_u16(), &answer.headers()[RETRY_AFTER]), (503, &HeaderValue::from(1)));
    }
}
