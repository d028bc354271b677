//! Money over HTTP, through the binary: transfers and histories, actors and reasons, reversals, erased and exported members, holds, batches, settings; lists by filters; random
//! requests against a model, crowds, and kills.
//!
//! `world` is a server with members. Every world ends with the books' audit: balances are what their histories say, debits equal
//! credits. Not here: permissions (`http_permissions`) and the forms of requests (`bad_input`).

mod batches;
mod caps;
mod contests;
mod credit;
mod crowd;
mod erasing;
mod exports;
mod holds;
mod kills;
mod lists;
mod model;
mod moves;
mod names;
mod origins;
mod reversals;
mod settings;
mod soak;
mod world;
