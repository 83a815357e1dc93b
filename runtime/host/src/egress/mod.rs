//! Egress: every HTTP request of every guest passes here, in this order.
//!
//! ```text
//! wasi:http -> EgressHooks -> plan         may it leave?          (host, port, scheme, method, literal address)
//!                          -> in_flight    waits for a place: requests and bytes, of the call and of the provider
//!                          -> placeholders fill in the secrets    (only for hosts they are bound to)
//!                          -> budget       waits for a turn at its API host
//!                          -> net::client  pooled; the addresses of a name are checked as it is resolved
//!                          -> response_body up to the size limit, at the guest's pace
//! ```
//!
//! What is refused is refused before a packet leaves, except a name that turns out to lead to a prohibited address, for which the name
//! is looked up, and an untrusted certificate. Redirects are the guest's business. Header values and bodies are never logged.

pub(crate) mod budget;
mod fill;
pub(crate) mod in_flight;
pub mod metrics;
pub(crate) mod plan;
pub(crate) mod rate_limit;
pub mod refusal;
pub(crate) mod request_body;
pub(crate) mod request_span;
pub(crate) mod response_body;
pub(crate) mod retry_after;
mod wire;

#[cfg(test)]
mod budget_tests;
#[cfg(test)]
mod h2_tests;
#[cfg(test)]
mod plan_tests;
#[cfg(test)]
mod rate_limit_tests;
#[cfg(test)]
mod secrets_tests;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderName, Request, Response};
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::Instrument as _;
use wasmtime_wasi_http::{DEFAULT_FORBIDDEN_HEADERS, Error, RequestOptions, WasiBody, WasiHttpHooks};

use crate::egress::budget::{BudgetStatus, RequestBudgets};
use crate::egress::fill::Fill;
use crate::egress::in_flight::{Place, Places};
use crate::egress::metrics::EgressMetrics;
use crate::egress::plan::Rule;
use crate::egress::rate_limit::Rate;
use crate::egress::refusal::{Refusal, RefusalLog};
use crate::egress::response_body::ResponseBody;
use crate::egress::wire::Seen;
use crate::grants::{GrantError, Grants};
use crate::limits::Limits;
use crate::net::client::{HttpClient, HttpClients, Outgoing};
use crate::net::destination::Destination;
use crate::net::http_error::Failed;
use crate::net::wire::Tap;
use crate::secrets::Secrets;
use crate::secrets::keys::KeyError;
use crate::secrets::placeholders::{Placeholders, StandsFor};

/// What one loaded provider may reach; shared by all its calls.
pub struct Egress {
    provider: String,
    rules: Vec<Rule>,
    /// One for each entry of the grants, in their order.
    clients: Vec<Arc<HttpClient>>,
    /// A provider may put a secret that it was given into the name of a host.
    secrets: Secrets,
    budgets: Arc<RequestBudgets>,
    limits: Limits,
    /// Requests in flight of all calls.
    places: Places,
    metrics: EgressMetrics,
    log: RefusalLog,
    tap: Tap,
}

impl Egress {
    /// Puts the grants into force within these limits, with clients out of a set, and with the budgets, pauses and requests in flight of the one whose
    /// place it may take. The error names everything that is wrong with the grants.
    pub fn with_clients(
        provider: &str,
        grants: &Grants,
        limits: &Limits,
        secrets: Secrets,
        metrics: EgressMetrics,
        shared: &HttpClients,
        before: Option<&Self>,
    ) -> Result<Arc<Self>, GrantError> {
        grants.validate().map_err(GrantError)?;
        let (mut rules, mut clients, mut problems) = (Vec::new(), Vec::new(), Vec::new());
        for (at, grant) in grants.http.iter().enumerate() {
            match shared.client(provider, limits.requests, grant, at) {
                Ok(client) => {
                    rules.extend(Rule::new(grant, at));
                    clients.push(client);
                }
                Err(problem) => problems.push(problem),
            }
        }
        if !problems.is_empty() {
            return Err(GrantError(problems));
        }
        let (provider, log) = (provider.to_owned(), RefusalLog::default());
        let budgets = before.map_or_else(Arc::default, |before| before.budgets_for(&rules));
        let places = Places::of_provider(limits, before.map(|before| &before.places));
        Ok(Arc::new(Self {
            provider,
            rules,
            clients,
            secrets,
            budgets,
            limits: limits.clone(),
            places,
            metrics,
            log,
            tap: shared.tap(),
        }))
    }

