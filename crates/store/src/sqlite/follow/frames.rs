//! The bytes of a followed copy: frames in segment files, each chained to the one before, and the head that says how far
//! they go.
//!
//! A segment begins with a header: the stream, its place in it, the batch before its first one, and the chain so far. A
//! frame is its length, its kind, its content, and the chain: a digest of the chain before and of the frame. So a frame
//! that was changed, or put into another place, is found, and so is one that is missing in the middle.
//!
//! The head names the last frame that was synced, so frames that are missing at the end are found, too. It has two slots,
//! each within a sector, which are written in turn. Frames beyond it may be torn; whole ones count. Not here: which files
//! there are (`folder`), and the meaning of the content.

use super::folder::{Folder, damaged};
use crate::StoreError;
use crate::codec::{Input, put_bytes, put_number};
use crate::sqlite::fault;
use std::collections::BTreeMap;
use std::path::Path;
use tally_rules::Micros;

const SEGMENT: &[u8; 8] = b"tallyfr1";
const HEAD: &[u8; 8] = b"tallyhd1";
/// The distance of the slots of a head: a sector is written as a whole.
const SLOT_BYTES: usize = 512;
const HEADER_BYTES: usize = 8 + 4 + 4 + 4 + 16 + 8 + 32 + 32;
const HEAD_BYTES: usize = 8 + 8 + 4 + 8 + 8 + 8 + 16 + 32 + 32;
/// The content of a batch before its body.
const BATCH_BYTES: usize = 8 + 8 + 16;
const BATCH: u8 = 0;
const META: u8 = 1;

pub(super) type Digest = [u8; 32];

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// A row of the journal.
    Batch(BatchFrame),
    /// Every value of the table `meta` that does not belong to the store: they are written past the journal.
    Meta(BTreeMap<String, Vec<u8>>),
}

/// A row of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BatchFrame {
    pub(super) no: u64,
    pub(super) at: Micros,
    /// Its digest in the journal, which names its file, too.
    pub(super) digest: [u8; 16],
    pub(super) body: Vec<u8>,
}

/// The beginning of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) stream: u32,
    pub(super) index: u32,
    /// The schema of the store.
    pub(super) schema: u32,
    /// The id of the store.
    pub(super) store: [u8; 16],
    /// The last batch before the segment.
    pub(super) after: u64,
    pub(super) chain: Digest,
}

/// A place after a frame: where the next one goes, and what it must follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) segment: u32,
    pub(super) offset: u64,
    /// The last batch, its instant and its digest in the journal.
    pub(super) no: u64,
    pub(super) at: Micros,
    pub(super) digest: [u8; 16],
    pub(super) chain: Digest,
}

impl Header {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = SEGMENT.to_vec();
        for number in [self.stream, self.index, self.schema] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.store);
        bytes.extend(self.after.to_le_bytes());
        bytes.extend(self.chain);
        bytes.extend(blake3::hash(&bytes).as_bytes());
        bytes
    }

    /// `None` for bytes that are not a header.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..HEADER_BYTES)?;
        let input = &mut Input::new(checked(bytes)?.strip_prefix(SEGMENT)?);
        Some(Self {
            stream: small(input)?,
            index: small(input)?,
            schema: small(input)?,
            store: input.fixed()?,
            after: number(input)?,
            chain: input.fixed()?,
        })
    }

    /// The place of its first frame.
    pub(super) fn begin(&self) -> u64 {
        HEADER_BYTES as u64
    }
}

impl Position {
    fn slot(&self, sequence: u64) -> Vec<u8> {
        let mut bytes = HEAD.to_vec();
        bytes.extend(sequence.to_le_bytes());
        bytes.extend(self.segment.to_le_bytes());
        bytes.extend(self.offset.to_le_bytes());
        bytes.extend(self.no.to_le_bytes());
        bytes.extend(self.at.0.to_le_bytes());
        bytes.extend(self.digest);
        bytes.extend(self.chain);
        bytes.extend(blake3::hash(&bytes).as_bytes());
        bytes
    }

    fn of_slot(bytes: &[u8]) -> Option<(u64, Self)> {
        let input = &mut Input::new(checked(bytes.get(..HEAD_BYTES)?)?.strip_prefix(HEAD)?);
        let sequence = number(input)?;
        let position = Self {
            segment: small(input)?,
            offset: number(input)?,
            no: number(input)?,
            at: instant(input)?,
            digest: input.fixed()?,
            chain: input.fixed()?,
        };
        Some((sequence, position))
    }

    /// The slot that this position is written to, and its place in the head.
    pub(super) fn in_head(&self, sequence: u64) -> (u64, Vec<u8>) {
        ((sequence % 2) * SLOT_BYTES as u64, self.slot(sequence))
    }

    /// A new head with this position.
    pub(super) fn new_head(&self) -> Vec<u8> {
        let mut bytes = vec![0; 2 * SLOT_BYTES];
        let slot = self.slot(0);
        bytes[..slot.len()].copy_from_slice(&slot);
        bytes
    }

    /// The newest position of a head and its number.
    pub(super) fn newest(head: &[u8]) -> Option<(u64, Self)> {
        let slots = [head.get(..SLOT_BYTES), head.get(SLOT_BYTES..)];
        slots.into_iter().flatten().filter_map(Self::of_slot).max_by_key(|(sequence, _)| *sequence)
    }
}

/// The bytes before a digest that is theirs.
fn checked(bytes: &[u8]) -> Option<&[u8]> {
    let (content, digest) = bytes.split_last_chunk::<32>()?;
    (blake3::hash(content).as_bytes() == digest).then_some(content)
}

