//! Tests of the whole controller on a simulated API server and cloud.

mod drift;
mod dry_run;
mod fan_out;
mod handover;
mod scale;
mod stage;
mod steps;
mod together;
