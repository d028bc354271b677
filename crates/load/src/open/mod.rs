//! Open-loop load: arrivals by a schedule, independent of the server.
//!
//! A closed loop sends a slow server fewer requests, which hides that it is slow. Here arrivals are due by the clock
//! ([`Schedule`], `pacer`), and each is measured from its due time. An arrival that finds no connection in time is
//! counted as dropped. A [`Journey`] is what an arrival does, and [`run`] does it. The [`OpenOutcome`] has the figures
//! in total and per second, and a [`Threshold`] checks it.
//!
//! Not here: showing the figures.

mod drive;
mod journey;
mod link;
mod outcome;
mod pacer;
mod schedule;
mod stolen;
mod threshold;

pub use drive::{OpenLimits, OpenProgress, run};
pub use journey::{Journey, Protocol, Scene};
pub use outcome::{CallFigures, OpenOutcome, Second};
pub use schedule::{LoadStage, Schedule};
pub use threshold::{Threshold, ThresholdResult};
