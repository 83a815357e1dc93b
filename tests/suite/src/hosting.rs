//! A provider host for tests: loads guests, remembers their Events, reads the host's metrics.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cloudwit_host::{
    Grants, Host, HostOptions, Limits, LoadError, Outside, Provider, ProviderSettings, SwappableProvider,
};
use cloudwit_model::{ClusterNode, ClusterView, EventSink, NodeRef, ObjectEvent, Service};
use prometheus_client::registry::Registry;

/// The Node or Service at which the test guests misbehave.
pub const TRIGGER: &str = "trigger";

/// Long enough for everything that ends by itself.
pub const LONG: Duration = Duration::from_secs(60);

/// What lies outside of a provider: remembers Events; answers one Node and two Services.
#[derive(Default)]
pub struct Recorder(Mutex<Vec<ObjectEvent>>);

impl Recorder {
    /// The Events that were sent.
    pub fn events(&self) -> Vec<ObjectEvent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl EventSink for Recorder {
    fn emit(&self, event: ObjectEvent) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }
}

impl ClusterView for Recorder {
    fn nodes(&self) -> Vec<ClusterNode> {
        vec![ClusterNode {
            node: node("a"),
            ..ClusterNode::default()
        }]
    }

    fn services(&self) -> Vec<Service> {
        vec![Service::default(), Service::default()]
    }
}

/// A host and what it sees of the world.
pub struct Hosting {
    /// The host.
    pub host: Arc<Host>,
    registry: Registry,
    /// The cluster and the Events, as providers see them.
    pub outside: Arc<Recorder>,
}

impl Hosting {
    /// Starts a host.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn new(options: HostOptions) -> Self {
        let mut registry = Registry::default();
        let host = Arc::new(Host::new(options, &mut registry).expect("the host starts"));
        Self {
            host,
            registry,
            outside: Arc::default(),
        }
    }

    /// Loads a component file.
    pub async fn load_file(&self, file: &Path, settings: ProviderSettings) -> Result<Provider, LoadError> {
        self.host.load(file, settings, self.outside()).await
    }

    /// Loads a component file as a provider that can be swapped.
    ///
    /// # Panics
    ///
    /// When it is refused.
    pub async fn swappable(&self, file: &Path, settings: ProviderSettings) -> SwappableProvider {
        let host = Arc::clone(&self.host);
        SwappableProvider::load(host, file.to_owned(), settings, self.outside())
            .await
            .unwrap_or_else(|error| panic!("{error}"))
    }

    fn outside(&self) -> Outside {
        Outside {
            events: self.outside.clone(),
            cluster: self.outside.clone(),
        }
    }

    /// Loads the test guest of this name.
    ///
    /// # Panics
    ///
    /// When it is refused.
    pub async fn load(&self, guest: &str, settings: ProviderSettings) -> Provider {
        self.load_file(&guest_file(guest).await, settings)
            .await
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// The value of the metric that starts so: name and labels, as it is scraped. None when there is none yet.
    ///
    /// # Panics
    ///
    /// When the metrics cannot be written.
    pub fn metric(&self, start: &str) -> Option<f64> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)
            .expect("metrics can be written to a String");
        let line = text
            .lines()
            .find(|line| line.starts_with(start) && !line.starts_with('#'))?;
        line.rsplit(' ').next()?.parse().ok()
    }
}

/// The component of a test guest. Built on a thread of its own, since that takes a while the first time.
///
/// # Panics
///
/// When it cannot be built.
pub async fn guest_file(guest: &str) -> PathBuf {
    let guest = guest.to_owned();
    tokio::task::spawn_blocking(move || cloudwit_test_support::programs::guests::test_guest(&guest))
        .await
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Settings of a provider that was granted nothing.
pub fn settings() -> ProviderSettings {
    ProviderSettings {
        name: "guest".into(),
        config_text: String::new(),
        values: Vec::new(),
        cluster_name: "test-cluster".into(),
        cluster_cidrs: Vec::new(),
        grants: Grants::default(),
        limits: Limits::default(),
    }
}

/// The same with these limits.
pub fn limited(limits: Limits) -> ProviderSettings {
    ProviderSettings { limits, ..settings() }
}

/// A Node of this name.
pub fn node(name: &str) -> NodeRef {
    NodeRef {
        name: name.into(),
        ..NodeRef::default()
    }
}
