//! The in-memory order of one board: a counted B+tree over scores and an id table beside it.
//!
//! Every player of a board has one entry, and entries stand in the order (score, tie, player id) with the
//! *smaller* score first: the caller turns "higher is better" around before it comes here. The crate answers
//! three kinds of question: what does this player have and at which place (`get`, `ordinal`), how many stand
//! before this score (`count_*`, `lower_bound`), and which entries have these positions (`at`, `walk`).
//!
//! What costs time on a large board is waiting for memory, one wait after the other. So the shape is chosen
//! by what has to be known before the next wait can begin:
//!
//! - The id table (`id_table`) answers with one cache line: the player's record, to compare the id, and the
//!   leaf that holds the entry. Both are asked for at once.
//! - A leaf is one block of 1 KiB under a number (`leaf`), head and columns together, packed to the bytes that
//!   its own range needs.
//! - Leaves and nodes know their place in their parent, and nodes keep sums of counts (`nodes`): a rank goes
//!   bottom-up, reads one number per level and compares no key at all. What ranks and descents read of nodes
//!   stands apart from the rest and stays in the caches.
//! - A batch asks for what several players need before it begins; see [`RankingIndex::warm`].
//! - Ids live in an arena of fixed strides (`records`), so that no length, pointer or padding is stored.
//!
//! Not here: names of boards, rules, clocks, I/O, locks. A broken invariant panics; the order is derived
//! data and can be rebuilt. The only `unsafe` is a prefetch (`search`).

mod builder;
mod check;
mod edit;
mod heads;
mod id_table;
mod leaf;
mod mend;
mod nodes;
mod pool;
mod ranking_index;
mod records;
mod score;
mod search;
mod tree;

pub use builder::{Builder, Duplicate};
pub use ranking_index::RankingIndex;
pub use score::{Entry, EntryRef, Score, Tie};
pub use search::GROUP;
