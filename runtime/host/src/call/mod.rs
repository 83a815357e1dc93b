//! One call of a provider: slots, span, deadlines, metrics, fault.
//!
//! Two clocks, because each is blind where the other sees: the epoch stops a guest that computes and never waits, the
//! timeout one that waits for something and so executes nothing the epoch could interrupt.

pub(crate) mod answer;
pub(crate) mod clock;
mod cpu;
pub(crate) mod fault;
pub(crate) mod guest_log;
pub(crate) mod guest_memory;
mod headers;
pub(crate) mod id;
pub(crate) mod instance;
pub(crate) mod limiter;
pub(crate) mod walk;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cloudwit_model::{CloudError, Failure, FaultKind, ProviderFault, VolumeSecrets};
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};
use tracing::{Instrument as _, Span};
use wasmtime::{Engine, Store};

use crate::call::answer::limits;
use crate::call::answer::{Screen, shortened};
use crate::call::cpu::CpuMeter;
use crate::call::guest_log::GuestLog;
use crate::call::instance::{CallState, Env, Subjects};
use crate::call::limiter::PeakMemory;
use crate::contract::adapter::Listed;
use crate::contract::adapter::{Adapter, Reply};
use crate::egress::hooks::EgressHooks;
use crate::metrics::{ItemKind, Metrics, Operation, Outcome, Spent};

/// What all providers of a host share.
pub(crate) struct Shared {
    pub engine: Engine,
    /// One permit for each instance of the pool: wasmtime answers an error when it is full, and does not wait.
    pub pool: Arc<Semaphore>,
    pub metrics: Metrics,
}

/// Makes the calls of one provider.
pub(crate) struct Caller {
    shared: Arc<Shared>,
    env: Arc<Env>,
    slots: Arc<Semaphore>,
    /// The operator's name for the provider; the metrics' label.
    name: String,
    /// What the provider is, once it has described itself.
    described: OnceLock<Described>,
    last_fault: Mutex<Option<LastFault>>,
}

/// What a provider is; for faults and spans.
struct Described {
    name: String,
    version: String,
    /// The beginning of the component's digest, enough to distinguish builds.
    digest: String,
}

/// So many characters of a digest are shown in spans.
const SHORT_DIGEST: usize = 12;

/// The last time a provider misbehaved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastFault {
    /// When.
    pub at: Timestamp,
    /// What it did, with its last lines of output.
    pub fault: ProviderFault,
}

impl Caller {
    pub fn new(shared: Arc<Shared>, env: Arc<Env>, name: String) -> Self {
        let slots = usize::try_from(env.limits.concurrency).unwrap_or(Semaphore::MAX_PERMITS);
        Self {
            shared,
            env,
            slots: Arc::new(Semaphore::new(slots)),
            name,
            described: OnceLock::new(),
            last_fault: Mutex::default(),
        }
    }

    /// What all its calls share.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The last call in which the provider misbehaved.
    pub fn last_fault(&self) -> Option<LastFault> {
        self.last_fault.lock().clone()
    }

    fn remember(&self, fault: &ProviderFault) {
        let (at, fault) = (Timestamp::now(), fault.clone());
        *self.last_fault.lock() = Some(LastFault { at, fault });
    }

