//! The benchmark behind `cargo xtask bench`: what is measured, how often, and how it is told.
//!
//! ```text
//!   node_wave, services, ... ---> Section { Measure { samples of ours, of the peer, goal } }
//!                                   |
//!                  statistics  <----+---> report (terminal, Markdown), report_json, chart (SVG)
//! ```

pub mod chart;
pub mod machine;
pub mod measure;
pub mod report;
pub mod report_json;
pub mod statistics;
