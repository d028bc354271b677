//! Compares the server's state with the model.

use crate::contests;
use crate::model::{BOARDS, Board, MEMBERS, Model, PLAYERS, Record, Wallet};
use crate::operations::digest;
use crate::world::{World, currency};
use std::collections::{BTreeMap, BTreeSet};
use tally_rules::ledger::entry::{EntryKey, EntryKind};
use tally_rules::ledger::{MemberId, Wallet as Stored, WalletKey};
use tally_rules::{BoardId, Micros, PlayerId};
use tally_service::periods::view::View;
use tally_service::verify::{Disagreement, Expected, Listener, reconcile};
use tally_service::{ALL_TIME, Failure, Fault, PageQuery};
use tally_store::{ImportKey, Reads, ScoreKey, Window};

pub(crate) fn board_id(index: usize) -> BoardId {
    BoardId::new(BOARDS[index]).unwrap()
}

pub(crate) fn player_id(index: usize) -> PlayerId {
    PlayerId::new(&format!("p{index:02}")).unwrap()
}

pub(crate) fn index_of(player: &PlayerId) -> usize {
    player.as_str()[1..].parse().unwrap()
}

/// What the server has. Holds are not read: wallets have the held amounts. Of files it reads only the named ones.
pub(crate) fn read(world: &World, members: &[MemberId], files: &BTreeSet<(usize, u8)>) -> Model {
    let mut found = Model::default();
    for index in 0..BOARDS.len() {
        found.boards[index] = read_board(world, index);
    }
    let held = contests::held(world, members.len());
    for ((member, held), wallet) in members.iter().zip(held).zip(&mut found.wallets) {
        *wallet = read_wallet(world, *member, held);
    }
    for (board, file) in files {
        let Some(of) = world.tally().boards.get(&board_id(*board)) else { continue };
        let key = ImportKey { board: of.no, digest: digest(*file) };
        let lines = world.store().import_progress(&key).unwrap().map_or(0, |row| row.lines);
        found.files.insert((*board, *file), lines);
    }
    found
}

fn read_board(world: &World, index: usize) -> Option<Board> {
    let board = world.tally().boards.get(&board_id(index))?;
    let mut found = Board::default();
    for (player, record) in records(world, index, ALL_TIME) {
        let record = Record { score: record.score, at: Some(record.at.0) };
        assert!(found.records.insert(index_of(&player), record).is_none(), "a record is there twice");
    }
    let bans = world.store().bans(board.no).unwrap();
    found.banned = bans.iter().map(index_of).collect();
    let banned: BTreeSet<usize> =
        (0..PLAYERS).filter(|player| board.is_banned(&player_id(*player))).collect();
    assert_eq!(found.banned, banned, "bans in the store and in memory");
    Some(found)
}

fn records(world: &World, index: usize, window: Window) -> Vec<(PlayerId, tally_rules::Record)> {
    let board = world.tally().boards.get(&board_id(index)).unwrap();
    let mut records = Vec::new();
    let mut each = |player: PlayerId, record| records.push((player, record));
    world.store().scan_scores(board.no, window, None, usize::MAX, &mut each).unwrap();
    records
}

/// A wallet without prizes, fees and holds of contests, and without what credit came and went. Its credit is checked.
fn read_wallet(world: &World, member: MemberId, held: i64) -> Wallet {
    let ledger = world.store().ledger();
    let key = WalletKey { member, currency: currency() };
    let all = ledger.wallets_of(member).unwrap();
    let wallet = all.into_iter().find(|(code, _)| *code == currency()).map(|(_, wallet)| wallet).unwrap();
    let keys: Vec<_> = (1..=wallet.sequence).map(|sequence| EntryKey { wallet: key, sequence }).collect();
    let entries = ledger.entries(&keys).unwrap();
    let (mut others, mut fees, mut expired) = (0, 0, 0);
    let mut promoted = BTreeMap::new();
    for entry in entries.into_iter().map(|entry| entry.expect("entries have no gap")) {
        // Callers write no references, but for credit.
        match (entry.kind, &entry.reference) {
            (EntryKind::Promotion, Some(expires_at)) => {
                *promoted.entry(expires_at.parse().unwrap()).or_default() += entry.amount;
            }
            (EntryKind::Expiry, None) => expired += entry.amount,
            (EntryKind::Fee | EntryKind::Capture, Some(_)) => fees += entry.amount,
            (EntryKind::Prize | EntryKind::Refund, Some(_)) => {}
            (_, None) => continue,
            _ => panic!("{entry:?}"),
        }
        others += entry.change();
    }
    check_credit(world, &wallet, &promoted, (fees, expired));
    Wallet { balance: wallet.balance - others, held: wallet.held - held, promoted }
}

