//! Members with wallets, and money that moved between them.
//!
//! This computes all balances from the first transfer on, so that no transfer exceeds a balance. If other clients move
//! the same money meanwhile, the server may reject some lines; they are counted.

use super::bar;
use crate::chunks::{CHUNK_ROWS, Chunks};
use crate::cli::SeedWalletsArgs;
use crate::client::Client;
use crate::demo::Reach;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;
use tally_load::bits_of;
use tally_load::people::{PASSWORD, PIN, login, phone};
use tally_rules::ledger::Amount;
use tally_rules::ledger::lines::{MemberLine, TransferLine};
use tally_rules::ledger::member::Login;
use tally_rules::{Actor, PlayerId};
use tally_service::Tally;
use tally_service::ledger::import::{self, NewChunk};
use tally_service::members::password::{self, Cost};

/// The opening balance of each member, in minor units.
const OPENING: i64 = 1_000_000;

const GIVEN: [&str; 16] = [
    "Ada", "Ben", "Chloe", "Dmitri", "Elif", "Femi", "Grace", "Hugo", "Ines", "Jin", "Kofi", "Lena", "Minji",
    "Noor", "Olga", "Pablo",
];
const FAMILY: [&str; 16] = [
    "Abe", "Bauer", "Costa", "Dubois", "Eriksen", "Fontana", "Garcia", "Haddad", "Ito", "Jensen", "Kim",
    "Lopez", "Moreau", "Novak", "Okafor", "Park",
];

/// Makes the missing members and transfers.
pub(super) fn seed(client: &Client, args: &SeedWalletsArgs, cost: Cost) -> Result<()> {
    let started = Instant::now();
    let (made, refused_members) = members(client, args.members, cost)?;
    let seconds = started.elapsed().as_secs_f64();
    println!("{made} members made in {seconds:.1} s");
    let started = Instant::now();
    let (moved, refused) = transfers(client, args)?;
    let seconds = started.elapsed().as_secs_f64();
    let rate = moved as f64 / seconds.max(1e-6);
    println!("{moved} transactions with {} entries in {seconds:.1} s ({rate:.0} a second)", 2 * moved);
    if refused_members + refused > 0 {
        println!(
            "refused: {refused_members} members and {refused} transactions, because other members or transactions exist"
        );
    }
    println!(
        "each member began with {OPENING}; number N of {} is:\n  login     user0000001 (N in 7 digits)\n  password  \
         {PASSWORD}\n  PIN       {PIN}\n  phone     01000000001 (010 and N in 8 digits)\n  player    the login",
        args.members
    );
    Ok(())
}

fn digest(what: &str) -> [u8; 32] {
    blake3::derive_key("tally 2026 seed", what.as_bytes())
}

/// The numbers of members made now, and of rejected ones.
fn members(client: &Client, wanted: u64, cost: Cost) -> Result<(u64, u64)> {
    let mut chunks = Chunks::find(client, "/v1/imports/members", json!({}), digest("members"))?;
    let before = chunks.done;
    let bar = bar("members", before.lines, wanted)?;
    // One digest for all, because all have the same password.
    let hash: Arc<str> = password::digest(PASSWORD, cost).context("digest the password")?;
    while chunks.done.lines < wanted {
        let first = chunks.done.lines + 1;
        let last = wanted.min(chunks.done.lines + CHUNK_ROWS as u64);
        let mut rows = String::new();
        for number in first..=last {
            rows.push('\n');
            rows.push_str(&member(number, &hash).to_string());
        }
        chunks.send(&rows, last, false)?;
        bar.set_position(last);
    }
    bar.finish_and_clear();
    Ok((chunks.done.taken - before.taken, chunks.done.refused - before.refused))
}

