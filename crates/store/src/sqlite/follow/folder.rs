//! The folder of a followed copy: the names of its files, and how long they stay.
//!
//! - `base-<stream>-<batch>.db`: a copy of the store, and `….info`, which is written last and has its digest
//! - `frames-<stream>-<segment>`: frames of the journal
//! - `head-<stream>`: how far the frames go
//! - `archive/`: copies of the files of the archive of the store
//! - `lock`: held by the process that follows
//!
//! A stream is an unbroken row of frames. A gap begins another. Not here: the bytes of frames (`frames`).

use super::super::fault;
use super::super::files::{Files, beside};
use super::frames::{self, Position};
use crate::StoreError;
use crate::sqlite::files::UNFINISHED;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tally_rules::Micros;

/// The folder.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    pub(super) files: Files,
    pub(super) path: PathBuf,
}

/// A complete base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Base {
    pub(super) stream: u32,
    /// The last batch in it.
    pub(super) no: u64,
    /// No batch in it is later.
    pub(super) at: Micros,
    pub(super) bytes: u64,
    pub(super) digest: [u8; 32],
}

impl Folder {
    /// The folder at `path`, which exists.
    pub(super) fn new(files: Files, path: &Path) -> Self {
        Self { files, path: path.into() }
    }

    pub(super) fn segment(&self, stream: u32, index: u32) -> PathBuf {
        self.path.join(format!("frames-{stream:06}-{index:08}"))
    }

    pub(super) fn head(&self, stream: u32) -> PathBuf {
        self.path.join(format!("head-{stream:06}"))
    }

    pub(super) fn base(&self, stream: u32, no: u64) -> PathBuf {
        self.path.join(format!("base-{stream:06}-{no:020}.db"))
    }

    pub(super) fn info(&self, stream: u32, no: u64) -> PathBuf {
        self.path.join(format!("base-{stream:06}-{no:020}.info"))
    }

    pub(super) fn archive(&self) -> PathBuf {
        self.path.join(crate::sqlite::ARCHIVES)
    }

