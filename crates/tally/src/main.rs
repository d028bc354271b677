//! The tally binary: one file per subcommand.

fn main() {}