/// What was given is spent on fees, has expired at its time, or is left.
fn check_credit(world: &World, wallet: &Stored, promoted: &BTreeMap<i64, i64>, (fees, expired): (i64, i64)) {
    let credits = wallet.credits.as_deref().cloned().unwrap_or_default();
    let spent = promoted.values().sum::<i64>() - expired - credits.sum();
    assert!((0..=fees).contains(&spent), "{spent} of fees of {fees}: {wallet:?}, {expired} of {promoted:?}");
    let over: i64 = promoted.range(..=world.latest).map(|(_, units)| units).sum();
    let gone = expired + credits.lapsed + credits.covered;
    assert!(gone <= over, "{gone} before its time: {wallet:?} of {promoted:?}");
    for credit in &credits.open {
        assert!(promoted.get(&credit.expires_at.0) >= Some(&credit.left), "{wallet:?} of {promoted:?}");
    }
}

/// An answered score counts for the period that the clock names.
pub(crate) fn check_counts(world: &World, index: usize, player: usize) {
    let Some(board) = world.tally().boards.get(&board_id(index)) else { return };
    let view = View::find(&board, Some("daily"), Micros(world.now()), |_| None);
    let counts = view.ok().and_then(|view| view.window()).is_some_and(|window| {
        let key = ScoreKey { board: board.no, window, player: player_id(player) };
        world.store().records(&[key]).unwrap()[0].is_some()
    });
    assert!(counts, "p{player:02} does not count for the present period of `{}`", BOARDS[index]);
}

/// Ranks against a sort, on all time, on the periods of now and on the ones before. Only a closed period may report inexact
/// ranks, and none may once all work `is_done`.
pub(crate) fn check_ranks(world: &World, is_done: bool) {
    for (index, name) in BOARDS.iter().enumerate() {
        let Some(board) = world.tally().boards.get(&board_id(index)) else { continue };
        for period in [None, Some("daily"), Some("daily:previous")] {
            let Ok(view) = View::find(&board, period, Micros(world.now()), |_| None) else { continue };
            let Some(window) = view.window() else { continue };
            // Lines of an import count for a closed period once the import ends, or the scheduler has come to it.
            let rows = world.store().windows(board.no).unwrap();
            if !is_done && rows.iter().any(|row| row.window == window && row.closed && row.stale) {
                continue;
            }
            let mut sorted = records(world, index, window);
            sorted.retain(|(player, _)| !board.is_banned(player));
            sorted.sort_by(|(left_player, left), (right_player, right)| {
                let score = right.score.cmp(&left.score);
                score.then(left.at.cmp(&right.at)).then(left_player.cmp(right_player))
            });
            let query = PageQuery { limit: 2 * PLAYERS, ..PageQuery::default() };
            let page = match view.read(world.store(), |order| order.page(&query)) {
                Err(Failure::Fault(Fault::RanksUnavailable(_))) if !is_done && view.blocks() => continue,
                page => page.unwrap(),
            };
            let wanted: Vec<_> =
                (1..).zip(sorted).map(|(rank, (player, record))| (rank, player, record)).collect();
            let shown: Vec<_> =
                page.entries.into_iter().map(|place| (place.rank, place.player, place.record)).collect();
            assert_eq!(shown, wanted, "ranks of `{name}` in {period:?}");
            assert_eq!(page.total, wanted.len() as u64);
        }
    }
}

/// No credit is left that is due.
pub(crate) fn check_expired(world: &World, members: &[MemberId]) {
    for (_, wallet) in members.iter().flat_map(|member| world.store().ledger().wallets_of(*member).unwrap()) {
        let credits = wallet.credits.as_deref().cloned().unwrap_or_default();
        assert_eq!(credits.lapsed, 0, "{wallet:?}");
        assert!(credits.open.iter().all(|credit| credit.expires_at.0 > world.now()), "{wallet:?}");
    }
}

/// Scores and ledger against the rows behind them; debits equal credits.
pub(crate) fn verify(world: &World) {
    let store = world.store();
    let mut found = Vec::new();
    let listener = Listener {
        found: &mut |one: &Disagreement| found.push(one.to_string()),
        read: &mut |_| {},
        proved: &mut |_, _| Ok(()),
    };
    let expected = Expected::of(store).unwrap();
    let mut snapshot = store.ledger().snapshot().unwrap();
    let reconciled = reconcile(store, &mut *snapshot, (expected, Micros(i64::MAX), None), listener).unwrap();
    assert_eq!(found, [""; 0], "verify");
    assert_eq!(reconciled.members, MEMBERS as u64);
    let (debits, credits) = reconciled
        .totals
        .iter()
        .fold((0, 0), |(debits, credits), (_, total)| (debits + total.debits, credits + total.credits));
    assert_eq!(debits, credits, "money is conserved");
}
