//! The ranking index of one board in memory: a counted B+tree over scores and an id table beside it.
//!
//! Every player of a board has one entry. Entries are ordered by score, tie and player id, the *smaller*
//! score first: the caller inverts "higher is better" before it calls. There are three kinds of query. `get`
//! and `ordinal` return the entry and the position of a player. `count_*` and `lower_bound` count the entries
//! before a score. `at` and `range` return the entries at some positions.
//!
//! What costs time on a large board is waiting for memory, one wait after the other. So the design follows
//! from what must be known before the next wait can begin:
//!
//! - The id table (`id_table`) answers with one cache line: the player's record, to compare the id, and the
//!   leaf of the entry. Both are prefetched at once.
//! - A leaf is a numbered block of 1 KiB (`leaf`), header and columns together, packed to the bytes that its
//!   own range needs.
//! - Leaves and nodes know their index in their parent, and nodes keep sums of counts (`nodes`). So a rank
//!   goes bottom-up, reads one number per level and compares no key. What ranks and descents read of nodes is
//!   apart from the rest and stays in the caches.
//! - A batch prefetches what several players need before it begins; see [`RankingIndex::warm`].
//! - Ids live in an arena of fixed strides (`records`), so that no length, pointer or padding is stored.
//!
//! Not here: names of boards, rules, clocks, I/O, locks. A broken invariant panics; the index is derived data
//! and can be rebuilt. The only `unsafe` is a prefetch (`search`).

mod builder;
mod check;
mod edit;
mod heads;
mod id_table;
mod leaf;
mod nodes;
mod pool;
mod ranking_index;
mod rebalance;
mod records;
mod score;
mod search;
mod tree;

pub use builder::{Builder, Duplicate};
pub use ranking_index::RankingIndex;
pub use score::{Entry, EntryRef, Score, Tie};
pub use search::GROUP;
