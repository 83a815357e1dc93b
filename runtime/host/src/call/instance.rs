//! One fresh instance for every call: its store, its limits, and what the host functions it calls need.
//!
//! Nothing in a guest's memory survives its call, so calls cannot leak into each other, a trap costs one call, and
//! dropping a call cancels it. What outlives calls is in [`Env`], which all calls of one provider share.

use std::sync::Arc;

use cloudwit_model::{ClusterView, EventSink, NodeRef, Service, Subject, Target};
use thiserror::Error;
use wasmtime::component::ResourceTable;
use wasmtime::{Engine, ResourceLimiterAsync, Store, UpdateDeadline};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::call::cpu::CpuMeter;
use crate::call::guest_log::{GuestLog, Stream};
use crate::call::guest_memory::{CallMemory, MemoryShare};
use crate::call::headers;
use crate::egress::{Egress, EgressHooks};
use crate::grants::Grants;
use crate::limits::Limits;
use crate::load::engine::TABLE_ELEMENTS;
use crate::secrets::Secrets;
use crate::state::StateStore;

/// Handles to host resources (requests, headers, streams, keys, locks) one call may have at a time. Guests of languages that collect garbage keep those
/// of many requests.
const HANDLES: usize = 2000;

/// Headers of one request, in bytes: what one handle may make the host keep.
const HEADER_BYTES: usize = 32 << 10;

/// Calls of `wasi:http` from one count of the headers to the next. Each can add [`HEADER_BYTES`]; heads of responses have their room in flight.
const UNCOUNTED: u32 = 8;

