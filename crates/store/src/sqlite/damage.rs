//! Distinguishes a journal that a crash cut off from one that was corrupted later.
//!
//! SQLite reads its log up to the first page that is not whole, and treats the rest as unfinished by a crash. That is right
//! for the last batches. It is wrong if a page in the middle is corrupt: the acknowledged batches after it would be lost
//! silently. So this module examines the rest. Every row says which batch was on the disk when it was written. A row beyond
//! the end is proof if its writer knew another batch beyond the end to be on the disk.
//!
//! A power cut leaves any part of the unsynced pages, torn and in any order. So only a whole row counts. The frames of its
//! transaction have valid checksums, each chained to the frame before; its digest is valid; and its numbers are possible.
//! Numbers of batches only grow, so former content of an emptied file proves nothing.
//!
//! Not here: repair, and corruption of the very last batch, which looks like a crash.

use super::journal_rows::{self, Identity, damaged};
use super::log_frames::{Frames, PAGE_BYTES};
use super::seeded_faults::{SeededFault, is_seeded};
use super::{fault, files};
use crate::StoreError;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

/// The first byte of a page with rows of a table.
const ROWS_PAGE: u8 = 0x0d;

/// The type code of SQLite for a blob of 16 bytes.
const DIGEST_KIND: u64 = 12 + 2 * 16;

/// Refuses a journal file that holds proof of batches after `last`.
pub(super) fn check(path: &Path, identity: Option<&Identity>, last: u64) -> Result<(), StoreError> {
    let log = files::beside(path, files::LOG);
    let failed = |error: std::io::Error| fault::file("read", &log, &error);
    let file = match File::open(&log) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    let mut frames = Frames::new(file).map_err(failed)?;
    let mut frame = 0;
    let mut page = [0; PAGE_BYTES];
    while frames.page(frame, &mut page).map_err(failed)?.is_some() {
        // Parsing a page as rows is cheap, and almost no page has one that could be proof.
        if rows(&page).any(|row| row.is_beyond(last)) || is_seeded(SeededFault::ProofUnchecked) {
            let proof = proof(&mut frames, frame, identity, last).map_err(failed)?;
            if let Some((no, synced)) = proof {
                let text = format!(
                    "it breaks off after batch {last}, but batch {no} was written after batch {synced} was safe"
                );
                return Err(damaged(path, &text));
            }
        }
        frame += 1;
    }
    Ok(())
}

/// The number and the last synced batch of a whole row in this frame beyond the end.
fn proof(
    frames: &mut Frames,
    frame: u64,
    identity: Option<&Identity>,
    last: u64,
) -> std::io::Result<Option<(u64, u64)>> {
    if is_seeded(SeededFault::ProofUnchecked) {
        let mut page = [0; PAGE_BYTES];
        frames.page(frame, &mut page)?;
        let first = rows(&page).find(|row| row.no > last && row.synced > last);
        return Ok(first.map(|row| (row.no, row.synced)));
    }
    let Some(pages) = frames.transaction(frame)? else { return Ok(None) };
    let whole = |row: &PageRow<'_>| {
        row.body(&pages).is_some_and(|(digest, body)| {
            digest[..] == journal_rows::digest(identity, row.no, row.synced, &body)
        })
    };
    let found = pages.values().flat_map(rows).filter(|row| row.is_beyond(last)).find(whole);
    Ok(found.map(|row| (row.no, row.synced)))
}

/// A row of the journal, as far as its page has it.
struct PageRow<'a> {
    no: u64,
    synced: u64,
    /// The length of the whole record in bytes.
    length: usize,
    /// The part of the record in this page, followed by the number of the page with the rest.
    record: &'a [u8],
    /// The offset of the digest in the record.
    digest_at: usize,
    /// The length of the body, which follows the digest.
    body_bytes: usize,
}

impl PageRow<'_> {
    fn is_beyond(&self, last: u64) -> bool {
        self.no > last && self.synced > last && self.synced < self.no
    }

    /// Digest and body, if the rest of the record is in `pages`.
    fn body(&self, pages: &BTreeMap<u32, [u8; PAGE_BYTES]>) -> Option<([u8; 16], Vec<u8>)> {
        let mut local = local_bytes(self.length);
        let mut whole = self.record.get(..local)?.to_vec();
        let mut rest = self.record.get(local..)?;
        while whole.len() < self.length {
            local = (self.length - whole.len()).min(PAGE_BYTES - 4);
            let page = pages.get(&u32::from_be_bytes(*rest.first_chunk()?))?;
            whole.extend_from_slice(page.get(4..4 + local)?);
            rest = page;
        }
        let digest = whole.get(self.digest_at..)?.first_chunk().copied()?;
        let body = whole.get(self.digest_at + digest.len()..)?.get(..self.body_bytes)?;
        Some((digest, body.to_vec()))
    }
}

/// The number of bytes of a record that SQLite keeps in the page of its row.
fn local_bytes(length: usize) -> usize {
    let most = PAGE_BYTES - 35;
    let least = (PAGE_BYTES - 12) * 32 / 255 - 23;
    if length <= most {
        return length;
    }
    let fits = least + (length - least) % (PAGE_BYTES - 4);
    if fits <= most { fits } else { least }
}

/// The rows of a page that can be parsed.
fn rows(page: &[u8; PAGE_BYTES]) -> impl Iterator<Item = PageRow<'_>> {
    let is_ours = page[0] == ROWS_PAGE;
    let cells = if is_ours { u16::from_be_bytes([page[3], page[4]]) } else { 0 };
    (0..usize::from(cells)).filter_map(move |cell| {
        let at = page.get(8 + 2 * cell..10 + 2 * cell)?;
        row(page.get(usize::from(u16::from_be_bytes([at[0], at[1]]))..)?)
    })
}

/// Parses a cell: length, rowid, then the record: length of its head, types of its columns, columns. The first column is the
/// rowid itself and takes no space.
fn row(mut cell: &[u8]) -> Option<PageRow<'_>> {
    let length = usize::try_from(varint(&mut cell)?).ok()?;
    let no = varint(&mut cell)?;
    let mut kinds = cell;
    let head = usize::try_from(varint(&mut kinds)?).ok()?;
    let no_kind = varint(&mut kinds)?;
    let (width, constant) = match varint(&mut kinds)? {
        8 => (0, Some(0)),
        9 => (0, Some(1)),
        kind @ 1..=4 => (usize::try_from(kind).ok()?, None),
        5 => (6, None),
        6 => (8, None),
        _ => return None,
    };
    let digest_at = head.checked_add(width)?;
    let is_ours = no_kind == 0 && varint(&mut kinds)? == DIGEST_KIND && digest_at <= length;
    let bytes = cell.get(head..digest_at).filter(|_| is_ours)?;
    let body_bytes = usize::try_from(varint(&mut kinds)?.checked_sub(12)?).ok()? / 2;
    let read = || bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    Some(PageRow { no, synced: constant.unwrap_or_else(read), length, record: cell, digest_at, body_bytes })
}

/// Reads SQLite's varint of one to nine bytes: seven bits of each, the high bits first, all eight of the ninth.
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
