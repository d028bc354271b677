//! Tells a journal that was cut off by a crash from one that was damaged later.
//!
//! SQLite reads its log up to the first page that is not whole and takes the rest for what a crash left unfinished. That is
//! right for the last batches, and wrong where something in the middle went bad: then acknowledged batches stand
//! behind it and would be lost without a word. So the rest is looked at here. Every row says which batch was on the
//! disk when it was written; a row beyond the end whose writer knew a batch beyond the end to be there is proof.
//!
//! Numbers of batches only grow, so what an emptied file still has of its former content proves nothing. Not here:
//! repairing, and damage to the very last batch, which looks like a crash.

use super::files;
use super::journal::damaged;
use super::{connect, fault};
use crate::StoreError;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

const LOG_HEAD_BYTES: usize = 32;
const FRAME_HEAD_BYTES: usize = 24;
const PAGE_BYTES: usize = connect::PAGE_BYTES as usize;

/// The first byte of a page with rows of a table.
const ROWS_PAGE: u8 = 0x0d;

/// Refuses a journal file that holds proof of batches after `last`.
pub(super) fn check(path: &Path, last: u64) -> Result<(), StoreError> {
    let log = files::beside(path, files::LOG);
    let failed = |error: std::io::Error| fault::file("read", &log, &error);
    let mut file = match File::open(&log) {
        Ok(file) => std::io::BufReader::with_capacity(1 << 20, file),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    std::io::copy(&mut file.by_ref().take(LOG_HEAD_BYTES as u64), &mut std::io::sink()).map_err(failed)?;
    let mut frame = [0; FRAME_HEAD_BYTES + PAGE_BYTES];
    loop {
        match file.read_exact(&mut frame) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(failed(error)),
        }
        let page = &frame[FRAME_HEAD_BYTES..];
        if let Some((no, synced)) = rows(page).find(|(no, synced)| *no > last && *synced > last) {
            let text = format!(
                "it breaks off after batch {last}, but batch {no} was written after batch {synced} was safe"
            );
            return Err(damaged(path, &text));
        }
    }
}

/// Number and last synced batch of each row of a page that can be read.
fn rows(page: &[u8]) -> impl Iterator<Item = (u64, u64)> {
    let is_ours = page[0] == ROWS_PAGE;
    let cells = if is_ours { u16::from_be_bytes([page[3], page[4]]) } else { 0 };
    (0..usize::from(cells)).filter_map(move |cell| {
        let at = page.get(8 + 2 * cell..10 + 2 * cell)?;
        row(page.get(usize::from(u16::from_be_bytes([at[0], at[1]]))..)?)
    })
}

/// A cell: length, rowid, then the record: length of its head, kinds of its columns, columns. The first column is the
/// rowid itself and takes no place.
fn row(mut cell: &[u8]) -> Option<(u64, u64)> {
    let _length = varint(&mut cell)?;
    let no = varint(&mut cell)?;
    let mut record = cell;
    let head = usize::try_from(varint(&mut record)?).ok()?;
    let no_kind = varint(&mut record)?;
    let width = match varint(&mut record)? {
        8 => return Some((no, 0)),
        9 => return Some((no, 1)),
        kind @ 1..=4 => usize::try_from(kind).ok()?,
        5 => 6,
        6 => 8,
        _ => return None,
    };
    let bytes = cell.get(head..head.checked_add(width)?).filter(|_| no_kind == 0)?;
    Some((no, bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))))
}

/// SQLite's numbers of one to nine bytes: seven bits of each, the first bits first, all eight of the ninth.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for place in 0..9 {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        if place == 8 {
            return Some(number << 8 | u64::from(*first));
        }
        number = number << 7 | u64::from(first & 0x7f);
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}
