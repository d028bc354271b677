//! Arguments of `tally secret`.

use super::ReasonArgs;
use clap::{Args, Subcommand};

/// The help after that of the command.
pub(super) const SECRET: &str = "\
Examples:
  tally secret status
  tally secret rotate --reason 'yearly'
  tally secret drop

The secret protects PINs, tokens, retries and the secrets of webhooks. An embedded store must
have no running server, but for status. With ranks in Redis, commands run beside servers.
docs/operate/secret.md has the steps.";

/// `tally secret`
#[derive(Debug, Args)]
pub(crate) struct SecretArgs {
    /// What to do
    #[command(subcommand)]
    pub(crate) what: SecretWhat,
}

/// What can be done with the secret.
#[derive(Debug, Subcommand)]
pub(crate) enum SecretWhat {
    /// Show which secrets the store has, and what would be lost with the old one
    #[command(after_help = "Example:\n  tally secret status")]
    Status,
    /// Replace the secret: make a new one, or let the given one make once all servers have both
    #[command(after_help = "Example:\n  tally secret rotate --reason 'an administrator left'")]
    Rotate(ReasonArgs),
    /// End the old secret after a rotation
    #[command(after_help = "Examples:\n  tally secret drop\n  tally secret drop --yes")]
    Drop {
        /// Do it although something is lost
        #[arg(long)]
        yes: bool,
        /// Why
        #[command(flatten)]
        why: ReasonArgs,
    },
    /// Make a new secret for a store whose secret is lost
    #[command(
        after_help = "Examples:\n  tally secret reset\n  tally secret reset --yes --reason 'a lost disk'"
    )]
    Reset {
        /// Do it: what was said is lost
        #[arg(long)]
        yes: bool,
        /// Why
        #[command(flatten)]
        why: ReasonArgs,
    },
}
