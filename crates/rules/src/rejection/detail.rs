//! What a rejection says to people.

use super::{Rejection, WrongField};
use crate::contest::state::{ContestRight, State};
use crate::instant::Micros;
use crate::webhook::WEBHOOKS_MAX;

const PERIOD_NOT_FOUND: &str =
    "no such period; `GET /v1/leaderboards/{board}/periods` lists those of the leaderboard";
const LEADERBOARD_DAMAGED: &str =
    "stored rows of this leaderboard are damaged, so it is unavailable; the log and `tally verify` name them";
const LAST_ADMIN_KEY: &str = "this is the last key of role admin: without one only commands on the server's machine can \
    make keys; to revoke it all the same, send `force=true` (`tally keys revoke --force`)";
const DELIVERY_WAITS: &str = "an earlier event of this topic was not delivered; send that one again first";
const WALLET_NOT_EMPTY: &str =
    "there is money in the member's wallets: take it out; a closing may `force` it, an erasure may not";
const TOO_MANY_BOARDS: &str =
    "the limit of leaderboards is reached: delete one, or raise the setting `limits.boards`";
const TOO_MANY_KEYS: &str = "the limit of keys is reached: revoke one, or raise the setting `limits.keys`";
const KEY_REUSED: &str = "this Idempotency-Key was used for another request; use a new key for a new request";
const APPLICATIONS_LOST: &str =
    "the Redis that had this contest's applications has lost them; `open` begins to take them anew";
const CURRENCY_MISMATCH: &str = "the currency is not configured (settings `wallet.currency`, `currencies`)";
const NOT_TRANSFERABLE: &str = "members cannot transfer this currency (setting `wallet.transfers`)";
const KEY_IN_PROGRESS: &str = "the request of this Idempotency-Key is still running; retry later";
const STAFF_CANNOT_APPLY: &str = "the player is staff of this contest, and staff does not take part";

