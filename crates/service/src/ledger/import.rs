//! Importing members and transfers from a file, chunk by chunk, each line exactly once.
//!
//! A chunk and the number of lines done are one transaction, so a chunk that is sent again after a crash changes nothing.
//! Logins in lines are looked up first: a login never changes.

use super::LedgerSettings;
use super::request::{LedgerRequest, Needs};
use super::state::BatchState;
use crate::contests::entries::NameLookup;
use crate::failure::{Failure, Fault, blocking};
use crate::members::create::{NewMember, look_up_names};
use crate::members::password::check_digest;
use crate::members::{ATTEMPTS_MAX, create};
use crate::tally::Tally;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tally_rules::ledger::lines::{MemberLine, TransferLine};
use tally_rules::ledger::member::{Handle, Login, Phone};
use tally_rules::ledger::pin::Attempts;
use tally_rules::ledger::pin::is_pin;
use tally_rules::ledger::{Amount, Member, MemberId, TransferId, TransferKind, TransferRequest, Uuid};
use tally_rules::{Actor, Micros, Origin, PlayerId, Rejection};
use tally_store::{BoardNo, ImportKey, ImportRow, LedgerReadSet, ReadSet, WriteSet};

/// Imports of no board: numbers of boards begin at 1.
const NO_BOARD: BoardNo = BoardNo(0);

/// The longest name for people, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// Consecutive lines of a file.
#[derive(Clone, Debug)]
pub struct NewChunk<L> {
    /// Which file, and how it is read.
    pub digest: [u8; 32],
    /// Lines before this chunk.
    pub lines_before: u64,
    /// Lines up to its end.
    pub lines_after: u64,
    /// Their contents, each with its line number.
    pub rows: Vec<(u64, L)>,
    /// Whether the file ends here.
    pub last: bool,
}

/// A line of a file of members or of transfers.
enum ImportLine {
    /// A new member, with its first deposit.
    Member(Box<NewMember>, Option<Amount>),
    Transfer(TransferRequest),
}

impl ImportLine {
    /// Ids that it may use: a new member that of its deposit as well.
    fn ids(&self) -> usize {
        match self {
            Self::Member(..) => 2,
            Self::Transfer(_) => 1,
        }
    }

    fn decide(&self, state: &mut BatchState<'_>, ids: &[Uuid]) -> Result<(), Rejection> {
        match self {
            Self::Member(new, deposit) => {
                let to = MemberId(ids[0]);
                let currency = state.settings.currencies.home();
                // Before the member is made, because a line is imported whole or not at all.
                deposit.map_or(Ok(()), |amount| state.book.fits(currency, amount))?;
                create::decide(new, &[], state, to)?;
                let Some(amount) = *deposit else { return Ok(()) };
                let order =
                    TransferRequest { what: TransferKind::Deposit { to }, currency, amount, reference: None };
                // Its wallet is new and empty, so nothing else can be against it.
                state.book.post(TransferId(ids[1]), &order, state.expected).map(drop)
            }
            Self::Transfer(order) => state.book.post(TransferId(ids[0]), order, state.expected).map(drop),
        }
    }
}

/// Consecutive lines of one file.
struct LedgerChunk {
    key: ImportKey,
    actor: Actor,
    lines: NewChunk<ImportLine>,
    /// Lines that were rejected before.
    refused: u64,
    /// Players of its lines that had a member at the lookup: if one is free by now, the lookup is repeated.
    taken: Vec<Handle>,
}

/// The outcome of a chunk.
struct ChunkDone {
    progress: ImportRow,
    refused: Vec<(u64, Rejection)>,
    replayed: bool,
}

/// Its lines are done in order, each for itself, together with the number of lines done. The chunk is its own idempotency key.
impl LedgerRequest for LedgerChunk {
    /// `None` if a player that was taken is free.
    type Answer = Option<ChunkDone>;

    fn needs(&self) -> Needs {
        let ids = self.lines.rows.iter().map(|(_, line)| line.ids()).sum();
        Needs { rows: self.lines.rows.len(), ids, makes_members: true, is_import: true, ..Needs::default() }
    }

    fn origin(&self) -> Origin {
        self.actor.into()
    }

    fn read(&self, plan: &mut ReadSet, mut ids: &[Uuid], settings: &LedgerSettings) {
        let home = settings.currencies.home();
        plan.imports.push(self.key.clone());
        plan.ledger.handles.extend(self.taken.iter().cloned());
        for (_, line) in &self.lines.rows {
            match line {
                ImportLine::Member(new, _) => create::read(new, plan, MemberId(ids[0]), home),
                ImportLine::Transfer(order) => plan.ledger.wallets.extend(order.wallets(home)),
            }
            ids = &ids[line.ids()..];
        }
    }

