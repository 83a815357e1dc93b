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
//!     fn describe(_: Option<&NoConfig>) -> Description {
//!         Description::new("lab", "0.1.0").http(HttpWish::for_url("https://lab.test", &["GET"], "its API"))
//!     }
//!     fn new(_: NoConfig, cloud: Context) -> Result<Self, Failure> { Ok(Self { api: cloud.http().base("https://lab.test") }) }
//!     fn probe(&self) -> Result<(), Failure> { self.api.get("/v1/me").send().map(drop) }
//! }
//!
//! let host = FakeHost::new();
//! host.expect("GET", "https://lab.test/v1/me").answers(401, json!({"error": "who are you?"}));
//! let failure = host.provider::<Lab>().probe().unwrap_err();
//! assert_eq!(failure.kind, FailureKind::Denied);
//! ```
//!
//! Requests and answers are in `requests.rs`: [`FakeHost::expect`], and for what takes many requests [`FakeHost::serve`]. What `describe`
//! does not request is not granted here either: see `granted.rs`.

pub(crate) mod granted;
pub(crate) mod requests;
pub(crate) mod sent;
pub mod volumes;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, Deserializer, Visitor};

use crate::annotations::Table;
use crate::bindings::imports::cloudwit::provider::keys::Encoding;
use crate::bindings::imports::cloudwit::provider::state::Entry;
use crate::log::Level;
use crate::testing::granted::Granted;
use crate::testing::requests::Requests;
use crate::types::*;
use crate::{Context, Dns, Location, MachineLocation, Provider, Resolver, register};

pub use crate::testing::requests::{Expectation, FakeAnswer, recorded};
pub use crate::testing::sent::SentRequest;

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
    pub(crate) call_seconds: u64,
    /// When the call is cut off, in seconds since 1970.
    pub(crate) deadline: u64,
    pub(crate) dry_run: bool,
    pub(crate) nodes: Option<Vec<ClusterNode>>,
    pub(crate) services: Option<Vec<Service>>,
    pub(crate) secrets: BTreeMap<String, Vec<u8>>,
    pub(crate) granted: Granted,
    pub(crate) state: BTreeMap<String, Kept>,
    pub(crate) state_limit: u64,
    pub(crate) locks: BTreeSet<String>,
    pub(crate) locked_by_others: BTreeMap<String, Box<dyn FnOnce()>>,
    pub(crate) logs: Vec<LogLine>,
    pub(crate) events: Vec<SentEvent>,
    pub(crate) requests: Requests,
}

/// An entry of the state, and when it is gone, in milliseconds since 1970.
pub(crate) struct Kept {
    pub(crate) entry: Entry,
    pub(crate) expires: Option<u64>,
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
            call_seconds: CALL_SECONDS,
            deadline: CALL_SECONDS,
            dry_run: false,
            nodes: None,
            services: None,
            secrets: BTreeMap::new(),
            granted: Granted::new(),
            state: BTreeMap::new(),
            state_limit: STATE_LIMIT,
            locks: BTreeSet::new(),
            locked_by_others: BTreeMap::new(),
            logs: Vec::new(),
            events: Vec::new(),
            requests: Requests::new(),
        }
    }
}

/// Default of `limits.wallTime`, what a call may take, in seconds.
const CALL_SECONDS: u64 = 60;

/// Default of `grants.state.maxBytes`, what a provider's state may hold, in bytes.
const STATE_LIMIT: u64 = 1_048_576;

thread_local! {
    static WORLD: RefCell<World> = const { RefCell::new(World::new()) };
}

/// Works with the world of this thread.
pub(crate) fn world<T>(work: impl FnOnce(&mut World) -> T) -> T {
    WORLD.with_borrow_mut(work)
}

/// The grant requests of the provider of the next call.
pub(crate) fn describe(description: Description) {
    world(|world| world.granted.describe(description));
}

fn begin_call() {
    world(|world| world.deadline = world.now + world.call_seconds);
}