fn small(input: &mut Input<'_>) -> Option<u32> {
    input.fixed().map(u32::from_le_bytes)
}

fn number(input: &mut Input<'_>) -> Option<u64> {
    input.fixed().map(u64::from_le_bytes)
}

fn instant(input: &mut Input<'_>) -> Option<Micros> {
    input.fixed().map(i64::from_le_bytes).map(Micros)
}

/// Appends a frame to bytes, and returns the chain after it.
pub(super) fn put(frame: &Frame, chain: &Digest, out: &mut Vec<u8>) -> Digest {
    let mut content = Vec::new();
    match frame {
        Frame::Batch(batch) => {
            content.push(BATCH);
            content.extend(batch.no.to_le_bytes());
            content.extend(batch.at.0.to_le_bytes());
            content.extend(batch.digest);
            content.extend(&batch.body);
        }
        Frame::Meta(values) => {
            content.push(META);
            put_number(values.len() as u64, &mut content);
            for (name, value) in values {
                put_bytes(name.as_bytes(), &mut content);
                put_bytes(value, &mut content);
            }
        }
    }
    let chain = next(chain, &content);
    out.extend(u32::try_from(content.len()).expect("a batch is shorter than 4 GiB").to_le_bytes());
    out.extend(content);
    out.extend(chain);
    chain
}

fn next(chain: &Digest, content: &[u8]) -> Digest {
    *blake3::Hasher::new().update(chain).update(content).finalize().as_bytes()
}

/// The frame at the beginning of `bytes`, its length and the chain after it; `None` if no whole frame follows the chain.
fn take(bytes: &[u8], chain: &Digest) -> Option<(Frame, usize, Digest)> {
    let length = usize::try_from(u32::from_le_bytes(*bytes.first_chunk()?)).ok()?;
    let content = bytes.get(4..)?.get(..length)?;
    let after: Digest = *bytes.get(4 + length..)?.first_chunk()?;
    if next(chain, content) != after {
        return None;
    }
    let (kind, content) = content.split_first()?;
    let frame = match *kind {
        BATCH => {
            let (fixed, body) = content.split_at_checked(BATCH_BYTES)?;
            let input = &mut Input::new(fixed);
            let (no, at, digest) = (number(input)?, instant(input)?, input.fixed()?);
            Frame::Batch(BatchFrame { no, at, digest, body: body.to_vec() })
        }
        META => Frame::Meta(meta(&mut Input::new(content))?),
        _ => return None,
    };
    Some((frame, 4 + length + after.len(), after))
}

fn meta(input: &mut Input<'_>) -> Option<BTreeMap<String, Vec<u8>>> {
    let mut values = BTreeMap::new();
    for _ in 0..input.number()? {
        let name = String::from_utf8(input.bytes()?.to_vec()).ok()?;
        values.insert(name, input.bytes()?.to_vec());
    }
    Some(values)
}

/// The end of a scan: the place after the last whole frame, and what is wrong there, if anything is.
#[derive(Debug)]
pub(super) struct Scanned {
    pub(super) end: Position,
    pub(super) wrong: Option<String>,
}

/// Reads the frames of a stream from the place `from` on, in order, up to the first that is not whole or does not follow.
/// The caller compares the end with the head.
pub(super) fn scan(
    folder: &Folder,
    stream: u32,
    from: Position,
    each: &mut dyn FnMut(Frame) -> Result<(), StoreError>,
) -> Result<Scanned, StoreError> {
    let mut end = from;
    loop {
        let path = folder.segment(stream, end.segment);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Scanned { end, wrong: Some(format!("`{}` is missing", path.display())) });
            }
            Err(error) => return Err(fault::file("read", &path, &error)),
        };
        let wrong = |what: &str| Some(format!("`{}`: {what}", path.display()));
        let Some(header) = Header::decode(&bytes) else {
            return Ok(Scanned { end, wrong: wrong("its first bytes are not what was written") });
        };
        if end.offset == 0 {
            let follows = header.stream == stream && header.chain == end.chain && header.after == end.no;
            if !follows || header.index != end.segment {
                return Ok(Scanned { end, wrong: wrong("it does not follow the file before it") });
            }
            end.offset = header.begin();
        }
        let mut rest = usize::try_from(end.offset).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
        while let Some((frame, length, chain)) = take(rest, &end.chain) {
            rest = &rest[length..];
            let place = Position { offset: end.offset + length as u64, chain, ..end };
            end = match &frame {
                Frame::Batch(BatchFrame { no, at, digest, .. }) if *no == end.no + 1 => {
                    Position { no: *no, at: *at, digest: *digest, ..place }
                }
                Frame::Batch(BatchFrame { no, .. }) => {
                    return Ok(Scanned {
                        end,
                        wrong: wrong(&format!("batch {no} follows batch {}", end.no)),
                    });
                }
                Frame::Meta(_) => place,
            };
            each(frame)?;
        }
        if !rest.is_empty() || end.offset > bytes.len() as u64 {
            let what = format!("what follows byte {} is not what was written", end.offset);
            return Ok(Scanned { end, wrong: wrong(&what) });
        }
        let following = end.segment + 1;
        if !folder.segment(stream, following).exists() {
            return Ok(Scanned { end, wrong: None });
        }
        end = Position { segment: following, offset: 0, ..end };
    }
}

/// Reads a header of a segment.
pub(super) fn header(path: &Path) -> Result<Header, StoreError> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(HEADER_BYTES as u64).read_to_end(&mut bytes))
        .map_err(|error| fault::file("read", path, &error))?;
    Header::decode(&bytes).ok_or_else(|| damaged(path, "its first bytes are not what was written"))
}
