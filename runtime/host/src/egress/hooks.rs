//! Hooks of one call from the guest's `wasi:http` into the egress.

use std::sync::Arc;

use http::{HeaderName, Request, Response};
use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::Instrument as _;
use wasmtime_wasi_http::{DEFAULT_FORBIDDEN_HEADERS, Error, RequestOptions, WasiBody, WasiHttpHooks};

use crate::egress::in_flight::Places;
use crate::egress::refusal::Refusal;
use crate::egress::{CallScope, Egress, Stopped, request_span};
use crate::secrets::Secrets;
use crate::secrets::keys::KeyError;
use crate::secrets::placeholders::{Placeholders, StandsFor};

/// What the host takes of a body ahead of its client, in bytes, for so many bodies of a call; and for each beyond.
const CHUNK: usize = 64 << 10;
const UNSENT: usize = 32;
const SMALL_CHUNK: usize = 1 << 10;

impl Egress {
    /// The hooks for one call with these secrets. A request whose turn would come after `latest` is answered with 429 instead of being sent.
    pub fn hooks(self: &Arc<Self>, latest: Instant, secrets: &Secrets) -> EgressHooks {
        EgressHooks {
            egress: Arc::clone(self),
            latest,
            places: Places::of_call(&self.limits),
            unsent: 0,
            headers_denied: false,
            last: Arc::default(),
            placeholders: Placeholders::default(),
            secrets: secrets.clone(),
        }
    }
}

/// The hooks of one call. Clones belong to the same call.
#[derive(Clone)]
pub struct EgressHooks {
    egress: Arc<Egress>,
    latest: Instant,
    /// Requests in flight of this call.
    places: Places,
    /// Bodies that the guest began and did not send.
    unsent: usize,
    /// The call holds too many headers already.
    headers_denied: bool,
    last: Arc<Mutex<Option<Refusal>>>,
    placeholders: Placeholders,
    /// Those of the provider and of the call.
    secrets: Secrets,
}

impl EgressHooks {
    /// A text for headers and bodies of this call's requests, in whose place the host writes a secret.
    pub(crate) fn placeholder(&self, stands_for: StandsFor) -> Result<String, KeyError> {
        let rules = self.egress.rules.iter().map(|rule| &rule.grant);
        let mut hosts: Vec<String> = Vec::new();
        for grant in rules {
            let host = match grant.port {
                Some(port) => format!("{}:{port}", grant.host),
                None => grant.host.clone(),
            };
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
        self.placeholders.issue(stands_for, &self.secrets.keyring, &hosts)
    }

    /// The secrets of the provider, and of the request that the call belongs to.
    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// From now on the guest can make no headers.
    pub(crate) fn deny_headers(&mut self) {
        self.headers_denied = true;
    }

    /// The last request of this call that was refused.
    pub fn last_refusal(&self) -> Option<Refusal> {
        self.last.lock().clone()
    }
}

/// A response, and what has to run beside it: nothing, since the client's connections run by themselves.
type Answer = (Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>);

impl WasiHttpHooks for EgressHooks {
    /// The client sets it from the URL; a guest cannot, since `host` is one of the forbidden headers.
    fn set_host_header(&mut self) -> bool {
        false
    }

    fn is_forbidden_header(&mut self, name: &HeaderName) -> bool {
        self.headers_denied || DEFAULT_FORBIDDEN_HEADERS.contains(name)
    }

    /// Called once for each body that a guest begins. What it writes before the request has a place is held by the host.
    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        self.unsent += 1;
        if self.unsent > UNSENT { SMALL_CHUNK } else { CHUNK }
    }

    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _processing: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Result<Answer, Error>> + Send> {
        let (egress, latest, last) = (Arc::clone(&self.egress), self.latest, Arc::clone(&self.last));
        let placeholders = self.placeholders.clone();
        let (places, secrets) = (self.places.clone(), self.secrets.clone());
        self.unsent = self.unsent.saturating_sub(1);
        // The guest waits for it in another task, so it is here that the call is known.
        let span = request_span::begin(request.method());
        let answer = async move {
            let scope = CallScope {
                latest,
                secrets: &secrets,
                placeholders: &placeholders,
                places: &places,
            };
            match egress.send(request, options, scope).await {
                Ok(response) => Ok((response, Box::new(async { Ok(()) }) as _)),
                Err(Stopped::Refused(refusal)) => Err(egress.refused(refusal, &secrets, &last)),
                Err(Stopped::Failed(error)) => Err(error),
            }
        };
        Box::new(answer.instrument(span))
    }
}
