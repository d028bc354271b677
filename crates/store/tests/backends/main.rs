//! Every backend under the one contract, and the tests of single backends.
//!
//! `contract` knows no backend; a backend's folder says how to make an empty store and open it again, and holds its own
//! tests. One test binary, because each one more is linked anew.

mod contract;
mod mysql;
mod shards;
mod sqlite;
