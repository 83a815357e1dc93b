//! Output of one call: log lines, standard output and standard error of the guest.
//!
//! Lines go to `tracing` (target `guest`; provider, version and operation come from the span of the call) until the
//! call's budget is spent. The last 4 KiB are kept in any case: they hold the text of a panic and become part of the
//! `ProviderFault`.
//!
//! What a line costs does not depend on how long the guest makes it: first its level is checked, then it is cut to 4 KiB, and secrets are looked for in
//! what is left, only if the line is printed or when the last lines are read.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::io::AsyncWrite;
use tracing::Level;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use crate::call::answer::limits::{LOG_FIELDS, LOG_LINE as LINE};
use crate::call::answer::{Screen, shortened};
use crate::secrets::redact::Redactor;

/// What is kept for a fault, in bytes.
pub(super) const TAIL: usize = 4 << 10;

/// What a line costs of the budget beside its text, so that empty lines are bounded as well.
const LINE_COST: u64 = 64;

/// One line to `tracing`, whose macros need the level as a constant.
macro_rules! event_at {
    ($level:expr, $($argument:tt)*) => {
        match $level {
            Level::ERROR => tracing::error!(target: "guest", $($argument)*),
            Level::WARN => tracing::warn!(target: "guest", $($argument)*),
            Level::INFO => tracing::info!(target: "guest", $($argument)*),
            Level::DEBUG => tracing::debug!(target: "guest", $($argument)*),
            Level::TRACE => tracing::trace!(target: "guest", $($argument)*),
        }
    };
}

/// Whether a line of this level would be seen.
pub(crate) fn enabled(level: Level) -> bool {
    match level {
        Level::ERROR => tracing::enabled!(target: "guest", Level::ERROR),
        Level::WARN => tracing::enabled!(target: "guest", Level::WARN),
        Level::INFO => tracing::enabled!(target: "guest", Level::INFO),
        Level::DEBUG => tracing::enabled!(target: "guest", Level::DEBUG),
        Level::TRACE => tracing::enabled!(target: "guest", Level::TRACE),
    }
}

/// The output of one call. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct GuestLog(Arc<Mutex<Output>>);

#[derive(Debug)]
struct Output {
    /// Bytes that may still go to `tracing`.
    budget: u64,
    silenced: bool,
    /// The last lines, secrets and all.
    tail: VecDeque<GuestLine>,
    tail_bytes: usize,
    /// Text of each standard stream that has no line end yet.
    unfinished: [Vec<u8>; 2],
    redactor: Arc<Redactor>,
}

/// A line, cut, as the guest wrote it.
#[derive(Default)]
pub(super) struct GuestLine {
    message: String,
    pub(super) fields: Vec<(String, String)>,
}

impl std::fmt::Debug for GuestLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GuestLine").finish_non_exhaustive()
    }
}

impl GuestLine {
    /// Of all fields together as much is kept as of the message.
    pub(super) fn new(message: &str, fields: &[(String, String)]) -> Self {
        let mut room = LINE;
        let mut kept = Vec::new();
        for (key, value) in fields.iter().take(LOG_FIELDS) {
            let (key, value) = (shortened(key, room), shortened(value, room.saturating_sub(key.len())));
            room = room.saturating_sub(key.len() + value.len());
            kept.push((key, value));
            if room == 0 {
                break;
            }
        }
        let message = shortened(message, LINE);
        Self { message, fields: kept }
    }

    pub(super) fn bytes(&self) -> usize {
        let fields = self.fields.iter().map(|(key, value)| key.len() + value.len() + 2);
        self.message.len() + fields.sum::<usize>() + 1
    }

    /// Message and fields for people, without secrets.
    pub(super) fn printable(&self, screen: Screen<'_>) -> (String, String) {
        let clean = |text: &str| screen.0.redact_of_guest(text.to_owned());
        // Before values are quoted: what is escaped does not look like the secret any more.
        let fields = self
            .fields
            .iter()
            .map(|(key, value)| format!("{}={:?}", clean(key), clean(value)));
        let fields = fields.collect::<Vec<_>>().join(" ");
        (printable(&clean(&self.message)), printable(&fields))
    }
}

/// A standard stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

impl GuestLog {
    /// Nothing written yet; `budget` bytes may go to `tracing`, and secrets go nowhere.
    pub fn new(budget: u64, redactor: Arc<Redactor>) -> Self {
        Self(Arc::new(Mutex::new(Output {
            budget,
            silenced: false,
            tail: VecDeque::new(),
            tail_bytes: 0,
            unfinished: Default::default(),
            redactor,
        })))
    }

