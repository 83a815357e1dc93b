//! A wire that fails on demand, and counts.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cloudwit_host::wire::{Wire, WireRequest, WireResponse};
use parking_lot::Mutex;

/// What happens to requests.
#[derive(Default)]
pub struct Faults {
    instead: Mutex<Instead>,
    requests: AtomicUsize,
}

#[derive(Default)]
enum Instead {
    /// The cloud answers.
    #[default]
    Cloud,
    /// Every request is answered so.
    Always(WireResponse),
    /// One of so many is refused with 503.
    OneOf(usize),
}

impl Faults {
    /// From now on the cloud answers.
    pub fn none(&self) {
        *self.instead.lock() = Instead::Cloud;
    }

    /// From now on every request is answered so.
    pub fn always(&self, status: u16, header: Option<(&str, &str)>, body: &str) {
        let header = header.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let answer = WireResponse {
            status,
            headers: header.into_iter().collect(),
            body: body.to_owned(),
        };
        *self.instead.lock() = Instead::Always(answer);
    }

    /// From now on every request number `period` is refused.
    pub fn each(&self, period: usize) {
        self.requests.store(0, Ordering::Relaxed);
        *self.instead.lock() = Instead::OneOf(period);
    }

    /// Requests since the last time.
    pub fn requests(&self) -> usize {
        self.requests.swap(0, Ordering::Relaxed)
    }
}

impl Wire for Faults {
    fn answer(&self, _: &WireRequest) -> Option<WireResponse> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        match &*self.instead.lock() {
            Instead::Cloud => None,
            Instead::Always(answer) => Some(answer.clone()),
            Instead::OneOf(period) => number.is_multiple_of(*period).then(|| WireResponse {
                status: 503,
                headers: Vec::new(),
                body: "the cloud is not there now".into(),
            }),
        }
    }

    fn saw(&self, _: &WireRequest, _: Result<&WireResponse, &str>, _: Duration) {}
}
