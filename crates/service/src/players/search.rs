//! Finding players by the beginning of a name: members by name, login, phone number and player, and players of leaderboards.
//!
//! Every source is a range of a primary key, so a search reads few rows however many there are. Keys are compared byte by byte, so
//! a search reads the spellings that are there (`spellings`). Names of members are stored in one spelling. Those of profiles have
//! no index, and are not searched.
//! A player that no range has, such as one with a profile alone, is found by its whole id. Only callers that may read members
//! find it: a member must not learn of other players.

use super::profile;
use super::ranks::{RECORDS_AT_ONCE, WindowChoice, slots_of};
use super::spellings::Spellings;
use crate::failure::Failure;
use crate::scores::score_key;
use crate::tally::Tally;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use tally_rules::ledger::member::{Handle, HandleKind};
use tally_rules::ledger::{Member, MemberId, NameKey, Uuid};
use tally_rules::{BoardId, PlayerId, Rejection};
use tally_store::{BoardNo, ScoreKey, Window};

/// Leaderboards that one search reads: by name, and after them those of contests, the newest first.
pub const BOARDS_MAX: usize = 200;

/// Ranges that one search reads at most.
const READS_MAX: usize = 2_000;

/// Leaderboards that are named with a player.
const NAMED_MAX: usize = 5;

/// A player that was found.
#[derive(Default)]
pub struct FoundPlayer {
    /// Its member, if there is one and the search has members.
    pub member: Option<(MemberId, Member)>,
    /// Leaderboards that it was found on, the first ones.
    pub boards: Vec<BoardId>,
}

/// The result of a search.
pub struct Search {
    /// Players by id.
    pub items: BTreeMap<PlayerId, FoundPlayer>,
    /// Whether there is nothing else: every leaderboard was read, nothing was cut off, and every member has a handle of its name.
    pub complete: bool,
}

impl Search {
    /// Leaves so many. Members stay before others: a leaderboard can have any number of players that begin so.
    fn shorten(&mut self, limit: usize) {
        let spare = self.items.len().saturating_sub(limit);
        self.complete &= spare == 0;
        let others = self.items.iter().rev().filter(|(_, found)| found.member.is_none());
        let others: Vec<PlayerId> = others.take(spare).map(|(player, _)| player.clone()).collect();
        for player in &others {
            self.items.remove(player);
        }
        while self.items.len() > limit {
            self.items.pop_last();
        }
    }
}

/// At most `limit` players for what was typed; of members, and by a whole id, only if `with_members` is true. Blocks.
pub fn search(tally: &Tally, typed: &str, limit: usize, with_members: bool) -> Result<Search, Failure> {
    let mut search = Search { items: BTreeMap::new(), complete: true };
    let mut reads = READS_MAX;
    if with_members {
        members(tally, typed.trim(), (limit, &mut reads), &mut search)?;
    }
    players(tally, &Spellings::of(typed.trim()), (limit, &mut reads), &mut search)?;
    if with_members && search.items.is_empty() {
        by_id(tally, typed.trim(), &mut search)?;
    }
    search.shorten(limit);
    Ok(search)
}

fn text_of((handle, _): &(Handle, MemberId)) -> &str {
    handle.as_str()
}

fn members(
    tally: &Tally,
    typed: &str,
    (limit, reads): (usize, &mut usize),
    search: &mut Search,
) -> Result<(), Failure> {
    let ledger = tally.store.ledger();
    let mut ids: Vec<MemberId> = Uuid::parse(typed).map(MemberId).into_iter().collect();
    let name = NameKey::prefix(typed);
    let digits: String = typed.chars().filter(|letter| !matches!(letter, ' ' | '-' | '+')).collect();
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let typed = Spellings::of(typed);
    for kind in HandleKind::ALL {
        let one_spelling = match kind {
            HandleKind::Name => name.as_ref(),
            HandleKind::Phone => Some(&digits).filter(|_| is_number),
            HandleKind::Login | HandleKind::Player => {
                let read = |text: &str, most, _| Ok(Some(ledger.list_handles(kind, text, most)?.rows));
                search.complete &= typed.each(limit, reads, read, text_of, |(_, id)| ids.push(id))?;
                None
            }
        };
        if let Some(text) = one_spelling {
            let found = ledger.list_handles(kind, text, limit + 1)?.rows;
            search.complete &= found.len() <= limit;
            ids.extend(found.into_iter().map(|(_, id)| id));
        }
    }
    search.complete &= tally.members.has_names.load(Ordering::Relaxed);
    let ids = tally_lanes::keys_to_load(ids);
    for (id, member) in ids.iter().zip(ledger.members(&ids)?) {
        let Some(member) = member else { continue };
        let found = search.items.entry(member.player.clone()).or_default();
        found.member = Some((*id, member));
    }
    Ok(())
}

