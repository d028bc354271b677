//! What a rejection says to people.

use super::{Rejection, WrongField};
use crate::contest::state::{ContestRight, ContestState};
use crate::instant::Micros;
use crate::ledger::id::MemberId;
use crate::ledger::money::Currency;
use crate::webhook::WEBHOOKS_MAX;

const PERIOD_NOT_FOUND: &str =
    "no such period; `GET /v1/leaderboards/{board}/periods` lists those of the leaderboard";
const LEADERBOARD_DAMAGED: &str = "stored rows of this leaderboard are damaged, so it is unavailable; the log and `tally verify` report them";
const LAST_ADMIN_KEY: &str = "this is the last key of role admin: without one only commands on the server's machine can \
    make keys; to revoke it all the same, send `force=true` (`tally keys revoke --force`)";
const DELIVERY_WAITS: &str = "an earlier event of this topic was not delivered; send that one again first";
const RESERVED_NAME: &str = "names that begin with `contest:` are kept for contests: choose another";
const TOO_MANY_BOARDS: &str =
    "the limit of leaderboards is reached: delete one, or raise the setting `limits.boards`";
const TOO_MANY_KEYS: &str = "the limit of keys is reached: revoke one, or raise the setting `limits.keys`";
const KEY_REUSED: &str = "this Idempotency-Key was used for another request; use a new key for a new request";
const APPLICATIONS_LOST: &str =
    "the Redis that had this contest's applications has lost them; `open` begins to take them anew";
const KEY_IN_PROGRESS: &str = "the request of this Idempotency-Key is still running; retry later";
const ALREADY_REJECTED: &str =
    "the player was rejected, which stays: it can neither apply again nor withdraw its application";
const STAFF_CANNOT_APPLY: &str = "the player is staff of this contest, and staff does not take part";

