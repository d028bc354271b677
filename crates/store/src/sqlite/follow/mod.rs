//! A copy that follows a store: a base, and every batch of the journal after it, so that any instant can be restored.
//!
//! Another process follows, and reads only files: it needs no route, and a server that is not followed does nothing for it.
//! A server that is followed deletes a journal file whose rows are in the tables, instead of emptying it. The process holds
//! the files open, so it has time to read them.
//!
//! - `sources`: the journal of the store; `follower`: the process; `archive`: files of the store beside its tables
//! - `folder`: the files of the copy; `frames`: their bytes
//! - `restore`: a store of an instant
//!
//! Not here: one copy of a moment (`backup`), and the secret, which is not in the store.

mod archive;
mod folder;
mod follower;
mod frames;
mod restore;
mod sources;

pub use follower::{FollowEvent, FollowOptions, FollowStep, Follower};
pub use restore::{Restorable, RestorePlan};
pub(super) use sources::Followed;
pub use sources::followed_marker;
