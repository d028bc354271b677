//! `tally import redis`: each sorted set under a pattern becomes a leaderboard. Redis is only read.
//!
//! A set is read into a CSV file first (`file`), and that file is imported like any other: so each member counts once, and an
//! interrupted command continues with what it had read. Each line has the instant at which its reading began. So a score that a
//! game writes to both meanwhile is newer than the line, and a leaderboard that keeps the latest score keeps it. Not here: what
//! becomes of keys, scores and members (`sorted_sets::rules`), chunks and rejects (`import`).

mod counterparts;
mod file;

use crate::cli::{Cli, ImportRedisArgs, ImportScoresArgs, TargetArgs};
use crate::client::Client;
use crate::config::Usage;
use crate::csv_records::COMMA;
use crate::csv_scores::Lines;
use crate::import::{columns, create_body, import};
use crate::import_file::open;
use crate::sorted_sets::rules::shown;
use crate::sorted_sets::{Found, TargetBoard};
use crate::target::TargetServer;
use anyhow::{Context, Result, bail};
use counterparts::Counterparts;
use file::Folder;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use tally_ranking::redis::{SortedSets, SourceKey};
use tally_rules::BoardId;

/// A sorted set with the leaderboard that it becomes.
struct Planned<'f> {
    set: &'f SourceKey,
    board: &'f BoardId,
    /// What the leaderboard is, or will be.
    target: TargetBoard,
    /// The body that makes it, if it is missing.
    create: Option<Value>,
    /// What is to be done with it, in words.
    does: &'static str,
}

/// Runs the subcommand.
pub(crate) fn run(cli: &Cli, args: &ImportRedisArgs) -> Result<ExitCode> {
    let create = args.create.as_deref().map(create_body).transpose()?;
    let sets = args.from.open()?;
    let found = args.from.find(&sets)?;
    let target = TargetServer::find(cli, &args.target)?;
    let done = run_on(&target.client, &sets, &found, (args, create.as_ref()));
    target.finish();
    Ok(ExitCode::from(u8::from(done? > 0 && args.strict)))
}

/// Imports all sets, or with `--dry-run` reads them; returns how many members have no counterpart.
fn run_on(
    client: &Client,
    sets: &SortedSets,
    found: &Found,
    (args, create): (&ImportRedisArgs, Option<&Value>),
) -> Result<u64> {
    let planned = plan(client, found, (args, create))?;
    let folder = || args.files.clone().unwrap_or_else(|| PathBuf::from(file::folder(sets.name())));
    let folder = (!args.dry_run).then(|| Folder::open(folder())).transpose()?;
    println!("{}", found.told(sets, &args.from.pattern));
    let mut rejected = 0;
    for one in &planned {
        println!("{}", one.told());
        one.notes().iter().for_each(|note| println!("  {note}"));
        rejected += match &folder {
            None => one.read(sets)?,
            Some(folder) => one.import(client, sets, (folder, args))?,
        };
    }
    if args.dry_run {
        println!("dry run: nothing was changed; members without a counterpart: {rejected}");
    }
    Ok(rejected)
}

/// Looks up every leaderboard before anything is done.
fn plan<'f>(
    client: &Client,
    found: &'f Found,
    (args, create): (&ImportRedisArgs, Option<&Value>),
) -> Result<Vec<Planned<'f>>> {
    let mut planned = Vec::with_capacity(found.sets.len());
    for (set, board) in &found.sets {
        let present = TargetBoard::find(client, board)?;
        let does = match (&present, create) {
            (Some(_), _) => "into the leaderboard",
            (None, Some(_)) => "makes the leaderboard",
            (None, None) if args.dry_run => "needs --create for the leaderboard",
            (None, None) => bail!(
                "there is no leaderboard `{}`: --create makes those that are missing; nothing was changed",
                board.as_str()
            ),
        };
        let (target, body) = match present {
            Some(present) => (present, None),
            None => {
                let body = definition(create.unwrap_or(&Value::Null));
                (TargetBoard::of(body.clone()), Some(body))
            }
        };
        check(board, &target, (args, create))?;
        planned.push(Planned { set, board, target, create: body, does });
    }
    Ok(planned)
}

