//! The benchmark behind `cargo xtask bench`: what is measured, how often, and how it is told.
//!
//! ```text
//!   plan ---> node_wave, services, ... ---> Section { Measure { samples of ours, of the peer, goal } }
//!                                             |
//!                                           ledger ---> publish ---> report (terminal, Markdown), report_json, bar_chart, line_chart (SVG)
//!                                                         |
//!                                                       statistics
//! ```

pub mod bar_chart;
pub mod binary;
pub mod calls;
pub mod cloud;
pub mod cold_start;
pub mod contestant;
pub mod family;
pub mod fan_out;
pub mod growth;
pub mod growth_summary;
pub mod growth_work;
pub mod image_layer;
pub mod ledger;
pub mod line_chart;
pub mod machine;
pub mod measure;
pub mod meter;
pub mod mount;
pub mod node_wave;
pub mod observer;
pub mod pairs;
pub mod passing;
pub mod plan;
pub mod publish;
pub mod refreshes;
pub mod report;
pub mod report_json;
pub mod requests;
pub mod run_folder;
pub mod scene;
pub mod services;
pub mod setting;
pub mod sizes;
pub mod statistics;
pub mod steady;
pub mod svg;
pub mod swap;
pub mod works;
