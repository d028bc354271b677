//! Archives against periods: every archive belongs to a stored period, in the version that the period reads or in the next
//! one, which is being written. Also the names of records that an archive lacks.
//!
//! Periods and archives are scanned side by side in the order of their keys. Not here: the contents of archives
//! (`scores`).

use super::Run;
use super::scores::{Boards, name};
use super::sorted_rows::{PAGE_ROWS, SortedRows};
use std::collections::{BTreeSet, HashSet};
use tally_ranking::blocks::unpack;
use tally_rules::PlayerId;
use tally_store::score_snapshot::{ArchiveKey, ToPurge};
use tally_store::{ScoreKey, Snapshot, StoreError, StoredBlock, WindowKey, WindowRow};

/// Archive blocks that are read at once.
const BLOCKS_AT_ONCE: usize = 16;

/// Records that are searched in one scan of an archive.
const SOUGHT: usize = 200_000;

/// Records that are reported of one archive that lacks them.
const REPORTED: usize = 10;

/// Reports archives of no period.
pub(super) fn reconcile(
    snapshot: &mut dyn Snapshot,
    (boards, purge): (&Boards, &ToPurge),
    run: &mut Run<'_>,
) -> Result<(), StoreError> {
    let (mut archives, mut windows) = (SortedRows::default(), SortedRows::default());
    let mut last: Option<(WindowKey, WindowRow)> = None;
    loop {
        archives.fill(|after: Option<&ArchiveKey>, limit| snapshot.archives(after.copied(), limit))?;
        let Some(((key, version), ())) = archives.next() else { return Ok(()) };
        loop {
            windows.fill(|after: Option<&WindowKey>, limit| snapshot.windows(after.copied(), limit))?;
            if windows.peek().is_none_or(|(next, _)| *next > key) {
                break;
            }
            last = windows.next();
        }
        let is_gone = purge.boards.contains(&key.board) || purge.windows.contains(&key);
        if is_gone || purge.archives.contains(&(key, version)) {
            continue;
        }
        let what = match last.as_ref().filter(|(of, _)| *of == key) {
            Some((_, row)) if version == row.version || version == row.version + 1 => continue,
            Some((_, row)) => format!("its period has the archive {}", row.version),
            None => "its period is not stored".into(),
        };
        run.found("blocks", format!("{}/{version}", name(boards, key)), what);
    }
}

/// Reports the first records of a closed period that its archive does not have.
pub(super) fn report_missing(
    snapshot: &mut dyn Snapshot,
    archive: ArchiveKey,
    (banned, row_name): (&HashSet<PlayerId>, &str),
    run: &mut Run<'_>,
) -> Result<(), StoreError> {
    let WindowKey { board, window } = archive.0;
    let least = PlayerId::new("\0").expect("a name of one byte");
    let mut at = ScoreKey { board, window, player: least };
    let mut sought: BTreeSet<PlayerId> = BTreeSet::new();
    let is_sought = !banned.contains(&at.player);
    if is_sought && snapshot.scores_of(std::slice::from_ref(&at))?.iter().any(Option::is_some) {
        sought.insert(at.player.clone());
    }
    let mut reported = 0;
    loop {
        let page = snapshot.scores(Some(&at), PAGE_ROWS)?;
        let ended = page.last().is_none_or(|(key, _)| (key.board, key.window) != (board, window));
        let of_window =
            page.into_iter().map(|(key, _)| key).take_while(|key| (key.board, key.window) == (board, window));
        for key in of_window {
            sought.extend((!banned.contains(&key.player)).then(|| key.player.clone()));
            at = key;
        }
        if !ended && sought.len() < SOUGHT {
            continue;
        }
        let _reported_before = each_block(snapshot, archive, |_, _, block| {
            for (player, _) in unpack(&block.entries).unwrap_or_default() {
                sought.remove(&player);
            }
            Ok(())
        })?;
        for player in std::mem::take(&mut sought).into_iter().take(REPORTED - reported) {
            reported += 1;
            run.found(
                "scores",
                format!("{row_name}/{}", player.as_str().escape_debug()),
                "its archive lacks it",
            );
        }
        if ended || reported == REPORTED {
            return Ok(());
        }
    }
}

/// Reads the blocks of an archive in order, up to the first missing one that others follow; its number is the error.
pub(super) fn each_block(
    snapshot: &mut dyn Snapshot,
    (window, version): ArchiveKey,
    mut with: impl FnMut(&mut dyn Snapshot, u64, &StoredBlock) -> Result<(), StoreError>,
) -> Result<Result<(), u64>, StoreError> {
    let mut next = 0;
    loop {
        let page = snapshot.blocks(window, version, next, BLOCKS_AT_ONCE)?;
        let ended = page.len() < BLOCKS_AT_ONCE;
        for (number, block) in page {
            if number != next {
                return Ok(Err(next));
            }
            with(snapshot, number, &block)?;
            next += 1;
        }
        if ended {
            return Ok(Ok(()));
        }
    }
}
