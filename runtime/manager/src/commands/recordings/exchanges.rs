//! What goes over the wire in a call: shown, recorded, or answered from a recording.

use std::time::Duration;

use cloudwit_host::wire::{Wire, WireRequest, WireResponse};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::commands::recordings::scrub::Scrub;

/// A request and what came back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// Such as `GET`.
    pub method: String,
    /// URL.
    pub url: String,
    /// Headers of the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// Body of the request: JSON, or text.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub body: Value,
    /// The response; none where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<RecordedResponse>,
    /// Why there was no response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How long it took.
    #[serde(skip)]
    pub took: Duration,
}

/// A response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedResponse {
    /// Status.
    pub status: u16,
    /// Headers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// Body.
    #[serde(default)]
    pub body: String,
}

/// Headers that say how a text went over the wire and not what it was.
const OF_THE_WIRE: [&str; 5] = [
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "date",
];

/// The exchanges of a call.
#[derive(Default)]
pub struct Exchanges {
    seen: Mutex<(Scrub, Vec<Exchange>)>,
    recorded: Option<Mutex<Vec<Exchange>>>,
}

impl Exchanges {
    /// Answers requests with these instead of sending them.
    pub fn answered_from(recorded: Vec<Exchange>) -> Self {
        Self {
            recorded: Some(Mutex::new(recorded)),
            ..Self::default()
        }
    }

    /// What was seen since the last time, without secrets.
    pub fn take(&self) -> Vec<Exchange> {
        std::mem::take(&mut self.seen.lock().1)
    }

    /// Replaces the recording.
    pub fn load(&self, exchanges: Vec<Exchange>) {
        if let Some(recorded) = &self.recorded {
            *recorded.lock() = exchanges;
        }
    }
}

impl Wire for Exchanges {
    fn answer(&self, request: &WireRequest) -> Option<WireResponse> {
        let mut recorded = self.recorded.as_ref()?.lock();
        let asked = Exchange::of(&self.seen.lock().0, request);
        let at = asked.place_in(recorded.iter());
        let answered = at.and_then(|at| recorded.remove(at).response);
        let answered = answered.unwrap_or_else(|| RecordedResponse {
            status: 501,
            headers: Vec::new(),
            body: format!("{} {} is not in the recording", asked.method, asked.url),
        });
        Some(WireResponse {
            status: answered.status,
            headers: answered.headers,
            body: answered.body,
        })
    }

    fn saw(&self, request: &WireRequest, outcome: Result<&WireResponse, &str>, took: Duration) {
        let (scrub, exchanges) = &mut *self.seen.lock();
        scrub.learn(&request.headers, &request.body);
        if let Ok(response) = outcome {
            scrub.learn(&response.headers, &response.body);
        }
        let mut exchange = Exchange::of(scrub, request);
        exchange.took = took;
        match outcome {
            Ok(response) => exchange.response = Some(RecordedResponse::of(scrub, response)),
            Err(why) => exchange.error = Some(scrub.hide(why)),
        }
        exchanges.push(exchange);
    }
}

impl Exchange {
    fn of(scrub: &Scrub, request: &WireRequest) -> Self {
        let body = scrub.hide(&request.body);
        let text = |body: String| if body.is_empty() { Value::Null } else { body.into() };
        Self {
            method: request.method.to_string(),
            url: scrub.hide(request.url.as_str()),
            headers: scrub.hide_in(&without_wire(&request.headers)),
            body: serde_json::from_str(&body).unwrap_or_else(|_| text(body)),
            response: None,
            error: None,
            took: Duration::ZERO,
        }
    }

    /// Which of the recorded ones is this request, whatever the headers, which carry times and signatures: the first with the same body, since several may
    /// differ in nothing else; without one the first with the same method and URL.
    pub fn place_in<'a>(&self, recorded: impl Iterator<Item = &'a Self> + Clone) -> Option<usize> {
        let like = |known: &Self| (&known.method, &known.url) == (&self.method, &self.url);
        let same = recorded
            .clone()
            .position(|known| like(known) && known.body == self.body);
        same.or_else(|| recorded.clone().position(like))
    }
}

impl RecordedResponse {
    fn of(scrub: &Scrub, response: &WireResponse) -> Self {
        Self {
            status: response.status,
            headers: scrub.hide_in(&without_wire(&response.headers)),
            body: scrub.hide(&response.body),
        }
    }
}

fn without_wire(headers: &[(String, String)]) -> Vec<(String, String)> {
    let kept = headers.iter().filter(|(name, _)| !OF_THE_WIRE.contains(&name.as_str()));
    kept.cloned().collect()
}
