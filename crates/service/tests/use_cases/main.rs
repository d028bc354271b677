//! The use cases of the service on real stores, with clocks and disks of the tests' own.
//!
//! One binary, because each links the service and its stores again. The simulation is apart: it plants faults for its whole process.
//! Not here: requests over a network, and processes that die (`tally/tests`).

mod clock;
mod closed_rankings;
mod contention;
mod damaged;
mod disk_world;
mod fill;
mod followers;
mod intercepted;
mod lost_commit;
mod periods;
mod revisions;
mod servers;
mod several_databases;
mod several_lanes;
mod soak_periods;
mod wallets;
mod world;
mod wrapped;
