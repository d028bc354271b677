//! The scenarios with small numbers: by the library, and by the command with the real programs.

mod command;
mod small;
