//! `tally import scores`: a CSV file into a leaderboard, chunk by chunk, each line exactly once.
//!
//! The server keeps how many lines are done in the transaction of each chunk, so the same command continues after an
//! interruption and knows a file it has seen. Rejects go to a file beside the input and never stop the import.

use crate::cli::{Cli, ImportArgs, ImportScoresArgs, ImportWhat};
use crate::client::{Client, segment};
use crate::config::Usage;
use crate::csv_scores::{Columns, Filter, Line, Lines, Outcome, ScoreSource};
use crate::import_members;
use crate::target::Target;
use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{BufReader, IsTerminal};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use tally_service::secret::hex;
use tally_wire::{numbers, time};
use ureq::http::Method;

/// Rows of one chunk: far below the server's bounds, large enough to hide the round trip.
const CHUNK_ROWS: usize = 2_000;

/// How the server saw the import when it was asked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    pub(crate) lines: u64,
    pub(crate) taken: u64,
    pub(crate) refused: u64,
    pub(crate) finished: bool,
}

/// Counts of this run.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    left_out: u64,
    rejected: u64,
}

/// Runs the subcommand.
pub(crate) fn run(cli: &Cli, args: &ImportArgs) -> Result<ExitCode> {
    let args = match &args.what {
        ImportWhat::Scores(args) => args,
        ImportWhat::Members(args) => return import_members::run(cli, args),
    };
    let columns = columns(args)?;
    let create = args.create.as_deref().map(create_body).transpose()?;
    let lines = Lines::new(open(&args.file)?, columns)?;
    let target = Target::find(cli, &args.target)?;
    let imported = import(&target.client, args, create, lines);
    target.finish();
    imported
}

fn import(
    client: &Client,
    args: &ImportScoresArgs,
    create: Option<Value>,
    lines: Lines<BufReader<File>>,
) -> Result<ExitCode> {
    let board = segment(&args.board);
    if let Some(body) = create {
        let body = body.to_string();
        client
            .ask(
                &Method::PUT,
                &format!("/v1/leaderboards/{board}"),
                Some(("application/json", body.as_bytes())),
            )
            .with_context(|| format!("create the leaderboard `{}`", args.board))?;
    }
    let (digest, done) = find_run(client, args, &board)?;
    if done.finished {
        println!(
            "{} was imported into `{}` before: {} rows, {} refused; nothing was changed (--again to import it once more)",
            args.file.display(),
            args.board,
            done.taken,
            done.refused
        );
        return Ok(ExitCode::SUCCESS);
    }
    let started = Instant::now();
    let mut run = Run {
        client,
        board: &args.board,
        digest,
        done,
        counts: Counts::default(),
        rejects: Rejects::open(&args.file, lines.header(), done.lines)?,
        bar: progress_bar(&args.file)?,
    };
    if done.lines > 0 {
        eprintln!("continuing behind line {}", done.lines);
    }
    run.all(lines)?;
    let (now, counts) = (run.done, run.counts);
    let taken = now.taken - done.taken;
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "imported {taken} rows into `{}` in {seconds:.1} s ({:.0} rows/s); {} left out by --where, {} rejected{}",
        args.board,
        taken as f64 / seconds.max(1e-6),
        counts.left_out,
        counts.rejected,
        run.rejects.mention(),
    );
    let failed = args.strict && counts.rejected > 0;
    Ok(ExitCode::from(u8::from(failed)))
}

/// The digest of the run to do, and how far it is: the first, or with `--again` the first that is not finished.
fn find_run(client: &Client, args: &ImportScoresArgs, board: &str) -> Result<(String, Done)> {
    let file = hash_file(args)?;
    for run in 0_u32.. {
        let digest = hex(blake3::keyed_hash(&file, &run.to_le_bytes()).as_bytes());
        let answer = client
            .ask(&Method::GET, &format!("/v1/imports/{board}/{digest}"), None)
            .with_context(|| format!("ask for `{}` (--create makes it)", args.board))?;
        let done = read_done(&answer)?;
        if !done.finished || !args.again {
            return Ok((digest, done));
        }
    }
    bail!("this file was imported four billion times")
}

/// A digest of the file and of how its columns are read.
fn hash_file(args: &ImportScoresArgs) -> Result<[u8; 32]> {
    let mut hasher = blake3::Hasher::new();
    let how = json!([args.player, args.score, args.score_value, args.at, args.filters, args.missing]);
    hasher.update(how.to_string().as_bytes());
    let file = File::open(&args.file).with_context(|| format!("open {}", args.file.display()))?;
    hasher.update_reader(file).with_context(|| format!("read {}", args.file.display()))?;
    Ok(*hasher.finalize().as_bytes())
}

struct Run<'a> {
    client: &'a Client,
    board: &'a str,
    digest: String,
    done: Done,
    counts: Counts,
    rejects: Rejects,
    bar: ProgressBar,
}