    /// What texts of this provider pass through.
    pub fn screen(&self) -> Screen<'_> {
        Screen(&self.env.secrets.redactor)
    }

    /// From now on faults and spans say so.
    pub fn described_as(&self, name: &str, version: &str, digest: &str) {
        self.described.get_or_init(|| Described {
            name: name.into(),
            version: version.into(),
            digest: digest.chars().take(SHORT_DIGEST).collect(),
        });
    }

    /// A fault of this provider.
    pub fn fault(&self, kind: FaultKind, message: String, output: String) -> ProviderFault {
        let provider = match self.described.get() {
            Some(Described { name, version, .. }) => format!("{name} {version}"),
            None => self.name.clone(),
        };
        ProviderFault {
            provider,
            kind,
            message,
            output,
        }
    }

    /// Waits for an instance, at most the wall-clock limit, and prepares the call.
    pub async fn begin(&self, operation: Operation, subjects: Subjects) -> Result<Session<'_>, ProviderFault> {
        self.begin_with(operation, subjects, &VolumeSecrets::default()).await
    }

    /// The same for a call that belongs to a request about volumes with these secrets.
    pub async fn begin_with(
        &self,
        operation: Operation,
        subjects: Subjects,
        volume_secrets: &VolumeSecrets,
    ) -> Result<Session<'_>, ProviderFault> {
        let wall_time = self.env.limits.wall_time;
        let span = self.span(operation);
        let Ok(slots) = timeout(wall_time, self.slots()).await else {
            span.record("result", "fault");
            self.shared.metrics.call_refused(&self.name, operation, FaultKind::Host);
            let text = format!(
                "no instance was free for {wall_time:?} ({} calls at a time by limits.concurrency)",
                self.env.limits.concurrency
            );
            let fault = self.fault(FaultKind::Host, text, String::new());
            self.remember(&fault);
            return Err(fault);
        };
        let secrets = self.env.secrets.with_volume_secrets(volume_secrets);
        let (cpu, peak, log) = (
            CpuMeter::default(),
            PeakMemory::default(),
            GuestLog::new(self.env.limits.output_bytes, Arc::clone(&secrets.redactor)),
        );
        let latest = Instant::now() + turn_limit(wall_time);
        let hooks = self.env.egress.hooks(latest, &secrets);
        let store = instance::store(
            &self.shared.engine,
            &self.env,
            subjects,
            hooks.clone(),
            &log,
            &cpu,
            &peak,
        );
        span.record("id", tracing::field::display(store.data().id));
        self.shared.metrics.instance_begins();
        let call = Call {
            caller: self,
            operation,
            span,
            began: Instant::now(),
            cpu,
            peak,
            log,
            hooks,
            outcome: None,
            _slots: slots,
        };
        Ok(Session { store, call })
    }

    /// The span of a call, from its wait for an instance to its end. What it says is listed in docs/reference/tracing.md.
    fn span(&self, operation: Operation) -> Span {
        let described = self.described.get();
        tracing::info_span!(
            "provider_call",
            provider = self.name,
            version = described.map(|described| described.version.as_str()),
            digest = described.map(|described| described.digest.as_str()),
            operation = operation.as_str(),
            id = tracing::field::Empty,
            result = tracing::field::Empty,
        )
    }

    /// A call that is about no object and has no failure in the contract.
    pub async fn ask<T>(
        &self,
        operation: Operation,
        adapter: &dyn Adapter,
        start: impl for<'a> FnOnce(&'a dyn Adapter, &'a mut Store<CallState>) -> Reply<'a, T>,
    ) -> Result<T, ProviderFault> {
        let mut session = self.begin(operation, Subjects::default()).await?;
        let reply = start(adapter, &mut session.store);
        match session.call.run(reply).await {
            Ok(answer) => Ok(answer),
            Err(CloudError::Fault(fault)) => Err(fault),
            Err(other) => Err(self.fault(FaultKind::BadAnswer, other.to_string(), String::new())),
        }
    }

    /// First the provider's own slot, so that calls which wait behind their own provider take no room from others.
    async fn slots(&self) -> [OwnedSemaphorePermit; 2] {
        const OPEN: &str = "the semaphores are never closed";
        let own = Arc::clone(&self.slots).acquire_owned().await.expect(OPEN);
        let pool = Arc::clone(&self.shared.pool).acquire_owned().await.expect(OPEN);
        [own, pool]
    }
}

/// A request may wait this long for its turn, which leaves a little of the call's time to the guest, to make something of the answer.
fn turn_limit(wall_time: Duration) -> Duration {
    wall_time - (wall_time / 10).min(Duration::from_secs(1))
}

/// A call and the store it runs in.
pub(crate) struct Session<'a> {
    // The order matters: the store gives its instance back to the pool before the call gives its slot back.
    pub store: Store<CallState>,
    pub call: Call<'a>,
}

