//! The frames of a write-ahead log, including those after the point where SQLite stops reading.
//!
//! SQLite's file format (sqlite.org/fileformat2.html, section 4) chains the checksum of each frame to that of the frame
//! before, and every frame has its own. So a frame after a hole can be checked by the frame before it, even if the chain
//! from the beginning is broken.
//!
//! Not here: the contents of the pages.

use super::connect;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};

pub(super) const PAGE_BYTES: usize = connect::PAGE_BYTES as usize;
const LOG_HEAD_BYTES: u64 = 32;
const FRAME_HEAD_BYTES: usize = 24;
const FRAME_BYTES: usize = FRAME_HEAD_BYTES + PAGE_BYTES;

/// The log of a file that no process writes.
pub(super) struct Frames {
    log: std::io::BufReader<File>,
    /// The checksum of the log's own header, where the chain begins.
    first: [u8; 8],
    /// The frame at the position of the reader.
    at: u64,
}

/// The head of a frame.
struct Head {
    bytes: [u8; FRAME_HEAD_BYTES],
}

impl Head {
    fn page(&self) -> u32 {
        u32::from_be_bytes([self.bytes[0], self.bytes[1], self.bytes[2], self.bytes[3]])
    }

    /// The last frame of a transaction has the number of pages of the file.
    fn is_last(&self) -> bool {
        self.bytes[4..8] != [0; 4]
    }

    fn salts(&self) -> &[u8] {
        &self.bytes[8..16]
    }

    fn checksum(&self) -> [u8; 8] {
        *self.bytes[16..].first_chunk().expect("a head is longer")
    }
}

impl Frames {
    pub(super) fn new(mut log: File) -> std::io::Result<Self> {
        let mut head = Vec::new();
        log.by_ref().take(LOG_HEAD_BYTES).read_to_end(&mut head)?;
        let first = head.get(24..).and_then(|checksum| checksum.first_chunk().copied()).unwrap_or_default();
        Ok(Self { log: std::io::BufReader::with_capacity(1 << 20, log), first, at: 0 })
    }

    /// Reads the page of a frame; `None` after the last whole frame.
    pub(super) fn page(&mut self, frame: u64, page: &mut [u8; PAGE_BYTES]) -> std::io::Result<Option<()>> {
        Ok(self.frame(frame, page)?.map(drop))
    }

    /// The pages of the transaction that has this frame, by number, if every frame of it is whole.
    pub(super) fn transaction(
        &mut self,
        frame: u64,
    ) -> std::io::Result<Option<BTreeMap<u32, [u8; PAGE_BYTES]>>> {
        let mut page = [0; PAGE_BYTES];
        let Some(own) = self.frame(frame, &mut page)? else { return Ok(None) };
        let mut first = frame;
        // The checksum that the transaction's first frame is chained to.
        let mut before = self.first;
        while first > 0 {
            let Some(head) = self.frame(first - 1, &mut page)? else { return Ok(None) };
            before = head.checksum();
            // Frames of an earlier use of the file also end the transaction.
            if head.is_last() || head.salts() != own.salts() {
                break;
            }
            first -= 1;
        }
        let mut pages = BTreeMap::new();
        for at in first.. {
            let Some(head) = self.frame(at, &mut page)? else { return Ok(None) };
            if head.salts() != own.salts() || !is_whole(before, &head, &page) {
                return Ok(None);
            }
            before = head.checksum();
            pages.insert(head.page(), page);
            if head.is_last() {
                break;
            }
        }
        Ok(Some(pages))
    }

    fn frame(&mut self, frame: u64, page: &mut [u8; PAGE_BYTES]) -> std::io::Result<Option<Head>> {
        if frame != self.at || frame == 0 {
            self.log.seek(SeekFrom::Start(LOG_HEAD_BYTES + frame * FRAME_BYTES as u64))?;
        }
        self.at = frame + 1;
        let mut bytes = [0; FRAME_HEAD_BYTES];
        let read = self.log.read_exact(&mut bytes).and_then(|()| self.log.read_exact(page));
        match read {
            Ok(()) => Ok(Some(Head { bytes })),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Whether the checksum of a frame is valid. The header of the log has the byte order of the checksums; that header may be
/// corrupt, so both orders are accepted.
fn is_whole(before: [u8; 8], head: &Head, page: &[u8; PAGE_BYTES]) -> bool {
    [u32::from_le_bytes, u32::from_be_bytes].into_iter().any(|word| {
        let start = split(&before, u32::from_be_bytes);
        let sum = checksum(checksum(start, &head.bytes[..8], word), page, word);
        sum == split(&head.checksum(), u32::from_be_bytes)
    })
}

fn split(bytes: &[u8], word: fn([u8; 4]) -> u32) -> (u32, u32) {
    let half = |at: usize| word([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    (half(0), half(4))
}

fn checksum(start: (u32, u32), bytes: &[u8], word: fn([u8; 4]) -> u32) -> (u32, u32) {
    bytes.chunks_exact(8).fold(start, |(first, second), pair| {
        let (one, two) = split(pair, word);
        let first = first.wrapping_add(one).wrapping_add(second);
        (first, second.wrapping_add(two).wrapping_add(first))
    })
}
