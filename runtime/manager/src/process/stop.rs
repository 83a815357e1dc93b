//! SIGTERM and Ctrl-C, handled from the first moment of the process.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that stop a process. What comes before it is waited for is kept.
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Installs the handlers. Needs a runtime, which has to run for as long as signals are waited for.
    ///
    /// # Errors
    ///
    /// When the system refuses a handler.
    pub fn install() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits until the process is stopped; answers the number of the signal.
    pub async fn requested(&mut self) -> u8 {
        let kind = tokio::select! {
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.interrupt.recv() => SignalKind::interrupt(),
        };
        u8::try_from(kind.as_raw_value()).unwrap_or_default()
    }
}