    /// Writes a file as a whole: complete and on the disk, or not there.
    pub(super) fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        let unfinished = beside(path, UNFINISHED);
        let file = self.files.create(&unfinished)?;
        let written = file.write_at(0, bytes).and_then(|()| file.sync());
        written.map_err(|error| fault::file("write", &unfinished, &error))?;
        self.files.rename(&unfinished, path)?;
        self.files.sync_folder(path)
    }

    /// The names of files with this prefix, in order.
    fn names(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let failed = |error| fault::file("list", &self.path, &error);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            names
                .extend(name.into_string().ok().and_then(|name| Some(name.strip_prefix(prefix)?.to_owned())));
        }
        names.sort();
        Ok(names)
    }

    /// The streams with a head, the oldest first.
    pub(super) fn streams(&self) -> Result<Vec<u32>, StoreError> {
        Ok(self.names("head-")?.iter().filter_map(|name| name.parse().ok()).collect())
    }

    /// The segments of a stream, in order.
    pub(super) fn segments(&self, stream: u32) -> Result<Vec<u32>, StoreError> {
        let names = self.names(&format!("frames-{stream:06}-"))?;
        Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
    }

    /// The newest position in the head of a stream, and its number.
    pub(super) fn newest(&self, stream: u32) -> Result<(u64, Position), StoreError> {
        let path = self.head(stream);
        let bytes = std::fs::read(&path).map_err(|error| fault::file("read", &path, &error))?;
        Position::newest(&bytes).ok_or_else(|| damaged(&path, "it is not what was written"))
    }

    /// Records a complete base.
    pub(super) fn add_base(&self, base: &Base) -> Result<(), StoreError> {
        let mut text = format!("{}\n{}\n", base.at.0, base.bytes);
        base.digest.iter().for_each(|byte| text.push_str(&format!("{byte:02x}")));
        text.push('\n');
        let digest = blake3::hash(text.as_bytes()).to_hex();
        self.write(&self.info(base.stream, base.no), format!("{text}{digest}\n").as_bytes())
    }

    /// The complete bases in the order in which they were made.
    pub(super) fn bases(&self) -> Result<Vec<Base>, StoreError> {
        let names = self.names("base-")?;
        names.iter().filter_map(|name| name.strip_suffix(".info")).map(|name| self.read_base(name)).collect()
    }

    fn read_base(&self, name: &str) -> Result<Base, StoreError> {
        let path = self.path.join(format!("base-{name}.info"));
        let text = std::fs::read_to_string(&path).map_err(|error| fault::file("read", &path, &error))?;
        let parsed = || {
            let (stream, no) = name.split_once('-')?;
            let (content, digest) = text.trim_end().rsplit_once('\n')?;
            let content = format!("{content}\n");
            let mut lines = content.lines();
            let (at, bytes) = (lines.next()?.parse().ok()?, lines.next()?.parse().ok()?);
            let of_file = blake3::Hash::from_hex(lines.next()?).ok()?;
            let base = Base {
                stream: stream.parse().ok()?,
                no: no.parse().ok()?,
                at: Micros(at),
                bytes,
                digest: *of_file.as_bytes(),
            };
            (*blake3::hash(content.as_bytes()).to_hex() == *digest).then_some(base)
        };
        parsed().ok_or_else(|| damaged(&path, "it is not what was written"))
    }

    /// Removes what a killed process has left unfinished.
    pub(super) fn remove_unfinished(&self) -> Result<(), StoreError> {
        let kept = self.bases()?;
        let is_kept = |name: &str| kept.iter().any(|base| name.starts_with(&*base_name(base)));
        for name in self.names("")? {
            if (name.starts_with("base-") && !is_kept(&name)) || name.ends_with(UNFINISHED) {
                self.files.remove(&self.path.join(name))?;
            }
        }
        Ok(())
    }

    /// Removes what no instant from `from` on needs. Returns the number of removed bases.
    pub(super) fn remove_before(&self, from: Micros) -> Result<usize, StoreError> {
        let bases = self.bases()?;
        let Some(first) = bases.iter().rposition(|base| base.at <= from) else { return Ok(0) };
        let needed = &bases[first];
        for base in &bases[..first] {
            // Without its information a base does not count.
            self.files.remove(&self.info(base.stream, base.no))?;
            self.files.remove(&self.base(base.stream, base.no))?;
        }
        for stream in self.streams()?.into_iter().filter(|stream| *stream < needed.stream) {
            for index in self.segments(stream)? {
                self.files.remove(&self.segment(stream, index))?;
            }
            self.files.remove(&self.head(stream))?;
        }
        let segments = self.segments(needed.stream)?;
        for pair in segments.windows(2) {
            if frames::header(&self.segment(needed.stream, pair[1]))?.after > needed.no {
                break;
            }
            self.files.remove(&self.segment(needed.stream, pair[0]))?;
        }
        Ok(first)
    }
}

fn base_name(base: &Base) -> String {
    format!("base-{:06}-{:020}.", base.stream, base.no)
}

/// The error of a damaged file of the copy.
pub(super) fn damaged(path: &Path, what: &str) -> StoreError {
    StoreError::Corrupt(format!("`{}`: {what}", path.display()))
}

/// The digest of a file.
pub(super) fn digest_of(path: &Path) -> Result<(u64, [u8; 32]), StoreError> {
    let mut hasher = blake3::Hasher::new();
    let hashed = std::fs::File::open(path).and_then(|file| hasher.update_reader(file).map(drop));
    hashed.map_err(|error| match error.kind() {
        ErrorKind::NotFound => damaged(path, "it is missing"),
        _ => fault::file("read", path, &error),
    })?;
    Ok((hasher.count(), *hasher.finalize().as_bytes()))
}
