//! Logs, traces and metrics.

mod lines;
pub mod logs;
pub mod metric_help;
pub mod metric_text;
pub mod metrics_page;
pub mod process_metrics;
pub mod shape;
pub mod trace_export;
pub mod trace_spans;