/// The player with that id, if anything is known of it.
fn by_id(tally: &Tally, typed: &str, search: &mut Search) -> Result<(), Failure> {
    let Ok(player) = PlayerId::new(typed) else { return Ok(()) };
    match profile::of_known(tally, &player) {
        Ok(_) => search.items.insert(player, FoundPlayer::default()),
        Err(Failure::Rejected(Rejection::PlayerNotFound)) => None,
        Err(failure) => return Err(failure),
    };
    Ok(())
}

fn players(
    tally: &Tally,
    typed: &Spellings,
    (limit, reads): (usize, &mut usize),
    search: &mut Search,
) -> Result<(), Failure> {
    let mut boards = tally.boards.list(None, usize::MAX);
    // Contests make many leaderboards, which would crowd out the others.
    boards.sort_by_key(|board| board.id.is_reserved().then_some(Reverse(board.no)));
    search.complete &= boards.len() <= BOARDS_MAX;
    boards.truncate(BOARDS_MAX);
    let mut windows: Vec<(BoardNo, Window, &BoardId)> = Vec::new();
    for board in &boards {
        let slots = slots_of(board, WindowChoice::Open(tally.now())).into_iter();
        // All time has every player of the open periods.
        let wanted = if board.definition.all_time { 1 } else { usize::MAX };
        windows.extend(slots.take(wanted).map(|slot| (board.no, slot.window(), &board.id)));
    }
    // A scan begins after a name, so whole names are looked up. Players of members may be found by another name.
    let mut whole: BTreeSet<PlayerId> = search.items.keys().cloned().collect();
    let mut found: Vec<BTreeSet<PlayerId>> = Vec::with_capacity(windows.len());
    for (board, window, _) in &windows {
        let mut players = BTreeSet::new();
        let read = |text: &str, most, is_whole| {
            // No player is called `.` or `..`, but others may begin so. A longer text that is no name begins none.
            let Ok(from) = PlayerId::new(text) else { return Ok((text.len() > 2).then(Vec::new)) };
            let mut rows = Vec::new();
            let mut each = |player: PlayerId, _| {
                if player.as_str().starts_with(text) {
                    rows.push(player);
                }
            };
            tally.store.scan_scores(*board, *window, Some(&from), most, &mut each)?;
            if is_whole {
                whole.insert(from);
            }
            Ok(Some(rows))
        };
        let mut put = |player| {
            players.insert(player);
        };
        search.complete &= typed.each(limit, reads, read, PlayerId::as_str, &mut put)?;
        found.push(players);
    }
    let keys = windows
        .iter()
        .flat_map(|(board, window, _)| whole.iter().map(move |player| score_key(*board, *window, player)));
    let keys: Vec<ScoreKey> = tally_lanes::keys_to_load(keys);
    let mut stored = Vec::with_capacity(keys.len());
    for some in keys.chunks(RECORDS_AT_ONCE) {
        stored.extend(tally.store.records(some)?);
    }
    for ((board, window, name), mut players) in windows.into_iter().zip(found) {
        let is_stored = |player: &&PlayerId| {
            let at = keys.binary_search(&score_key(board, window, player));
            stored[at.expect("every key was looked up")].is_some()
        };
        players.extend(whole.iter().filter(is_stored).cloned());
        for player in players {
            let boards = &mut search.items.entry(player).or_default().boards;
            if boards.len() < NAMED_MAX && boards.last() != Some(name) {
                boards.push(name.clone());
            }
        }
    }
    Ok(())
}
