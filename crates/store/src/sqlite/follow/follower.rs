//! The process that follows a store: a base, and every batch after it.
//!
//! Each step reads the batches that follow the last one, and appends them to the segment: written, synced, and then named
//! by the head. A step that is cut short leaves bytes beyond the head, which the next start takes if they are whole. Where
//! the journal does not go on from the last batch, a new base begins a new stream. While a base is made, frames go on.
//!
//! Not here: reading the journal (`sources`), the bytes (`frames`), and restoring (`restore`).

use super::super::files::{Files, UNFINISHED};
use super::super::{Options, backup, connect, fault, meta};
use super::archive;
use super::folder::{Base, Folder, digest_of};
use super::frames::{self, BatchFrame, Frame, Header, Position};
use super::sources::{Following, Sources};
use crate::StoreError;
use crate::sqlite::Background;
use rusqlite::OpenFlags;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tally_disk::DiskFile;
use tally_rules::Micros;

/// A segment ends when it has this many bytes.
const SEGMENT_BYTES: u64 = 64 << 20;

/// A base is made again at the latest when the frames after it have this multiple of its size, and at least this many bytes.
const FRAMES_TIMES: u64 = 4;
const FRAMES_BYTES_MIN: u64 = 4 << 30;

/// How long a followed copy reaches back.
#[derive(Clone, Copy, Debug)]
pub struct FollowOptions {
    /// Every instant of this time can be restored. Older files are removed.
    pub keep: Duration,
    /// A new base is made when the last one has this age.
    pub base_every: Duration,
}

/// What happened in a step, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FollowEvent {
    /// A new base is being made, because there is none or the journal does not go on from the last batch.
    Gap(String),
    /// A base is complete.
    Base {
        /// Its file.
        path: PathBuf,
        /// Its size in bytes.
        bytes: u64,
    },
    /// Old bases were removed.
    Removed(usize),
}

/// The result of a step.
#[derive(Clone, Debug, Default)]
pub struct FollowStep {
    /// What happened.
    pub events: Vec<FollowEvent>,
    /// The number of copied batches.
    pub batches: usize,
    /// Whether the copy had everything when the step began to read.
    pub caught_up: bool,
    /// The instant of the last copied batch.
    pub until: Option<Micros>,
}

/// Follows a store until it is dropped.
pub struct Follower {
    options: Options,
    how: FollowOptions,
    folder: Folder,
    sources: Sources,
    stream: Option<Stream>,
    base: Option<Making>,
    _lock: File,
}

/// The stream that is written.
struct Stream {
    number: u32,
    header: Header,
    /// The number of the last slot in the head.
    sequence: u64,
    end: Position,
    segment: Arc<dyn DiskFile>,
    head: Arc<dyn DiskFile>,
    /// The last values of the table `meta` in the stream.
    meta: BTreeMap<String, Vec<u8>>,
    /// The last base, and the bytes of frames after it.
    base: Base,
    bytes: u64,
}

/// A base that is being made.
struct Making {
    stream: u32,
    thread: JoinHandle<Result<Made, StoreError>>,
}

/// A base that is on the disk and not listed.
struct Made {
    base: Base,
    store: [u8; 16],
    schema: u32,
    meta: BTreeMap<String, Vec<u8>>,
}