impl Rejection {
    /// A sentence for people, with the next step if there is one.
    pub fn detail(&self) -> String {
        match self {
            Self::IdempotencyKeyReused => KEY_REUSED.into(),
            Self::IdempotencyInProgress => KEY_IN_PROGRESS.into(),
            Self::LeaderboardDamaged => LEADERBOARD_DAMAGED.into(),
            Self::LeaderboardNotFound(near) => no_board(near.as_deref()),
            Self::DefinitionConflict(fields) => conflict(fields),
            Self::InvalidDefinition(wrong) => wrong.why.clone(),
            Self::ReservedName => RESERVED_NAME.into(),
            Self::TooManyBoards => TOO_MANY_BOARDS.into(),
            Self::TooManyKeys => TOO_MANY_KEYS.into(),
            Self::PeriodHasHistory(name) => has_history(name),
            Self::PeriodNotFound => PERIOD_NOT_FOUND.into(),
            Self::PeriodClosed(at) => period_closed(*at),
            Self::InvalidScore(why) | Self::InvalidSubscore(why) => (*why).into(),
            Self::AtInFuture(at) => in_future(*at),
            Self::ScoreOverflow(sum) => overflow(*sum),
            Self::TooManyAtOnce(most) => at_once(*most),
            Self::PlayerNotRanked => "the player has no rank on this leaderboard".into(),
            Self::PlayerNotFound => "no such player".into(),
            Self::KeyNotFound => "no such key".into(),
            Self::LastAdminKey => LAST_ADMIN_KEY.into(),
            Self::ImportRepeated { board, lines } => repeated(board.as_deref(), *lines),
            Self::ImportOutOfOrder(done) => format!("lines up to {done} are imported: send the next ones"),
            Self::ContestNotFound => "no such contest".into(),
            Self::ContestExists(id) => exists("contest", id),
            Self::SeriesNotFound => "no such series of contests".into(),
            Self::SeriesExists(id) => exists("series of contests", id),
            Self::Forbidden(right) => forbidden(*right).into(),
            Self::ContestState(state) => out_of_state(*state),
            Self::ContestFrozen { state, fields } => frozen(*state, fields),
            Self::InvalidContest(wrong) => all_wrong(wrong),
            Self::ContestTooLarge(most) => too_large(*most),
            Self::ApplicationsLost => APPLICATIONS_LOST.into(),
            Self::AlreadyApplied(state) => format!("the player has applied already (state `{state}`)"),
            Self::NoAttemptsLeft { player, most } => no_attempts(player.as_str(), *most),
            Self::AlreadyRejected => ALREADY_REJECTED.into(),
            Self::StaffCannotApply => STAFF_CANNOT_APPLY.into(),
            Self::ContestFull(places) => full(*places),
            Self::NotApplied => "the player has no application".into(),
            Self::PlayerWithoutWallet(currency) => without_wallet(*currency),
            Self::InvalidApplications { accepted, failed } => invalid(*accepted, failed.len()),
            Self::NotAMember { player, contest } => not_a_member(player.as_str(), contest),
            Self::BoardInUse(contest) => in_use(contest),
            Self::PinLocked { retry_after_s } => pin_locked(*retry_after_s),
            Self::InvalidPin => "the PIN is wrong".into(),
            Self::InvalidAmount => "an amount is a whole number of the smallest unit, 1 or more".into(),
            Self::TransactionNotFound => "no such transaction".into(),
            Self::HoldNotFound => "no such hold".into(),
            Self::HoldExpired => "the hold has expired; what it held is free again".into(),
            Self::HoldResolved(state, at) => format!("the hold was {state} at {at}, and a hold ends once"),
            Self::ExceedsHold { amount, held } => format!("the amount {amount} exceeds the held {held}"),
            Self::NotReversible => "a reversal cannot be reversed; make the transfer again instead".into(),
            Self::ExceedsReversible { left } => exceeds_reversible(*left),
            Self::HoldExpiryInPast { at, now } | Self::CreditExpiryInPast { at, now } => expired(*at, *now),
            Self::CurrencyMismatch { currency, known } => not_a_currency(*currency, known),
            Self::NotTransferable(currency) => not_transferable(*currency),
            Self::NotWithdrawable(currency) => not_withdrawable(*currency),
            Self::SameWallet(member) => same_wallet(*member),
            Self::MemberNotFound => "no such member".into(),
            Self::RecipientNotFound => "the receiving member does not exist".into(),
            Self::WalletNotFound(currency) => no_wallet(*currency),
            Self::MemberClosed(member) => format!("the member `{}` was closed", member.0),
            Self::LimitExceeded(limit) => limit.detail(),
            Self::MintCapReached(reached) => reached.to_string(),
            Self::InsufficientFunds { needed, available } => insufficient(*needed, *available),
            Self::LinkedFailed { nth, code } => linked(*nth, code),
            Self::LoginTaken(login) => format!("another member has the login `{login}`"),
            Self::PhoneTaken(number) => format!("another member has the phone number `{number}`"),
            Self::PlayerTaken(player) => format!("another member has the player `{}`", player.as_str()),
            Self::PlayerInContest(contest) => in_contest(contest),
            Self::WalletNotEmpty(balances) => not_empty(balances),
            Self::WebhookNotFound => "no such webhook".into(),
            Self::TooManyWebhooks => too_many_webhooks(),
            Self::DeliveryNotFound => "no such event: events are kept for 7 days".into(),
            Self::DeliveryWaits => DELIVERY_WAITS.into(),
        }
    }
}

/// What the state of a contest means for whatever was asked of it.
fn out_of_state(state: ContestState) -> String {
    let so_far = match state {
        ContestState::Draft | ContestState::Open => " and has not started yet",
        ContestState::Running => " and not settled yet",
        ContestState::Finished => ": it takes no more scores, and is not settled yet",
        ContestState::Settled => ": its scores and prizes are final",
        ContestState::Cancelled => ": it takes no more scores, and pays entry fees back by itself",
    };
    format!("the contest is {state}{so_far}")
}

fn no_board(near: Option<&str>) -> String {
    let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    format!("no such leaderboard{near}")
}

fn at_once(most: usize) -> String {
    format!("one request removes at most {most} players, and these are more: remove them in several requests")
}

fn no_attempts(player: &str, most: u32) -> String {
    format!("a player of this contest submits at most {most} scores, and `{player}` has")
}

fn not_transferable(currency: Currency) -> String {
    format!("members cannot transfer {currency} (setting `wallet.transfers`)")
}

