//! The ledger's lane on real stores: the embedded one, MariaDB, MySQL.

mod applications;
mod barrier;
mod caps;
mod contests;
mod crowd;
mod ends;
mod erasing;
mod events;
mod histories;
mod holds;
mod lost;
mod moves;
mod names;
mod owed;
mod payments;
mod prizes;
mod reversals;
mod review;
mod series;
mod signing_in;
mod story;
mod verify;
mod verify_contests;
mod verify_periods;
mod verify_scores;
mod world;