    /// The hooks for one call. A request whose turn would come after `latest` is answered with 429 instead of being sent.
    pub fn hooks(self: &Arc<Self>, latest: Instant) -> EgressHooks {
        EgressHooks {
            egress: Arc::clone(self),
            latest,
            places: Places::of_call(&self.limits),
            unsent: 0,
            headers_denied: false,
            last: Arc::default(),
            placeholders: Placeholders::default(),
        }
    }

    async fn send(
        &self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        latest: Instant,
        placeholders: &Placeholders,
        places: &Places,
    ) -> Result<Response<WasiBody>, Stopped> {
        let (parts, body) = request.into_parts();
        let (url, to) = plan::target(&parts.uri)?;
        let mut fill = Fill::new(placeholders, &self.secrets.keyring, &to);
        fill.leave_out_of(&parts.uri)?;
        let rule = plan::decide(&self.rules, &to, parts.method.as_str())?;
        let shown = self.secrets.redactor.redact(to.host.to_string());
        request_span::goes_to(&shown, to.port);
        let most = request_body::most(&parts.headers, &body);
        let place = Place::take(places, &self.places, most);
        let (mut place, waited) = request_span::spent_waiting(Duration::ZERO, place).await;
        let body = request_body::collect(body).await.map_err(Stopped::Failed)?;
        let line = (&parts.method, &url);
        let seen = Seen::of(&self.tap, &self.secrets, placeholders, line, &parts.headers, &body);
        let mut headers = fill.headers(parts.headers)?;
        let body = fill.body(body, &mut headers)?;
        if let Some(answer) = seen.as_ref().and_then(Seen::answer) {
            return Ok(answer.map_err(Stopped::Failed)?.map(boxed));
        }
        place.keep(body.in_memory());
        let options = options.unwrap_or_default();
        let capped = |asked: Option<Duration>, cap: Duration| asked.map_or(cap, |asked| asked.min(cap));
        let response = rule.grant.response_timeout();
        let outgoing = Outgoing {
            method: parts.method.clone(),
            url,
            headers,
            body: reqwest::Body::wrap(body),
            connect: capped(options.connect_timeout, rule.grant.connect_timeout()),
            first_byte: capped(options.first_byte_timeout, response),
        };
        let budget = self.budgets.of(&to, || rate(&self.rules, &to));
        let turn = budget.turn(latest, &self.provider, &self.metrics);
        let (turn, _) = request_span::spent_waiting(waited, turn).await;
        let admitted = match turn {
            Ok(admitted) => admitted,
            Err(too_late) => {
                request_span::not_sent("throttled");
                return Ok(too_late);
            }
        };
        let measured = self.metrics.measure(&self.provider, &parts.method);
        let answer = self.clients[rule.at].send(outgoing).await;
        measured.done(answer.as_ref().ok().map(reqwest::Response::status));
        request_span::answered(&answer);
        let pause =
            |answer: &reqwest::Response| retry_after::wait(answer.status(), answer.headers(), SystemTime::now());
        if let Some(pause) = answer.as_ref().ok().and_then(pause) {
            admitted.pause(pause, &self.provider, &self.metrics);
        }
        drop(admitted);
        let answer = answer.map_err(|failed| {
            let stopped = stopped(failed, rule, &to, parts.method.as_str());
            seen.as_ref().inspect(|seen| seen.failed(&stopped));
            stopped
        })?;
        let between = capped(options.between_bytes_timeout, response);
        let (head, body) = Response::from(answer).into_parts();
        let body = ResponseBody::new(body, rule.grant.max_response_bytes, between).map_err(Stopped::Failed)?;
        let response = Response::from_parts(head, body.holding(place));
        match seen {
            None => Ok(response.map(BodyExt::boxed_unsync)),
            Some(seen) => Ok(seen.answered(response).await.map_err(Stopped::Failed)?.map(boxed)),
        }
    }

