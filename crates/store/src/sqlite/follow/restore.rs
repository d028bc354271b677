//! Restoring a followed copy to an instant: a base, and the frames after it up to the last batch of that instant.
//!
//! A [`RestorePlan`] checks every file that it needs before anything is written: the digest of the base, and the chain of all frames
//! up to the head. Deleted windows of a leaderboard are purged where the batch that deletes them is. Later batches may use
//! their numbers again, as a server does after its purge. Not here: choosing what to do about damage.

use super::super::batch::Batch;
use super::super::files::Files;
use super::super::memtable::Memtable;
use super::super::tables::{Counters, Tables};
use super::super::windows::Deleted;
use super::super::{Copied, Options, backup, connect, flush, identity, meta, migrate, purge};
use super::folder::{Base, Folder, damaged, digest_of};
use super::frames::{self, Frame, Position};
use crate::StoreError;
use rusqlite::OpenFlags;
use std::collections::BTreeMap;
use std::path::Path;
use tally_rules::Micros;
use tally_rules::audit::{AuditEntry, AuditId};

/// Rows of this size are flushed together.
const FLUSH_BYTES: usize = 64 << 20;

/// What a followed copy has for an instant.
#[derive(Debug)]
pub enum Restorable {
    /// It can be restored.
    Plan(RestorePlan),
    /// The instant is before the first one of the copy, if there is any.
    TooEarly(Option<Micros>),
    /// A file is damaged or missing before the instant.
    Damaged {
        /// What is wrong.
        why: String,
        /// The last instant that can be restored nevertheless, if there is one.
        until: Option<Micros>,
    },
}

/// A restore whose files were checked.
#[derive(Debug)]
pub struct RestorePlan {
    folder: Folder,
    base: Base,
    from: Position,
    last: u64,
    /// The instant of the last batch in it, or of its base if there is none after it.
    pub reached: Micros,
    /// The number of later batches in the copy, up to the next gap, which are left out.
    pub left_out: u64,
    /// The instant of the first batch that is left out.
    pub next: Option<Micros>,
    /// The instant from which the copy goes on after a gap, if the instant may be in that gap.
    pub gap_until: Option<Micros>,
}

impl RestorePlan {
    /// Finds what can be restored of the copy in `from` for an instant, or for its newest one.
    ///
    /// # Errors
    ///
    /// If files cannot be read.
    pub fn find(options: &Options, from: &Path, at: Option<Micros>) -> Result<Restorable, StoreError> {
        match find(&Folder::new(Files::on(&options.disk), from), at) {
            Err(StoreError::Corrupt(why)) => Ok(Restorable::Damaged { why, until: None }),
            found => found,
        }
    }

    /// Restores it to `to`, as [`restore`](super::super::restore) does, without its archives.
    ///
    /// # Errors
    ///
    /// As `restore`.
    pub fn restore(
        &self,
        options: &Options,
        to: &Path,
        replace: bool,
        act: Option<&(AuditId, AuditEntry)>,
    ) -> Result<Copied, StoreError> {
        let base = self.folder.base(self.base.stream, self.base.no);
        identity::check(&base, migrate::version(migrate::MIGRATIONS))?;
        let mut copied = None;
        backup::put_in_place(&self.folder.files, to, (replace, act), &mut |unfinished| {
            self.folder.files.copy(&base, unfinished)?;
            self.apply(options, unfinished)?;
            copied = Some(backup::check(&self.folder.files, unfinished)?);
            Ok(())
        })?;
        copied.ok_or_else(|| StoreError::Unavailable("nothing was restored".into()))
    }

    /// Writes the frames into the copy of the base.
    fn apply(&self, options: &Options, path: &Path) -> Result<(), StoreError> {
        let files = &self.folder.files;
        let mut connection = connect::open(path, OpenFlags::SQLITE_OPEN_READ_WRITE, files.vfs())?;
        if self.last > self.base.no {
            let version: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
            // The tables of this version are what rows are written into.
            migrate::migrate(files, &mut connection, path, migrate::MIGRATIONS)?;
            files.remove(&migrate::copy_path(path, version))?;
        }
        // The file gets its name after a sync, so intermediate writes need none.
        connection.pragma_update(None, "synchronous", "OFF")?;
        let mut into = Into {
            tables: Tables::new(files.clone(), path, connection, options)?,
            counters: Counters::default(),
            memtable: Memtable::default(),
        };
        let mut last = self.from.no;
        frames::scan(&self.folder, self.base.stream, self.from, &mut |frame| {
            match frame {
                Frame::Batch(batch) => {
                    last = batch.no;
                    if batch.no > self.base.no && batch.no <= self.last {
                        into.put(batch.no, &batch.body)?;
                    }
                }
                Frame::Meta(values) if last >= self.base.no && (last < self.last || self.left_out == 0) => {
                    into.set(&values)?
                }
                Frame::Meta(_) => {}
            }
            Ok(())
        })?;
        into.flush()?;
        migrate::leave_write_ahead_log(into.tables.connection())
    }
}

