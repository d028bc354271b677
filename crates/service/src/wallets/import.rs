//! Importing members and movements from a file, chunk by chunk, each line exactly once.
//!
//! A chunk and the number of lines done are one transaction, so a chunk that is sent again after a crash changes
//! nothing. What a line says of members by login is looked up first: a login never changes.

use super::command::{Done, ImportLine, LedgerChunk, NewMember, Request};
use super::members::{TRIES, look};
use crate::contests::entries::Look;
use crate::failure::{Failure, Fault, blocking};
use crate::members::password::check_digest;
use crate::tally::Tally;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tally_rules::ledger::lines::{MemberLine, TransferLine};
use tally_rules::ledger::member::{Handle, Login, Phone};
use tally_rules::ledger::pin::Attempts;
use tally_rules::ledger::pin::is_pin;
use tally_rules::ledger::{Member, MemberId, TransferKind, TransferRequest};
use tally_rules::{Micros, PlayerId, Rejection};
use tally_store::{BoardNo, Changes, ImportKey, ImportRow, LedgerPlan, Plan};

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
    /// What they say, each with its number.
    pub rows: Vec<(u64, L)>,
    /// Whether the file ends here.
    pub last: bool,
}

/// A line that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedLine {
    /// Its number.
    pub line: u64,
    /// Which field was at fault.
    pub field: &'static str,
    /// The stable word.
    pub code: &'static str,
    /// Why.
    pub detail: String,
}

/// What came of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The whole import so far.
    pub progress: ImportRow,
    /// Lines of this chunk that were refused, in order.
    pub refused: Vec<RefusedLine>,
    /// Whether the chunk had been done before.
    pub replayed: bool,
}

/// Imports members, each with its wallet and its deposit.
pub async fn members(tally: &Arc<Tally>, chunk: NewChunk<MemberLine>) -> Result<Imported, Failure> {
    let players: BTreeSet<_> = chunk.rows.iter().filter_map(|(_, row)| row.player.clone()).collect();
    for _ in 0..TRIES {
        let mut refused = Vec::new();
        let mut rows = Vec::with_capacity(chunk.rows.len());
        let look = match players.is_empty() {
            true => Look::default(),
            false => look(tally, players.clone()).await?,
        };
        let entered: BTreeMap<_, _> = look.left_behind.into_iter().collect();
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
        if let Some(imported) = done(tally, NewChunk { rows, ..of }, look.taken, refused).await? {
            return Ok(imported);
        }
    }
    Err(Fault::Overloaded.into())
}

/// The member of a line, or what is wrong with which field.
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
    Ok(NewMember { member, player_is_id: player.is_none(), identity: None })
}

/// Imports movements between members, in the home currency.
pub async fn transfers(tally: &Arc<Tally>, chunk: NewChunk<TransferLine>) -> Result<Imported, Failure> {
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
                    ImportLine::Move(TransferRequest { what, currency, amount, reference: None }),
                ));
            }
            (None, _) => refused.push(refused_line(line, &Rejection::MemberNotFound)),
            (_, None) => refused.push(refused_line(line, &Rejection::RecipientNotFound)),
        }
    }
    let chunk =
        NewChunk { rows, ..of_lines(chunk.digest, (chunk.lines_before, chunk.lines_after), chunk.last) };
    let imported = done(tally, chunk, Vec::new(), refused).await?;
    imported.ok_or_else(|| Fault::Overloaded.into())
}

fn of_lines(digest: [u8; 32], (lines_before, lines_after): (u64, u64), last: bool) -> NewChunk<ImportLine> {
    NewChunk { digest, lines_before, lines_after, rows: Vec::new(), last }
}

/// Who has these logins, in order of login.
async fn members_of(
    tally: &Arc<Tally>,
    mut logins: Vec<Login>,
) -> Result<Vec<(Login, Option<MemberId>)>, Failure> {
    logins.sort_unstable();
    logins.dedup();
    let store = Arc::clone(&tally.store);
    blocking(move || {
        let handles = logins.iter().cloned().map(Handle::Login).collect();
        let ledger = LedgerPlan { handles, ..LedgerPlan::default() };
        let mut found = Vec::new();
        store.run(&Plan { ledger, ..Plan::default() }, &mut |loaded| {
            found.clone_from(&loaded.ledger.handles);
            Changes::default()
        })?;
        Ok(logins.into_iter().zip(found).collect())
    })
    .await
}

/// Puts a chunk into the lane; `before` are the lines that were refused on the way. Nothing where a player that was taken is free.
async fn done(
    tally: &Tally,
    chunk: NewChunk<ImportLine>,
    taken: Vec<Handle>,
    before: Vec<RefusedLine>,
) -> Result<Option<Imported>, Failure> {
    let request = Request::Import(LedgerChunk {
        key: ImportKey { board: NO_BOARD, digest: chunk.digest },
        lines_before: chunk.lines_before,
        lines_after: chunk.lines_after,
        rows: chunk.rows,
        refused: before.len() as u64,
        last: chunk.last,
        taken,
    });
    match tally.ledger.ask(request, Vec::new()).await? {
        Done::Imported(done) => {
            let mut refused = before;
            refused.extend(done.refused.iter().map(|(line, rejection)| refused_line(*line, rejection)));
            refused.sort_by_key(|row| row.line);
            Ok(Some(Imported { progress: done.progress, refused, replayed: done.replayed }))
        }
        Done::Stale => Ok(None),
        other => Err(Fault::Broken(format!("a chunk is answered as a chunk, not as {other:?}")).into()),
    }
}

fn refused_line(line: u64, rejection: &Rejection) -> RefusedLine {
    let field = match rejection {
        Rejection::LoginTaken => "login_id",
        Rejection::PhoneTaken => "phone_number",
        Rejection::PlayerTaken | Rejection::PlayerInContest(_) => "player",
        Rejection::MemberNotFound => "from",
        Rejection::RecipientNotFound | Rejection::SameWallet => "to",
        _ => "amount",
    };
    RefusedLine { line, field, code: rejection.code(), detail: rejection.detail() }
}