fn not_withdrawable(currency: Currency) -> String {
    format!("{currency} cannot be withdrawn (setting `wallet.withdrawals`)")
}

fn no_wallet(currency: Currency) -> String {
    format!("the member has no wallet in {currency}: the first deposit makes one")
}

fn linked(nth: usize, code: &str) -> String {
    format!("transfer {nth} of the linked group failed (`{code}`), so none was made")
}

fn too_many_webhooks() -> String {
    format!("there are {WEBHOOKS_MAX} webhooks, the most there may be: delete one")
}

fn period_closed(at: Option<Micros>) -> String {
    match at {
        None => "the period is closed, so its scores can no longer change".into(),
        Some(at) => format!(
            "no period takes a score of {at} any more: those of this leaderboard are closed; an import fills closed periods"
        ),
    }
}

fn in_future(at: Micros) -> String {
    format!(
        "`at` is {at}, more than 5 s ahead of the server's clock: send the time of the score, or leave `at` out"
    )
}

fn overflow(sum: Option<i128>) -> String {
    match sum {
        None => "the sum is not a number; a correction sets the score".into(),
        Some(sum) if sum > 0 => {
            format!("the sum would be {sum}, and a score is at most {}; a correction sets it lower", i64::MAX)
        }
        Some(sum) => {
            format!(
                "the sum would be {sum}, and a score is at least {}; a correction sets it higher",
                i64::MIN
            )
        }
    }
}

fn repeated(board: Option<&str>, lines: u64) -> String {
    let into = board.map(|board| format!(" into `{board}`")).unwrap_or_default();
    format!("this file was imported{into} before, with {lines} lines: nothing was done")
}

fn not_a_member(player: &str, contest: &str) -> String {
    format!(
        "`{player}` does not play on this leaderboard of the contest `{contest}`: only its players submit here"
    )
}

fn expired(at: Micros, now: Micros) -> String {
    format!("`expires_at` is {at}, and it is {now} by the server's clock: send an instant in the future")
}

fn list(currencies: &[Currency]) -> String {
    currencies.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn not_a_currency(currency: Currency, known: &[Currency]) -> String {
    format!(
        "`{currency}` is not a currency of this server: {} (settings `wallet.currency`, `currencies`)",
        list(known)
    )
}

fn same_wallet(member: MemberId) -> String {
    format!("payer and recipient are the same member, `{}`: send the `id` of another recipient", member.0)
}

fn not_empty(balances: &[(Currency, i64)]) -> String {
    let all: Vec<String> = balances.iter().map(|(currency, units)| format!("{units} {currency}")).collect();
    let listed = match all.as_slice() {
        [] => String::new(),
        all => format!(": {}, in smallest units", all.join(", ")),
    };
    format!(
        "there is money in the member's wallets{listed}; withdraw it first, or close the member with `\"force\":true`, \
         which an erasure does not take"
    )
}

fn exists(what: &str, id: &str) -> String {
    format!("there is a {what} `{id}` already: choose another `id`, or change it with PATCH")
}

fn full(places: u32) -> String {
    format!("all {places} places are taken; before the start, raise `capacity` or reject an accepted player")
}

fn without_wallet(currency: Option<Currency>) -> String {
    match currency {
        Some(currency) => {
            format!("the player has no wallet in {currency} for the entry fee: the first deposit makes one")
        }
        None => {
            "the player is no member, and this contest has a fee or prizes: make a member with this `player` \
                 first"
                .into()
        }
    }
}

fn invalid(accepted: usize, failed: usize) -> String {
    format!(
        "{failed} of {accepted} accepted applications are invalid (`failed`): reject them, or set `on_invalid` to `skip`"
    )
}

fn in_use(contest: &str) -> String {
    format!("the leaderboard belongs to the contest `{contest}`: change or cancel the contest instead")
}

fn insufficient(needed: i64, available: i64) -> String {
    format!(
        "the wallet can pay {available} for this and {needed} are needed, in the smallest unit of its currency"
    )
}

fn exceeds_reversible(left: i64) -> String {
    match left {
        0 => "all of the transfer is reversed already".into(),
        left => format!("the amount exceeds what is left of the transfer: {left}"),
    }
}

fn forbidden(right: ContestRight) -> &'static str {
    match right {
        ContestRight::Staff => {
            "permission denied: this needs a key of role `admin`, or a player of the contest's `staff`: a member, or the \
             player that a key names in `Tally-Acting-Player`"
        }
        ContestRight::Key => {
            "permission denied: this needs a key of role `server` or `admin`, or one with the scope `contests:manage`"
        }
        ContestRight::Own => {
            "permission denied: a player applies and withdraws for itself, or a key with the scope `contests:manage` does it"
        }
    }
}