    fn decide(&self, state: &mut BatchState<'_>, mut ids: &[Uuid]) -> Result<Self::Answer, Rejection> {
        let (chunk, mut refused) = (&self.lines, Vec::new());
        let mut progress = state.imports.get(&self.key).copied().unwrap_or_default();
        let ends = chunk.last && !progress.finished;
        if chunk.lines_after <= progress.lines && !ends {
            return Ok(Some(ChunkDone { progress, refused, replayed: true }));
        }
        if progress.finished {
            return Err(Rejection::ImportRepeated { board: None, lines: progress.lines });
        }
        if chunk.lines_before != progress.lines {
            return Err(Rejection::ImportOutOfOrder(progress.lines));
        }
        if create::is_free_since(state, &self.taken) {
            return Ok(None);
        }
        for (number, line) in &chunk.rows {
            match line.decide(state, ids) {
                Ok(()) => progress.taken += 1,
                Err(rejection) => refused.push((*number, rejection)),
            }
            ids = &ids[line.ids()..];
        }
        progress.lines = chunk.lines_after;
        progress.refused += refused.len() as u64 + self.refused;
        progress.finished = chunk.last;
        state.imports.set(&self.key, Some(progress));
        Ok(Some(ChunkDone { progress, refused, replayed: false }))
    }
}

/// A line that was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedLine {
    /// The number of the line.
    pub line: u64,
    /// The field at fault.
    pub field: &'static str,
    /// The stable word.
    pub code: &'static str,
    /// Why it was rejected.
    pub detail: String,
}

/// The reply to a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The whole import so far.
    pub progress: ImportRow,
    /// Lines of this chunk that were rejected, in order.
    pub refused: Vec<RefusedLine>,
    /// Whether the chunk had been done before.
    pub replayed: bool,
}

/// Imports members, each with its wallet and its deposit.
pub async fn members(
    tally: &Arc<Tally>,
    actor: Actor,
    chunk: NewChunk<MemberLine>,
) -> Result<Imported, Failure> {
    let players: BTreeSet<_> = chunk.rows.iter().filter_map(|(_, row)| row.player.clone()).collect();
    for _ in 0..ATTEMPTS_MAX {
        let mut refused = Vec::new();
        let mut rows = Vec::with_capacity(chunk.rows.len());
        let found = match players.is_empty() {
            true => NameLookup::default(),
            false => look_up_names(tally, players.clone()).await?,
        };
        let entered: BTreeMap<_, _> = found.left_behind.into_iter().collect();
        for (line, row) in chunk.rows.iter().cloned() {
            let balance = row.balance;
            if let Some(contest) = row.player.as_ref().and_then(|player| entered.get(player)) {
                refused.push(refused_line(line, &Rejection::PlayerInContest(contest.as_str().into())));
                continue;
            }
            match new_member(tally, row) {
                Ok(new) => rows.push((line, ImportLine::Member(Box::new(new), balance))),
                Err((field, detail)) => {
                    refused.push(RefusedLine { line, field, code: "invalid_field", detail: detail.into() });
                }
            }
        }
        let of = of_lines(chunk.digest, (chunk.lines_before, chunk.lines_after), chunk.last);
        if let Some(imported) = done((tally, actor), NewChunk { rows, ..of }, found.taken, refused).await? {
            return Ok(imported);
        }
    }
    Err(Fault::Overloaded.into())
}

/// The member of a line, or the invalid field and its error.
fn new_member(tally: &Tally, line: MemberLine) -> Result<NewMember, (&'static str, &'static str)> {
    let MemberLine { login, password_hash, pin, phone_number, name, player, .. } = line;
    let country = tally.members.settings().phone_country.as_deref();
    let phone = phone_number.map(|text| Phone::parse(&text, country).map_err(|bad| ("phone_number", bad.0)));
    if let Some(text) = &password_hash {
        check_digest(text).map_err(|bad| ("password_hash", bad))?;
    }
    if name.as_ref().is_some_and(|name| !(1..=NAME_BYTES_MAX).contains(&name.len())) {
        return Err(("name", "must be 1 to 256 bytes"));
    }
    let pin = pin.map(|text| {
        let digits = is_pin(&text).then(|| tally.members.pins.pin(&login, &text));
        digits.ok_or(("pin", "must be 4 to 8 digits"))
    });
    let member = Member {
        phone: phone.transpose()?,
        player: player.clone().unwrap_or_else(|| PlayerId::new("-").expect("a name of one byte")),
        name: name.as_deref().unwrap_or(login.as_str()).into(),
        password: password_hash.map(Arc::from),
        pin: pin.transpose()?,
        attempts: Attempts::default(),
        tokens_from: Micros(0),
        closed_at: None,
        login,
    };
    Ok(NewMember { member, player_is_id: player.is_none(), idempotency: None })
}

