//! Why a well-formed request was refused. A rejection is an answer, not a fault.
//!
//! The order of the variants is their precedence: if two apply, the earlier one is the answer. Each listener maps them
//! to its own messages in one `match` without a wildcard, so that a new rejection does not compile until every listener
//! handles it.

mod detail;
mod limit;

pub use limit::Limit;

use crate::contest::application::Status;
use crate::contest::start::InvalidApplication;
use crate::contest::state::{ContestRight, ContestState};
use crate::ids::PlayerId;
use crate::instant::Micros;
use crate::ledger::hold::HoldState;
use crate::ledger::id::MemberId;
use crate::ledger::mint::CapReached;
use crate::ledger::money::Currency;

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
    /// A change of the definition would delete the scores of the periods of this rule.
    PeriodHasHistory(Box<str>),
    /// The board has no period of that name or at that instant.
    PeriodNotFound,
    /// No period takes a score of that instant any more; without one, the period takes none.
    PeriodClosed(Option<Micros>),
    /// A score that the board cannot hold, with the reason.
    InvalidScore(&'static str),
    /// A subscore on a board without one, or none on a board with one.
    InvalidSubscore(&'static str),
    /// An instant too far ahead of the server's clock.
    AtInFuture(Micros),
    /// The sum leaves the range of the board's scores. It has the sum, unless that is not a number.
    ScoreOverflow(Option<i128>),
    /// More players than these, the most that one request may remove.
    TooManyAtOnce(usize),
    /// The player has no rank there.
    PlayerNotRanked,
    /// The player has no profile, and no record on the searched boards.
    PlayerNotFound,
    /// No key has this id.
    KeyNotFound,
    /// The key is the last one with the role admin, and the request does not force the change.
    LastAdminKey,
    /// The same file was imported before.
    ImportRepeated {
        /// The leaderboard; members and balances have none.
        board: Option<Box<str>>,
        /// The lines of it.
        lines: u64,
    },
    /// The chunk does not follow the last imported one. Contains the number of imported lines.
    ImportOutOfOrder(u64),
    /// No contest has that name.
    ContestNotFound,
    /// A contest of this id exists.
    ContestExists(Box<str>),
    /// No series has that name.
    SeriesNotFound,
    /// A series of this id exists.
    SeriesExists(Box<str>),
    /// The caller does not have the permission, which is this one.
    Forbidden(ContestRight),
    /// The state of the contest does not allow it.
    ContestState(ContestState),
    /// Fields of a contest that are fixed in its state.
    ContestFrozen {
        /// The state of the contest.
        state: ContestState,
        /// The fields.
        fields: Vec<&'static str>,
    },
    /// The contest is invalid: its wrong fields.
    InvalidContest(Vec<WrongField>),
    /// More than this many members or applications.
    ContestTooLarge(u32),
    /// The Redis with the applications has lost them.
    ApplicationsLost,
    /// The player has already applied. Contains the state of its application.
    AlreadyApplied(Status),
    /// The member has submitted as many scores as the contest allows.
    NoAttemptsLeft {
        /// The player.
        player: PlayerId,
        /// How many the contest allows.
        most: u32,
    },
    /// The player was rejected.
    AlreadyRejected,
    /// The player is staff of the contest.
    StaffCannotApply,
    /// The contest has accepted as many as its capacity, which is this.
    ContestFull(u32),
    /// The player has not applied.
    NotApplied,
    /// The player has no wallet to pay from in this currency; without one, it is no member.
    PlayerWithoutWallet(Option<Currency>),
    /// Accepted applications prevent the start.
    InvalidApplications {
        /// The number of all accepted applications.
        accepted: usize,
        /// The invalid ones.
        failed: Vec<InvalidApplication>,
    },
    /// The player is not a member of the contest, or not of this division.
    NotAMember {
        /// The player.
        player: PlayerId,
        /// The contest.
        contest: Box<str>,
    },
    /// The board belongs to the contest of this id.
    BoardInUse(Box<str>),
    /// An amount of zero or less.
    InvalidAmount,
    /// No transfer has this id.
    TransactionNotFound,
    /// No hold has this id.
    HoldNotFound,
    /// The hold has expired.
    HoldExpired,
    /// The hold has ended in another way: how, and when.
    HoldResolved(HoldState, Micros),
    /// The amount exceeds the held amount.
    ExceedsHold {
        /// The amount.
        amount: i64,
        /// The held amount.
        held: i64,
    },
    /// A reversal cannot be reversed.
    NotReversible,
    /// The amount exceeds what is left of the transfer.
    ExceedsReversible {
        /// What is left: the part that no reversal has taken back.
        left: i64,
    },
    /// The hold would expire in the past.
    HoldExpiryInPast {
        /// When it would expire.
        at: Micros,
        /// The server's clock.
        now: Micros,
    },
    /// Promotional credit would expire in the past.
    CreditExpiryInPast {
        /// When it would expire.
        at: Micros,
        /// The server's clock.
        now: Micros,
    },
    /// The currency is not configured.
    CurrencyMismatch {
        /// The currency.
        currency: Currency,
        /// Those that are configured.
        known: Vec<Currency>,
    },
    /// Members cannot transfer this currency to each other.
    NotTransferable(Currency),
    /// This currency cannot be withdrawn.
    NotWithdrawable(Currency),
    /// No such member.
    MemberNotFound,
    /// Payer and recipient are the wallet of this member.
    SameWallet(MemberId),
    /// The recipient does not exist.
    RecipientNotFound,
    /// The member has no wallet in this currency.
    WalletNotFound(Currency),
    /// This member was closed.
    MemberClosed(MemberId),
    /// The amount exceeds a limit.
    LimitExceeded(Limit),
    /// The amount exceeds what the API key may still make of the currency on this day.
    MintCapReached(CapReached),
    /// The amount exceeds what the wallet can pay of it.
    InsufficientFunds {
        /// The amount.
        needed: i64,
        /// What the wallet can pay of it now: without promotional credit if the movement spends none.
        available: i64,
    },
    /// Another of the linked transfers failed.
    LinkedFailed {
        /// Which one of the chain, from 1.
        nth: usize,
        /// The code of its rejection.
        code: &'static str,
    },
    /// Another member has this login.
    LoginTaken(Box<str>),
    /// Another member has this phone number.
    PhoneTaken(Box<str>),
    /// Another member has this player.
    PlayerTaken(PlayerId),
    /// The player has applied to or plays in that open or running contest, or is staff of it or of that series.
    PlayerInContest(Box<str>),
    /// Wallets of the member are not empty. Contains their balances; none are for a caller that may not see them.
    WalletNotEmpty(Vec<(Currency, i64)>),
    /// No webhook has this id.
    WebhookNotFound,
    /// The limit of webhooks is reached.
    TooManyWebhooks,
    /// The event is not kept any more, or never was.
    DeliveryNotFound,
    /// An earlier event of the topic was not delivered.
    DeliveryWaits,
}

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
            Self::PeriodHasHistory(_) => "period_has_history",
            Self::PeriodNotFound => "period_not_found",
            Self::PeriodClosed(_) => "period_closed",
            Self::InvalidScore(_) | Self::InvalidSubscore(_) => "invalid_field",
            Self::AtInFuture(_) => "at_in_future",
            Self::ScoreOverflow(_) => "score_overflow",
            Self::TooManyAtOnce(_) => "too_many_at_once",
            Self::PlayerNotRanked => "player_not_ranked",
            Self::PlayerNotFound => "player_not_found",
            Self::KeyNotFound => "key_not_found",
            Self::LastAdminKey => "last_admin_key",
            Self::ImportRepeated { .. } => "import_repeated",
            Self::ImportOutOfOrder(_) => "import_out_of_order",
            Self::ContestNotFound => "contest_not_found",
            Self::ContestExists(_) => "contest_exists",
            Self::SeriesNotFound => "series_not_found",
            Self::SeriesExists(_) => "series_exists",
            Self::Forbidden(_) => "forbidden",
            Self::ContestState(_) | Self::ContestFrozen { .. } => "contest_state",
            Self::InvalidContest(_) => "invalid_field",
            Self::ContestTooLarge(_) => "contest_too_large",
            Self::ApplicationsLost => "applications_lost",
            Self::AlreadyApplied(_) => "already_applied",
            Self::NoAttemptsLeft { .. } => "no_attempts_left",
            Self::AlreadyRejected => "already_rejected",
            Self::StaffCannotApply => "staff_cannot_apply",
            Self::ContestFull(_) => "contest_full",
            Self::NotApplied => "not_applied",
            Self::PlayerWithoutWallet(_) => "wallet_not_found",
            Self::InvalidApplications { .. } => "invalid_applications",
            Self::NotAMember { .. } => "not_a_member",
            Self::BoardInUse(_) => "board_in_use",
            Self::PinLocked { .. } => "pin_locked",
            Self::InvalidPin => "invalid_pin",
            Self::InvalidAmount => "invalid_amount",
            Self::TransactionNotFound => "transaction_not_found",
            Self::HoldNotFound => "hold_not_found",
            Self::HoldExpired => "hold_expired",
            Self::HoldResolved(..) => "hold_resolved",
            Self::ExceedsHold { .. } => "exceeds_hold",
            Self::NotReversible => "not_reversible",
            Self::ExceedsReversible { .. } => "exceeds_reversible",
            Self::HoldExpiryInPast { .. } => "hold_expiry_in_past",
            Self::CreditExpiryInPast { .. } => "credit_expiry_in_past",
            Self::CurrencyMismatch { .. } => "currency_mismatch",
            Self::NotTransferable(_) => "not_transferable",
            Self::NotWithdrawable(_) => "not_withdrawable",
            Self::SameWallet(_) => "same_wallet",
            Self::MemberNotFound => "member_not_found",
            Self::RecipientNotFound => "recipient_not_found",
            Self::WalletNotFound(_) => "wallet_not_found",
            Self::MemberClosed(_) => "member_closed",
            Self::LimitExceeded(_) => "limit_exceeded",
            Self::MintCapReached(_) => "mint_cap_reached",
            Self::InsufficientFunds { .. } => "insufficient_funds",
            Self::LinkedFailed { .. } => "linked_failed",
            Self::LoginTaken(_) => "login_taken",
            Self::PhoneTaken(_) => "phone_taken",
            Self::PlayerTaken(_) => "player_taken",
            Self::PlayerInContest(_) => "player_in_contest",
            Self::WalletNotEmpty(_) => "wallet_not_empty",
            Self::WebhookNotFound => "webhook_not_found",
            Self::TooManyWebhooks => "too_many_webhooks",
            Self::DeliveryNotFound => "delivery_not_found",
            Self::DeliveryWaits => "delivery_waits",
        }
    }
}
