//! `tally import scores`: a CSV file into a leaderboard, chunk by chunk, each line exactly once.
//!
//! The server stores the progress in the transaction of each chunk. So the same command continues after an
//! interruption, and the server recognizes a file. Not here: chunks and rejects (`import_file`).

use crate::chunks::{CHUNK_ROWS, Chunks, Done, read_done};
use crate::cli::{Cli, ImportArgs, ImportScoresArgs, ImportWhat};
use crate::client::{Client, segment};
use crate::config::Usage;
use crate::csv_records::COMMA;
use crate::csv_scores::{Columns, CsvOutcome, Filter, Line, Lines, ScoreSource};
use crate::import_file::{FileRun, PreparedRow, open};
use crate::target::TargetServer;
use crate::{import_members, import_redis};
use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::BufReader;
use std::process::ExitCode;
use std::time::Instant;
use tally_rules::score::ScoreInput;
use tally_service::secret::hex;
use tally_wire::{numbers, time};
use ureq::http::Method;

/// Runs the subcommand.
pub(crate) fn run(cli: &Cli, args: &ImportArgs) -> Result<ExitCode> {
    let args = match &args.what {
        ImportWhat::Scores(args) => args,
        ImportWhat::Members(args) => return import_members::run(cli, args),
        ImportWhat::Redis(args) => return import_redis::run(cli, args),
    };
    let columns = columns(args)?;
    let create = args.create.as_deref().map(create_body).transpose()?;
    let lines = Lines::new(open(&args.file)?, args.delimiter, columns)?;
    let target = TargetServer::find(cli, &args.target)?;
    let imported = import(&target.client, args, create, lines);
    target.finish();
    Ok(ExitCode::from(u8::from(imported? > 0 && args.strict)))
}

/// Imports a file, whose meaning is in `args`; returns how many lines were rejected.
pub(crate) fn import(
    client: &Client,
    args: &ImportScoresArgs,
    create: Option<Value>,
    mut lines: Lines<BufReader<File>>,
) -> Result<u64> {
    let board = segment(&args.board);
    if let Some(mut body) = create {
        if let Some(reason) = &args.reason {
            body["reason"] = json!(reason);
        }
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
        return Ok(0);
    }
    let started = Instant::now();
    let chunks = Chunks::at(client, "/v1/imports", json!({"board": args.board}), digest, done);
    let mut run = FileRun::open(chunks, &args.file, lines.header())?;
    run.all(&mut lines, CHUNK_ROWS, |chunk| Ok(chunk.iter().map(prepare).collect()))?;
    let taken = run.chunks.done.taken - done.taken;
    let seconds = started.elapsed().as_secs_f64();
    let left_out = match run.left_out {
        0 if args.filters.is_empty() => String::new(),
        count => format!("{count} left out by --where, "),
    };
    println!(
        "imported {taken} rows into `{}` in {seconds:.1} s ({:.0} rows/s); {left_out}{} rejected{}",
        args.board,
        taken as f64 / seconds.max(1e-6),
        run.rejected,
        run.rejects.mention(),
    );
    Ok(run.rejected)
}

/// The digest of the run to do, and its progress: the first run, or with `--again` the first unfinished one.
fn find_run(client: &Client, args: &ImportScoresArgs, board: &str) -> Result<([u8; 32], Done)> {
    let file = hash_file(args)?;
    for run in 0_u32.. {
        let digest = *blake3::keyed_hash(&file, &run.to_le_bytes()).as_bytes();
        let answer = client
            .ask(&Method::GET, &format!("/v1/imports/{board}/{}", hex(&digest)), None)
            .with_context(|| format!("ask for `{}` (--create makes it)", args.board))?;
        let done = read_done(&answer)?;
        if !done.finished || !args.again {
            return Ok((digest, done));
        }
    }
    bail!("this file was imported four billion times")
}

/// A digest of the file and of the meaning of its columns.
fn hash_file(args: &ImportScoresArgs) -> Result<[u8; 32]> {
    let mut hasher = blake3::Hasher::new();
    let mut how = json!([args.player, args.score, args.score_value, args.at, args.filters, args.missing]);
    if let (Value::Array(parts), true) = (&mut how, args.delimiter != COMMA) {
        parts.push(json!(args.delimiter));
    }
    hasher.update(how.to_string().as_bytes());
    let file = File::open(&args.file).with_context(|| format!("open {}", args.file.display()))?;
    hasher.update_reader(file).with_context(|| format!("read {}", args.file.display()))?;
    Ok(*hasher.finalize().as_bytes())
}

/// A line in the server's form.
fn prepare(line: &Line) -> PreparedRow {
    let row = match &line.read {
        CsvOutcome::LeftOut => return PreparedRow::LeftOut,
        CsvOutcome::Rejected(reason) => return PreparedRow::Rejected(reason.clone()),
        CsvOutcome::Row(row) => row,
    };
    let score = match row.score {
        ScoreInput::Int(int) => int.to_string(),
        ScoreInput::Float(float) => float.to_string(),
    };
    let mut body = json!({"line": line.number, "player": row.player.as_str(), "score": score});
    if let Some(at) = row.at {
        body["at"] = json!(time::format(at));
    }
    PreparedRow::Row(body)
}

/// What the columns of the file are.
pub(crate) fn columns(args: &ImportScoresArgs) -> Result<Columns> {
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
pub(crate) fn create_body(text: &str) -> Result<Value, Usage> {
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
