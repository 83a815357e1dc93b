//! Unit tests of providers, natively, with plain `cargo test`.
//!
//! A [`FakeHost`] stands in for the controller on the test's own thread: it has the configuration, expects requests in order and
//! answers them, and keeps logs, Events and state. A request that was not expected ends the test with a text that shows both.
//!
//! ```
//! use cloudwit_guest_sdk::prelude::*;
//! use cloudwit_guest_sdk::{serde_json::json, testing::FakeHost};
//!
//! struct Lab { api: Http }
//! impl Provider for Lab {
//!     type Config = NoConfig;
//!     fn describe(_: Option<&NoConfig>) -> Description { Description::new("lab", "0.1.0") }
//!     fn new(_: NoConfig, cloud: Context) -> Result<Self, Failure> { Ok(Self { api: cloud.http().base("https://lab.test") }) }
//!     fn probe(&self) -> Result<(), Failure> { self.api.get("/v1/me").send().map(drop) }
//! }
//!
//! let host = FakeHost::new();
//! host.expect("GET", "https://lab.test/v1/me").answers(401, json!({"error": "who are you?"}));
//! let failure = host.provider::<Lab>().probe().unwrap_err();
//! assert!(matches!(failure, Failure::Denied(_)));
//! ```

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::marker::PhantomData;
use std::time::Duration;

use serde_json::Value;

use crate::bindings::imports::cloudwit::provider::state::Entry;
use crate::http::{Answer, Request, TransportError, TransportErrorKind};
use crate::log::Level;
use crate::types::*;
use crate::{Provider, register};

/// A line that was logged.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLine {
    /// How important.
    pub level: Level,
    /// Text.
    pub message: String,
    /// Fields in their order.
    pub fields: Vec<Pair>,
}

/// An Event that was written.
#[derive(Debug, Clone, PartialEq)]
pub struct SentEvent {
    /// The Node it is about; none for the Service of the call.
    pub node: Option<String>,
    /// How serious.
    pub kind: EventKind,
    /// Reason.
    pub reason: String,
    /// Message.
    pub message: String,
}

/// Everything outside the provider, for the current thread.
pub(crate) struct World {
    pub(crate) config: String,
    pub(crate) values: Vec<Pair>,
    pub(crate) cluster: ClusterInfo,
    pub(crate) now: u64,
    pub(crate) nodes: Option<Vec<ClusterNode>>,
    pub(crate) services: Option<Vec<Service>>,
    pub(crate) secrets: BTreeMap<String, Vec<u8>>,
    pub(crate) state: BTreeMap<String, Entry>,
    pub(crate) locks: BTreeSet<String>,
    pub(crate) logs: Vec<LogLine>,
    pub(crate) events: Vec<SentEvent>,
    expected: VecDeque<Expected>,
}

impl World {
    const fn new() -> Self {
        Self {
            config: String::new(),
            values: Vec::new(),
            cluster: ClusterInfo {
                name: String::new(),
                cidrs: Vec::new(),
            },
            now: 0,
            nodes: None,
            services: None,
            secrets: BTreeMap::new(),
            state: BTreeMap::new(),
            locks: BTreeSet::new(),
            logs: Vec::new(),
            events: Vec::new(),
            expected: VecDeque::new(),
        }
    }
}

thread_local! {
    static WORLD: RefCell<World> = const { RefCell::new(World::new()) };
}

/// Works with the world of this thread.
pub(crate) fn world<T>(work: impl FnOnce(&mut World) -> T) -> T {
    WORLD.with_borrow_mut(work)
}

/// The controller's stand-in for the current thread, until it is dropped; it then insists that every expected request was made.
///
/// Set it up before asking the provider. The cluster is called `test` and has no Pod ranges.
#[derive(Debug)]
pub struct FakeHost {
    /// Everything is in the thread, so this must stay there.
    _in_thread: PhantomData<*const ()>,
}