/// The store that frames are written into.
struct Into {
    tables: Tables,
    counters: Counters,
    memtable: Memtable,
}

impl Into {
    fn put(&mut self, no: u64, body: &[u8]) -> Result<(), StoreError> {
        let batch = Batch::decode(body);
        let batch = batch.ok_or_else(|| StoreError::Corrupt(format!("batch {no} cannot be read")))?;
        batch.put_into(&mut self.memtable);
        self.memtable.last = no;
        let deletes = !self.memtable.layer::<Deleted>().rows().is_empty();
        if deletes || self.memtable.bytes() >= FLUSH_BYTES {
            self.flush()?;
        }
        if deletes {
            self.tables.write(&self.counters, purge::windows)?;
        }
        Ok(())
    }

    fn set(&mut self, values: &BTreeMap<String, Vec<u8>>) -> Result<(), StoreError> {
        self.tables.write(&self.counters, |connection| {
            values.iter().try_for_each(|(name, value)| meta::put(connection, name, value))
        })
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        let memtable = std::mem::take(&mut self.memtable);
        if memtable.is_empty() {
            return Ok(());
        }
        flush::into_tables(&memtable, &flush::all_at_once, &mut |rows| {
            self.tables.write(&self.counters, |connection| rows(connection))
        })
    }
}

fn find(folder: &Folder, at: Option<Micros>) -> Result<Restorable, StoreError> {
    let bases = folder.bases()?;
    let is_early = |base: &&Base| at.is_none_or(|at| base.at <= at);
    let Some(base) = bases.iter().rfind(is_early).cloned() else {
        return Ok(Restorable::TooEarly(bases.first().map(|base| base.at)));
    };
    let path = folder.base(base.stream, base.no);
    if digest_of(&path)? != (base.bytes, base.digest) {
        let info = folder.info(base.stream, base.no);
        let text = format!(
            "it is not what was written; without `{}` an older base is used, if there is one",
            info.display()
        );
        return Err(damaged(&path, &text));
    }
    let from = begin(folder, &base)?;
    let mut plan = RestorePlan {
        last: base.no,
        reached: base.at,
        left_out: 0,
        next: None,
        gap_until: None,
        folder: folder.clone(),
        base,
        from,
    };
    // The instant of the last batch that was read.
    let mut newest = None;
    let stream = plan.base.stream;
    let base_no = plan.base.no;
    let scanned = frames::scan(folder, stream, from, &mut |frame| {
        let Frame::Batch(batch) = frame else { return Ok(()) };
        if batch.no <= base_no {
            return Ok(());
        }
        newest = Some(batch.at);
        if at.is_none_or(|at| batch.at <= at) {
            (plan.last, plan.reached, plan.left_out, plan.next) = (batch.no, batch.at, 0, None);
        } else {
            plan.left_out += 1;
            plan.next.get_or_insert(batch.at);
        }
        Ok(())
    })?;
    let head = match folder.newest(stream) {
        Ok((_, head)) => Ok(head),
        Err(StoreError::Corrupt(why)) => Err(why),
        Err(StoreError::Unavailable(why)) if !folder.head(stream).exists() => Err(why),
        Err(error) => return Err(error),
    };
    let end = (scanned.end.segment, scanned.end.offset);
    let missing = || format!("`{}` is missing", folder.segment(stream, scanned.end.segment + 1).display());
    let wrong = match head {
        Err(why) => Some(why),
        Ok(head) if end < (head.segment, head.offset) => Some(scanned.wrong.unwrap_or_else(missing)),
        Ok(_) => None,
    };
    if let Some(why) = wrong
        && at.is_none_or(|at| newest.is_none_or(|newest| newest < at))
    {
        return Ok(Restorable::Damaged { why, until: newest.or(Some(plan.base.at)) });
    }
    let after = bases.iter().find(|base| base.stream > stream);
    plan.gap_until = after.filter(|_| at.is_some() && plan.left_out == 0).map(|base| base.at);
    Ok(Restorable::Plan(plan))
}

/// Where the frames after a base begin.
fn begin(folder: &Folder, base: &Base) -> Result<Position, StoreError> {
    for index in folder.segments(base.stream)?.into_iter().rev() {
        let header = frames::header(&folder.segment(base.stream, index))?;
        if header.after <= base.no {
            return Ok(Position {
                segment: index,
                offset: 0,
                no: header.after,
                at: base.at,
                digest: [0; 16],
                chain: header.chain,
            });
        }
    }
    Err(damaged(&folder.segment(base.stream, 0), "the file of frames after the base is missing"))
}
