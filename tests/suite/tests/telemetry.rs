//! What the real process tells about its work while it works: spans and log lines.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "telemetry/causes.rs"]
mod causes;
#[path = "telemetry/logs.rs"]
mod logs;
#[path = "telemetry/spans.rs"]
mod spans;
#[path = "telemetry/stage.rs"]
mod stage;
