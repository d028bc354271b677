//! A file of rows in order of keys, which never changes: compressed blocks, and an index of them at its end.
//!
//! The index has the first key and the digest of each block, and the digest of the file is that of the index. So a reader that
//! knows the digest finds any other byte in what it reads, without reading the rest. Keys are bytes in their order.
//!
//! Not here: what the rows are, and where the digest is kept.

use super::fault;
use super::writer::{FOOTER, MAGIC, Written};
use crate::StoreError;
use crate::codec::Input;
use flate2::read::DeflateDecoder;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The most bytes of a block before it is compressed: far more than a writer makes.
const UNPACKED_MAX: u64 = 4 << 20;

/// The longest key: that of any kind of row is shorter.
const KEY_MAX: usize = 64;

/// A row: its key and its value.
pub(super) type Row = (Vec<u8>, Vec<u8>);

/// A block in the index.
#[derive(Debug)]
struct Block {
    first: Vec<u8>,
    at: u64,
    bytes: usize,
    /// The rows of the blocks before it.
    before: u64,
    digest: [u8; 32],
}

/// A file that is read.
#[derive(Debug)]
pub(super) struct SortedFile {
    path: PathBuf,
    /// The open file, if another one may get its name.
    kept: Option<Mutex<File>>,
    blocks: Vec<Block>,
}

impl SortedFile {
    /// Opens the file that has this digest.
    pub(super) fn open(path: &Path, known: &Written) -> Result<Self, StoreError> {
        Self::open_before(path, known, 0)
    }

    /// The same with so many bytes of another kind after its end. Such a file stays open, as another one may take its place.
    pub(super) fn open_before(path: &Path, known: &Written, tail: u64) -> Result<Self, StoreError> {
        let broken = |what: &str| fault(path, &what);
        let mut file = File::open(path).map_err(|error| fault(path, &error))?;
        let bytes = file.metadata().map_err(|error| fault(path, &error))?.len().saturating_sub(tail);
        if bytes != known.bytes {
            return Err(broken(&format!(
                "it has {bytes} bytes, and had {} when it was written",
                known.bytes
            )));
        }
        let mut read = |at: u64, length: u64| -> Result<Vec<u8>, StoreError> {
            let within = at.checked_add(length).is_some_and(|end| end <= bytes);
            let length = usize::try_from(length).ok().filter(|_| within);
            let mut part = vec![0; length.ok_or_else(|| broken("its end cannot be"))?];
            let done = file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut part));
            done.map_err(|error| fault(path, &error)).map(|()| part)
        };
        let footer = read(bytes.saturating_sub(FOOTER), FOOTER.min(bytes))?;
        let mut input = Input::new(&footer);
        let mut number = || input.fixed().map(u64::from_be_bytes).ok_or_else(|| broken("its end cannot be"));
        let (at, length, _rows) = (number()?, number()?, number()?);
        if at.checked_add(length).and_then(|end| end.checked_add(FOOTER)) != Some(bytes) {
            return Err(broken("its end cannot be"));
        }
        let end = read(at, length + FOOTER)?;
        if *blake3::hash(&end).as_bytes() != known.digest {
            return Err(broken("its index is not what was written"));
        }
        if read(0, MAGIC.len() as u64)? != MAGIC {
            return Err(broken("its format is not known"));
        }
        let index = &end[..end.len() - FOOTER as usize];
        let blocks = blocks(index, at).ok_or_else(|| broken("its index cannot be"))?;
        let kept = (tail > 0).then(|| Mutex::new(file));
        Ok(Self { path: path.to_owned(), kept, blocks })
    }

    /// The rows of a block.
    fn block(&self, number: usize) -> Result<Vec<Row>, StoreError> {
        let block = &self.blocks[number];
        let mut packed = vec![0; block.bytes];
        let mut read = |mut file: &File| -> io::Result<()> {
            file.seek(SeekFrom::Start(block.at))?;
            file.read_exact(&mut packed)
        };
        let done = match &self.kept {
            Some(file) => read(&file.lock().unwrap_or_else(PoisonError::into_inner)),
            None => File::open(&self.path).and_then(|file| read(&file)),
        };
        done.map_err(|error| fault(&self.path, &error))?;
        if *blake3::hash(&packed).as_bytes() != block.digest {
            return Err(fault(&self.path, &format!("block {number} is not what was written")));
        }
        let mut rows = Vec::new();
        let mut unpacked = DeflateDecoder::new(&packed[..]).take(UNPACKED_MAX + 1);
        unpacked.read_to_end(&mut rows).map_err(|error| fault(&self.path, &error))?;
        let rows = Some(rows).filter(|rows| rows.len() as u64 <= UNPACKED_MAX);
        rows.and_then(|rows| unpack(&rows)).ok_or_else(|| self.broken_row())
    }

    /// The block that has a key, if any has it.
    fn place(&self, key: &[u8]) -> Option<usize> {
        self.blocks.partition_point(|block| block.first.as_slice() <= key).checked_sub(1)
    }

    /// A fault of a row that no writer has written.
    pub(super) fn broken_row(&self) -> StoreError {
        fault(&self.path, &"a row cannot be")
    }

    /// The values of keys that ascend: each block is read once.
    pub(super) fn get(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let mut at: Option<(usize, Vec<Row>)> = None;
        let mut found = Vec::with_capacity(keys.len());
        for key in keys {
            let Some(place) = self.place(key) else {
                found.push(None);
                continue;
            };
            let rows = match at.take() {
                Some((number, rows)) if number == place => rows,
                _ => self.block(place)?,
            };
            let row = rows.binary_search_by(|(other, _)| other.cmp(key)).ok();
            found.push(row.map(|row| rows[row].1.clone()));
            at = Some((place, rows));
        }
        Ok(found)
    }

    /// The rows from a key on, in order.
    pub(super) fn from(self: &Arc<Self>, key: &[u8]) -> Rows {
        let next = self.place(key).unwrap_or(0);
        Rows { file: Arc::clone(self), next, rows: Vec::new().into_iter(), skip: Skip::Before(key.to_vec()) }
    }

    /// The rows after the first so many, in order.
    pub(super) fn after(self: &Arc<Self>, rows: u64) -> Rows {
        let next = self.blocks.partition_point(|block| block.before <= rows).saturating_sub(1);
        let skip = self.blocks.get(next).map_or(0, |block| rows - block.before);
        Rows { file: Arc::clone(self), next, rows: Vec::new().into_iter(), skip: Skip::Rows(skip) }
    }

    /// At most `limit` rows before a key, the last one first, and none before `from`.
    pub(super) fn before(&self, key: &[u8], from: &[u8], limit: usize) -> Result<Vec<Row>, StoreError> {
        let mut found = Vec::new();
        let mut place = self.place(key);
        while let Some(number) = place.filter(|_| found.len() < limit) {
            for row in self.block(number)?.into_iter().rev() {
                if row.0.as_slice() < from {
                    return Ok(found);
                }
                if row.0.as_slice() < key && found.len() < limit {
                    found.push(row);
                }
            }
            place = number.checked_sub(1);
        }
        Ok(found)
    }
}

