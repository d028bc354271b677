//! A lane as other crates link it: batch by batch, on its own thread, and with replies on another thread.
//!
//! Not here: the interleavings, which the unit tests search.

mod by_hand;
mod elsewhere;
mod threads;
mod timings;
