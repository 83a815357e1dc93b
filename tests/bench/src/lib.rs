//! The benchmark behind `cargo xtask bench`: what is measured, how often, and how it is told.
//!
//! ```text
//!   plan ---> works, each in a scene ---> Section { Measure { samples of ours, of the peer, goal } }
//!                                           |
//!                                         report: ledger ---> publish ---> terminal, Markdown, json, bar_chart, line_chart (SVG)
//!                                                               |
//!                                                             measure/statistics
//! ```

pub mod image_layer;
pub mod machine;
pub mod measure;
pub mod plan;
pub mod report;
pub mod scene;
pub mod works;
