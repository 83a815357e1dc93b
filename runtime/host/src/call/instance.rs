//! Store of one call: fresh instance, limits, and the state that host functions use.
//!
//! Nothing in a guest's memory survives its call, so calls cannot leak into each other, a trap costs one call, and
//! dropping a call cancels it. What outlives calls is in [`Env`], which all calls of one provider share.

use std::sync::Arc;

use cloudwit_model::{ClusterView, EventSink, NodeRef, Service, Subject, Target, TargetUpdate};
use tokio::time::Instant;
use wasmtime::component::ResourceTable;
use wasmtime::{Engine, Store, UpdateDeadline};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::call::clock::Behind;
use crate::call::cpu::CpuMeter;
use crate::call::guest_log::{GuestLog, Stream};
use crate::call::guest_memory::MemoryShare;
use crate::call::id::CallId;
use crate::call::limiter::{HEADER_BYTES, Limiter, PeakMemory};
use crate::egress::Egress;
use crate::egress::hooks::EgressHooks;
use crate::grants::Grants;
use crate::limits::Limits;
use crate::secrets::Secrets;
use crate::state::StateStore;

/// Handles to host resources (requests, headers, streams, keys, locks) one call may have at a time. Guests of languages that collect garbage keep those
/// of many requests.
const HANDLES: usize = 2000;

/// Random bytes a guest may request at once.
const RANDOM_BYTES: u64 = 64 << 10;

/// Where a provider's requests to the cluster go.
#[derive(Clone)]
pub struct Outside {
    /// Takes Events.
    pub events: Arc<dyn EventSink>,
    /// Answers about Nodes and Services.
    pub cluster: Arc<dyn ClusterView>,
}

/// What all calls of one provider share.
pub(crate) struct Env {
    pub config_text: String,
    pub values: Vec<(String, String)>,
    pub cluster_name: String,
    pub cluster_cidrs: Vec<String>,
    pub grants: Grants,
    pub limits: Limits,
    pub memory: MemoryShare,
    pub secrets: Secrets,
    pub state: Arc<StateStore>,
    pub egress: Arc<Egress>,
    pub outside: Outside,
    /// Stands for everything above that the operator set, secrets included; see `swap::digest`.
    pub settings_digest: [u8; 32],
    /// Whether the process changes nothing.
    pub dry_run: bool,
    /// The time for guests.
    pub clock: Behind,
}

/// The objects a call is about: the only ones it may send Events for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Subjects {
    nodes: Vec<String>,
    service: Option<Subject>,
}

impl Subjects {
    /// A call about Nodes.
    pub fn nodes<'a>(nodes: impl IntoIterator<Item = &'a NodeRef>) -> Self {
        Self {
            nodes: nodes.into_iter().map(|node| node.name.clone()).collect(),
            service: None,
        }
    }

    /// A call about a Service and the Nodes behind it.
    pub fn service(service: &Service, targets: &[Target]) -> Self {
        let Service {
            namespace, name, uid, ..
        } = service;
        let subject = Subject::Service {
            namespace: namespace.clone(),
            name: name.clone(),
            uid: uid.clone(),
        };
        Self {
            service: Some(subject),
            ..Self::nodes(targets.iter().map(|target| &target.node))
        }
    }

    /// A call about the targets of many Services: an Event has no way to say which, so it may be sent where there is only one.
    pub fn services(updates: &[TargetUpdate<'_>], targets: &[Target]) -> Self {
        match updates {
            [only] => Self::service(only.service, targets),
            _ => Self::nodes(targets.iter().map(|target| &target.node)),
        }
    }

    /// The Service of this call.
    pub fn of_service(&self) -> Option<Subject> {
        self.service.clone()
    }

    /// The Node of this name, if the call is about it.
    pub fn of_node(&self, name: &str) -> Option<Subject> {
        self.nodes
            .iter()
            .any(|node| node == name)
            .then(|| Subject::Node(name.into()))
    }
}

/// What one call has for itself.
pub(crate) struct CallState {
    pub env: Arc<Env>,
    pub id: CallId,
    /// When the call is cut off.
    pub deadline: Instant,
    pub log: GuestLog,
    pub subjects: Subjects,
    /// Events that may still be sent.
    pub events_left: u32,
    pub table: ResourceTable,
    wasi: WasiCtx,
    http: WasiHttpCtx,
    /// The way out, and the secrets and placeholders of this call.
    pub hooks: EgressHooks,
    limiter: Limiter,
}

impl WasiView for CallState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

impl WasiHttpView for CallState {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        if self.limiter.count_headers(&mut self.table).is_err() {
            self.hooks.deny_headers();
        }
        WasiHttpCtxView {
            ctx: &mut self.http,
            table: &mut self.table,
            hooks: &mut self.hooks,
        }
    }
}

/// A store for one call, with all limits in force.
pub(crate) fn store(
    engine: &Engine,
    env: &Arc<Env>,
    subjects: Subjects,
    hooks: EgressHooks,
    log: &GuestLog,
    cpu: &CpuMeter,
    peak: &PeakMemory,
) -> Store<CallState> {
    let limits = &env.limits;
    let mut table = ResourceTable::new();
    table.set_max_capacity(HANDLES);
    let mut http = WasiHttpCtx::new();
    http.set_field_size_limit(HEADER_BYTES);
    let state = CallState {
        env: Arc::clone(env),
        id: CallId::new(),
        deadline: Instant::now() + limits.wall_time,
        log: log.clone(),
        subjects,
        events_left: limits.events,
        table,
        wasi: wasi(log, env.clock),
        http,
        hooks,
        limiter: Limiter::new(limits.memory_bytes, env.memory.call(), peak.clone()),
    };
    let mut store = Store::new(engine, state);
    store.limiter_async(|state| &mut state.limiter);
    store.set_hostcall_fuel(usize::try_from(limits.answer_bytes).unwrap_or(usize::MAX));
    store.set_max_component_handles(HANDLES);
    store.set_epoch_deadline(1);
    let (cpu, cpu_time) = (cpu.clone(), limits.cpu_time);
    store.epoch_deadline_callback(move |store| {
        store.data().limiter.check()?;
        // Yielding ends the stretch that the meter measures, so what it says is at most one tick old.
        Ok(if cpu.spent() < cpu_time {
            UpdateDeadline::Yield(1)
        } else {
            UpdateDeadline::Interrupt
        })
    });
    store
}

/// What standard libraries expect, and nothing in it: no arguments, no environment, no files, no sockets.
fn wasi(log: &GuestLog, clock: Behind) -> WasiCtx {
    WasiCtx::builder()
        .wall_clock(clock)
        .stdout(log.stream(Stream::Stdout))
        .stderr(log.stream(Stream::Stderr))
        .max_random_size(RANDOM_BYTES)
        .allow_tcp(false)
        .allow_udp(false)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_only_for_the_objects_of_the_call() {
        let node = |name: &str| NodeRef {
            name: name.into(),
            ..NodeRef::default()
        };
        let service = Service {
            namespace: "default".into(),
            name: "web".into(),
            uid: "u".into(),
            ..Service::default()
        };
        let subjects = Subjects::service(
            &service,
            &[Target {
                node: node("a"),
                ready: true,
            }],
        );
        assert!(matches!(subjects.of_service(), Some(Subject::Service { name, .. }) if name == "web"));
        assert_eq!(subjects.of_node("a"), Some(Subject::Node("a".into())));
        assert_eq!(subjects.of_node("b"), None);
        assert_eq!(Subjects::nodes([&node("b")]).of_service(), None);
    }
}