    fn with<T>(&self, change: impl FnOnce(&mut Output) -> T) -> T {
        change(&mut self.0.lock())
    }

    /// A line of the guest's structured log.
    pub fn log(&self, level: Level, message: &str, fields: &[(String, String)]) {
        self.with(|output| output.line(level, GuestLine::new(message, fields)));
    }

    /// What hides this provider's secrets.
    pub fn redactor(&self) -> Arc<Redactor> {
        self.with(|output| output.redactor.clone())
    }

    /// A piece of a standard stream.
    pub fn write(&self, stream: Stream, bytes: &[u8]) {
        self.with(|output| output.write(stream, bytes));
    }

    /// Ends the output of the call.
    pub fn end_lines(&self) {
        self.with(|output| {
            output.end_line(Stream::Stdout);
            output.end_line(Stream::Stderr);
        });
    }

    /// Ends the output of the call; answers its last lines.
    pub fn finish(&self) -> String {
        self.end_lines();
        self.with(|output| {
            let lines = output.tail.iter().map(|line| line.printable(Screen(&output.redactor)));
            let lines = lines.map(|(message, fields)| match fields.is_empty() {
                true => message,
                false => format!("{message} {fields}"),
            });
            lines.collect::<Vec<_>>().join("\n")
        })
    }

    /// The standard stream for WASI.
    pub fn stream(&self, stream: Stream) -> StandardStream {
        StandardStream {
            log: self.clone(),
            stream,
        }
    }
}

impl Output {
    fn write(&mut self, stream: Stream, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = piece.strip_suffix(b"\n").map_or((piece, false), |text| (text, true));
            let unfinished = &mut self.unfinished[stream as usize];
            let room = LINE.saturating_sub(unfinished.len());
            unfinished.extend_from_slice(&text[..text.len().min(room)]);
            if ends {
                self.end_line(stream);
            }
        }
    }

    fn end_line(&mut self, stream: Stream) {
        let line = std::mem::take(&mut self.unfinished[stream as usize]);
        // The hook of Rust's panics adds this to each; variables cannot be set for a guest.
        if !line.is_empty() && !line.starts_with(b"note: run with `RUST_BACKTRACE=1`") {
            self.line(Level::INFO, GuestLine::new(&String::from_utf8_lossy(&line), &[]));
        }
    }

    fn line(&mut self, level: Level, line: GuestLine) {
        if enabled(level) && !self.silenced {
            self.emit(level, &line);
        }
        self.tail_bytes += line.bytes();
        self.tail.push_back(line);
        while self.tail_bytes > TAIL && self.tail.len() > 1 {
            self.tail_bytes -= self.tail.pop_front().map_or(0, |line| line.bytes());
        }
    }

    fn emit(&mut self, level: Level, line: &GuestLine) {
        let (message, fields) = line.printable(Screen(&self.redactor));
        let cost = (message.len() + fields.len()) as u64 + LINE_COST;
        match self.budget.checked_sub(cost) {
            Some(left) => {
                self.budget = left;
                let fields = (!fields.is_empty()).then_some(fields);
                event_at!(level, fields, "{message}");
            }
            None => {
                self.silenced = true;
                tracing::warn!(target: "guest", "log limit reached; further lines of this call dropped");
            }
        }
    }
}

/// The text without what could pass for other lines or steer a terminal, and not too long.
fn printable(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(LINE));
    for character in text.chars() {
        if character.is_control() && character != '\t' {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
        if line.len() > LINE {
            line.truncate(line.floor_char_boundary(LINE));
            line.push('…');
            break;
        }
    }
    line
}

/// Standard output or error of a guest. Takes everything at once and never makes the guest wait.
pub(crate) struct StandardStream {
    log: GuestLog,
    stream: Stream,
}

impl StandardStream {
    fn again(&self) -> Self {
        Self {
            log: self.log.clone(),
            stream: self.stream,
        }
    }
}

impl IsTerminal for StandardStream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for StandardStream {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.again())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.again())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for StandardStream {
    async fn ready(&mut self) {}
}

impl OutputStream for StandardStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.log.write(self.stream, &bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(64 << 10)
    }
}

impl AsyncWrite for StandardStream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.log.write(self.stream, bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests;
