//! Memory limiter of one call: linear memories, tables, and the headers that its handles hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use thiserror::Error;
use wasmtime::ResourceLimiterAsync;
use wasmtime::component::ResourceTable;

use crate::call::guest_memory::CallMemory;
use crate::call::headers;
use crate::load::engine::TABLE_ELEMENTS;

/// Headers of one request, in bytes: what one handle may make the host keep.
pub(super) const HEADER_BYTES: usize = 32 << 10;

/// Calls of `wasi:http` from one count of the headers to the next. Each can add [`HEADER_BYTES`]; heads of responses have their room in flight.
const UNCOUNTED: u32 = 8;

/// Headers that a call may hold while its provider's share is full, in bytes: an ordinary call must not end because others have the room.
const UNCHARGED: usize = 1 << 20;

/// The guest requested more memory or table space than it may have. Ends the call instead of failing in the guest, whose next
/// instruction would only be a panic with a less helpful text.
#[derive(Debug, Clone, Error)]
pub(crate) enum Exceeded {
    #[error("it requested {wanted} bytes of memory, and limits.memoryBytes is {limit}")]
    Memory { wanted: usize, limit: usize },
    #[error("it held {held} bytes of HTTP headers beside {used} bytes of memory, and limits.memoryBytes is {limit}")]
    Headers { held: usize, used: usize, limit: usize },
    #[error("it held {0} bytes of HTTP headers, for which its provider's share of the guest memory has no room")]
    HeaderRoom(usize),
    #[error("it requested a table of {wanted} elements, at most {TABLE_ELEMENTS} are allowed")]
    Table { wanted: usize },
}

/// The most linear memory that a call has had, in bytes. Clones are of the same call.
#[derive(Debug, Clone, Default)]
pub(crate) struct PeakMemory(Arc<AtomicUsize>);

impl PeakMemory {
    pub fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts the linear memories of one call together, and lets the call wait for its part of the provider's share.
pub(crate) struct Limiter {
    limit: usize,
    used: usize,
    /// Size of the last growth, should it fail after all.
    last: usize,
    /// Bytes of HTTP headers, when they were counted last.
    headers: usize,
    /// How many of them the provider's share has been charged for.
    charged: usize,
    /// Calls of `wasi:http` since then.
    uncounted: u32,
    /// Too many headers: ends the call at the next tick.
    exceeded: Option<Exceeded>,
    memory: CallMemory,
    peak: PeakMemory,
}

impl Limiter {
    /// For a call that may have so many bytes.
    pub fn new(limit: u64, memory: CallMemory, peak: PeakMemory) -> Self {
        Self {
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            used: 0,
            last: 0,
            headers: 0,
            charged: 0,
            uncounted: 0,
            exceeded: None,
            memory,
            peak,
        }
    }

    /// The error of a call that holds too many headers.
    pub fn check(&self) -> wasmtime::Result<()> {
        self.exceeded.clone().map_or(Ok(()), |exceeded| Err(exceeded.into()))
    }

    /// Counts the headers as memory, once in [`UNCOUNTED`] calls. They do not wait for room as memory does, since these calls cannot.
    pub fn count_headers(&mut self, table: &mut ResourceTable) -> Result<(), ()> {
        self.uncounted += 1;
        if self.uncounted < UNCOUNTED {
            return self.exceeded.as_ref().map_or(Ok(()), |_| Err(()));
        }
        self.uncounted = 0;
        let held = headers::held(table);
        self.headers = held;
        if held < self.charged {
            self.memory.shrink(in_bytes(self.charged - held));
            self.charged = held;
        } else if held > self.charged {
            if self.memory.try_grow(in_bytes(held - self.charged)) {
                self.charged = held;
            } else if held - self.charged > UNCHARGED {
                self.exceeded = Some(Exceeded::HeaderRoom(held));
            }
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
        self.peak.0.fetch_max(wanted, Ordering::Relaxed);
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        // Beyond the maximum the guest itself declared: the guest gets the error and may continue.
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
    use crate::call::guest_memory::{GuestMemory, MemoryShare};

    type Sent = (
        http::Response<wasmtime_wasi_http::WasiBody>,
        Box<dyn Future<Output = Result<(), wasmtime_wasi_http::Error>> + Send>,
    );
    type Sending = Box<dyn Future<Output = Result<Sent, wasmtime_wasi_http::Error>> + Send>;

    /// The limiter of the only call there is.
    fn limiter(share: &MemoryShare) -> Limiter {
        Limiter::new(100, share.call(), PeakMemory::default())
    }

    #[tokio::test]
    async fn all_memories_of_a_call_count_together() {
        let share = GuestMemory::new(None).share("a", 100).unwrap();
        let mut limiter = limiter(&share);
        assert!(limiter.memory_growing(0, 60, None).await.unwrap());
        assert!(limiter.memory_growing(0, 40, None).await.unwrap());
        assert_eq!(limiter.peak.bytes(), 100);
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
            Box::new(async { Err(wasmtime_wasi_http::Error::HttpRequestDenied) })
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

    #[tokio::test]
    async fn full_share_ends_no_call_with_few_headers() {
        const LIMIT: u64 = 4 << 20;
        let share = GuestMemory::new(None).share("a", LIMIT).unwrap();
        let (_oldest, full) = (share.call(), share.call());
        full.grow(LIMIT).await;
        let mut limiter = Limiter::new(LIMIT, share.call(), PeakMemory::default());
        let mut table = ResourceTable::new();
        let map = || {
            let mut map = FieldMap::new_mutable(HEADER_BYTES);
            map.append(&mut Hooks, "x".into(), vec![b'a'; 30 << 10]).unwrap();
            map
        };
        table.push(map()).unwrap();
        count(&mut limiter, &mut table).unwrap();
        assert_eq!(share.in_use().used, LIMIT);
        for _ in 0..40 {
            table.push(map()).unwrap();
        }
        assert!(count(&mut limiter, &mut table).is_err());
        assert!(matches!(limiter.exceeded, Some(Exceeded::HeaderRoom(_))));
    }
}
