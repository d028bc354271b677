//! Why a well-formed request was refused. A rejection is an answer, not a fault.
//!
//! The order of the variants is their precedence: if two apply, the earlier one is the answer. Each listener maps them
//! to its own messages in one `match` without a wildcard, so that a new rejection does not compile until every listener
//! handles it.

mod limit;

pub use limit::Limit;

use crate::contest::start::InvalidApplication;
use crate::contest::state::State;
use crate::ledger::mint::CapReached;
use crate::webhook::WEBHOOKS_MAX;

const PERIOD_CLOSED: &str = "no period of this leaderboard takes a score of that instant any more";
const LEADERBOARD_DAMAGED: &str =
    "stored rows of this leaderboard are damaged, so it is unavailable; the log and `tally verify` name them";

/// A wrong field that a rule found, not the listener.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WrongField {
    /// A JSON pointer into the body.
    pub pointer: String,
    /// What is wrong, as a sentence that begins with the field.
    pub why: String,
}

impl WrongField {
    /// A field at this pointer, and what is wrong with it.
    pub fn new(pointer: impl Into<String>, why: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), why: why.into() }
    }

    /// Moves the field into the field `pointer` of a larger body.
    #[must_use]
    pub fn within(self, pointer: &str) -> Self {
        Self { pointer: format!("{pointer}{}", self.pointer), ..self }
    }
}

