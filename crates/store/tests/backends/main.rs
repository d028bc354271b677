//! Every backend under the one contract, and what only one backend can be asked.
//!
//! `contract` knows no backend; a backend's folder says how to make an empty store and open it again, and holds its own
//! tests. One test binary, because each one more is linked anew.

mod contract;
mod mysql;
mod shards;
mod sqlite;