/// The blocks of an index. All of them are before its place in the file.
fn blocks(index: &[u8], end: u64) -> Option<Vec<Block>> {
    let (mut input, mut blocks, mut before) = (Input::new(index), Vec::new(), 0_u64);
    while !input.is_empty() {
        let (first, at) = (input.bytes()?.to_vec(), input.number()?);
        let (bytes, rows) = (input.number()?, input.number()?);
        let is_within = at.checked_add(bytes).is_some_and(|block_end| block_end <= end);
        let bytes = usize::try_from(bytes).ok().filter(|_| is_within)?;
        blocks.push(Block { first, at, bytes, before, digest: input.fixed()? });
        before = before.checked_add(rows)?;
    }
    Some(blocks)
}

fn unpack(bytes: &[u8]) -> Option<Vec<Row>> {
    let (mut input, mut rows) = (Input::new(bytes), Vec::<Row>::new());
    while !input.is_empty() {
        let shared = usize::try_from(input.number()?).ok()?;
        let mut key = rows.last().map_or(&[][..], |(last, _)| last).get(..shared)?.to_vec();
        key.extend_from_slice(input.bytes()?);
        if key.len() > KEY_MAX {
            return None;
        }
        rows.push((key, input.bytes()?.to_vec()));
    }
    Some(rows)
}

/// What is left out at the beginning.
enum Skip {
    Before(Vec<u8>),
    Rows(u64),
}

/// Rows of a file in order. An error ends them.
pub(super) struct Rows {
    file: Arc<SortedFile>,
    next: usize,
    rows: std::vec::IntoIter<Row>,
    skip: Skip,
}

