//! The import of a CSV file: its lines in chunks, its rejects, and progress.
//!
//! Rejects go to a file beside the input and never stop the import. Not here: the contents of lines (`csv_scores`,
//! `csv_members`), and the server's progress (`chunks`).

use crate::chunks::{Chunks, refused};
use crate::config::Usage;
use crate::csv_records::{Line, Lines};
use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use std::fs::File;
use std::io::{BufReader, IsTerminal};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The result of a line.
pub(crate) enum PreparedRow {
    /// The server gets it.
    Row(Value),
    /// A filter skips it.
    LeftOut,
    /// It is invalid.
    Rejected(String),
}

/// An import of a file, with its counts.
pub(crate) struct FileRun<'a> {
    pub(crate) chunks: Chunks<'a>,
    pub(crate) rejects: Rejects,
    pub(crate) left_out: u64,
    pub(crate) rejected: u64,
    bar: ProgressBar,
}

impl<'a> FileRun<'a> {
    /// Continues at the server's progress.
    pub(crate) fn open(chunks: Chunks<'a>, file: &Path, header: &[String]) -> Result<Self> {
        let lines = chunks.done.lines;
        if lines > 0 {
            eprintln!("continuing behind line {lines}");
        }
        let (rejects, bar) = (Rejects::open(file, header, lines)?, progress_bar(file)?);
        Ok(Self { chunks, rejects, left_out: 0, rejected: 0, bar })
    }

    /// Sends all remaining lines, so many at a time; `make` returns the result of each.
    pub(crate) fn all<L: Lines>(
        &mut self,
        lines: &mut L,
        rows: usize,
        mut make: impl FnMut(&[Line<L::Read>]) -> Result<Vec<PreparedRow>>,
    ) -> Result<()> {
        let mut chunk: Vec<Line<L::Read>> = Vec::with_capacity(rows);
        let skip = self.chunks.done.lines;
        let mut end = skip.max(1);
        while let Some(line) = lines.next()? {
            if line.number <= skip {
                continue;
            }
            end = line.end;
            chunk.push(line);
            if chunk.len() == rows {
                self.send(&chunk, make(&chunk)?, end, false)?;
                chunk.clear();
                self.bar.set_position(lines.bytes());
            }
        }
        self.send(&chunk, make(&chunk)?, end, true)?;
        self.bar.finish_and_clear();
        Ok(())
    }

    fn send<T>(&mut self, chunk: &[Line<T>], prepared: Vec<PreparedRow>, end: u64, last: bool) -> Result<()> {
        let mut rows = String::new();
        for (line, prepared) in chunk.iter().zip(prepared) {
            match prepared {
                PreparedRow::Row(body) => {
                    rows.push('\n');
                    rows.push_str(&body.to_string());
                }
                PreparedRow::LeftOut => self.left_out += 1,
                PreparedRow::Rejected(reason) => self.reject(line, &reason)?,
            }
        }
        // Flushes before the chunk is sent. A reject that is written twice is dropped when the import continues; a
        // lost one is lost.
        self.rejects.flush()?;
        let answer = self.chunks.send(&rows, end, last)?;
        for (number, reason) in refused(&answer) {
            match chunk.iter().find(|line| line.number == number) {
                Some(line) => self.reject(line, reason)?,
                None => self.rejected += 1,
            }
        }
        self.rejects.flush()
    }

    fn reject<T>(&mut self, line: &Line<T>, reason: &str) -> Result<()> {
        self.rejected += 1;
        self.rejects.add(line, reason)
    }
}

pub(crate) fn open(path: &Path) -> Result<BufReader<File>> {
    let file = File::open(path).with_context(|| format!("open {}", path.display()))?;
    if file.metadata().is_ok_and(|about| about.is_dir()) {
        bail!(Usage(format!("{} is a directory: give a CSV file", path.display())));
    }
    Ok(BufReader::with_capacity(1 << 20, file))
}

/// An empty file that only its owner reads: lines have players, and may have passwords.
pub(crate) fn make_private(path: &Path) -> std::io::Result<File> {
    File::options().read(true).write(true).create(true).truncate(true).mode(0o600).open(path)
}

fn progress_bar(path: &Path) -> Result<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        return Ok(ProgressBar::hidden());
    }
    let bar = ProgressBar::new(std::fs::metadata(path)?.len());
    let style = "{bar:40} {bytes}/{total_bytes} {bytes_per_sec}, {eta} left";
    bar.set_style(ProgressStyle::with_template(style).context("draw the progress bar")?);
    Ok(bar)
}

/// `FILE.rejects.csv` beside `FILE.csv`, made with the first reject.
pub(crate) struct Rejects {
    path: PathBuf,
    header: Vec<String>,
    file: Option<csv::Writer<File>>,
}

impl Rejects {
    /// Keeps the rejects of lines that an interrupted import has done.
    fn open(input: &Path, header: &[String], lines_done: u64) -> Result<Self> {
        let path = input.with_extension("rejects.csv");
        let mut rejects = Self { path, header: header.to_vec(), file: None };
        if !rejects.path.exists() {
            return Ok(rejects);
        }
        let kept: Vec<csv::ByteRecord> = csv::ReaderBuilder::new()
            .flexible(true)
            .from_path(&rejects.path)?
            .into_byte_records()
            .collect::<Result<_, _>>()?;
        std::fs::remove_file(&rejects.path)?;
        for record in kept {
            let line = record.get(0).and_then(|line| std::str::from_utf8(line).ok()?.parse::<u64>().ok());
            if line.is_some_and(|line| line <= lines_done) {
                rejects.writer()?.write_byte_record(&record)?;
            }
        }
        Ok(rejects)
    }

    /// Writes a line with its reason.
    fn add<T>(&mut self, line: &Line<T>, reason: &str) -> Result<()> {
        let number = line.number.to_string();
        let mut record = csv::ByteRecord::from(vec![number.as_bytes(), reason.as_bytes()]);
        line.record.iter().for_each(|field| record.push_field(field));
        Ok(self.writer()?.write_byte_record(&record)?)
    }

    fn writer(&mut self) -> Result<&mut csv::Writer<File>> {
        if self.file.is_none() {
            let file = make_private(&self.path)?;
            let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(file);
            let names = ["line", "reason"].into_iter().map(str::to_owned).chain(self.header.iter().cloned());
            writer.write_record(names)?;
            self.file = Some(writer);
        }
        self.file.as_mut().context("the file of rejects")
    }

    fn flush(&mut self) -> Result<()> {
        Ok(self.file.as_mut().map_or(Ok(()), csv::Writer::flush)?)
    }

    pub(crate) fn mention(&self) -> String {
        self.file.as_ref().map_or_else(String::new, |_| format!(", see {}", self.path.display()))
    }
}
