//! `tally import members`: a CSV file of members with their opening balances, chunk by chunk, each line exactly once.
//!
//! Passwords are digested here, on all processors, because the server would stall. So the server cannot check them, and says
//! how short they may be. Not here: chunks and rejects (`import_file`).

use crate::chunks::{CHUNK_ROWS, Chunks};
use crate::cli::{Cli, ImportMembersArgs};
use crate::client::Client;
use crate::config::Config;
use crate::csv_members::{Line, Lines, MemberRow};
use crate::import_file::{FileRun, PreparedRow, open};
use crate::member_settings;
use crate::target::TargetServer;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs::File;
use std::io::BufReader;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use tally_service::members::password::{self, Cost};

/// Rows of a chunk with passwords to digest: some seconds of work.
const PASSWORD_ROWS: usize = 200;

/// Runs the subcommand.
pub(crate) fn run(cli: &Cli, args: &ImportMembersArgs) -> Result<ExitCode> {
    let cost = member_settings::members(&Config::load(cli)?)?.cost;
    let lines = Lines::new(open(&args.file)?, args.delimiter)?;
    let target = TargetServer::find(cli, &args.target)?;
    let imported = import(&target.client, args, lines, cost);
    target.finish();
    imported
}

fn import(
    client: &Client,
    args: &ImportMembersArgs,
    mut lines: Lines<BufReader<File>>,
    cost: Cost,
) -> Result<ExitCode> {
    let mut hasher = blake3::Hasher::new_derive_key("tally 2026 import of members");
    let file = File::open(&args.file).with_context(|| format!("open {}", args.file.display()))?;
    hasher.update_reader(file).with_context(|| format!("read {}", args.file.display()))?;
    let digest = *hasher.finalize().as_bytes();
    let chunks = Chunks::find(client, "/v1/imports/members", json!({}), digest)?;
    let length_min =
        chunks.password_length_min.context("the answer does not say how short a password may be")?;
    lines.set_password_length_min(length_min);
    let before = chunks.done;
    if before.finished {
        println!(
            "{} was imported before: {} members, {} refused; nothing was changed",
            args.file.display(),
            before.taken,
            before.refused
        );
        return Ok(ExitCode::SUCCESS);
    }
    let started = Instant::now();
    let mut run = FileRun::open(chunks, &args.file, lines.header())?;
    let rows = if lines.has_passwords() { PASSWORD_ROWS } else { CHUNK_ROWS };
    run.all(&mut lines, rows, |chunk| prepare(chunk, cost))?;
    let taken = run.chunks.done.taken - before.taken;
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "imported {taken} members in {seconds:.1} s ({:.0} rows/s); {} rejected{}",
        taken as f64 / seconds.max(1e-6),
        run.rejected,
        run.rejects.mention(),
    );
    Ok(ExitCode::from(u8::from(args.strict && run.rejected > 0)))
}

/// Lines in the server's form.
fn prepare(chunk: &[Line], cost: Cost) -> Result<Vec<PreparedRow>> {
    let prepared = |(line, digest): (&Line, Option<Arc<str>>)| match &line.read {
        Ok(row) => PreparedRow::Row(body(line.number, row, digest.as_deref())),
        Err(reason) => PreparedRow::Rejected(reason.clone()),
    };
    Ok(chunk.iter().zip(digests(chunk, cost)?).map(prepared).collect())
}

fn body(line: u64, row: &MemberRow, digest: Option<&str>) -> Value {
    let mut body = json!({"line": line});
    for column in ["login_id", "password_hash", "pin", "phone_number", "name", "player", "balance"] {
        if let Some(text) = row.get(column) {
            body[column] = json!(text);
        }
    }
    if let Some(digest) = digest {
        body["password_hash"] = json!(digest);
    }
    body
}

/// The digest of each line's password, if it has one.
fn digests(chunk: &[Line], cost: Cost) -> Result<Vec<Option<Arc<str>>>> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let part = chunk.len().div_ceil(threads).max(1);
    let of = |line: &Line| {
        let password = line.read.as_ref().ok().and_then(|row| row.get("password"));
        password.map(|text| password::digest(text, cost)).transpose()
    };
    let parts = std::thread::scope(|scope| {
        let work = |part| scope.spawn(move || <[Line]>::iter(part).map(of).collect::<Result<Vec<_>, _>>());
        let running: Vec<_> = chunk.chunks(part).map(work).collect();
        running
            .into_iter()
            .map(|one| one.join().expect("digests panic nowhere"))
            .collect::<Result<Vec<_>, _>>()
    });
    Ok(parts.context("digest the passwords")?.into_iter().flatten().collect())
}