/// Imports transfers between members, in the home currency.
pub async fn transfers(
    tally: &Arc<Tally>,
    actor: Actor,
    chunk: NewChunk<TransferLine>,
) -> Result<Imported, Failure> {
    let logins = chunk.rows.iter().flat_map(|(_, row)| [row.from.clone(), row.to.clone()]).collect();
    let members = members_of(tally, logins).await?;
    let id = |login: &Login| {
        let at = members.binary_search_by(|(known, _)| known.cmp(login)).ok()?;
        members[at].1
    };
    let currency = tally.settings.ledger.currencies.home();
    let mut refused = Vec::new();
    let mut rows = Vec::with_capacity(chunk.rows.len());
    for (line, TransferLine { from, to, amount }) in chunk.rows {
        match (id(&from), id(&to)) {
            (Some(from), Some(to)) => {
                let what = TransferKind::Transfer { from, to };
                rows.push((
                    line,
                    ImportLine::Transfer(TransferRequest { what, currency, amount, reference: None }),
                ));
            }
            (None, _) => refused.push(refused_line(line, &Rejection::MemberNotFound)),
            (_, None) => refused.push(refused_line(line, &Rejection::RecipientNotFound)),
        }
    }
    let chunk =
        NewChunk { rows, ..of_lines(chunk.digest, (chunk.lines_before, chunk.lines_after), chunk.last) };
    let imported = done((tally, actor), chunk, Vec::new(), refused).await?;
    imported.ok_or_else(|| Fault::Overloaded.into())
}

fn of_lines(digest: [u8; 32], (lines_before, lines_after): (u64, u64), last: bool) -> NewChunk<ImportLine> {
    NewChunk { digest, lines_before, lines_after, rows: Vec::new(), last }
}

/// The members that have these logins, in order of login.
async fn members_of(
    tally: &Arc<Tally>,
    mut logins: Vec<Login>,
) -> Result<Vec<(Login, Option<MemberId>)>, Failure> {
    logins.sort_unstable();
    logins.dedup();
    let store = Arc::clone(&tally.store);
    blocking(move || {
        let handles = logins.iter().cloned().map(Handle::Login).collect();
        let ledger = LedgerReadSet { handles, ..LedgerReadSet::default() };
        let mut found = Vec::new();
        store.run(&ReadSet { ledger, ..ReadSet::default() }, &mut |loaded| {
            found.clone_from(&loaded.ledger.handles);
            WriteSet::default()
        })?;
        Ok(logins.into_iter().zip(found).collect())
    })
    .await
}

/// Puts a chunk into the lane; `before` are the lines that were rejected earlier. `None` if a player that was taken is free.
async fn done(
    (tally, actor): (&Tally, Actor),
    chunk: NewChunk<ImportLine>,
    taken: Vec<Handle>,
    before: Vec<RefusedLine>,
) -> Result<Option<Imported>, Failure> {
    let key = ImportKey { board: NO_BOARD, digest: chunk.digest };
    let request = LedgerChunk { key, actor, lines: chunk, refused: before.len() as u64, taken };
    let Some(done) = tally.ledger.ask(request, Vec::new()).await? else { return Ok(None) };
    let mut refused = before;
    refused.extend(done.refused.iter().map(|(line, rejection)| refused_line(*line, rejection)));
    refused.sort_by_key(|row| row.line);
    Ok(Some(Imported { progress: done.progress, refused, replayed: done.replayed }))
}

fn refused_line(line: u64, rejection: &Rejection) -> RefusedLine {
    let field = match rejection {
        Rejection::LoginTaken(_) => "login_id",
        Rejection::PhoneTaken(_) => "phone_number",
        Rejection::PlayerTaken(_) | Rejection::PlayerInContest(_) => "player",
        Rejection::MemberNotFound => "from",
        Rejection::RecipientNotFound | Rejection::SameWallet(_) => "to",
        _ => "amount",
    };
    RefusedLine { line, field, code: rejection.code(), detail: rejection.detail() }
}