impl FakeHost {
    /// A host without configuration, secrets or state.
    #[expect(
        clippy::new_without_default,
        reason = "it replaces what the thread had; that should be seen"
    )]
    pub fn new() -> Self {
        world(|world| {
            *world = World::new();
            world.cluster.name = "test".into();
        });
        Self {
            _in_thread: PhantomData,
        }
    }

    /// The text of the cloud config.
    pub fn config(&self, text: impl Into<String>) -> &Self {
        world(|world| world.config = text.into());
        self
    }

    /// A single value from the provider list.
    pub fn value(&self, key: &str, value: &str) -> &Self {
        world(|world| world.values.push(Pair::new(key, value)));
        self
    }

    /// The cluster's name and Pod ranges.
    pub fn cluster(&self, name: &str, cidrs: &[&str]) -> &Self {
        let cidrs = cidrs.iter().map(|cidr| (*cidr).into()).collect();
        world(|world| {
            world.cluster = ClusterInfo {
                name: name.into(),
                cidrs,
            }
        });
        self
    }

    /// A secret, granted for every use.
    pub fn secret(&self, name: &str, value: impl Into<Vec<u8>>) -> &Self {
        world(|world| world.secrets.insert(name.into(), value.into()));
        self
    }

    /// Grants the view on the cluster, which shows these.
    pub fn view(&self, nodes: Vec<ClusterNode>, services: Vec<Service>) -> &Self {
        world(|world| (world.nodes, world.services) = (Some(nodes), Some(services)));
        self
    }

    /// The time, in seconds since 1970.
    pub fn now(&self, unix_seconds: u64) -> &Self {
        world(|world| world.now = unix_seconds);
        self
    }

    /// The next request has to be this one: method and whole URL with its query. Say what comes back.
    pub fn expect(&self, method: &str, url: &str) -> Expectation<'_> {
        Expectation {
            expected: Expected {
                method: method.into(),
                url: url.into(),
                headers: Vec::new(),
                body: None,
                after: Duration::ZERO,
                answer: Err(no_answer("the connection broke")),
            },
            _host: PhantomData,
        }
    }

    /// The provider, made the way each call makes it.
    ///
    /// # Panics
    /// When the configuration is wrong, with every problem.
    pub fn provider<P: Provider>(&self) -> P {
        match register::start::<P>() {
            Ok(provider) => provider,
            Err(failure) => panic!("the provider cannot be made: {failure:?}"),
        }
    }

    /// What `info.check` says to the configuration.
    pub fn check<P: Provider>(&self) -> Vec<Problem> {
        crate::config::read::<P>().err().map(Into::into).unwrap_or_default()
    }

    /// What `info.describe` says.
    pub fn describe<P: Provider>(&self) -> Description {
        P::describe(crate::config::read::<P>().ok().as_ref())
    }

    /// What was logged so far.
    pub fn logs(&self) -> Vec<LogLine> {
        world(|world| world.logs.clone())
    }

    /// The Events so far.
    pub fn events(&self) -> Vec<SentEvent> {
        world(|world| world.events.clone())
    }
}

impl Drop for FakeHost {
    fn drop(&mut self) {
        let left = world(|world| std::mem::replace(world, World::new())).expected;
        if let Some(next) = left.front().filter(|_| !std::thread::panicking()) {
            panic!(
                "{} expected request(s) were not made, first: {} {}",
                left.len(),
                next.method,
                next.url
            );
        }
    }
}

struct Expected {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Option<Value>,
    after: Duration,
    answer: Result<Answer, TransportError>,
}

/// An expected request; complete with what comes back.
#[must_use = "say what comes back"]
pub struct Expectation<'a> {
    expected: Expected,
    _host: PhantomData<&'a FakeHost>,
}

impl Expectation<'_> {
    /// It also has to carry this header.
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.expected.headers.push((name.into(), value.into()));
        self
    }

    /// It also has to carry this JSON.
    pub fn with_json(mut self, body: Value) -> Self {
        self.expected.body = Some(body);
        self
    }

    /// What comes back does so after this time: one that is longer than the request's timeout is no answer. No time passes.
    pub fn after(mut self, duration: Duration) -> Self {
        self.expected.after = duration;
        self
    }

    /// Comes back with JSON.
    pub fn answers(self, status: u16, body: Value) {
        self.answers_with(status, &[("content-type", "application/json")], &body.to_string());
    }

    /// Comes back with these headers and text.
    pub fn answers_with(mut self, status: u16, headers: &[(&str, &str)], body: &str) {
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
        self.expected.answer = Ok(Answer {
            status,
            headers,
            body: body.into(),
        });
        self.done();
    }

    /// Is refused by the host: the destination is not granted.
    pub fn is_refused(mut self) {
        self.expected.answer = Err(TransportError {
            kind: TransportErrorKind::Denied,
            message: "the host refused the request".into(),
        });
        self.done();
    }

    /// Gets no answer: the connection breaks.
    pub fn breaks(self) {
        self.done();
    }

    fn done(self) {
        world(|world| world.expected.push_back(self.expected));
    }
}

fn no_answer(message: &'static str) -> TransportError {
    TransportError {
        kind: TransportErrorKind::Unreachable,
        message: message.into(),
    }
}

/// Answers a request by the next expectation.
///
/// # Panics
/// When it is another one, with both.
pub(crate) fn answer(request: &Request, body: &[u8]) -> Result<Answer, TransportError> {
    let (method, url) = (request.method, &request.url);
    let shown = if body.is_empty() {
        String::new()
    } else {
        format!("\n  with {}", String::from_utf8_lossy(body))
    };
    let Some(next) = world(|world| world.expected.pop_front()) else {
        panic!("unexpected request, no further one is expected:\n  {method} {url}{shown}");
    };
    assert!(
        next.method == method && next.url == *url,
        "unexpected request:\n  {method} {url}{shown}\nexpected:\n  {} {}",
        next.method,
        next.url
    );
    for (name, value) in &next.headers {
        let sent = request
            .headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value);
        assert!(
            sent == Some(value),
            "{method} {url}: header {name} is {sent:?}, expected {value:?}"
        );
    }
    if let Some(expected) = &next.body {
        let sent: Option<Value> = serde_json::from_slice(body).ok();
        assert!(
            sent.as_ref() == Some(expected),
            "{method} {url}: unexpected body{shown}\nexpected:\n  with {expected}"
        );
    }
    match next.answer {
        _ if next.after > request.timeout => Err(no_answer("no answer in time")),
        Ok(answer) if answer.body.len() > request.limit => Err(TransportError::too_large(request.limit)),
        answer => answer,
    }
}

#[cfg(test)]
#[path = "testing_tests.rs"]
mod tests;
