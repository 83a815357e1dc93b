//! CPU time of a call: what its thread spends while it polls the future of the call.
//!
//! A guest gives way to others at every tick of the epoch, so each stretch is short, and the sum so far decides at
//! the next tick whether the guest continues. Waiting for the cloud costs nothing, nor does another process that keeps
//! the machine busy.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// CPU time so far. Clones count together.
#[derive(Debug, Clone, Default)]
pub(crate) struct CpuMeter(Arc<AtomicU64>);

impl CpuMeter {
    /// What was spent in stretches that are over.
    pub fn spent(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }

    /// Counts what this future spends.
    pub fn measure<F: Future + Unpin>(&self, future: F) -> Measured<F> {
        Measured {
            future,
            meter: self.clone(),
        }
    }
}

/// A future that is measured.
pub(crate) struct Measured<F> {
    future: F,
    meter: CpuMeter,
}

impl<F: Future + Unpin> Future for Measured<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let before = thread_time();
        let answer = Pin::new(&mut self.future).poll(context);
        let spent = thread_time().saturating_sub(before);
        self.meter
            .0
            .fetch_add(u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        answer
    }
}

fn thread_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn work_counts_and_waiting_does_not() {
        let (idle, busy) = (CpuMeter::default(), CpuMeter::default());
        idle.measure(Box::pin(tokio::time::sleep(Duration::from_secs(3600))))
            .await;
        let work = Duration::from_millis(20);
        let work = async {
            let start = thread_time();
            while thread_time() - start < work {
                std::hint::spin_loop();
            }
        };
        busy.measure(Box::pin(work)).await;
        assert!(busy.spent() >= Duration::from_millis(20), "{:?}", busy.spent());
        assert!(idle.spent() < Duration::from_millis(20), "{:?}", idle.spent());
    }
}
