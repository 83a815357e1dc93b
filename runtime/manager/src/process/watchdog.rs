//! Watchdog: the control thread checks a heartbeat of the working thread.
//!
//! Leadership and `/livez` do not need the working thread, so without this a process that does nothing would keep its Lease for ever. A pause is
//! logged and counted; one beyond [`STALL_LIMIT`] fails `/livez`, upon which kubelet starts the process anew.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cloudwit_controllers::leadership::Clock;
use parking_lot::RwLock;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use tokio::time::sleep;

use crate::process::work_runtime::WorkRuntime;
use crate::serving::health::checks::{Check, State};

/// Between two heartbeats, and between two looks at them.
const BEAT: Duration = Duration::from_millis(500);

/// A pause that is logged and counted. A guest gives way every 10 ms; a machine without free CPU makes pauses of a second.
pub const STALL: Duration = Duration::from_secs(3);

/// A pause after which the process counts as dead. Ten times what is logged, and less than kubelet's patience with the chart's probes
/// (8 failures, 10 s apart) adds to it.
pub const STALL_LIMIT: Duration = Duration::from_secs(30);

/// The name of the check on `/livez`.
const CHECK: &str = "working-thread";

/// Watches the working thread; clones share what was seen.
#[derive(Clone)]
pub struct Watchdog(Arc<Heartbeats>);

struct Heartbeats {
    clock: Clock,
    /// Nanoseconds on the clock of the last heartbeat.
    beat: AtomicU64,
    stalls: Counter,
    /// What the working side's checks said last.
    checks: RwLock<Vec<Check>>,
}

impl fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watchdog").field(&self.pause()).finish()
    }
}

impl Watchdog {
    /// A watchdog that saw a heartbeat just now.
    pub fn new(clock: Clock, registry: &mut Registry) -> Self {
        let watchdog = Self(Arc::new(Heartbeats {
            beat: AtomicU64::new(nanos(clock())),
            clock,
            stalls: Counter::default(),
            checks: RwLock::default(),
        }));
        registry.register_collector(Box::new(watchdog.clone()));
        watchdog
    }

    /// Beats over there and looks over here, for as long as the process lives. Call it on the control runtime.
    pub fn start(&self, work: &WorkRuntime) {
        let beating = self.clone();
        drop(work.handle().spawn(async move {
            loop {
                beating.beat();
                sleep(BEAT).await;
            }
        }));
        let looking = self.clone();
        drop(tokio::spawn(async move {
            let mut stalled = false;
            loop {
                sleep(BEAT).await;
                stalled = looking.look(stalled);
            }
        }));
    }

    fn beat(&self) {
        self.0.beat.store(nanos((self.0.clock)()), Ordering::SeqCst);
    }

    /// Logs and counts a pause when it begins to be long, and logs its end; answers whether it lasts.
    fn look(&self, stalled: bool) -> bool {
        let pause = self.pause();
        let stalls = pause > STALL;
        if stalls && !stalled {
            self.0.stalls.inc();
            tracing::warn!(
                seconds = pause.as_secs(),
                "working thread stalled; nothing is reconciled"
            );
        } else if stalled && !stalls {
            tracing::info!("working thread recovered");
        }
        stalls
    }

    /// How long ago the last heartbeat was.
    pub fn pause(&self) -> Duration {
        let beat = Duration::from_nanos(self.0.beat.load(Ordering::SeqCst));
        (self.0.clock)().saturating_sub(beat)
    }

    /// Whether the working thread stands still.
    pub fn is_stalled(&self) -> bool {
        self.pause() > STALL
    }

    /// The check `working-thread`.
    pub fn check(&self) -> Check {
        let pause = self.pause();
        let text = || format!("no heartbeat for {} s", pause.as_secs());
        let state = match pause {
            long if long > STALL_LIMIT => State::Failed(text()),
            long if long > STALL => State::Warning(text()),
            _ => State::Healthy,
        };
        Check::live(CHECK, state)
    }

    /// Keeps what the working side's checks said.
    pub fn remember(&self, checks: &[Check]) {
        *self.0.checks.write() = checks.to_vec();
    }

    /// What they said last.
    pub fn remembered(&self) -> Vec<Check> {
        self.0.checks.read().clone()
    }
}

impl Collector for Watchdog {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let pause = self.pause();
        // Between two heartbeats there is no pause.
        let seconds = if pause > BEAT * 2 { pause.as_secs_f64() } else { 0.0 };
        let gauge = encoder.encode_descriptor(
            "cloudwit_working_thread_stalled_seconds",
            "Seconds for which the working thread has not run; 0 while it runs",
            None,
            MetricType::Gauge,
        )?;
        ConstGauge::new(seconds).encode(gauge)?;
        let counter = encoder.encode_descriptor(
            "cloudwit_working_thread_stalls",
            "Times that the working thread did not run for more than three seconds",
            None,
            MetricType::Counter,
        )?;
        ConstCounter::new(self.0.stalls.get()).encode(counter)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