/// A rejection, in order of precedence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rejection {
    /// The PIN is locked for this many seconds.
    PinLocked {
        /// Whole seconds.
        retry_after_s: u32,
    },
    /// The PIN is wrong.
    InvalidPin,
    /// The idempotency key was used for another request.
    IdempotencyKeyReused,
    /// The request of this idempotency key is still running.
    IdempotencyInProgress,
    /// No board has that name. Contains the most similar name, if one is similar.
    LeaderboardNotFound(Option<String>),
    /// The stored definition of the leaderboard, or a row of it, is corrupt.
    LeaderboardDamaged,
    /// The board exists with other values of these fields.
    DefinitionConflict(Vec<&'static str>),
    /// The definition contradicts itself.
    InvalidDefinition(WrongField),
    /// The name is reserved.
    ReservedName,
    /// The limit of boards is reached.
    TooManyBoards,
    /// The limit of keys is reached.
    TooManyKeys,
    /// The board has no period of that name or at that instant.
    PeriodNotFound,
    /// No period takes a score of that instant any more.
    PeriodClosed,
    /// A score that the board cannot hold, with the reason.
    InvalidScore(&'static str),
    /// A subscore on a board without one, or none on a board with one.
    InvalidSubscore(&'static str),
    /// An instant too far ahead of the server's clock.
    AtInFuture,
    /// The sum leaves the range of the board's scores.
    ScoreOverflow,
    /// More players than one request may remove.
    TooManyAtOnce,
    /// The player has no rank there.
    PlayerNotRanked,
    /// The player has no profile, and no record on the searched boards.
    PlayerNotFound,
    /// No key has this id.
    KeyNotFound,
    /// The key is the last one with the role admin, and the request does not force the change.
    LastAdminKey,
    /// The same file was imported into the same board before.
    ImportRepeated,
    /// The chunk does not follow the last imported one. Contains the number of imported lines.
    ImportOutOfOrder(u64),
    /// No contest has that name.
    ContestNotFound,
    /// A contest of that name exists.
    ContestExists,
    /// No series has that name.
    SeriesNotFound,
    /// A series of that name exists.
    SeriesExists,
    /// The caller does not have the permission.
    Forbidden,
    /// The state of the contest does not allow it.
    ContestState(State),
    /// Fields of a contest that are fixed in its state.
    ContestFrozen {
        /// The state of the contest.
        state: State,
        /// The fields.
        fields: Vec<&'static str>,
    },
    /// The contest is invalid: its wrong fields.
    InvalidContest(Vec<WrongField>),
    /// More than this many members or applications.
    ContestTooLarge(u32),
    /// The Redis with the applications has lost them.
    ApplicationsLost,
    /// The player has already applied.
    AlreadyApplied,
    /// The player was rejected.
    AlreadyRejected,
    /// The player is staff of the contest.
    StaffCannotApply,
    /// The contest has accepted as many as its capacity.
    ContestFull,
    /// The player has not applied.
    NotApplied,
    /// The player has no wallet to pay from or to receive prizes.
    PlayerWithoutWallet,
    /// These applications prevent the start.
    InvalidApplications(Vec<InvalidApplication>),
    /// The player is not a member of the contest.
    NotAMember,
    /// The board belongs to a contest.
    BoardInUse,
    /// An amount of zero or less.
    InvalidAmount,
    /// No transfer has this id.
    TransactionNotFound,
    /// No hold has this id.
    HoldNotFound,
    /// The hold has expired.
    HoldExpired,
    /// The hold has ended in another way.
    HoldResolved,
    /// The amount exceeds the held amount.
    ExceedsHold,
    /// A reversal cannot be reversed.
    NotReversible,
    /// The amount exceeds what is left of the transfer.
    ExceedsReversible {
        /// What is left: the part that no reversal has taken back.
        left: i64,
    },
    /// The hold would expire in the past.
    HoldExpiryInPast,
    /// The currency is not configured.
    CurrencyMismatch,
    /// Payer and recipient are the same wallet.
    SameWallet,
    /// No such member.
    MemberNotFound,
    /// The recipient does not exist.
    RecipientNotFound,
    /// The member has no wallet in that currency.
    WalletNotFound,
    /// The member was closed.
    MemberClosed,
    /// The amount exceeds a limit.
    LimitExceeded(Limit),
    /// The amount exceeds what the API key may still make of the currency on this day.
    MintCapReached(CapReached),
    /// The amount exceeds the available balance.
    InsufficientFunds,
    /// Another of the linked transfers failed.
    LinkedFailed,
    /// Another member has the login.
    LoginTaken,
    /// Another member has the phone number.
    PhoneTaken,
    /// Another member has the player.
    PlayerTaken,
    /// The player has applied to or plays in that open or running contest, or is staff of it or of that series.
    PlayerInContest(Box<str>),
    /// A wallet of the member is not empty.
    WalletNotEmpty,
    /// No webhook has this id.
    WebhookNotFound,
    /// The limit of webhooks is reached.
    TooManyWebhooks,
    /// The event is not kept any more, or never was.
    DeliveryNotFound,
    /// An earlier event of the topic was not delivered.
    DeliveryWaits,
}

fn in_contest(contest: &str) -> String {
    format!(
        "the player has an entry in the contest `{contest}`, or is staff of the contest or series of that name: change that, or change \
         the player when the contest has ended"
    )
}

const LAST_ADMIN_KEY: &str = "this is the last key of role admin: without one only commands on the server's machine can \
    make keys; to revoke it all the same, send `force=true` (`tally keys revoke --force`)";
const DELIVERY_WAITS: &str = "an earlier event of this topic was not delivered; send that one again first";
const WALLET_NOT_EMPTY: &str = "there is money in the member's wallets; take it out, or close with `force`";
const CURRENCY_MISMATCH: &str = "the currency is not configured (settings `wallet.currency`, `currencies`)";

impl Rejection {
    /// The stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::IdempotencyKeyReused => "idempotency_key_reused",
            Self::IdempotencyInProgress => "idempotency_in_progress",
            Self::LeaderboardNotFound(_) => "leaderboard_not_found",
            Self::LeaderboardDamaged => "leaderboard_damaged",
            Self::DefinitionConflict(_) => "definition_conflict",
            Self::InvalidDefinition(_) => "invalid_definition",
            Self::ReservedName => "reserved_name",
            Self::TooManyBoards => "too_many_boards",
            Self::TooManyKeys => "too_many_keys",
            Self::PeriodNotFound => "period_not_found",
            Self::PeriodClosed => "period_closed",
            Self::InvalidScore(_) | Self::InvalidSubscore(_) => "invalid_field",
            Self::AtInFuture => "at_in_future",
            Self::ScoreOverflow => "score_overflow",
            Self::TooManyAtOnce => "too_many_at_once",
            Self::PlayerNotRanked => "player_not_ranked",
            Self::PlayerNotFound => "player_not_found",
            Self::KeyNotFound => "key_not_found",
            Self::LastAdminKey => "last_admin_key",
            Self::ImportRepeated => "import_repeated",
            Self::ImportOutOfOrder(_) => "import_out_of_order",
            Self::ContestNotFound => "contest_not_found",
            Self::ContestExists => "contest_exists",
            Self::SeriesNotFound => "series_not_found",
            Self::SeriesExists => "series_exists",
            Self::Forbidden => "forbidden",
            Self::ContestState(_) | Self::ContestFrozen { .. } => "contest_state",
            Self::InvalidContest(_) => "invalid_field",
            Self::ContestTooLarge(_) => "contest_too_large",
            Self::ApplicationsLost => "applications_lost",
            Self::AlreadyApplied => "already_applied",
            Self::AlreadyRejected => "already_rejected",
            Self::StaffCannotApply => "staff_cannot_apply",
            Self::ContestFull => "contest_full",
            Self::NotApplied => "not_applied",
            Self::PlayerWithoutWallet => "wallet_not_found",
            Self::InvalidApplications(_) => "invalid_applications",
            Self::NotAMember => "not_a_member",
            Self::BoardInUse => "board_in_use",
            Self::PinLocked { .. } => "pin_locked",
            Self::InvalidPin => "invalid_pin",
            Self::InvalidAmount => "invalid_amount",
            Self::TransactionNotFound => "transaction_not_found",
            Self::HoldNotFound => "hold_not_found",
            Self::HoldExpired => "hold_expired",
            Self::HoldResolved => "hold_resolved",
            Self::ExceedsHold => "exceeds_hold",
            Self::NotReversible => "not_reversible",
            Self::ExceedsReversible { .. } => "exceeds_reversible",
            Self::HoldExpiryInPast => "hold_expiry_in_past",
            Self::CurrencyMismatch => "currency_mismatch",
            Self::SameWallet => "same_wallet",
            Self::MemberNotFound => "member_not_found",
            Self::RecipientNotFound => "recipient_not_found",
            Self::WalletNotFound => "wallet_not_found",
            Self::MemberClosed => "member_closed",
            Self::LimitExceeded(_) => "limit_exceeded",
            Self::MintCapReached(_) => "mint_cap_reached",
            Self::InsufficientFunds => "insufficient_funds",
            Self::LinkedFailed => "linked_failed",
            Self::LoginTaken => "login_taken",
            Self::PhoneTaken => "phone_taken",
            Self::PlayerTaken => "player_taken",
            Self::PlayerInContest(_) => "player_in_contest",
            Self::WalletNotEmpty => "wallet_not_empty",
            Self::WebhookNotFound => "webhook_not_found",
            Self::TooManyWebhooks => "too_many_webhooks",
            Self::DeliveryNotFound => "delivery_not_found",
            Self::DeliveryWaits => "delivery_waits",
        }
    }

    /// A sentence for people, with the next step if there is one.
    pub fn detail(&self) -> String {
        match self {
            Self::IdempotencyKeyReused => {
                "this Idempotency-Key was used for another request; use a new key for a new request".into()
            }
            Self::IdempotencyInProgress => "the request of this Idempotency-Key is still running; retry later".into(),
            Self::LeaderboardNotFound(None) => "no such leaderboard".into(),
            Self::LeaderboardDamaged => LEADERBOARD_DAMAGED.into(),
            Self::LeaderboardNotFound(Some(near)) => format!("no such leaderboard; did you mean `{near}`?"),
            Self::DefinitionConflict(fields) => format!(
                "the leaderboard exists with other values of: {}; only `periods` can be changed",
                fields.join(", ")
            ),
            Self::InvalidDefinition(wrong) => wrong.why.clone(),
            Self::ReservedName => "names that begin with `contest:` are kept for contests".into(),
            Self::TooManyBoards => "the limit of leaderboards (setting `limits.boards`) is reached".into(),
            Self::TooManyKeys => "the limit of keys (setting `limits.keys`) is reached".into(),
            Self::PeriodNotFound => "the leaderboard has no such period".into(),
            Self::PeriodClosed => PERIOD_CLOSED.into(),
            Self::InvalidScore(why) | Self::InvalidSubscore(why) => (*why).into(),
            Self::AtInFuture => "`at` is more than 5 s ahead of the server's clock".into(),
            Self::ScoreOverflow => "the sum would leave the range of the leaderboard's scores".into(),
            Self::TooManyAtOnce => "more players than one request may remove".into(),
            Self::PlayerNotRanked => "the player has no rank on this leaderboard".into(),
            Self::PlayerNotFound => "no such player".into(),
            Self::KeyNotFound => "no such key".into(),
            Self::LastAdminKey => LAST_ADMIN_KEY.into(),
            Self::ImportRepeated => "this file was imported into this leaderboard before".into(),
            Self::ImportOutOfOrder(done) => format!("lines up to {done} are already imported"),
            Self::ContestNotFound => "no such contest".into(),
            Self::ContestExists => "there is a contest of this id".into(),
            Self::SeriesNotFound => "no such series of contests".into(),
            Self::SeriesExists => "there is a series of contests of this id".into(),
            Self::Forbidden => "permission denied: these credentials do not allow this operation".into(),
            Self::ContestState(state) => format!("the contest is {state}"),
            Self::ContestFrozen { state, fields } => frozen(*state, fields),
            Self::InvalidContest(wrong) => all_wrong(wrong),
            Self::ContestTooLarge(most) => format!("a contest of this kind has at most {most} members or applications"),
            Self::ApplicationsLost => {
                "the Redis that had this contest's applications has lost them; `open` begins to take them anew".into()
            }
            Self::AlreadyApplied => "the player has already applied".into(),
            Self::AlreadyRejected => "the application of this player was rejected".into(),
            Self::StaffCannotApply => "the player is staff of this contest, and staff does not take part".into(),
            Self::ContestFull => "the contest is full: all its places are taken".into(),
            Self::NotApplied => "there is no application of this player".into(),
            Self::PlayerWithoutWallet => "the player has no wallet for the fee or the prizes".into(),
            Self::InvalidApplications(failed) => format!("{} accepted applications are bad", failed.len()),
            Self::NotAMember => "only members of this contest score on its leaderboard".into(),
            Self::BoardInUse => "the leaderboard belongs to a contest".into(),
            Self::PinLocked { retry_after_s } => format!("too many wrong PINs; try again in {retry_after_s} s"),
            Self::InvalidPin => "the PIN is wrong".into(),
            Self::InvalidAmount => "an amount is a whole number of the smallest unit, 1 or more".into(),
            Self::TransactionNotFound => "no such transaction".into(),
            Self::HoldNotFound => "no such hold".into(),
            Self::HoldExpired => "the hold has expired; what it held is free again".into(),
            Self::HoldResolved => "the hold was already captured, voided or expired".into(),
            Self::ExceedsHold => "the amount exceeds the held amount".into(),
            Self::NotReversible => "a reversal cannot be reversed; make the transfer again instead".into(),
            Self::ExceedsReversible { left } => exceeds_reversible(*left),
            Self::HoldExpiryInPast => "`expires_at` must be in the future".into(),
            Self::CurrencyMismatch => CURRENCY_MISMATCH.into(),
            Self::SameWallet => "payer and recipient are the same wallet".into(),
            Self::MemberNotFound => "no such member".into(),
            Self::RecipientNotFound => "the receiving member does not exist".into(),
            Self::WalletNotFound => "the member has no wallet in this currency".into(),
            Self::MemberClosed => "the member was closed".into(),
            Self::LimitExceeded(limit) => limit.detail().into(),
            Self::MintCapReached(reached) => reached.to_string(),
            Self::InsufficientFunds => "not enough money is available in the wallet".into(),
            Self::LinkedFailed => "another transfer of the same chain was refused, so none was made".into(),
            Self::LoginTaken => "another member has this login".into(),
            Self::PhoneTaken => "another member has this phone number".into(),
            Self::PlayerTaken => "another member has this player".into(),
            Self::PlayerInContest(contest) => in_contest(contest),
            Self::WalletNotEmpty => WALLET_NOT_EMPTY.into(),
            Self::WebhookNotFound => "no such webhook".into(),
            Self::TooManyWebhooks => format!("there are {WEBHOOKS_MAX} webhooks, the most there may be"),
            Self::DeliveryNotFound => "no such event is kept: events are kept for 7 days".into(),
            Self::DeliveryWaits => DELIVERY_WAITS.into(),
        }
    }
}

fn exceeds_reversible(left: i64) -> String {
    match left {
        0 => "all of the transfer is reversed already".into(),
        left => format!("the amount exceeds what is left of the transfer: {left}"),
    }
}

fn frozen(state: State, fields: &[&'static str]) -> String {
    format!("the contest is {state}, so these fields can no longer change: {}", fields.join(", "))
}

fn all_wrong(fields: &[WrongField]) -> String {
    let all = fields.iter().map(|one| format!("{} {}", one.pointer, one.why));
    all.collect::<Vec<_>>().join("; ")
}
