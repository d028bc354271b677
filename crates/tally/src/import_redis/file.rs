//! A sorted set in a CSV file: each member once, in an order that does not depend on Redis.
//!
//! `ZSCAN` may return a member twice, and far apart. So the members go into parts by a hash of their bytes, and each part is sorted in
//! memory, where the later score of a member counts. A part has about a million members, whatever the set has. The file gets its name
//! when it is whole. Players are personal data, so only the account of the command reads the files. Not here: lines that cannot be
//! taken, which the import rejects.

use crate::client::segment;
use crate::csv_text;
use crate::import_file::make_private;
use crate::sorted_sets::rules::{score_input, shown};
use anyhow::{Context, Result, bail};
use std::borrow::Cow;
use std::fs::{DirBuilder, File, TryLockError};
use std::io::{BufWriter, Read, Seek, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use tally_ranking::redis::{Member, SortedSets, SourceKey};
use tally_rules::Micros;
use tally_rules::score::ScoreInput;
use tally_service::secret::hex;
use tally_wire::time;

/// The columns of the file.
pub(super) const COLUMNS: [&str; 3] = ["player", "score", "at"];

/// Members of a part.
const PART_ROWS: u64 = 1_000_000;
/// Parts of a set, each an open file: a set of more members has greater parts.
const PARTS_MAX: u64 = 256;
/// The bytes before a member in a part: its length and its score.
const HEAD_BYTES: usize = 12;
/// The longest name of a key that is the name of a file.
const NAME_BYTES_MAX: usize = 200;
/// The file that the command locks. No key has this name.
const LOCK: &str = ".lock";

/// The folder of the files. One command at a time works in it: two would write the same file, or import it while it is written.
pub(super) struct Folder {
    path: PathBuf,
    _lock: File,
}

/// The name of the folder for the sets of the Redis of that name.
pub(super) fn folder(name: &str) -> String {
    let address = name.split_once("://").map_or(name, |(_, address)| address);
    let keep = |one: char| if one.is_ascii_alphanumeric() || one == '.' { one } else { '-' };
    format!("redis-{}", address.chars().map(keep).collect::<String>())
}

/// The name of the file of a key.
fn name(key: &[u8]) -> String {
    let name = segment(&String::from_utf8_lossy(key));
    if name.len() <= NAME_BYTES_MAX {
        return format!("{name}.csv");
    }
    format!("{}-{}.csv", &name[..NAME_BYTES_MAX / 2], hex(blake3::hash(key).as_bytes()))
}

impl Folder {
    /// Makes it if it is missing, and locks it.
    pub(super) fn open(path: PathBuf) -> Result<Self> {
        let shown = path.display();
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.with_context(|| format!("make {shown}"))?;
        let lock = make_private(&path.join(LOCK)).with_context(|| format!("write into {shown}"))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path, _lock: lock }),
            Err(TryLockError::WouldBlock) => {
                bail!("another import works in {shown}: wait for its end, or name another folder by --files")
            }
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("lock {shown}: name a folder of a local disk by --files"))
            }
        }
    }

    /// The file of a key.
    pub(super) fn file(&self, key: &[u8]) -> PathBuf {
        self.path.join(name(key))
    }

    /// Reads a set into its file; each line has that instant.
    pub(super) fn write(&self, sets: &SortedSets, set: &SourceKey, at: Micros) -> Result<()> {
        let path = self.file(&set.key);
        let parts = (set.members / PART_ROWS + 1).min(PARTS_MAX);
        let mut parts = (0..parts).map(|number| Part::make(&path, number)).collect::<Result<Vec<_>>>()?;
        sets.members(&set.key, &mut |page| {
            page.iter().try_for_each(|row| {
                let count = parts.len() as u64;
                let hash = blake3::hash(&row.0);
                parts[(u64::from(hash.as_bytes()[0]) % count) as usize].add(row)
            })
        })
        .with_context(|| format!("read {}", shown(&set.key)))?;
        let whole = beside(&path, "whole");
        let write = || -> Result<()> {
            let mut out = csv::Writer::from_writer(BufWriter::new(make_private(&whole)?));
            out.write_record(COLUMNS)?;
            let at = time::format(at);
            for part in parts {
                let bytes = part.finish()?;
                for (member, score) in sorted(&bytes) {
                    out.write_record([&*player(member), text(score).as_bytes(), at.as_bytes()])?;
                }
            }
            out.into_inner().context("write")?.into_inner().context("write")?.sync_all()?;
            std::fs::rename(&whole, &path)?;
            // A power cut must not undo the name: the set would be read anew, and that would be another import.
            Ok(File::open(&self.path)?.sync_all()?)
        };
        write().with_context(|| format!("write {}", path.display()))
    }
}

