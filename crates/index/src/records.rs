//! The ids of a board and, beside each, the leaf that holds its entry.
//!
//! A record is `[leaf u32][id bytes]` and nothing else: all records of a chunk have ids of one length, so
//! the length is a property of the chunk, records follow each other without padding, and a freed record
//! fits the next id of its length exactly. A *slot* is the record's number: chunk and place within it.
//! Chunks start small, double up to their size and then never move again.
//!
//! It does not know which ids exist twice or where to find one: that is `id_table`.

use crate::pool::NONE;

/// Records per chunk: with 16-byte ids 320 KiB. 2^18 chunks exhaust the numbers of slots.
const SHIFT: u32 = 14;
const CHUNK: usize = 1 << SHIFT;
const CHUNKS_MAX: usize = (1 << (32 - SHIFT)) - 1;
/// Bytes of the leaf number in front of an id.
const LEAF_BYTES: usize = 4;

/// All records of one board.
pub(crate) struct Records {
    chunks: Vec<Chunk>,
    /// By length of id.
    lengths: Vec<Length>,
}

struct Chunk {
    bytes: Vec<u8>,
    stride: u32,
}

#[derive(Clone, Copy)]
struct Length {
    /// The chunk that has room at its end, or `NONE`.
    open: u32,
    /// First slot of the free list, which runs through the places of leaf numbers, or `NONE`.
    free: u32,
}

impl Records {
    pub(crate) fn new() -> Self {
        Records { chunks: Vec::new(), lengths: Vec::new() }
    }

    /// Keeps an id and returns its slot. Its leaf is to be set before anyone asks for it.
    pub(crate) fn add(&mut self, id: &[u8]) -> u32 {
        assert!((1..=255).contains(&id.len()), "a player id has 1 to 255 bytes, not {}", id.len());
        if self.lengths.len() <= id.len() {
            self.lengths.resize(id.len() + 1, Length { open: NONE, free: NONE });
        }
        let free = self.lengths[id.len()].free;
        if free != NONE {
            self.lengths[id.len()].free = self.leaf(free);
            let (chunk, at) = self.locate(free);
            let bytes = &mut self.chunks[chunk].bytes[at + LEAF_BYTES..];
            bytes[..id.len()].copy_from_slice(id);
            return free;
        }
        let chunk = self.open_chunk(id.len());
        let Chunk { bytes, stride } = &mut self.chunks[chunk];
        let at = bytes.len() / *stride as usize;
        bytes.extend_from_slice(&NONE.to_le_bytes());
        bytes.extend_from_slice(id);
        ((chunk << SHIFT) + at) as u32
    }

    /// Forgets a record; its slot will be given out again.
    pub(crate) fn release(&mut self, slot: u32) {
        let length = self.id(slot).len();
        self.set_leaf(slot, self.lengths[length].free);
        self.lengths[length].free = slot;
    }

    /// The id of a slot.
    #[inline]
    pub(crate) fn id(&self, slot: u32) -> &[u8] {
        let chunk = &self.chunks[(slot >> SHIFT) as usize];
        let stride = chunk.stride as usize;
        let at = (slot as usize & (CHUNK - 1)) * stride;
        &chunk.bytes[at + LEAF_BYTES..at + stride]
    }

    /// The leaf that holds the entry of a slot.
    #[inline]
    pub(crate) fn leaf(&self, slot: u32) -> u32 {
        let (chunk, at) = self.locate(slot);
        let bytes = &self.chunks[chunk].bytes[at..at + LEAF_BYTES];
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }

    #[inline]
    pub(crate) fn set_leaf(&mut self, slot: u32, leaf: u32) {
        let (chunk, at) = self.locate(slot);
        self.chunks[chunk].bytes[at..at + LEAF_BYTES].copy_from_slice(&leaf.to_le_bytes());
    }

    /// The first slot from a number on that was ever given out; it may be free again.
    pub(crate) fn slot_from(&self, from: u32) -> Option<u32> {
        let chunk = &self.chunks.get((from >> SHIFT) as usize)?;
        let records = chunk.bytes.len() / chunk.stride as usize;
        if from as usize & (CHUNK - 1) < records {
            return Some(from);
        }
        // A chunk has at least one record.
        let next = ((from >> SHIFT) + 1) << SHIFT;
        ((next >> SHIFT) as usize).lt(&self.chunks.len()).then_some(next)
    }

    /// All slots ever given out, in the order of memory: for a bulk build, where none has been freed.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> {
        self.chunks.iter().enumerate().flat_map(|(number, chunk)| {
            let records = chunk.bytes.len() / chunk.stride as usize;
            (0..records).map(move |at| ((number << SHIFT) + at) as u32)
        })
    }

    pub(crate) fn heap(&self) -> u64 {
        let bytes: usize = self.chunks.iter().map(|chunk| chunk.bytes.capacity()).sum();
        (bytes + self.chunks.capacity() * size_of::<Chunk>() + self.lengths.capacity() * size_of::<Length>())
            as u64
    }

    #[inline]
    fn locate(&self, slot: u32) -> (usize, usize) {
        let chunk = (slot >> SHIFT) as usize;
        (chunk, (slot as usize & (CHUNK - 1)) * self.chunks[chunk].stride as usize)
    }

    /// A chunk with room for one more id of this length.
    fn open_chunk(&mut self, length: usize) -> usize {
        let stride = length + LEAF_BYTES;
        let open = self.lengths[length].open;
        if open != NONE {
            let bytes = &mut self.chunks[open as usize].bytes;
            if bytes.len() < CHUNK * stride {
                if bytes.len() == bytes.capacity() {
                    let room = (bytes.len() * 2).min(CHUNK * stride);
                    bytes.reserve_exact(room - bytes.len());
                }
                return open as usize;
            }
        }
        assert!(
            self.chunks.len() < CHUNKS_MAX,
            "an order has room for {CHUNKS_MAX} chunks of {CHUNK} players"
        );
        // A new chunk is a quarter of its size at first, so that an order of one chunk and a bit stays lean.
        let records = if open == NONE { 4 } else { CHUNK / 4 };
        self.chunks.push(Chunk { bytes: Vec::with_capacity(records * stride), stride: stride as u32 });
        self.lengths[length].open = (self.chunks.len() - 1) as u32;
        self.chunks.len() - 1
    }
}
