//! What the store has about a member, in parts that the caller reads one after the other: its memory holds one page.
//!
//! Not here: lists that have other callers too, which are wallets and their histories, holds, and the rows in contests
//! (`contests::of_player`).

use super::find;
use crate::audit;
use crate::boards::Board;
use crate::contests::of_player::{self, Subject};
use crate::failure::{Failure, Fault};
use crate::periods::view::View;
use crate::servers;
use crate::tally::Tally;
use std::sync::Arc;
use tally_rules::audit::AuditAction;
use tally_rules::contest::Payout;
use tally_rules::ledger::member::Handle;
use tally_rules::ledger::{Member, MemberId};
use tally_rules::period::PeriodPayment;
use tally_rules::{BoardId, Origin, PlayerId, Record};
use tally_store::{ScoreKey, WindowKey};

/// The record of a player in one window of a leaderboard.
pub struct PlayerRecord {
    /// The public name of the window.
    pub period: String,
    /// The record.
    pub record: Record,
    /// Its rank; `None` if it has none, such as that of a banned player, or if ranks are unavailable now.
    pub rank: Option<u64>,
}

/// Leaves the row of an export in the audit log, before it begins. Blocks.
pub fn note(tally: &Tally, member: MemberId, origin: &Origin) -> Result<(), Failure> {
    find::by_id(tally, member)?;
    let audited = audit::begin(origin.clone(), tally.now())?;
    let row = || audited.row(AuditAction::MemberExported, member.0.to_string(), None);
    servers::again(|| audit::append(&*tally.store, row()))
}

/// The member, and whether what has the name of its player is its own: another member may have the name since this one was closed.
/// Blocks.
pub fn subject(tally: &Tally, id: MemberId) -> Result<(Member, bool), Failure> {
    let member = find::by_id(tally, id)?;
    let holder = tally.store.ledger().member_of(&Handle::Player(member.player.clone()))?;
    Ok((member, holder.is_none_or(|holder| holder == id)))
}

/// At most `limit` leaderboards, from the first one after `after`. Those of other servers are known by now.
pub fn boards(tally: &Tally, after: Option<&BoardId>, limit: usize) -> Vec<Arc<Board>> {
    if after.is_none() {
        tally.refresh_blocking();
    }
    tally.boards.list(after, limit)
}

/// The records of a player on a leaderboard, in every window that is kept, also of a banned player. Blocks.
pub fn records(tally: &Tally, board: &Arc<Board>, player: &PlayerId) -> Result<Vec<PlayerRecord>, Failure> {
    let mut windows = Vec::new();
    if board.definition.all_time {
        windows.push((tally_store::plan::ALL_TIME, crate::periods::ALL_TIME_NAME.to_owned()));
    }
    for state in &board.periods().rules {
        let open = state.live.iter().map(|live| (live.window, state.name(live.span.start)));
        let closed = state.closed.iter().map(|row| (row.window, state.name(row.span.start)));
        windows.extend(closed.chain(open));
    }
    windows.sort_unstable();
    windows.dedup_by_key(|(window, _)| *window);
    let key = |(window, _): &(_, _)| ScoreKey { board: board.no, window: *window, player: player.clone() };
    let keys: Vec<ScoreKey> = windows.iter().map(key).collect();
    let found = tally.store.records(&keys)?;
    let rows = windows.into_iter().zip(found).filter_map(|((_, period), record)| Some((period, record?)));
    let with_rank = |(period, record): (String, Record)| {
        let rank = rank(tally, board, &period, player)?;
        Ok(PlayerRecord { period, record, rank })
    };
    rows.map(with_rank).collect()
}

fn rank(tally: &Tally, board: &Arc<Board>, period: &str, player: &PlayerId) -> Result<Option<u64>, Failure> {
    // A window may be forgotten meanwhile.
    let Ok(view) = View::find(board, Some(period), tally.now(), |_| None) else { return Ok(None) };
    match view.read(&*tally.store, |ranking| ranking.ranked(player)) {
        Ok(ranked) => Ok(ranked.map(|ranked| ranked.rank)),
        Err(Failure::Rejected(_) | Failure::Fault(Fault::RanksUnavailable(_) | Fault::RanksRefused(_))) => {
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

/// A page of the periods of leaderboards that pay prizes.
pub struct PeriodPage {
    /// Those that owe or have paid something to the member, with its prizes.
    pub rows: Vec<(PeriodPayment, Vec<(u32, Payout)>)>,
    /// Where the next page begins, if there is one.
    pub next: Option<WindowKey>,
}

/// The prizes of a person in at most `limit` periods, from the first one after `after`. Blocks.
pub fn period_prizes(
    tally: &Tally,
    subject: &Subject,
    after: Option<WindowKey>,
    limit: usize,
) -> Result<PeriodPage, Failure> {
    let keys = tally.store.ledger().payments(false, after, limit)?;
    let mut rows = Vec::new();
    for key in &keys {
        let Some(payment) = tally.store.ledger().payment(*key)? else { continue };
        let its = of_player::payouts(tally, payment.no, subject)?;
        if !its.is_empty() {
            rows.push((payment, its));
        }
    }
    Ok(PeriodPage { rows, next: keys.last().copied().filter(|_| keys.len() == limit) })
}