/// Members of a set whose hashes agree. Its file has no name, so it goes with the process, however that ends.
struct Part {
    path: PathBuf,
    out: BufWriter<File>,
}

impl Part {
    fn make(of: &Path, number: u64) -> Result<Self> {
        let path = beside(of, &format!("part-{number}"));
        let make = || {
            let file = make_private(&path)?;
            std::fs::remove_file(&path)?;
            Ok::<_, std::io::Error>(file)
        };
        let file = make().with_context(|| format!("make {}", path.display()))?;
        Ok(Self { path, out: BufWriter::new(file) })
    }

    fn add(&mut self, row: &Member) -> Result<()> {
        write_row(row, &mut self.out).with_context(|| format!("write {}", self.path.display()))
    }

    /// Its rows.
    fn finish(mut self) -> Result<Vec<u8>> {
        let mut read = || {
            self.out.flush()?;
            let (file, mut bytes) = (self.out.get_mut(), Vec::new());
            file.rewind()?;
            file.read_to_end(&mut bytes)?;
            Ok::<_, std::io::Error>(bytes)
        };
        read().with_context(|| format!("read {}", self.path.display()))
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

fn write_row((member, score): &Member, out: &mut impl Write) -> Result<()> {
    let length = u32::try_from(member.len()).context("a member is too long")?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(&score.to_le_bytes())?;
    Ok(out.write_all(member)?)
}

/// The rows of a part by member, each once: of several, the last counts.
fn sorted(mut bytes: &[u8]) -> Vec<(&[u8], f64)> {
    let mut rows: Vec<(&[u8], f64)> = Vec::new();
    while let Some((head, rest)) = bytes.split_at_checked(HEAD_BYTES) {
        let length = u32::from_le_bytes(head[..4].try_into().expect("four bytes")) as usize;
        let score = f64::from_le_bytes(head[4..].try_into().expect("eight bytes"));
        let (member, rest) = rest.split_at(length);
        rows.push((member, score));
        bytes = rest;
    }
    rows.sort_by(|left, right| left.0.cmp(right.0));
    // Of equal ones the first stays, so the last is to come first.
    rows.reverse();
    rows.dedup_by(|earlier, later| earlier.0 == later.0);
    rows.reverse();
    rows
}

/// A member as a player; bytes that are no text are kept, so that the file of rejects has them.
fn player(member: &[u8]) -> Cow<'_, [u8]> {
    match std::str::from_utf8(member) {
        Ok(text) => match csv_text::escape(text) {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        },
        Err(_) => Cow::Borrowed(member),
    }
}

fn text(score: f64) -> String {
    match score_input(score) {
        ScoreInput::Int(int) => int.to_string(),
        ScoreInput::Float(float) => float.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_comes_twice_counts_once_with_its_later_score() {
        let mut bytes = Vec::new();
        let rows: [(&[u8], f64); 6] =
            [(b"b", 1.0), (b"a", 2.0), (b"", 3.0), (b"b", 4.5), (b"\xff\n", 5.0), (b"b", 6.0)];
        for (member, score) in rows {
            write_row(&(member.to_vec(), score), &mut bytes).unwrap();
        }
        let expected: [(&[u8], f64); 4] = [(b"", 3.0), (b"a", 2.0), (b"b", 6.0), (b"\xff\n", 5.0)];
        assert_eq!(sorted(&bytes), expected);
        assert_eq!(sorted(b""), []);
    }

    #[test]
    fn scores_are_texts_that_an_import_reads_back() {
        for score in [3.0, -0.0, 20.5, 1e17, 1e300, 5e-324, f64::INFINITY, f64::NEG_INFINITY] {
            let read = tally_wire::numbers::score_text(&text(score)).expect("a number");
            assert_eq!(read, score_input(score), "{score}");
        }
    }

    #[test]
    fn files_have_names_of_their_keys() {
        assert_eq!(folder("redis://127.0.0.1:6379/0"), "redis-127.0.0.1-6379-0");
        assert_eq!(folder("rediss://::1:7000/3"), "redis---1-7000-3");
        assert_eq!(name(b"lb:season"), "lb%3Aseason.csv");
        let (one, other) = ("시즌".repeat(40), format!("{}!", "시즌".repeat(40)));
        assert!(name(one.as_bytes()).len() < 255);
        assert_ne!(name(one.as_bytes()), name(other.as_bytes()));
    }

    #[test]
    fn players_are_escaped_for_spreadsheets_and_other_bytes_kept() {
        assert_eq!(
            (&*player(b"=1"), &*player(b"ann"), &*player(b"\xff")),
            (&b"'=1"[..], &b"ann"[..], &b"\xff"[..])
        );
    }
}