fn name(number: u64) -> String {
    let pick = |names: &[&'static str; 16], salt| names[(bits_of(number, salt) % 16) as usize];
    format!("{} {}", pick(&GIVEN, 1), pick(&FAMILY, 2))
}

fn member(number: u64, hash: &str) -> Value {
    json!({
        "line": number,
        "login_id": login(number),
        "password_hash": hash,
        "pin": PIN,
        "phone_number": phone(number),
        "name": name(number),
        "player": login(number),
        "balance": OPENING,
    })
}

/// The numbers of transfers made now, and of rejected ones.
fn transfers(client: &Client, args: &SeedWalletsArgs) -> Result<(u64, u64)> {
    // The members of a transfer depend on the number of members.
    let digest = digest(&format!("transfers between {}", args.members));
    let mut chunks = Chunks::find(client, "/v1/imports/transfers", json!({}), digest)?;
    let before = chunks.done;
    let bar = bar("transactions", before.lines, args.transactions)?;
    let mut world = World { balances: vec![OPENING; usize::try_from(args.members)?] };
    for line in 1..=before.lines {
        world.movement(line);
    }
    while chunks.done.lines < args.transactions {
        let first = chunks.done.lines + 1;
        let last = args.transactions.min(chunks.done.lines + CHUNK_ROWS as u64);
        let mut rows = String::with_capacity(CHUNK_ROWS * 96);
        for line in first..=last {
            let (from, to, amount) = world.movement(line);
            let (from, to) = (login(from), login(to));
            // Names of digits need no escaping.
            write!(rows, "\n{{\"line\":{line},\"from\":\"{from}\",\"to\":\"{to}\",\"amount\":{amount}}}")?;
        }
        chunks.send(&rows, last, false)?;
        bar.set_position(last);
    }
    bar.finish_and_clear();
    Ok((chunks.done.taken - before.taken, chunks.done.refused - before.refused))
}

/// All balances after the transfers so far.
struct World {
    balances: Vec<i64>,
}

impl World {
    /// The payer, the payee and the amount of a line: numbers of members from 1. A fifth goes to one member in a
    /// hundred.
    fn movement(&mut self, line: u64) -> (u64, u64, i64) {
        let count = self.balances.len() as u64;
        let mut from = bits_of(line, 3) % count;
        let crowd = if bits_of(line, 4).is_multiple_of(5) { count.div_ceil(100) } else { count };
        let mut to = bits_of(line, 5) % crowd;
        if to == from {
            to = (to + 1) % count;
        }
        if self.balances[from as usize] == 0 {
            std::mem::swap(&mut from, &mut to);
        }
        while self.balances[from as usize] == 0 {
            from = (from + 1) % count;
        }
        if to == from {
            to = (to + 1) % count;
        }
        // Small amounts are frequent: from 100 to 51,200, in hundreds.
        let exponent = bits_of(line, 6) % 10;
        let amount = 100 * i64::try_from((1 << exponent) - (bits_of(line, 7) % (1 << exponent))).unwrap_or(1);
        let amount = amount.min(self.balances[from as usize]);
        self.balances[from as usize] -= amount;
        self.balances[to as usize] += amount;
        (from + 1, to + 1, amount)
    }
}

/// The first lines of both for the demo, by the use cases themselves; `tally seed wallets` continues from there.
/// Blocks.
pub(crate) fn fill(tally: &Arc<Tally>, count: u64, transactions: u64) -> Result<()> {
    let wait = tokio::runtime::Handle::current();
    let begun =
        wait.block_on(import::members(tally, Actor::CommandLine, nothing(digest("members"))))?.progress.lines;
    if begun < count {
        let cost = tally.members.settings().cost;
        let hash = password::digest(PASSWORD, cost).context("digest the password")?;
        let rows = (begun + 1..=count).map(|number| Ok((number, line(number, &hash)?)));
        let rows = rows.collect::<Result<_>>()?;
        let chunk = NewChunk { lines_before: begun, lines_after: count, rows, ..nothing(digest("members")) };
        wait.block_on(import::members(tally, Actor::CommandLine, chunk))?;
    }
    let digest = digest(&format!("transfers between {count}"));
    let begun = wait.block_on(import::transfers(tally, Actor::CommandLine, nothing(digest)))?.progress.lines;
    if begun < transactions {
        let mut world = World { balances: vec![OPENING; usize::try_from(count)?] };
        let all = (1..=transactions).map(|number| (number, world.movement(number)));
        let rows = all.skip(usize::try_from(begun)?).map(|(number, (from, to, amount))| {
            let (from, to) = (login_of(from)?, login_of(to)?);
            let amount = Amount::new(amount).map_err(|rejection| anyhow::anyhow!(rejection.detail()))?;
            Ok((number, TransferLine { from, to, amount }))
        });
        let rows = rows.collect::<Result<_>>()?;
        let chunk = NewChunk { digest, lines_before: begun, lines_after: transactions, rows, last: false };
        wait.block_on(import::transfers(tally, Actor::CommandLine, chunk))?;
    }
    Ok(())
}

/// A chunk without lines, which only reads the progress.
fn nothing<L>(digest: [u8; 32]) -> NewChunk<L> {
    NewChunk { digest, lines_before: 0, lines_after: 0, rows: Vec::new(), last: false }
}

fn login_of(number: u64) -> Result<Login> {
    Login::new(&login(number)).map_err(|bad| anyhow::anyhow!("a login {}", bad.0))
}

fn line(number: u64, hash: &Arc<str>) -> Result<MemberLine> {
    let balance = Amount::new(OPENING).map_err(|rejection| anyhow::anyhow!(rejection.detail()))?;
    let player = PlayerId::new(&login(number)).map_err(|bad| anyhow::anyhow!("a player {}", bad.0))?;
    Ok(MemberLine {
        login: login_of(number)?,
        password_hash: Some(hash.to_string()),
        pin: Some(PIN.into()),
        phone_number: Some(phone(number)),
        name: Some(name(number)),
        player: Some(player),
        balance: Some(balance),
    })
}

/// Commands about members to try, for the terminal.
pub(crate) fn what_to_try(reach: &Reach) -> String {
    let (find, verify) = (reach.curl("/v1/members?login_id=user0000001"), reach.verify());
    format!(
        "{find}{verify}    (members user0000001 and so on have the password {PASSWORD}, the PIN {PIN} and the phone numbers \
         01000000001 and so on)\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_member_gives_more_than_there_is_and_nothing_is_lost() {
        for members in [2, 3, 50] {
            let mut world = World { balances: vec![OPENING; members] };
            for line in 1..200_000 {
                let (from, to, amount) = world.movement(line);
                assert!(from != to && amount > 0, "{line}: {from} {to} {amount}");
                assert!((1..=members as u64).contains(&from) && (1..=members as u64).contains(&to));
            }
            assert!(world.balances.iter().all(|balance| *balance >= 0));
            assert_eq!(world.balances.iter().sum::<i64>(), OPENING * members as i64);
        }
    }
}