impl Rejection {
    /// A sentence for people, with the next step if there is one.
    pub fn detail(&self) -> String {
        match self {
            Self::IdempotencyKeyReused => KEY_REUSED.into(),
            Self::IdempotencyInProgress => KEY_IN_PROGRESS.into(),
            Self::LeaderboardNotFound(None) => "no such leaderboard".into(),
            Self::LeaderboardDamaged => LEADERBOARD_DAMAGED.into(),
            Self::LeaderboardNotFound(Some(near)) => format!("no such leaderboard; did you mean `{near}`?"),
            Self::DefinitionConflict(fields) => conflict(fields),
            Self::InvalidDefinition(wrong) => wrong.why.clone(),
            Self::ReservedName => "names that begin with `contest:` are kept for contests".into(),
            Self::TooManyBoards => TOO_MANY_BOARDS.into(),
            Self::TooManyKeys => TOO_MANY_KEYS.into(),
            Self::PeriodHasHistory(name) => has_history(name),
            Self::PeriodNotFound => PERIOD_NOT_FOUND.into(),
            Self::PeriodClosed(at) => period_closed(*at),
            Self::InvalidScore(why) | Self::InvalidSubscore(why) => (*why).into(),
            Self::AtInFuture(at) => in_future(*at),
            Self::ScoreOverflow(sum) => overflow(*sum),
            Self::TooManyAtOnce(most) => {
                format!("one request removes at most {most} players, and these are more")
            }
            Self::PlayerNotRanked => "the player has no rank on this leaderboard".into(),
            Self::PlayerNotFound => "no such player".into(),
            Self::KeyNotFound => "no such key".into(),
            Self::LastAdminKey => LAST_ADMIN_KEY.into(),
            Self::ImportRepeated { board, lines } => repeated(board.as_deref(), *lines),
            Self::ImportOutOfOrder(done) => format!("lines up to {done} are imported: send the next ones"),
            Self::ContestNotFound => "no such contest".into(),
            Self::ContestExists => "there is a contest of this id".into(),
            Self::SeriesNotFound => "no such series of contests".into(),
            Self::SeriesExists => "there is a series of contests of this id".into(),
            Self::Forbidden(right) => forbidden(*right).into(),
            Self::ContestState(state) => format!("the contest is {state}"),
            Self::ContestFrozen { state, fields } => frozen(*state, fields),
            Self::InvalidContest(wrong) => all_wrong(wrong),
            Self::ContestTooLarge(most) => too_large(*most),
            Self::ApplicationsLost => APPLICATIONS_LOST.into(),
            Self::AlreadyApplied => "the player has already applied".into(),
            Self::NoAttemptsLeft { player, most } => {
                format!(
                    "a player of this contest submits at most {most} scores, and `{}` has",
                    player.as_str()
                )
            }
            Self::AlreadyRejected => "the application of this player was rejected".into(),
            Self::StaffCannotApply => STAFF_CANNOT_APPLY.into(),
            Self::ContestFull => "the contest is full: all its places are taken".into(),
            Self::NotApplied => "the player has no application".into(),
            Self::PlayerWithoutWallet => "the player has no wallet for the fee or the prizes".into(),
            Self::InvalidApplications(failed) => format!("{} accepted applications are bad", failed.len()),
            Self::NotAMember { player, contest } => not_a_member(player.as_str(), contest),
            Self::BoardInUse(contest) => in_use(contest),
            Self::PinLocked { retry_after_s } => pin_locked(*retry_after_s),
            Self::InvalidPin => "the PIN is wrong".into(),
            Self::InvalidAmount => "an amount is a whole number of the smallest unit, 1 or more".into(),
            Self::TransactionNotFound => "no such transaction".into(),
            Self::HoldNotFound => "no such hold".into(),
            Self::HoldExpired => "the hold has expired; what it held is free again".into(),
            Self::HoldResolved => "the hold was already captured, voided or expired".into(),
            Self::ExceedsHold => "the amount exceeds the held amount".into(),
            Self::NotReversible => "a reversal cannot be reversed; make the transfer again instead".into(),
            Self::ExceedsReversible { left } => exceeds_reversible(*left),
            Self::HoldExpiryInPast | Self::CreditExpiryInPast => "`expires_at` must be in the future".into(),
            Self::CurrencyMismatch => CURRENCY_MISMATCH.into(),
            Self::NotTransferable => NOT_TRANSFERABLE.into(),
            Self::NotWithdrawable => {
                "this currency cannot be withdrawn (setting `wallet.withdrawals`)".into()
            }
            Self::SameWallet => "payer and recipient are the same wallet".into(),
            Self::MemberNotFound => "no such member".into(),
            Self::RecipientNotFound => "the receiving member does not exist".into(),
            Self::WalletNotFound => "the member has no wallet in this currency".into(),
            Self::MemberClosed => "the member was closed".into(),
            Self::LimitExceeded(limit) => limit.detail(),
            Self::MintCapReached(reached) => reached.to_string(),
            Self::InsufficientFunds { needed, available } => insufficient(*needed, *available),
            Self::LinkedFailed => "another transfer of the same chain was refused, so none was made".into(),
            Self::LoginTaken => "another member has this login".into(),
            Self::PhoneTaken => "another member has this phone number".into(),
            Self::PlayerTaken => "another member has this player".into(),
            Self::PlayerInContest(contest) => in_contest(contest),
            Self::WalletNotEmpty => WALLET_NOT_EMPTY.into(),
            Self::WebhookNotFound => "no such webhook".into(),
            Self::TooManyWebhooks => format!("there are {WEBHOOKS_MAX} webhooks, the most there may be"),
            Self::DeliveryNotFound => "no such event: events are kept for 7 days".into(),
            Self::DeliveryWaits => DELIVERY_WAITS.into(),
        }
    }
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

fn frozen(state: State, fields: &[&'static str]) -> String {
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
    format!("a contest of this kind has at most {most} members or applications")
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