impl Run<'_> {
    fn all(&mut self, mut lines: Lines<BufReader<File>>) -> Result<()> {
        let mut chunk: Vec<Line> = Vec::with_capacity(CHUNK_ROWS);
        let skip = self.done.lines;
        let mut end = self.done.lines.max(1);
        while let Some(line) = lines.next()? {
            if line.number <= skip {
                continue;
            }
            end = line.end;
            chunk.push(line);
            if chunk.len() == CHUNK_ROWS {
                self.send(&mut chunk, end, false)?;
                self.bar.set_position(lines.bytes());
            }
        }
        self.send(&mut chunk, end, true)?;
        self.bar.finish_and_clear();
        Ok(())
    }

    /// Sends a chunk and empties it.
    fn send(&mut self, chunk: &mut Vec<Line>, end: u64, last: bool) -> Result<()> {
        let head = json!({
            "board": self.board, "digest": self.digest, "lines_before": self.done.lines,
            "lines_after": end, "last": last,
        });
        let mut body = head.to_string();
        for line in chunk.iter() {
            match &line.read {
                Outcome::LeftOut => self.counts.left_out += 1,
                Outcome::Rejected(reason) => {
                    self.counts.rejected += 1;
                    self.rejects.add(line, reason)?;
                }
                Outcome::Row(row) => {
                    body.push('\n');
                    let score = match row.score {
                        tally_rules::score::Given::Int(int) => int.to_string(),
                        tally_rules::score::Given::Float(float) => float.to_string(),
                    };
                    let mut row_json =
                        json!({"line": line.number, "player": row.player.as_str(), "score": score});
                    if let Some(at) = row.at {
                        row_json["at"] = json!(time::format(at));
                    }
                    body.push_str(&row_json.to_string());
                }
            }
        }
        // Before the chunk is done: what is written twice is dropped when the import continues, what is lost is lost.
        self.rejects.flush()?;
        let answer = self
            .client
            .ask(&Method::POST, "/v1/imports", Some(("application/x-ndjson", body.as_bytes())))
            .with_context(|| format!("import up to line {end}; the same command continues from there"))?;
        self.done = read_done(&answer)?;
        for row in answer.get("rows").and_then(Value::as_array).into_iter().flatten() {
            let number = row.get("line").and_then(Value::as_u64).unwrap_or_default();
            let reason = row.get("detail").and_then(Value::as_str).unwrap_or_default();
            self.counts.rejected += 1;
            if let Some(line) = chunk.iter().find(|line| line.number == number) {
                self.rejects.add(line, reason)?;
            }
        }
        self.rejects.flush()?;
        chunk.clear();
        Ok(())
    }
}

pub(crate) fn read_done(answer: &Value) -> Result<Done> {
    let number = |name: &str| answer.get(name).and_then(Value::as_u64);
    let read = || {
        Some(Done {
            lines: number("lines")?,
            taken: number("taken")?,
            refused: number("refused")?,
            finished: answer.get("finished")?.as_bool()?,
        })
    };
    read().context("the answer does not say how far the import is")
}

fn columns(args: &ImportScoresArgs) -> Result<Columns> {
    let score = match (&args.score, &args.score_value) {
        (Some(column), _) => ScoreSource::Column(column.clone()),
        (None, Some(value)) => ScoreSource::Constant(
            numbers::score_text(value).ok_or_else(|| Usage("--score-value must be a number".into()))?,
        ),
        (None, None) => bail!(Usage("--score or --score-value is needed".into())),
    };
    let filter = |text: &String| {
        Filter::parse(text).ok_or_else(|| Usage(format!("--where `{text}` must be COL=VALUE or COL!=VALUE")))
    };
    Ok(Columns {
        player: args.player.clone(),
        score,
        at: args.at.clone(),
        filters: args.filters.iter().map(filter).collect::<Result<_, _>>()?,
        missing: args.missing.clone(),
    })
}

/// `order=descending,update=sum` as the body of a board.
fn create_body(text: &str) -> Result<Value, Usage> {
    let mut body = Map::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let (name, value) =
            pair.split_once('=').ok_or_else(|| Usage(format!("--create `{pair}` must be KEY=VALUE")))?;
        let value = match value {
            "true" | "false" => json!(value == "true"),
            text => json!(text),
        };
        body.insert(name.to_owned(), value);
    }
    Ok(Value::Object(body))
}

pub(crate) fn open(path: &Path) -> Result<BufReader<File>> {
    let file = File::open(path).with_context(|| format!("open {}", path.display()))?;
    Ok(BufReader::with_capacity(1 << 20, file))
}

pub(crate) fn progress_bar(path: &Path) -> Result<ProgressBar> {
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
    /// Keeps what an interrupted import has written about lines that are done.
    pub(crate) fn open(input: &Path, header: &[String], lines_done: u64) -> Result<Self> {
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

    fn add(&mut self, line: &Line, reason: &str) -> Result<()> {
        self.note(line.number, &line.record, reason)
    }

    /// Notes a line with the reason.
    pub(crate) fn note(&mut self, number: u64, fields: &csv::ByteRecord, reason: &str) -> Result<()> {
        let number = number.to_string();
        let mut record = csv::ByteRecord::from(vec![number.as_bytes(), reason.as_bytes()]);
        fields.iter().for_each(|field| record.push_field(field));
        Ok(self.writer()?.write_byte_record(&record)?)
    }

    fn writer(&mut self) -> Result<&mut csv::Writer<File>> {
        if self.file.is_none() {
            // What it repeats may be passwords.
            let mut options = File::options();
            let file = options.write(true).create(true).truncate(true).mode(0o600).open(&self.path)?;
            let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(file);
            let names = ["line", "reason"].into_iter().map(str::to_owned).chain(self.header.iter().cloned());
            writer.write_record(names)?;
            self.file = Some(writer);
        }
        self.file.as_mut().context("the file of rejects")
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        Ok(self.file.as_mut().map_or(Ok(()), csv::Writer::flush)?)
    }

    pub(crate) fn mention(&self) -> String {
        self.file.as_ref().map_or_else(String::new, |_| format!(", see {}", self.path.display()))
    }
}
