//! Hooks for tools that see, record or answer requests of providers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use reqwest::Url;

/// Sees all requests of the providers of a host, and may answer them in the place of the cloud.
pub trait Wire: Send + Sync {
    /// The answer to this request where it shall not leave; none to send it.
    fn answer(&self, request: &WireRequest) -> Option<WireResponse>;

    /// A request was answered, by the cloud or by [`Wire::answer`], or was not: then the second says why.
    fn saw(&self, request: &WireRequest, outcome: Result<&WireResponse, &str>, took: Duration);
}

/// A request that was granted, without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireRequest {
    /// Method.
    pub method: Method,
    /// URL.
    pub url: Url,
    /// Headers, names in lower case, in their order.
    pub headers: Vec<(String, String)>,
    /// Body as text; of one over 1 MiB the beginning.
    pub body: String,
}

/// A response without the secrets known to the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireResponse {
    /// Status.
    pub status: u16,
    /// Headers, names in lower case, in their order.
    pub headers: Vec<(String, String)>,
    /// Body as text.
    pub body: String,
}

/// The wire of a host; none in a process that runs controllers.
#[derive(Clone, Default)]
pub(crate) struct Tap(pub Option<Arc<dyn Wire>>);

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tap").field(&self.0.is_some()).finish()
    }
}
