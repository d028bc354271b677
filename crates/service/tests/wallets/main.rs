//! The ledger's lane on real stores: the embedded one, MariaDB, MySQL.

mod contests;
mod crowd;
mod holds;
mod lost;
mod moves;
mod payments;
mod verify;
mod world;