impl Iterator for Rows {
    type Item = Result<Row, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.rows.next() {
                match &mut self.skip {
                    Skip::Before(key) if row.0 < *key => continue,
                    Skip::Rows(left) if *left > 0 => *left -= 1,
                    Skip::Before(_) | Skip::Rows(_) => return Some(Ok(row)),
                }
                continue;
            }
            if self.next >= self.file.blocks.len() {
                return None;
            }
            match self.file.block(self.next) {
                Ok(rows) => (self.rows, self.next) = (rows.into_iter(), self.next + 1),
                Err(error) => {
                    self.next = usize::MAX;
                    return Some(Err(error));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::writer::Writer;
    use super::*;
    use crate::codec::{put_bytes, put_number};
    use proptest::prelude::*;
    use tally_disk::SystemDisk;

    fn written(path: &Path, rows: &[Row]) -> Written {
        let mut writer = Writer::create(&SystemDisk, path).unwrap();
        rows.iter().for_each(|(key, value)| writer.add(key, value).unwrap());
        writer.finish().unwrap()
    }

    fn many(count: u32) -> Vec<Row> {
        let value = |number: u32| blake3::hash(&number.to_be_bytes()).as_bytes().to_vec();
        (0..count).map(|number| ((number * 2 + 1).to_be_bytes().to_vec(), value(number))).collect()
    }

    #[test]
    fn rows_read_back_from_every_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for count in [0, 1, 3_000] {
            let rows = many(count);
            let known = written(&path, &rows);
            assert_eq!(known.rows, u64::from(count));
            let file = Arc::new(SortedFile::open(&path, &known).unwrap());
            assert!(file.blocks.len() >= 3 || count < 3_000);
            for from in [0, 1, 2, 999, 1_000, 2_001, 6_000, 7_000_u32] {
                let key = from.to_be_bytes();
                let first = rows.partition_point(|(other, _)| other.as_slice() < &key[..]);
                let read: Vec<Row> = file.from(&key).map(Result::unwrap).collect();
                assert_eq!(read, rows[first..]);
                let wanted: Vec<Row> = rows[..first].iter().rev().take(1_500).cloned().collect();
                assert_eq!(file.before(&key, &[], 1_500).unwrap(), wanted);
                let least = from.saturating_sub(500).to_be_bytes();
                let wanted = wanted.into_iter().filter(|(key, _)| key.as_slice() >= &least[..]);
                assert_eq!(file.before(&key, &least, 1_500).unwrap(), wanted.collect::<Vec<_>>());
                let left: Vec<Row> = file.after(u64::from(from)).map(Result::unwrap).collect();
                assert_eq!(left, rows[(from as usize).min(rows.len())..]);
            }
            let keys: Vec<Vec<u8>> =
                (0..6_100_u32).step_by(7).map(|key| key.to_be_bytes().to_vec()).collect();
            let wanted = |key: &Vec<u8>| {
                rows.binary_search_by(|(other, _)| other.cmp(key)).ok().map(|at| rows[at].1.clone())
            };
            assert_eq!(file.get(&keys).unwrap(), keys.iter().map(wanted).collect::<Vec<_>>());
        }
    }

    #[test]
    fn any_other_byte_and_any_other_length_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let rows = many(1_500);
        let known = written(&path, &rows);
        let whole = std::fs::read(&path).unwrap();
        let read = || -> Result<Vec<Row>, StoreError> {
            Arc::new(SortedFile::open(&path, &known)?).from(&[]).collect()
        };
        assert_eq!(read().unwrap(), rows);
        let is_found = |what: String| {
            assert!(matches!(read(), Err(StoreError::Archive { file, .. }) if file == "file"), "{what}");
        };
        // Every byte of the head and of the index, and some of each block.
        let end = whole.len() - 600;
        for at in (0..whole.len()).filter(|at| *at < 64 || *at > end || at % 61 == 0) {
            let mut other = whole.clone();
            other[at] ^= 1 << (at % 8);
            std::fs::write(&path, &other).unwrap();
            is_found(format!("byte {at}"));
        }
        for length in [0, 1, 23, 24, whole.len() / 2, whole.len() - 1] {
            std::fs::write(&path, &whole[..length]).unwrap();
            is_found(format!("{length} bytes"));
        }
        std::fs::write(&path, [&whole[..], &[0]].concat()).unwrap();
        is_found("a byte more".into());
        std::fs::remove_file(&path).unwrap();
        is_found("no file".into());
    }

    /// A forged file has right digests of whatever it has.
    #[test]
    fn a_block_beyond_the_end_and_one_that_unpacks_to_too_much_are_refused() {
        let index = |at: u64, bytes: u64| {
            let mut index = Vec::new();
            put_bytes(b"key", &mut index);
            [at, bytes, 1].iter().for_each(|number| put_number(*number, &mut index));
            index.extend_from_slice(&[0; 32]);
            index
        };
        assert_eq!(blocks(&index(8, 92), 100).map(|blocks| blocks.len()), Some(1));
        for (at, bytes) in [(8, 93), (101, 0), (8, u64::MAX), (u64::MAX, 1)] {
            assert!(blocks(&index(at, bytes), 100).is_none(), "{at} {bytes}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let large = usize::try_from(UNPACKED_MAX).unwrap();
        let read = |rows: &[Row]| {
            let known = written(&path, rows);
            SortedFile::open(&path, &known).unwrap().block(0).map(|rows| rows.len())
        };
        assert_eq!(read(&[(vec![1], vec![0; large - 64])]), Ok(1));
        assert!(read(&[(vec![1], vec![0; large])]).is_err());
        assert!(read(&[(vec![1; KEY_MAX + 1], vec![])]).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_index_and_rows_or_none(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = (blocks(&bytes, u64::MAX), unpack(&bytes));
        }
    }
}