/// A call. Dropping it ends it: what is not finished then counts as cancelled.
pub(crate) struct Call<'a> {
    caller: &'a Caller,
    operation: Operation,
    span: Span,
    began: Instant,
    cpu: CpuMeter,
    peak: PeakMemory,
    log: GuestLog,
    hooks: EgressHooks,
    outcome: Option<Outcome>,
    _slots: [OwnedSemaphorePermit; 2],
}

impl Call<'_> {
    /// Runs the call under both deadlines.
    pub async fn run<T>(&mut self, reply: Reply<'_, T>) -> Result<T, CloudError> {
        let limits = &self.caller.env.limits;
        let measured = self.cpu.measure(reply).instrument(self.span.clone());
        let (kind, message) = match timeout(limits.wall_time, measured).await {
            Ok(Ok(answer)) => {
                self.span.in_scope(|| self.log.end_lines());
                return self.end(answer.map_err(|failure| self.for_people(failure).into()));
            }
            Ok(Err(error)) => fault::explain(&error, limits),
            Err(_) => (
                FaultKind::Deadline,
                format!("it was not done after {:?} (limits.wallTime)", limits.wall_time),
            ),
        };
        let output = self.span.in_scope(|| self.log.finish());
        let message = Screen(&self.hooks.secrets().redactor).message(&message);
        let fault = self.caller.fault(kind, message, output);
        self.caller.remember(&fault);
        self.span.in_scope(|| tracing::warn!(kind = kind.label(), "{fault}"));
        self.end(Err(fault.into()))
    }

    /// The failure as it is reported: when a request was refused, with the missing grant, since it reaches the Event on the
    /// object and the log does not.
    fn for_people(&self, mut failure: Failure) -> Failure {
        if let Some(refusal) = self.hooks.last_refusal() {
            let refusal = shortened(&refusal.to_string(), limits::MESSAGE);
            failure.message_mut().push_str(&format!(" ({refusal})"));
        }
        failure
    }

    /// Counts items of the answer that are not used, and logs the first problem.
    fn left_out(&self, kind: ItemKind, items: usize, first_problem: &str) {
        if items > 0 {
            let Caller { name, shared, .. } = self.caller;
            shared.metrics.invalid_items(name, kind, items);
            let kind = kind.label();
            self.span
                .in_scope(|| tracing::warn!(kind, items, first_problem, "invalid items in the answer; ignored"));
        }
    }

    /// The items that are used; counts the others as [`Self::left_out`] does.
    pub fn valid_items<T>(&self, kind: ItemKind, listed: Listed<T>) -> Vec<T> {
        self.left_out(
            kind,
            listed.left_out,
            listed.first_problem.as_deref().unwrap_or_default(),
        );
        listed.items
    }

    /// The same for items that have become failures.
    pub fn count_invalid<T>(&self, kind: ItemKind, answers: &[Result<T, Failure>]) {
        let mut invalid = answers.iter().filter_map(|answer| match answer {
            Err(Failure::InvalidResponse(problem)) => Some(problem),
            _ => None,
        });
        if let Some(first) = invalid.next() {
            self.left_out(kind, 1 + invalid.count(), first);
        }
    }

    fn end<T>(&mut self, result: Result<T, CloudError>) -> Result<T, CloudError> {
        self.outcome = Some(Outcome::of(&result));
        result
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let Caller { name, shared, .. } = self.caller;
        self.span
            .record("result", self.outcome.map_or("cancelled", Outcome::label));
        let spent = Spent {
            time: self.began.elapsed(),
            cpu: self.cpu.spent(),
            memory: self.peak.bytes(),
        };
        shared.metrics.call_ends(name, self.operation, self.outcome, spent);
    }
}

/// How long it took to get a provider, and what it is made of; for logs and benchmarks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadFacts {
    /// Size of the component, in bytes.
    pub component_bytes: usize,
    /// Whether its code was found in the cache.
    pub from_cache: bool,
    /// Time to read the file and get its code, compiled or from the cache.
    pub code_time: Duration,
    /// Time of the whole load, with linking, the check of its types and `info.describe`.
    pub load_time: Duration,
}
