//! An open loop: arrivals by a schedule, whatever the server does.
//!
//! A closed loop asks a slow server less, and so does not show that it is slow. Here arrivals are due by
//! the clock ([`Schedule`], `pacer`), each is measured from when it was due, and what finds no connection in time is
//! counted as dropped. A [`Journey`] is what an arrival does; [`run`] does it; the [`Outcome`] has every figure in
//! all and by the second, and a [`Threshold`] judges it.
//!
//! Not here: showing any of it.

mod drive;
mod journey;
mod link;
mod outcome;
mod pacer;
mod schedule;
mod stolen;
mod threshold;

pub use drive::{Bounds, Progress, run};
pub use journey::{Journey, Protocol, Scene};
pub use outcome::{Call, Outcome, Second};
pub use schedule::{Schedule, Stage};
pub use threshold::{Judged, Threshold};