impl Follower {
    /// Follows the store at `store` into the folder at `to`, which is made if it is missing.
    ///
    /// # Errors
    ///
    /// If there is no store, another process follows it or writes the folder, or files cannot be read or written.
    pub fn start(options: &Options, store: &Path, to: &Path, how: FollowOptions) -> Result<Self, StoreError> {
        backup::must_be_there(store)?;
        std::fs::create_dir_all(to).map_err(|error| fault::file("make", to, &error))?;
        let folder = Folder::new(Files::on(&options.disk), to);
        let path = to.join("lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(|error| fault::file("open", &path, &error))?;
        if lock.try_lock().is_err() {
            return Err(StoreError::Locked(format!(
                "`{}` is held by a process that writes the copy",
                path.display()
            )));
        }
        folder.remove_unfinished()?;
        let mut sources = Sources::open(options, store)?;
        let stream = match folder.streams()?.last() {
            Some(stream) => Stream::go_on(&folder, *stream)?,
            None => None,
        };
        if let Some(stream) = &stream {
            sources.follow(stream.header.store, stream.header.schema);
        }
        let options = options.clone();
        Ok(Self { options, how, folder, sources, stream, base: None, _lock: lock })
    }

    /// Copies the batches that are there now, some megabytes at most.
    ///
    /// # Errors
    ///
    /// If files cannot be read or written: the next step tries again.
    pub fn step(&mut self) -> Result<FollowStep, StoreError> {
        let mut step = FollowStep::default();
        self.finish_base(&mut step)?;
        let Some(stream) = &mut self.stream else {
            // Files that come while the first base is made are held for the frames after it.
            self.sources.hold()?;
            if self.base.is_none() {
                step.events.push(FollowEvent::Gap("there is no base yet".into()));
                self.make_base()?;
            }
            return Ok(step);
        };
        match self.sources.read_after(stream.end.no, stream.end.digest)? {
            Following::Gap(why) => {
                step.events.push(FollowEvent::Gap(why));
                self.stream = None;
                // A base of the old stream that is being made now does not count for the new one.
                self.make_base()?;
            }
            Following::Batches(batches, more) => {
                step.batches = batches.len();
                step.caught_up = !more;
                let meta = self.sources.tables().meta.clone();
                if !batches.is_empty() {
                    archive::copy_new(&self.folder, &self.options, self.sources.store())?;
                }
                stream.append(&self.folder, batches, meta)?;
                step.until = Some(stream.end.at);
                if step.caught_up {
                    self.sources.touch()?;
                }
                if self.base.is_none() && self.is_base_due() {
                    self.make_base()?;
                }
            }
        }
        Ok(step)
    }

    fn is_base_due(&self) -> bool {
        let Some(stream) = &self.stream else { return false };
        let age = (self.options.now)().0.saturating_sub(stream.base.at.0);
        let bytes_max = FRAMES_BYTES_MIN.max(stream.base.bytes.saturating_mul(FRAMES_TIMES));
        age >= micros(self.how.base_every) || stream.bytes > bytes_max
    }

    /// Begins a base of the present stream, or of a new one.
    fn make_base(&mut self) -> Result<(), StoreError> {
        if let Some(making) = self.base.take() {
            // Two copies at a time would only slow each other.
            drop(making.thread.join());
            self.folder.remove_unfinished()?;
        }
        let number = match &self.stream {
            Some(stream) => stream.number,
            None => self.folder.streams()?.last().map_or(1, |last| last + 1),
        };
        let (options, folder, store) =
            (self.options.clone(), self.folder.clone(), self.sources.store().to_owned());
        let make = move || Made::make(&options, &folder, &store, number);
        let thread = match self.options.background {
            Background::Threads => std::thread::Builder::new().name("base".into()).spawn(make),
            Background::ByHand => {
                let made = make();
                std::thread::Builder::new().spawn(move || made)
            }
        };
        let no_thread = |error| StoreError::Unavailable(format!("start a thread: {error}"));
        self.base = Some(Making { stream: number, thread: thread.map_err(no_thread)? });
        Ok(())
    }

    /// Lists a base that is complete, and begins a stream with it if there is none.
    fn finish_base(&mut self, step: &mut FollowStep) -> Result<(), StoreError> {
        let by_hand = self.options.background == Background::ByHand;
        let Some(making) = self.base.take_if(|making| by_hand || making.thread.is_finished()) else {
            return Ok(());
        };
        let number = making.stream;
        let made = making.thread.join().unwrap_or_else(|_| {
            Err(StoreError::Unavailable("the thread that makes a base has panicked".into()))
        })?;
        match &mut self.stream {
            Some(stream) => (stream.base, stream.bytes) = (made.base.clone(), 0),
            none => {
                self.sources.follow(made.store, made.schema);
                *none = Some(Stream::begin(&self.folder, number, &made)?);
            }
        }
        // Only now the base counts.
        self.folder.add_base(&made.base)?;
        let path = self.folder.base(number, made.base.no);
        step.events.push(FollowEvent::Base { path, bytes: made.base.bytes });
        let from = (self.options.now)().plus(-micros(self.how.keep));
        let removed = self.folder.remove_before(from)?;
        if removed > 0 {
            step.events.push(FollowEvent::Removed(removed));
        }
        Ok(())
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

impl Made {
    fn make(options: &Options, folder: &Folder, store: &Path, stream: u32) -> Result<Self, StoreError> {
        // Its name has its last batch, which is known at the end.
        let unnamed = folder.path.join(format!("base-{stream:06}.db{UNFINISHED}"));
        folder.files.remove(&unnamed)?;
        backup::backup_on(options, store, &unnamed, &mut |_, _| {})?;
        archive::copy_new(folder, options, store)?;
        let connection = connect::open(&unnamed, OpenFlags::SQLITE_OPEN_READ_ONLY, folder.files.vfs())?;
        let no = meta::flushed(&connection)?;
        let tables = super::sources::Tables::read(&connection)?;
        drop(connection);
        let at = (options.now)();
        let (bytes, digest) = digest_of(&unnamed)?;
        let path = folder.base(stream, no);
        folder.files.rename(&unnamed, &path)?;
        folder.files.sync_folder(&path)?;
        let base = Base { stream, no, at, bytes, digest };
        Ok(Self { base, store: tables.store, schema: tables.schema, meta: tables.meta })
    }
}

impl Stream {
    /// Begins a stream after a base.
    fn begin(folder: &Folder, number: u32, made: &Made) -> Result<Self, StoreError> {
        let Made { base, store, schema, meta } = made;
        let header = Header {
            stream: number,
            index: 0,
            schema: *schema,
            store: *store,
            after: base.no,
            chain: [0; 32],
        };
        let (no, at) = (base.no, base.at);
        let end =
            Position { segment: 0, offset: header.begin(), no, at, digest: [0; 16], chain: header.chain };
        folder.write(&folder.segment(number, 0), &header.encode())?;
        folder.write(&folder.head(number), &end.new_head())?;
        Self::open(folder, (number, header, 0), end, (meta.clone(), base.clone(), 0))
    }

    fn open(
        folder: &Folder,
        (number, header, sequence): (u32, Header, u64),
        end: Position,
        (meta, base, bytes): (BTreeMap<String, Vec<u8>>, Base, u64),
    ) -> Result<Self, StoreError> {
        let segment = folder.files.open(&folder.segment(number, end.segment))?;
        let head = folder.files.open(&folder.head(number))?;
        Ok(Self { number, header, sequence, end, segment, head, meta, base, bytes })
    }

    /// The newest stream of a folder after all of its whole frames. `None` if it has no base, or is damaged at its end: then
    /// another stream begins.
    fn go_on(folder: &Folder, number: u32) -> Result<Option<Self>, StoreError> {
        let Some(base) = folder.bases()?.pop().filter(|base| base.stream == number) else { return Ok(None) };
        let (sequence, head) = match folder.newest(number) {
            Ok(newest) => newest,
            Err(StoreError::Corrupt(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let path = folder.segment(number, head.segment);
        let header = match frames::header(&path) {
            Ok(header) => header,
            Err(StoreError::Corrupt(_)) => return Ok(None),
            Err(_) if !path.exists() => return Ok(None),
            Err(error) => return Err(error),
        };
        let length = std::fs::metadata(&path).map_err(|error| fault::file("read", &path, &error))?.len();
        if length < head.offset {
            return Ok(None);
        }
        let scanned = frames::scan(folder, number, head, &mut |_| Ok(()))?;
        let meta = BTreeMap::new();
        let stream = Self::open(folder, (number, header, sequence), scanned.end, (meta, base, 0))?;
        // Torn frames beyond the end are overwritten, and must not be taken for the next ones.
        let path = folder.segment(number, scanned.end.segment);
        let cut = stream.segment.set_len(scanned.end.offset).and_then(|()| stream.segment.sync());
        cut.map_err(|error| fault::file("cut", &path, &error))?;
        Ok(Some(stream))
    }

    /// Appends frames: synced, and then named by the head.
    fn append(
        &mut self,
        folder: &Folder,
        batches: Vec<BatchFrame>,
        meta: BTreeMap<String, Vec<u8>>,
    ) -> Result<(), StoreError> {
        if batches.is_empty() && meta == self.meta {
            return Ok(());
        }
        if self.end.offset >= SEGMENT_BYTES {
            self.next_segment(folder)?;
        }
        let mut end = self.end;
        let mut bytes = Vec::new();
        for batch in batches {
            (end.no, end.at, end.digest) = (batch.no, batch.at, batch.digest);
            end.chain = frames::put(&Frame::Batch(batch), &end.chain, &mut bytes);
        }
        // They were read before the batches, and may be older: some say that rows are complete.
        if meta != self.meta {
            end.chain = frames::put(&Frame::Meta(meta.clone()), &end.chain, &mut bytes);
        }
        let written = self.segment.write_at(end.offset, &bytes).and_then(|()| self.segment.sync());
        written.map_err(|error| fault::file("write", &folder.segment(self.number, end.segment), &error))?;
        end.offset += bytes.len() as u64;
        self.write_head(folder, end)?;
        self.bytes += bytes.len() as u64;
        self.meta = meta;
        Ok(())
    }

    fn write_head(&mut self, folder: &Folder, end: Position) -> Result<(), StoreError> {
        let (at, slot) = end.in_head(self.sequence + 1);
        let written = self.head.write_at(at, &slot).and_then(|()| self.head.sync());
        written.map_err(|error| fault::file("write", &folder.head(self.number), &error))?;
        (self.sequence, self.end) = (self.sequence + 1, end);
        Ok(())
    }

    fn next_segment(&mut self, folder: &Folder) -> Result<(), StoreError> {
        let index = self.end.segment + 1;
        let header = Header { index, after: self.end.no, chain: self.end.chain, ..self.header };
        let path = folder.segment(self.number, index);
        folder.write(&path, &header.encode())?;
        let segment = folder.files.open(&path)?;
        self.write_head(folder, Position { segment: index, offset: header.begin(), ..self.end })?;
        (self.header, self.segment) = (header, segment);
        Ok(())
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if let Some(making) = self.base.take() {
            // What it leaves is removed by the next start.
            drop(making.thread.join());
        }
    }
}
