//! The in-memory order of one board: a counted B+tree over scores and an id table beside it.
//!
//! Every player of a board has one entry, and entries stand in the order (score, tie, player id) with the
//! *smaller* score first: the caller turns "higher is better" around before it comes here. The crate answers
//! three kinds of question: what does this player have and at which place (`get`, `ordinal`), how many stand
//! before this score (`count_*`, `lower_bound`), and who stands at these places (`at`, `walk`).
//!
//! Why this shape, in the order of what it saves:
//!
//! - A player's record carries the number of the leaf that holds its entry, so a rank is found bottom-up by
//!   parent links and compares no key at all; see [`Order::ordinal`].
//! - Leaves pack their columns to the bytes that their own range needs (`leaf`), and are allocated to the
//!   size they have, so a half-full leaf costs no more per member than a full one.
//! - Ids live in an arena of fixed strides (`records`), so that no length, pointer or padding is stored.
//! - The id table (`id_table`) answers with one cache line and grows by small steps.
//!
//! Not here: names of boards, rules, clocks, I/O, locks. A broken invariant panics; the order is derived
//! data and can be rebuilt. The crate has no `unsafe`.

mod builder;
mod check;
mod edit;
mod heads;
mod id_table;
mod leaf;
mod mend;
mod node;
mod order;
mod pool;
mod records;
mod score;
mod search;
mod tree;

pub use builder::{Builder, Duplicate};
pub use order::Order;
pub use score::{Entry, Row, Score, Tie};