fn frozen(state: ContestState, fields: &[&'static str]) -> String {
    format!("the contest is {state}, so these fields can no longer change: {}", fields.join(", "))
}

fn all_wrong(fields: &[WrongField]) -> String {
    let all = fields.iter().map(|one| format!("{} {}", one.pointer, one.why));
    all.collect::<Vec<_>>().join("; ")
}

fn conflict(fields: &[&'static str]) -> String {
    let fields = fields.join(", ");
    format!("the leaderboard exists with other values of: {fields}; only `periods` can be changed")
}

fn too_large(most: u32) -> String {
    format!(
        "a contest of this kind has at most {most} players or applications (settings `contests.members_max`, \
         `contests.paying_members_max` and `contests.applications_max`)"
    )
}

fn pin_locked(retry_after_s: u32) -> String {
    format!("too many wrong PINs; try again in {retry_after_s} s")
}

fn has_history(name: &str) -> String {
    format!(
        "the change deletes scores of the periods `{name}`: send `remove_periods=true` to delete them, or keep the rule and its `keep`"
    )
}

fn in_contest(contest: &str) -> String {
    format!(
        "the player has an entry in the contest `{contest}`, or is staff of the contest or series of that name: change that, or change \
         the player when the contest has ended"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::PlayerId;
    use crate::instant::SECOND;
    use crate::ledger::hold::HoldState;

    #[test]
    fn sentences_have_the_values_and_the_next_step() {
        let (won, dollars) = (Currency::parse("KRW").unwrap(), Currency::parse("USD").unwrap());
        let at = Micros(1_893_456_000 * SECOND);
        let player = PlayerId::new("zzz").unwrap();
        for (rejection, wanted) in [
            (
                Rejection::AtInFuture(at),
                "`at` is 2030-01-01T00:00:00Z, more than 5 s ahead of the server's clock: send the time of the score, or leave `at` out",
            ),
            (
                Rejection::ScoreOverflow(Some(i128::from(i64::MAX) + 1)),
                "the sum would be 9223372036854775808, and a score is at most 9223372036854775807; a correction sets it lower",
            ),
            (
                Rejection::ImportRepeated { board: Some("goals".into()), lines: 3 },
                "this file was imported into `goals` before, with 3 lines: nothing was done",
            ),
            (
                Rejection::ContestExists("cup".into()),
                "there is a contest `cup` already: choose another `id`, or change it with PATCH",
            ),
            (
                Rejection::NoAttemptsLeft { player, most: 3 },
                "a player of this contest submits at most 3 scores, and `zzz` has",
            ),
            (
                Rejection::HoldResolved(HoldState::Voided, at),
                "the hold was voided at 2030-01-01T00:00:00Z, and a hold ends once",
            ),
            (Rejection::ExceedsHold { amount: 50, held: 10 }, "the amount 50 exceeds the held 10"),
            (
                Rejection::CurrencyMismatch { currency: dollars, known: vec![won] },
                "`USD` is not a currency of this server: KRW (settings `wallet.currency`, `currencies`)",
            ),
            (
                Rejection::WalletNotFound(dollars),
                "the member has no wallet in USD: the first deposit makes one",
            ),
            (
                Rejection::LinkedFailed { nth: 2, code: "insufficient_funds" },
                "transfer 2 of the linked group failed (`insufficient_funds`), so none was made",
            ),
            (
                Rejection::BoardInUse("cup".into()),
                "the leaderboard belongs to the contest `cup`: change or cancel the contest instead",
            ),
        ] {
            assert_eq!(rejection.detail(), wanted);
        }
    }
}