    /// Whether requests leave by the same clients: the same authorities, proxies and addresses, by content and not by file name.
    pub(crate) fn has_clients_of(&self, other: &Self) -> bool {
        let (ours, theirs) = (&self.clients, &other.clients);
        ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| Arc::ptr_eq(ours, theirs))
    }

    /// What is left of the budget at each API host that was asked.
    pub(crate) fn budgets(&self) -> Vec<BudgetStatus> {
        let mut budgets = self.budgets.status();
        for budget in &mut budgets {
            budget.host = self.secrets.redactor.redact(std::mem::take(&mut budget.host));
        }
        budgets
    }

    /// The budgets for a successor with these rules: the very same ones when nothing about them changes.
    fn budgets_for(&self, rules: &[Rule]) -> Arc<RequestBudgets> {
        if rules
            .iter()
            .map(|rule| &rule.grant)
            .eq(self.rules.iter().map(|rule| &rule.grant))
        {
            return Arc::clone(&self.budgets);
        }
        Arc::new(self.budgets.successor(|to| rate(rules, to)))
    }

    /// Counts, logs and remembers a refusal.
    fn refused(&self, mut refusal: Refusal, last: &Mutex<Option<Refusal>>) -> Error {
        let reason = refusal.reason;
        refusal.message = self.secrets.redactor.redact(refusal.message);
        request_span::not_sent("refused");
        self.metrics.refused(&self.provider, reason);
        if self.log.admit(&refusal) {
            tracing::warn!(
                provider = self.provider,
                reason = reason.label(),
                "request refused: {refusal}"
            );
        }
        *last.lock() = Some(refusal);
        reason.error()
    }
}

/// The budget for an API host: the smallest of all entries that fit it, whatever their methods.
fn rate(rules: &[Rule], to: &Destination) -> Option<Rate> {
    let fitting = rules.iter().filter(|rule| rule.is_for(to));
    fitting.filter_map(|rule| Rate::of(&rule.grant)).reduce(Rate::smaller)
}

/// Why there is no response.
enum Stopped {
    Refused(Refusal),
    Failed(Error),
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

/// A body that is there already.
fn boxed(body: Full<Bytes>) -> WasiBody {
    body.map_err(|never| match never {}).boxed_unsync()
}

impl From<Refusal> for Stopped {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

fn stopped(failed: Failed, rule: &Rule, to: &Destination, method: &str) -> Stopped {
    match failed {
        Failed::Prohibited(found) => plan::prohibited(rule, to, method, found).into(),
        Failed::Untrusted(why, unknown_issuer) => plan::untrusted(rule, to, &why, unknown_issuer).into(),
        Failed::Other(error) => {
            tracing::debug!(destination = %to, method, "request failed: {error}");
            Stopped::Failed(error)
        }
    }
}

/// What the host takes of a body ahead of its client, in bytes, for so many bodies of a call; and for each beyond.
const CHUNK: usize = 64 << 10;
const UNSENT: usize = 32;
const SMALL_CHUNK: usize = 1 << 10;

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
        self.placeholders
            .issue(stands_for, &self.egress.secrets.keyring, &hosts)
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

    /// Asked once for each body that a guest begins. What it writes before the request has a place is held by the host.
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
        let places = self.places.clone();
        self.unsent = self.unsent.saturating_sub(1);
        // The guest waits for it in another task, so it is here that the call is known.
        let span = request_span::begin(request.method());
        let answer = async move {
            match egress.send(request, options, latest, &placeholders, &places).await {
                Ok(response) => Ok((response, Box::new(async { Ok(()) }) as _)),
                Err(Stopped::Refused(refusal)) => Err(egress.refused(refusal, &last)),
                Err(Stopped::Failed(error)) => Err(error),
            }
        };
        Box::new(answer.instrument(span))
    }
}
