//! Writes a file of sorted rows: blocks as they fill, and the index at the end.
//!
//! Not here: its form (`sorted_file`).

use super::fault;
use crate::StoreError;
use crate::codec::{put_bytes, put_number};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tally_disk::{Disk, DiskFile};

/// The first bytes of a file, with the number of its format.
pub(super) const MAGIC: [u8; 8] = *b"tallyar1";

/// A block is closed once its rows have this size, before they are compressed.
const BLOCK_BYTES: usize = 32 << 10;

/// The end of a file: where the index begins, its length, and the number of rows.
pub(super) const FOOTER: u64 = 24;

/// Writes a file, in order of keys.
pub(super) struct Writer {
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    at: u64,
    block: Vec<u8>,
    first: Vec<u8>,
    last: Vec<u8>,
    in_block: u64,
    rows: u64,
    index: Vec<u8>,
}

/// What a finished file is known by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The number of its rows.
    pub rows: u64,
    /// Its length.
    pub bytes: u64,
    /// Its digest.
    pub digest: [u8; 32],
}

impl Writer {
    pub(super) fn create(disk: &dyn Disk, path: &Path) -> Result<Self, StoreError> {
        let file = disk.create(path).map_err(|error| fault(path, &error))?;
        let mut writer = Self {
            path: path.to_owned(),
            file,
            at: 0,
            block: Vec::new(),
            first: Vec::new(),
            last: Vec::new(),
            in_block: 0,
            rows: 0,
            index: Vec::new(),
        };
        writer.append(&MAGIC)?;
        Ok(writer)
    }

    /// Adds a row after all others.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        assert!(self.rows == 0 || self.last.as_slice() < key, "rows of a file ascend");
        if self.in_block == 0 {
            self.first = key.to_vec();
            self.last.clear();
        }
        let shared = self.last.iter().zip(key).take_while(|(a, b)| a == b).count();
        put_number(shared as u64, &mut self.block);
        put_bytes(&key[shared..], &mut self.block);
        put_bytes(value, &mut self.block);
        self.last.clear();
        self.last.extend_from_slice(key);
        self.in_block += 1;
        self.rows += 1;
        if self.block.len() >= BLOCK_BYTES { self.close_block() } else { Ok(()) }
    }

    fn close_block(&mut self) -> Result<(), StoreError> {
        if self.in_block == 0 {
            return Ok(());
        }
        let packed = pack(&self.block).map_err(|error| fault(&self.path, &error))?;
        put_bytes(&self.first, &mut self.index);
        put_number(self.at, &mut self.index);
        put_number(packed.len() as u64, &mut self.index);
        put_number(self.in_block, &mut self.index);
        self.index.extend_from_slice(blake3::hash(&packed).as_bytes());
        self.append(&packed)?;
        self.block.clear();
        self.in_block = 0;
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.file.write_at(self.at, bytes).map_err(|error| fault(&self.path, &error))?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Writes the index; returns when all of it is on the disk. The name of the file is durable after a sync of its folder.
    pub(super) fn finish(self) -> Result<Written, StoreError> {
        self.finish_with(|_| Vec::new())
    }

    /// The same with bytes after the end, made of the digest.
    pub(super) fn finish_with(
        mut self,
        tail: impl FnOnce(&[u8; 32]) -> Vec<u8>,
    ) -> Result<Written, StoreError> {
        self.close_block()?;
        let mut end = std::mem::take(&mut self.index);
        let footer = [self.at, end.len() as u64, self.rows];
        footer.iter().for_each(|number| end.extend_from_slice(&number.to_be_bytes()));
        let digest = *blake3::hash(&end).as_bytes();
        end.extend_from_slice(&tail(&digest));
        self.append(&end)?;
        self.file.sync().map_err(|error| fault(&self.path, &error))?;
        Ok(Written { rows: self.rows, bytes: self.at, digest })
    }
}

fn pack(block: &[u8]) -> io::Result<Vec<u8>> {
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::default());
    packed.write_all(block)?;
    packed.finish()
}
