//! A wire that fails on demand, counts, and else records or answers from a recording.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cloudwit_host::wire::{Wire, WireRequest, WireResponse};
use parking_lot::Mutex;

use crate::commands::recordings::exchanges::{Exchange, Exchanges};

/// What happens to requests.
#[derive(Default)]
pub struct Faults {
    instead: Mutex<Instead>,
    requests: AtomicUsize,
    /// What goes to the cloud.
    exchanges: Exchanges,
    /// Requests that were answered here, until they are seen.
    own: Mutex<Vec<WireRequest>>,
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
    /// The cloud is what was recorded.
    pub fn answered_from(recorded: Vec<Exchange>) -> Self {
        Self {
            exchanges: Exchanges::answered_from(recorded),
            ..Self::default()
        }
    }

    /// What went to the cloud and came back.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.exchanges.take()
    }

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
    fn answer(&self, request: &WireRequest) -> Option<WireResponse> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let answer = match &*self.instead.lock() {
            Instead::Cloud => None,
            Instead::Always(answer) => Some(answer.clone()),
            Instead::OneOf(period) => number.is_multiple_of(*period).then(|| WireResponse {
                status: 503,
                headers: Vec::new(),
                body: "the cloud is not there now".into(),
            }),
        };
        match answer {
            Some(answer) => {
                self.own.lock().push(request.clone());
                Some(answer)
            }
            None => self.exchanges.answer(request),
        }
    }

    fn saw(&self, request: &WireRequest, outcome: Result<&WireResponse, &str>, took: Duration) {
        let mut own = self.own.lock();
        match own.iter().position(|known| known == request) {
            Some(at) => drop(own.remove(at)),
            None => self.exchanges.saw(request, outcome, took),
        }
    }
}
