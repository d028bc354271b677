//! The ids of a board, each under a number.
//!
//! A record is the bytes of an id and nothing else. All records of a chunk have ids of one length. So the
//! length is a property of the chunk, records follow each other without padding, and a freed record fits the
//! next id of its length exactly. Ids of sixteen bytes never cross a cache line that way. A *slot* is the
//! record's number: its chunk and its index there. Chunks start small, double up to their size and then never
//! move again.
//!
//! Not here: which ids exist twice, where to find one and where its entry is (`id_table`).

use crate::pool::NONE;
use crate::search::warm;

/// Records per chunk: with 16-byte ids 256 KiB. 2^18 chunks exhaust the numbers of slots.
const SHIFT: u32 = 14;
const CHUNK: usize = 1 << SHIFT;
const CHUNKS_MAX: usize = (1 << (32 - SHIFT)) - 1;
const TOO_MANY: &str = "an order has room for some four billion players";
/// A freed record holds the number of the next one, so a record of a shorter id is this long.
const LINK_BYTES: usize = 4;

/// All records of one board.
pub(crate) struct Records {
    chunks: Vec<Chunk>,
    /// By length of id.
    lengths: Vec<Length>,
}

struct Chunk {
    bytes: Vec<u8>,
    /// Bytes of an id.
    length: u8,
}

#[derive(Clone, Copy)]
struct Length {
    /// The chunk that has room at its end, or `NONE`.
    open: u32,
    /// First slot of the free list, which runs through the freed records, or `NONE`.
    free: u32,
}

impl Records {
    pub(crate) fn new() -> Self {
        Records { chunks: Vec::new(), lengths: Vec::new() }
    }

    /// Stores an id and returns its slot.
    pub(crate) fn add(&mut self, id: &[u8]) -> u32 {
        assert!((1..=255).contains(&id.len()), "a player id has 1 to 255 bytes, not {}", id.len());
        if self.lengths.len() <= id.len() {
            self.lengths.resize(id.len() + 1, Length { open: NONE, free: NONE });
        }
        let free = self.lengths[id.len()].free;
        if free != NONE {
            let record = self.record_mut(free);
            let link = record.first_chunk::<LINK_BYTES>().expect("a record has room for a link");
            let next = u32::from_le_bytes(*link);
            record[..id.len()].copy_from_slice(id);
            self.lengths[id.len()].free = next;
            return free;
        }
        let chunk = self.open_chunk(id.len());
        let own = &mut self.chunks[chunk];
        let start = own.bytes.len();
        let at = start / own.stride();
        own.bytes.extend_from_slice(id);
        own.bytes.resize(start + own.stride(), 0);
        ((chunk << SHIFT) + at) as u32
    }

    /// Takes over all records of another, none of which was ever freed. Returns what must be added to their
    /// slots.
    pub(crate) fn absorb(&mut self, other: Records) -> u32 {
        let chunks = self.chunks.len();
        assert!(chunks + other.chunks.len() <= CHUNKS_MAX, "{TOO_MANY}");
        let first = (chunks << SHIFT) as u32;
        if self.lengths.len() < other.lengths.len() {
            self.lengths.resize(other.lengths.len(), Length { open: NONE, free: NONE });
        }
        for (own, new) in self.lengths.iter_mut().zip(&other.lengths) {
            assert!(new.free == NONE, "a builder frees nothing");
            // Of two open chunks one stays as it is: a chunk for each length of id is little.
            if own.open == NONE && new.open != NONE {
                own.open = new.open + chunks as u32;
            }
        }
        self.chunks.extend(other.chunks);
        first
    }

    /// Frees a record; its slot is reused.
    pub(crate) fn release(&mut self, slot: u32) {
        let length = self.id(slot).len();
        let next = self.lengths[length].free;
        self.record_mut(slot)[..LINK_BYTES].copy_from_slice(&next.to_le_bytes());
        self.lengths[length].free = slot;
    }

    /// The id of a slot.
    #[inline]
    pub(crate) fn id(&self, slot: u32) -> &[u8] {
        let chunk = &self.chunks[(slot >> SHIFT) as usize];
        let start = (slot as usize & (CHUNK - 1)) * chunk.stride();
        &chunk.bytes[start..start + usize::from(chunk.length)]
    }

    /// Prefetches the line of an id; see [`crate::search::warm`].
    #[inline]
    pub(crate) fn warm(&self, slot: u32) {
        warm(&self.id(slot)[0]);
    }

    /// One more than the largest slot that may be allocated.
    pub(crate) fn end(&self) -> usize {
        self.chunks.len() << SHIFT
    }

    /// The first slot from a number on that was ever allocated; it may be free again.
    pub(crate) fn slot_from(&self, from: u32) -> Option<u32> {
        let chunk = &self.chunks.get((from >> SHIFT) as usize)?;
        let records = chunk.bytes.len() / chunk.stride();
        if from as usize & (CHUNK - 1) < records {
            return Some(from);
        }
        // A chunk has at least one record.
        let next = ((from >> SHIFT) + 1) << SHIFT;
        ((next >> SHIFT) as usize).lt(&self.chunks.len()).then_some(next)
    }

    /// All slots ever allocated, in the order of memory: for a bulk load, where none has been freed.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> {
        self.chunks.iter().enumerate().flat_map(|(number, chunk)| {
            let records = chunk.bytes.len() / chunk.stride();
            (0..records).map(move |at| ((number << SHIFT) + at) as u32)
        })
    }

    pub(crate) fn heap(&self) -> u64 {
        let bytes: usize = self.chunks.iter().map(|chunk| chunk.bytes.capacity()).sum();
        (bytes + self.chunks.capacity() * size_of::<Chunk>() + self.lengths.capacity() * size_of::<Length>())
            as u64
    }

    fn record_mut(&mut self, slot: u32) -> &mut [u8] {
        let chunk = &mut self.chunks[(slot >> SHIFT) as usize];
        let stride = chunk.stride();
        let start = (slot as usize & (CHUNK - 1)) * stride;
        &mut chunk.bytes[start..start + stride]
    }

    /// A chunk with room for one more id of this length.
    fn open_chunk(&mut self, length: usize) -> usize {
        let open = self.lengths[length].open;
        if open != NONE {
            let own = &mut self.chunks[open as usize];
            let full = CHUNK * own.stride();
            if own.bytes.len() < full {
                if own.bytes.len() == own.bytes.capacity() {
                    let room = (own.bytes.len() * 2).min(full);
                    own.bytes.reserve_exact(room - own.bytes.len());
                }
                return open as usize;
            }
        }
        assert!(self.chunks.len() < CHUNKS_MAX, "{TOO_MANY}");
        // A new chunk is a quarter of its size at first, so that an index of little more than one chunk stays
        // lean.
        let records = if open == NONE { 4 } else { CHUNK / 4 };
        let mut chunk = Chunk { bytes: Vec::new(), length: length as u8 };
        chunk.bytes.reserve_exact(records * chunk.stride());
        self.chunks.push(chunk);
        self.lengths[length].open = (self.chunks.len() - 1) as u32;
        self.chunks.len() - 1
    }
}

impl Chunk {
    /// Bytes of a record.
    #[inline]
    fn stride(&self) -> usize {
        usize::from(self.length).max(LINK_BYTES)
    }
}
