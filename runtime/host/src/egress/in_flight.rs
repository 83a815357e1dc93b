//! Limits on requests in flight and the bytes they hold, per call and per provider.
//!
//! A request takes its place before any of its body is read, with room for the largest body that is collected and for what may be buffered of its
//! response; it takes all of that at once, so that requests never wait for each other half done. What it turns out not to need goes back. The place is
//! left when the response was read to its end or dropped. Who waits for a place spends the wall time of its call.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::egress::request_body::BUFFER_LIMIT;
use crate::limits::Limits;

/// What is buffered of one response that is not read, at most, in bytes: the window over HTTP/2; over HTTP/1.1 hyper's largest read buffer
/// (`DEFAULT_MAX_BUFFER_SIZE` in hyper's proto/h1/io.rs, 8192 + 100 * 4096), rounded up.
pub(crate) const RESPONSE_ROOM: u64 = 512 << 10;

/// What one request may need at the same time, in bytes. No limit of bytes may be below it.
pub(crate) const LARGEST_REQUEST: u64 = BUFFER_LIMIT as u64 + RESPONSE_ROOM;

/// Bytes are counted in units of this many, since permits are 32 bits wide.
const UNIT: u64 = 1 << 10;

/// Places for requests, and bytes for their bodies. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    requests: Arc<Semaphore>,
    units: Arc<Semaphore>,
    sizes: (u32, u64),
}

impl Places {
    fn new(requests: u32, bytes: u64) -> Self {
        let semaphore = |permits: u64| {
            let permits = usize::try_from(permits)
                .unwrap_or(usize::MAX)
                .min(Semaphore::MAX_PERMITS);
            Arc::new(Semaphore::new(permits))
        };
        Self {
            requests: semaphore(requests.into()),
            units: semaphore(bytes.max(LARGEST_REQUEST) / UNIT),
            sizes: (requests, bytes),
        }
    }

    /// For all calls of a provider; those of its predecessor where the limits stay the same.
    pub fn of_provider(limits: &Limits, before: Option<&Self>) -> Self {
        let sizes = (limits.requests, limits.buffered_bytes);
        match before.filter(|before| before.sizes == sizes) {
            Some(before) => before.clone(),
            None => Self::new(sizes.0, sizes.1),
        }
    }

    /// For one call.
    pub fn of_call(limits: &Limits) -> Self {
        Self::new(limits.requests_per_call, limits.buffered_bytes_per_call)
    }

    async fn take(&self, units: u32) -> Taken {
        const OPEN: &str = "the semaphores are never closed";
        let request = Arc::clone(&self.requests).acquire_owned().await.expect(OPEN);
        let units = Arc::clone(&self.units).acquire_many_owned(units).await.expect(OPEN);
        Taken {
            _request: request,
            units,
        }
    }
}

#[derive(Debug)]
struct Taken {
    _request: OwnedSemaphorePermit,
    units: OwnedSemaphorePermit,
}

/// The place of one request; left when it is dropped.
#[derive(Debug)]
pub(crate) struct Place([Taken; 2]);

impl Place {
    /// Waits for a place for a request whose body may have up to `body` bytes in memory: in its call first, so that a call with many requests
    /// takes nothing from others while it waits.
    pub async fn take(call: &Places, provider: &Places, body: u64) -> Self {
        let units = units(body.min(BUFFER_LIMIT as u64));
        let call = call.take(units).await;
        Self([call, provider.take(units).await])
    }

    /// Gives back what a body of this many bytes does not need.
    pub fn keep(&mut self, body: u64) {
        let needed = usize::try_from(units(body)).unwrap_or(usize::MAX);
        for taken in &mut self.0 {
            let surplus = taken.units.num_permits().saturating_sub(needed);
            drop(taken.units.split(surplus));
        }
    }
}

/// The units of a request with a body of this many bytes.
fn units(body: u64) -> u32 {
    u32::try_from((body + RESPONSE_ROOM).div_ceil(UNIT)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn limits(requests_per_call: u32, requests: u32) -> Limits {
        Limits {
            requests_per_call,
            requests,
            ..Limits::default()
        }
    }

    /// A place that is free now.
    fn free(call: &Places, provider: &Places, body: u64) -> Option<Place> {
        let mut taking = Box::pin(Place::take(call, provider, body));
        match taking.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(place) => Some(place),
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_call_has_its_own_limit_of_requests() {
        let limits = limits(2, 100);
        let provider = Places::of_provider(&limits, None);
        let (call, other) = (Places::of_call(&limits), Places::of_call(&limits));
        let held: Vec<Place> = (0..2).map(|_| free(&call, &provider, 0).unwrap()).collect();
        assert!(free(&call, &provider, 0).is_none());
        assert!(free(&other, &provider, 0).is_some());
        drop(held);
        assert!(free(&call, &provider, 0).is_some());
    }

    #[test]
    fn all_calls_of_a_provider_share_its_limit() {
        let limits = limits(2, 3);
        let provider = Places::of_provider(&limits, None);
        let (first, second) = (Places::of_call(&limits), Places::of_call(&limits));
        let _held: Vec<Place> = (0..2).map(|_| free(&first, &provider, 0).unwrap()).collect();
        let one = free(&second, &provider, 0);
        assert!(one.is_some() && free(&second, &provider, 0).is_none());
    }

    #[test]
    fn bytes_that_a_body_does_not_need_are_given_back() {
        let limits = Limits {
            buffered_bytes_per_call: LARGEST_REQUEST,
            ..Limits::default()
        };
        let (call, provider) = (Places::of_call(&limits), Places::of_provider(&limits, None));
        let mut large = free(&call, &provider, u64::MAX).unwrap();
        assert!(free(&call, &provider, 0).is_none());
        large.keep(0);
        assert!(free(&call, &provider, 0).is_some());
        assert!(free(&call, &provider, u64::MAX).is_none());
    }

    #[test]
    fn a_successor_shares_places_while_the_limits_are_equal() {
        let limits = limits(1, 1);
        let before = Places::of_provider(&limits, None);
        let _held = free(&Places::of_call(&limits), &before, 0).unwrap();
        let same = Places::of_provider(&limits, Some(&before));
        assert!(free(&Places::of_call(&limits), &same, 0).is_none());
        let wider = Limits { requests: 2, ..limits };
        let other = Places::of_provider(&wider, Some(&before));
        assert!(free(&Places::of_call(&wider), &other, 0).is_some());
    }
}
