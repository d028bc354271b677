//! Flags of `tally keys`, and the reason of acts.

use super::TargetArgs;
use clap::{Args, Subcommand};
use tally_rules::ledger::entry::REFERENCE_BYTES_MAX;

/// `tally keys`
#[derive(Debug, Args)]
pub(crate) struct KeysArgs {
    /// What to do
    #[command(subcommand)]
    pub(crate) what: KeysWhat,
    /// Where
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// What can be done with keys.
#[derive(Debug, Subcommand)]
pub(crate) enum KeysWhat {
    /// Make a key; it is shown once
    #[command(
        after_help = "Examples:\n  tally keys create --role server --name game-1\n  tally keys create --scope money:mint --mint-cap KRW=1000000 --name shop"
    )]
    Create {
        /// admin, server or reader
        #[arg(long, required_unless_present = "scope", conflicts_with = "scope")]
        role: Option<String>,
        /// A single permission, in place of a role; repeat it for each. docs/operate/security.md has the list
        #[arg(long)]
        scope: Vec<String>,
        /// The most money of a currency that the key may make on a UTC day, in its smallest unit; repeat it for each currency
        #[arg(long, value_name = "CURRENCY=AMOUNT", value_parser = mint_cap)]
        mint_cap: Vec<(String, String)>,
        /// What you call it
        #[arg(long, default_value = "")]
        name: String,
        /// Why
        #[command(flatten)]
        why: ReasonArgs,
    },
    /// Show all keys, without their secrets
    #[command(after_help = "Example:\n  tally keys list")]
    List,
    /// End a key at once
    #[command(after_help = "Example:\n  tally keys revoke 3f9c0a1b2c3d")]
    Revoke {
        /// The id between the underscores of the key
        id: String,
        /// Revoke it even if it is the last key of role admin
        #[arg(long)]
        force: bool,
        /// Why
        #[command(flatten)]
        why: ReasonArgs,
    },
}

/// Why an act is done, for the audit log.
#[derive(Debug, Args, Default)]
pub(crate) struct ReasonArgs {
    /// Why, for the audit log: at most 255 bytes
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub(crate) reason: Option<String>,
}

/// Reads a reason within the limit of every reason.
pub(super) fn reason(text: &str) -> Result<String, &'static str> {
    if text.len() > REFERENCE_BYTES_MAX { Err("must be at most 255 bytes") } else { Ok(text.to_owned()) }
}

/// Reads `KRW=1000000`. The server checks the currency and the amount.
fn mint_cap(text: &str) -> Result<(String, String), &'static str> {
    let (currency, cap) = text.split_once('=').ok_or("must be such as KRW=1000000")?;
    Ok((currency.to_owned(), cap.to_owned()))
}

/// `tally archive`
#[derive(Debug, Args)]
pub(crate) struct ArchiveArgs {
    /// Archive all months before this one, such as 2026-01; without it, list what is archived
    #[arg(long, value_name = "MONTH")]
    pub(crate) before: Option<String>,
    /// Why
    #[command(flatten)]
    pub(crate) why: ReasonArgs,
    /// Where
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}