/// Refuses a leaderboard that cannot take a sorted set, or is another one than `--create` says.
fn check(
    board: &BoardId,
    target: &TargetBoard,
    (args, create): (&ImportRedisArgs, Option<&Value>),
) -> Result<()> {
    let name = board.as_str();
    if let Some(other) = create.and_then(|wanted| target.difference(wanted)) {
        bail!(
            "the leaderboard `{name}` is there with another `{other}`: leave that out of --create; nothing was changed"
        );
    }
    if !matches!(target.field("subscore"), "" | "none") {
        bail!("the leaderboard `{name}` has a subscore, and a sorted set has none; nothing was changed");
    }
    if args.again && target.field("update") == "sum" {
        let why = "adds scores (update sum), so --again would count them twice";
        bail!(Usage(format!("the leaderboard `{name}` {why}; nothing was changed")));
    }
    Ok(())
}

/// A leaderboard that ranks as a sorted set does, but for what is wanted otherwise.
fn definition(wanted: &Value) -> Value {
    let is_ascending = wanted.get("order").is_some_and(|order| order == "ascending");
    let ties = if is_ascending { "player" } else { "player_reversed" };
    let mut body = json!({"order": "descending", "update": "latest", "score": "float64", "ties": ties});
    for (name, value) in wanted.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    body
}

impl Planned<'_> {
    fn told(&self) -> String {
        let (key, board, does) = (shown(&self.set.key), self.board.as_str(), self.does);
        format!("{key} -> {board}: {} members, {does} ({})", self.set.members, self.target.told())
    }

    /// What is otherwise than in Redis.
    fn notes(&self) -> Vec<&'static str> {
        let mut notes = Vec::new();
        if self.set.expires {
            notes.push("the key expires in Redis; a leaderboard stays until it is deleted, and its periods end by a schedule");
        }
        if !self.target.ties_like_redis() {
            notes.push("equal scores: Redis orders them by name, this leaderboard otherwise; all lines have one instant");
        }
        if self.target.field("update") == "sum" {
            notes.push(
                "update sum: scores that your code adds while the set is read may count twice, so pause it",
            );
        }
        notes
    }

    /// Reads the members, and prints which have no counterpart; returns their number.
    fn read(&self, sets: &SortedSets) -> Result<u64> {
        let mut counterparts = Counterparts::new(self.target.scores());
        sets.members(&self.set.key, &mut |page| {
            page.iter().for_each(|(member, score)| counterparts.add(member, *score));
            anyhow::Ok(())
        })?;
        counterparts.lines().iter().for_each(|line| println!("  {line}"));
        Ok(counterparts.missing())
    }

    /// Imports the set; returns how many members were rejected.
    fn import(
        &self,
        client: &Client,
        sets: &SortedSets,
        (folder, args): (&Folder, &ImportRedisArgs),
    ) -> Result<u64> {
        let path = folder.file(&self.set.key);
        if path.exists() && !args.again {
            eprintln!(
                "{} was read before, and is what is imported; --again reads the set once more",
                path.display()
            );
        } else {
            let at = client.date().context("ask the server for its clock")?;
            folder.write(sets, self.set, at)?;
        }
        let args = ImportScoresArgs {
            board: self.board.as_str().to_owned(),
            file: path,
            player: file::COLUMNS[0].to_owned(),
            score: Some(file::COLUMNS[1].to_owned()),
            score_value: None,
            at: Some(file::COLUMNS[2].to_owned()),
            filters: Vec::new(),
            missing: Vec::new(),
            delimiter: COMMA,
            create: None,
            reason: args.reason.clone(),
            again: false,
            strict: args.strict,
            target: TargetArgs::default(),
        };
        let lines = Lines::new(open(&args.file)?, COMMA, columns(&args)?)?;
        import(client, &args, self.create.clone(), lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_leaderboard_is_made_like_a_sorted_set() {
        let plain = definition(&Value::Null);
        assert_eq!(
            plain,
            json!({"order": "descending", "update": "latest", "score": "float64", "ties": "player_reversed"})
        );
        let laps = definition(&json!({"order": "ascending", "update": "best"}));
        assert_eq!(
            laps,
            json!({"order": "ascending", "update": "best", "score": "float64", "ties": "player"})
        );
        for body in [plain, laps] {
            assert!(TargetBoard::of(body).ties_like_redis());
        }
        let first = TargetBoard::of(definition(&json!({"ties": "first", "score": "int64"})));
        assert!(!first.ties_like_redis());
        assert_eq!(first.told(), "order descending, update latest, score int64, ties first");
    }
}
