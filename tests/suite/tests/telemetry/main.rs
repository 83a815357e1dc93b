//! What the real process tells about its work while it works: spans and log lines.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod causes;
mod logs;
mod spans;
mod stage;
