//! Days of the four controllers in virtual time, with faults, deaths and changes of the leader, all drawn from one seed.
//!
//! ```text
//!   day: events of users, machines and operators ----> Store (API server) <--requests, watches-- Cluster of process 1, 2, ...
//!        windows of faults, deaths, pauses       ----> CloudState         <--impl Cloud---------/
//!                                                          |
//!   each write and call is judged when it takes effect (`judge`), the whole when faults are over (`truth`, `calls`)
//! ```
//!
//! One thread, tokio's paused clock, one seed: a seed repeats step by step. The promises are in [`Promise`]; how long a repair may take,
//! and which options differ from the defaults, is in `docs/reference/simulation.md`.

mod api;
mod chance;
mod cloud;
mod day;
mod faults;
mod happenings;
mod judge;
mod kubelet;
mod lease;
mod process;
mod promise;
mod sabotage;
mod world;

pub use day::{Report, day};
pub use promise::{Promise, Violation};
pub use sabotage::Sabotage;
