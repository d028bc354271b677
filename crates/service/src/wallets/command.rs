//! What is asked of the ledger's lane, and its answers.

use crate::contests::command::{ContestDone, ContestOrder};
use crate::contests::series::{SeriesDone, SeriesOrder};
use crate::members::pin::Guess;
use crate::periods::prizes::PaymentOrder;
use std::sync::Arc;
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::ledger::hold::Ending;
use tally_rules::ledger::member::{Handle, Phone, Pin};
use tally_rules::ledger::transfer_request::Posted;
use tally_rules::ledger::{
    Amount, Currency, EntryKey, Hold, HoldId, Member, MemberId, TransferRequest, WalletKey,
};
use tally_rules::{Micros, PlayerId, Rejection};
use tally_store::{ImportKey, ImportRow};

/// One movement.
#[derive(Clone, Debug)]
pub struct NewMove {
    /// What is to move.
    pub order: TransferRequest,
    /// For retries.
    pub identity: Option<IdempotencyKey>,
}

/// A hold to be made.
#[derive(Clone, Debug)]
pub struct NewHold {
    /// Of which wallet.
    pub wallet: WalletKey,
    /// How much.
    pub amount: Amount,
    /// When it ends by itself.
    pub expires_at: Option<Micros>,
    /// For retries.
    pub identity: Option<IdempotencyKey>,
}

/// A hold to be ended.
#[derive(Clone, Debug)]
pub struct EndHold {
    /// Which.
    pub hold: HoldId,
    /// Of which wallet it is: that never changes, so it may be read before.
    pub wallet: WalletKey,
    /// How.
    pub ending: Ending,
    /// For retries.
    pub identity: Option<IdempotencyKey>,
}

/// A member to be made.
#[derive(Clone, Debug)]
pub struct NewMember {
    /// Who; without a player it is its own id.
    pub member: Member,
    /// Whether the player is to be the member's id.
    pub player_is_id: bool,
    /// For retries.
    pub identity: Option<IdempotencyKey>,
}

/// A member to be closed.
#[derive(Clone, Debug)]
pub struct CloseMember {
    /// Who.
    pub member: MemberId,
    /// Whether there may be money in its wallets.
    pub force: bool,
    /// What the member was found by: sorted, each once.
    pub handles: Vec<Handle>,
    /// For retries.
    pub identity: Option<IdempotencyKey>,
}

/// A line of a file of members or of movements.
#[derive(Clone, Debug)]
pub enum ImportLine {
    /// A new member, and what is deposited for it at once.
    Member(Box<NewMember>, Option<Amount>),
    /// A movement.
    Move(TransferRequest),
}

/// Consecutive lines of one file.
#[derive(Clone, Debug)]
pub struct LedgerChunk {
    /// Which file.
    pub key: ImportKey,
    /// Lines of the file before this chunk.
    pub lines_before: u64,
    /// Lines of the file up to the end of this chunk.
    pub lines_after: u64,
    /// What the lines say, each with its number.
    pub rows: Vec<(u64, ImportLine)>,
    /// How many lines were refused before.
    pub refused: u64,
    /// Whether the file ends here.
    pub last: bool,
    /// Players of its lines that a member had when somebody looked: if one is free by now, that look has to be done again.
    pub taken: Vec<Handle>,
}

/// What came of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChunkDone {
    /// The whole import so far.
    pub(crate) progress: ImportRow,
    /// Lines that were refused.
    pub(crate) refused: Vec<(u64, Rejection)>,
    /// Whether the chunk had been done before.
    pub(crate) replayed: bool,
}

/// What becomes of something that may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Set<T> {
    /// It stays.
    #[default]
    Keep,
    /// It is this from now on, or nothing.
    To(Option<T>),
}

/// What changes of a member.
#[derive(Clone, Debug, Default)]
pub struct MemberChange {
    /// Its name.
    pub name: Option<Arc<str>>,
    /// Its player.
    pub player: Option<PlayerId>,
    /// Its phone number.
    pub phone: Set<Phone>,
    /// The digest of its password; changing it ends every token.
    pub password: Set<Arc<str>>,
    /// Its PIN; changing it forgets attempts at the last one.
    pub pin: Set<Pin>,
    /// Whether attempts at the PIN are forgotten.
    pub unlock_pin: bool,
    /// Whether tokens that were given until now end.
    pub sign_out: bool,
    /// Another digest of the same password; it ends no token.
    pub rehashed: Option<Rehashed>,
}

/// A digest in place of the one that it was made beside; where that is gone, the password was changed meanwhile.
#[derive(Clone, Debug)]
pub struct Rehashed {
    /// The digest before.
    pub from: Arc<str>,
    /// The digest from now on.
    pub to: Arc<str>,
}

/// A member to be changed.
#[derive(Clone, Debug)]
pub struct ChangeMember {
    /// Who.
    pub member: MemberId,
    /// What changes.
    pub change: MemberChange,
    /// What the member was found by, and what it will be: sorted, each once.
    pub handles: Vec<Handle>,
    /// For retries.
    pub identity: Option<IdempotencyKey>,
}

/// A transfer that a member asks for, with its PIN.
#[derive(Clone, Debug)]
pub struct NewPayment {
    /// Who pays.
    pub from: MemberId,
    /// From when on its tokens were good when it was let in.
    pub tokens_from: Micros,
    /// What it says its PIN is.
    pub guess: Guess,
    /// The number of who is paid.
    pub phone: Phone,
    /// Who had that number when it was looked up.
    pub to: Option<MemberId>,
    /// In what.
    pub currency: Currency,
    /// How much.
    pub amount: Amount,
    /// For retries.
    pub identity: Option<IdempotencyKey>,
}

/// One entry of the lane.
#[derive(Debug)]
pub(crate) enum Request {
    /// Movements that are done in order and whole, or not at all. Most are of one.
    Chain(Vec<NewMove>),
    Hold(NewHold),
    End(EndHold),
    /// Holds that were due when somebody looked.
    Expire(Vec<(HoldId, WalletKey)>),
    /// With the player, if a member had it when somebody looked: if it is free by now, that look has to be done again.
    Create(NewMember, Option<Handle>),
    Close(CloseMember),
    Import(LedgerChunk),
    Change(ChangeMember),
    Pay(NewPayment),
    Contest(Box<ContestOrder>),
    Series(Box<SeriesOrder>),
    Payment(Box<PaymentOrder>),
}

/// Its answer; the kind is that of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    Chain(Vec<Result<Moved, Rejection>>),
    Hold(Held),
    /// How many have ended.
    Expired(usize),
    Created(Created),
    Imported(ChunkDone),
    /// A member was changed or closed.
    Changed {
        replayed: bool,
    },
    Paid(Moved),
    Contest(ContestDone),
    Series(SeriesDone),
    Payment,
    /// What was read before is not so any more; but for an attempt at a PIN, nothing was done.
    Stale,
}

/// What came of a movement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moved {
    /// It was done now.
    Posted(Posted),
    /// It was done before; its entry has not changed since.
    Replayed(EntryKey),
}

/// What came of a hold or of its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// It was done now, and this is the hold after it.
    Now(HoldId, Hold),
    /// It was done before.
    Replayed(HoldId),
}

/// What came of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// Its id.
    pub id: MemberId,
    /// Whether this repeats an earlier answer.
    pub replayed: bool,
}