/// Random bytes a guest may ask for at once.
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
    pub log: GuestLog,
    pub subjects: Subjects,
    /// Events that may still be sent.
    pub events_left: u32,
    pub table: ResourceTable,
    wasi: WasiCtx,
    http: WasiHttpCtx,
    /// The way out, and the placeholders of this call.
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
) -> Store<CallState> {
    let limits = &env.limits;
    let mut table = ResourceTable::new();
    table.set_max_capacity(HANDLES);
    let mut http = WasiHttpCtx::new();
    http.set_field_size_limit(HEADER_BYTES);
    let state = CallState {
        env: Arc::clone(env),
        log: log.clone(),
        subjects,
        events_left: limits.events,
        table,
        wasi: wasi(log),
        http,
        hooks,
        limiter: Limiter {
            limit: usize::try_from(limits.memory_bytes).unwrap_or(usize::MAX),
            memory: env.memory.call(),
            used: 0,
            last: 0,
            headers: 0,
            uncounted: 0,
            exceeded: None,
        },
    };
    let mut store = Store::new(engine, state);
    store.limiter_async(|state| &mut state.limiter);
    store.set_hostcall_fuel(usize::try_from(limits.answer_bytes).unwrap_or(usize::MAX));
    store.set_max_component_handles(HANDLES);
    store.set_epoch_deadline(1);
    let (cpu, cpu_time) = (cpu.clone(), limits.cpu_time);
    store.epoch_deadline_callback(move |store| {
        if let Some(exceeded) = &store.data().limiter.exceeded {
            return Err(exceeded.clone().into());
        }
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
fn wasi(log: &GuestLog) -> WasiCtx {
    WasiCtx::builder()
        .stdout(log.stream(Stream::Stdout))
        .stderr(log.stream(Stream::Stderr))
        .max_random_size(RANDOM_BYTES)
        .allow_tcp(false)
        .allow_udp(false)
        .build()
}

/// The guest wanted more memory or table space than it may have. Ends the call instead of telling the guest, whose next
/// instruction would only be a panic with a less helpful text.
#[derive(Debug, Clone, Error)]
pub(crate) enum Exceeded {
    #[error("it wanted {wanted} bytes of memory, and limits.memoryBytes is {limit}")]
    Memory { wanted: usize, limit: usize },
    #[error("it held {held} bytes of HTTP headers beside {used} bytes of memory, and limits.memoryBytes is {limit}")]
    Headers { held: usize, used: usize, limit: usize },
    #[error("it held {0} bytes of HTTP headers, for which its provider's share of the guest memory has no room")]
    HeaderRoom(usize),
    #[error("it wanted a table of {wanted} elements, at most {TABLE_ELEMENTS} are allowed")]
    Table { wanted: usize },
}

/// Counts the linear memories of one call together, and lets the call wait for its part of the provider's share.
struct Limiter {
    limit: usize,
    used: usize,
    /// Size of the last growth, should it fail after all.
    last: usize,
    /// Bytes of HTTP headers, when they were counted last.
    headers: usize,
    /// Calls of `wasi:http` since then.
    uncounted: u32,
    /// Too many headers: ends the call at the next tick.
    exceeded: Option<Exceeded>,
    memory: CallMemory,
}

impl Limiter {
    /// Counts the headers as memory, once in [`UNCOUNTED`] calls. They do not wait for room as memory does, since these calls cannot.
    fn count_headers(&mut self, table: &mut ResourceTable) -> Result<(), ()> {
        self.uncounted += 1;
        if self.uncounted < UNCOUNTED {
            return self.exceeded.as_ref().map_or(Ok(()), |_| Err(()));
        }
        self.uncounted = 0;
        let (held, before) = (headers::held(table), self.headers);
        self.headers = held;
        if held < before {
            self.memory.shrink(in_bytes(before - held));
        } else if !self.memory.try_grow(in_bytes(held - before)) {
            self.headers = before;
            self.exceeded = Some(Exceeded::HeaderRoom(held));
        }
        if self.used.saturating_add(held) > self.limit {
            self.exceeded = Some(Exceeded::Headers {
                held,
                used: self.used,
                limit: self.limit,
            });
        }
        self.exceeded.as_ref().map_or(Ok(()), |_| Err(()))
    }
}

#[async_trait::async_trait]
impl ResourceLimiterAsync for Limiter {
    async fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.last = desired.saturating_sub(current);
        let wanted = self.used.saturating_add(self.last);
        if wanted.saturating_add(self.headers) > self.limit {
            return Err(Exceeded::Memory {
                wanted,
                limit: self.limit,
            }
            .into());
        }
        self.memory.grow(in_bytes(self.last)).await;
        self.used = wanted;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        // Beyond the maximum the guest itself declared: it is told and may go on.
        let last = std::mem::take(&mut self.last);
        self.used = self.used.saturating_sub(last);
        self.memory.shrink(in_bytes(last));
        Ok(())
    }

    async fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if desired > TABLE_ELEMENTS {
            return Err(Exceeded::Table { wanted: desired }.into());
        }
        Ok(true)
    }
}

fn in_bytes(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use wasmtime_wasi_http::FieldMap;

    use super::*;
    use crate::call::guest_memory::GuestMemory;

    type Sent = (
        http::Response<wasmtime_wasi_http::WasiBody>,
        Box<dyn Future<Output = Result<(), wasmtime_wasi_http::Error>> + Send>,
    );
    type Sending = Box<dyn Future<Output = Result<Sent, wasmtime_wasi_http::Error>> + Send>;

    /// The limiter of the only call there is.
    fn limiter(share: &MemoryShare) -> Limiter {
        Limiter {
            limit: 100,
            used: 0,
            last: 0,
            headers: 0,
            uncounted: 0,
            exceeded: None,
            memory: share.call(),
        }
    }

    #[tokio::test]
    async fn all_memories_of_a_call_count_together() {
        let share = GuestMemory::new(None).share("a", 100).unwrap();
        let mut limiter = limiter(&share);
        assert!(limiter.memory_growing(0, 60, None).await.unwrap());
        assert!(limiter.memory_growing(0, 40, None).await.unwrap());
        let error = limiter.memory_growing(40, 41, None).await.unwrap_err();
        assert!(matches!(
            error.downcast_ref(),
            Some(Exceeded::Memory {
                wanted: 101,
                limit: 100
            })
        ));
    }

    #[tokio::test]
    async fn a_growth_that_failed_is_given_back_once() {
        let share = GuestMemory::new(None).share("a", 100).unwrap();
        let mut limiter = limiter(&share);
        limiter.memory_growing(0, 60, Some(50)).await.unwrap();
        limiter
            .memory_grow_failed(wasmtime::Error::msg("beyond the maximum"))
            .unwrap();
        limiter.memory_grow_failed(wasmtime::Error::msg("again")).unwrap();
        assert_eq!(share.in_use().used, 0);
        assert!(limiter.memory_growing(0, 100, None).await.unwrap());
        drop(limiter);
        assert_eq!(share.in_use().used, 0);
    }

    struct Hooks;

    impl wasmtime_wasi_http::WasiHttpHooks for Hooks {
        fn send_request(
            &mut self,
            _: http::Request<wasmtime_wasi_http::WasiBody>,
            _: Option<wasmtime_wasi_http::RequestOptions>,
            _: Box<dyn Future<Output = Result<(), wasmtime_wasi_http::Error>> + Send>,
        ) -> Sending {
            unimplemented!("nothing is sent")
        }
    }

    /// Counts the headers now.
    fn count(limiter: &mut Limiter, table: &mut ResourceTable) -> Result<(), ()> {
        limiter.uncounted = UNCOUNTED;
        limiter.count_headers(table)
    }

    #[tokio::test]
    async fn headers_of_handles_count_as_memory_of_the_call() {
        const LIMIT: u64 = 1 << 20;
        let share = GuestMemory::new(None).share("a", LIMIT).unwrap();
        let mut limiter = Limiter {
            limit: LIMIT as usize,
            ..limiter(&share)
        };
        let mut table = ResourceTable::new();
        let map = || {
            let mut map = FieldMap::new_mutable(HEADER_BYTES);
            map.append(&mut Hooks, "x".into(), vec![b'a'; 30 << 10]).unwrap();
            map
        };
        limiter.memory_growing(0, 512 << 10, None).await.unwrap();
        let mut handles: Vec<_> = (0..10).map(|_| table.push(map()).unwrap()).collect();
        count(&mut limiter, &mut table).unwrap();
        let held = share.in_use().used - (512 << 10);
        assert!((300 << 10..320 << 10).contains(&held), "{held}");
        assert!(limiter.memory_growing(0, 300 << 10, None).await.is_err());
        table.delete(handles.pop().unwrap()).unwrap();
        count(&mut limiter, &mut table).unwrap();
        assert!(share.in_use().used < (512 << 10) + held);
        handles.extend((0..10).map(|_| table.push(map()).unwrap()));
        assert!(count(&mut limiter, &mut table).is_err());
        assert!(matches!(limiter.exceeded, Some(Exceeded::Headers { .. })));
        drop(limiter);
        assert_eq!(share.in_use().used, 0);
    }

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