/// The controller's stand-in for the current thread, until it is dropped; it then insists that every expected request was made.
///
/// Set it up before calling the provider. The cluster is called `test` and has no Pod ranges.
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

    /// Grants a destination that `describe` cannot request, because only the cloud returns it.
    ///
    /// # Panics
    /// When it is no URL.
    pub fn grants(&self, url: &str, methods: &[&str]) -> &Self {
        let Some(wish) = HttpWish::for_url(url, methods, "") else {
            panic!("{url} is no URL")
        };
        world(|world| world.granted.add(wish));
        self
    }

    /// A secret, granted for every use that `describe` requests.
    pub fn secret(&self, name: &str, value: impl Into<Vec<u8>>) -> &Self {
        world(|world| world.secrets.insert(name.into(), value.into()));
        self
    }

    /// Grants the view on the cluster, which shows these.
    pub fn view(&self, nodes: Vec<ClusterNode>, services: Vec<Service>) -> &Self {
        world(|world| (world.nodes, world.services) = (Some(nodes), Some(services)));
        self
    }

    /// The most that the state may hold, in bytes, instead of the controller's default of 1 MiB. A larger entry is not kept.
    pub fn state_limit(&self, bytes: u64) -> &Self {
        world(|world| world.state_limit = bytes);
        self
    }

    /// The time, in seconds since 1970.
    pub fn now(&self, unix_seconds: u64) -> &Self {
        world(|world| world.now = unix_seconds);
        self
    }

    /// How long each call may take, instead of the controller's default of a minute. A call begins with [`Self::provider`] and [`Self::context`].
    pub fn call_seconds(&self, seconds: u64) -> &Self {
        world(|world| world.call_seconds = seconds);
        self
    }

    /// The calls are those of a dry run.
    pub fn dry_run(&self) -> &Self {
        world(|world| world.dry_run = true);
        self
    }

    /// Another call holds the lock of this name. For a waiting call `meanwhile` happens, and then the lock is free.
    pub fn locked(&self, name: &str, meanwhile: impl FnOnce() + 'static) -> &Self {
        world(|world| world.locked_by_others.insert(name.into(), Box::new(meanwhile)));
        self
    }

    /// What a provider gets, for tests of its parts.
    pub fn context(&self) -> Context {
        begin_call();
        Context::new()
    }

    /// The provider, made the way each call makes it.
    ///
    /// # Panics
    /// When the configuration is wrong, with every problem.
    pub fn provider<P: Provider>(&self) -> P {
        begin_call();
        match register::start::<P>() {
            Ok(provider) => provider,
            Err(failure) => panic!("the provider cannot be made: {failure:?}"),
        }
    }

    /// What `location.get` answers on a machine of this host name.
    ///
    /// # Errors
    /// The provider's own, and `invalid` when the configuration is wrong.
    pub fn locate<P: Location>(&self, hostname: &str) -> Result<MachineLocation, Failure> {
        begin_call();
        P::locate(register::configured::<P>()?, Context::new(), hostname)
    }

    /// What `dns.scrub` leaves of these name servers and search domains.
    ///
    /// # Errors
    /// The provider's own, and `invalid` when the configuration is wrong.
    pub fn scrub<P: Dns>(&self, nameservers: &[&str], searches: &[&str]) -> Result<Resolver, Failure> {
        begin_call();
        let owned = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect();
        let found = Resolver {
            nameservers: owned(nameservers),
            searches: owned(searches),
            extra: Vec::new(),
        };
        P::scrub(register::configured::<P>()?, Context::new(), found)
    }

    /// The problems that `info.check` finds in the configuration.
    pub fn check<P: Provider>(&self) -> Vec<Problem> {
        crate::config::check::<P>()
    }

    /// The answer of `info.describe`.
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
        let world = world(|world| std::mem::replace(world, World::new()));
        if !std::thread::panicking() {
            world.requests.insist_on_all();
        }
    }
}

/// The placeholder of a secret in tests, which shows its secret and encoding: `host.expect(..).with_header("x-token", &placeholder("token",
/// Encoding::Base64))` insists that this header carries the secret `token` in Base64. A real one cannot be guessed and differs in each call.
pub fn placeholder(name: &str, encoding: Encoding) -> String {
    let encoding = match encoding {
        Encoding::Plain => "plain",
        Encoding::Base64 => "base64",
        Encoding::Json => "json",
        Encoding::Form => "form",
        Encoding::Xml => "xml",
    };
    format!("cloudwit-placeholder-{name}.{encoding}")
}

/// The placeholder of HTTP Basic in tests, from the names of two secrets.
pub fn basic(user: &str, password: &str) -> String {
    format!("cloudwit-placeholder-{user}.{password}.basic")
}

/// Insists that a README shows the annotations as the code reads them: `assert_readme(include_str!("../README.md"), &ANNOTATIONS)`.
///
/// # Panics
/// When it does not, with the table to paste; when an annotation is in the table twice.
pub fn assert_readme(readme: &str, annotations: &Table) {
    let table = annotations.markdown();
    let mut rows: Vec<&str> = table.lines().collect();
    rows.sort_unstable();
    let key = |row: &str| row.split_once(" |").map(|(key, _)| key.to_owned());
    let twice = rows.windows(2).find(|rows| key(rows[0]) == key(rows[1]));
    assert!(twice.is_none(), "an annotation is declared twice: {twice:?}");
    assert!(
        readme.contains(&table),
        "the README does not show the annotations as they are; paste this:\n\n{table}"
    );
}

/// The keys of a struct that derives `Deserialize`, for a test that a README has all of them.
pub fn keys_of<T: DeserializeOwned>() -> Vec<&'static str> {
    let mut keys = Vec::new();
    // It ends with an error: there are no values.
    let _ = T::deserialize(KeysOf(&mut keys));
    keys
}

struct KeysOf<'a>(&'a mut Vec<&'static str>);

impl<'de> Deserializer<'de> for KeysOf<'_> {
    type Error = serde::de::value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(serde::de::Error::custom("no struct"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        self.0.extend(fields);
        self.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests;
