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
//! is looked up, an untrusted certificate, and a client certificate that a server demands or refuses. Redirects are the guest's business. Header values and bodies are never logged.

pub(crate) mod budget;
mod fill;
pub(crate) mod hooks;
pub(crate) mod in_flight;
pub mod metrics;
pub(crate) mod plan;
pub mod refusal;
pub(crate) mod request_body;
pub(crate) mod request_span;
pub(crate) mod response_body;
mod wire;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::request::Parts;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use reqwest::Url;
use tokio::time::Instant;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

use crate::egress::budget::rate_limit::Rate;
use crate::egress::budget::{BudgetStatus, RequestBudgets, retry_after};
use crate::egress::fill::Fill;
use crate::egress::in_flight::{Place, Places};
use crate::egress::metrics::EgressMetrics;
use crate::egress::plan::Rule;
use crate::egress::refusal::{Refusal, RefusalLog};
use crate::egress::response_body::ResponseBody;
use crate::egress::wire::ObservedRequest;
use crate::grants::{GrantError, Grants};
use crate::limits::Limits;
use crate::net::client::{HttpClient, HttpClients, Outgoing};
use crate::net::destination::Destination;
use crate::net::http_error::HttpFailure;
use crate::net::wire::Tap;
use crate::secrets::Secrets;
use crate::secrets::placeholders::Placeholders;

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

    async fn send(
        &self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        scope: CallScope<'_>,
    ) -> Result<Response<WasiBody>, Stopped> {
        let CallScope {
            latest,
            secrets,
            placeholders,
            places,
        } = scope;
        let (parts, body) = request.into_parts();
        let (url, to) = plan::target(&parts.uri)?;
        let fill = Fill::new(placeholders, &secrets.keyring, &to);
        fill.leave_out_of(&parts.uri)?;
        let rule = plan::decide(&self.rules, &to, parts.method.as_str())?;
        let shown = secrets.redactor.redact(to.host.to_string());
        request_span::goes_to(&shown, to.port);
        let seen = ObservedRequest::of(&self.tap, secrets, placeholders, (&parts.method, &url), &parts.headers);
        let granted = Granted {
            url,
            to: &to,
            rule,
            fill,
            options: options.unwrap_or_default(),
            latest,
        };
        let Some(mut seen) = seen else {
            return self.exchange(granted, parts, body, places, None).await;
        };
        let outcome = self.exchange(granted, parts, body, places, Some(&mut seen)).await;
        seen.ended(outcome).await
    }

    /// From the grant to the response: waits for a place and a turn, fills secrets in, and sends.
    async fn exchange(
        &self,
        granted: Granted<'_>,
        parts: Parts,
        body: WasiBody,
        places: &Places,
        seen: Option<&mut ObservedRequest<'_>>,
    ) -> Result<Response<WasiBody>, Stopped> {
        let Granted {
            url,
            to,
            rule,
            mut fill,
            options,
            latest,
        } = granted;
        let most = request_body::most(&parts.headers, &body);
        let place = Place::take(places, &self.places, most);
        let (mut place, waited) = request_span::spent_waiting(Duration::ZERO, place).await;
        let mut headers = fill.headers(parts.headers)?;
        let body = request_body::collect(body).await.map_err(Stopped::Failed)?;
        let instead = seen.and_then(|seen| seen.answer(&body));
        let body = fill.body(body, &mut headers)?;
        if let Some(answer) = instead {
            return answer.map_err(Stopped::Failed);
        }
        place.keep(body.in_memory());
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
        let budget = self.budgets.of(to, || rate(&self.rules, to));
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
        budget.answered(answer.as_ref().map(reqwest::Response::status));
        measured.done(answer.as_ref().ok().map(reqwest::Response::status));
        request_span::answered(&answer);
        let pause =
            |answer: &reqwest::Response| retry_after::wait(answer.status(), answer.headers(), SystemTime::now());
        if let Some(pause) = answer.as_ref().ok().and_then(pause) {
            admitted.pause(pause, &self.provider, &self.metrics);
        }
        drop(admitted);
        let answer = answer.map_err(|failed| stopped(failed, rule, to, parts.method.as_str()))?;
        let between = capped(options.between_bytes_timeout, response);
        let (head, body) = Response::from(answer).into_parts();
        let body = ResponseBody::new(body, rule.grant.max_response_bytes, between).map_err(Stopped::Failed)?;
        Ok(Response::from_parts(head, body.holding(place).boxed_unsync()))
    }

    /// Whether requests leave by the same clients: the same authorities, proxies and addresses, by content and not by file name.
    pub(crate) fn has_clients_of(&self, other: &Self) -> bool {
        let (ours, theirs) = (&self.clients, &other.clients);
        ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| Arc::ptr_eq(ours, theirs))
    }

    /// Digests of the client certificates and keys, one for each grant; empty where it has none.
    pub(crate) fn identities(&self) -> impl Iterator<Item = &[u8]> {
        self.clients
            .iter()
            .map(|client| client.identity().map_or(&[][..], |digest| &digest[..]))
    }

    /// What is left of the budget at each API host with requests.
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

    /// Counts, logs and keeps a refusal.
    fn refused(&self, mut refusal: Refusal, secrets: &Secrets, last: &Mutex<Option<Refusal>>) -> Error {
        let reason = refusal.reason;
        refusal.message = secrets.redactor.redact(refusal.message);
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

/// What a request has of its call.
struct CallScope<'a> {
    /// When its turn has to have come.
    latest: Instant,
    /// Those of the provider and of the call.
    secrets: &'a Secrets,
    placeholders: &'a Placeholders,
    /// Requests in flight of the call.
    places: &'a Places,
}

/// A request that may leave.
struct Granted<'a> {
    url: Url,
    to: &'a Destination,
    rule: &'a Rule,
    fill: Fill<'a>,
    options: RequestOptions,
    /// When its turn has to have come.
    latest: Instant,
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

impl From<Refusal> for Stopped {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

fn stopped(failed: HttpFailure, rule: &Rule, to: &Destination, method: &str) -> Stopped {
    match failed {
        HttpFailure::Prohibited(found) => plan::prohibited(rule, to, method, found).into(),
        HttpFailure::Untrusted(why, unknown_issuer) => plan::untrusted(rule, to, &why, unknown_issuer).into(),
        HttpFailure::ClientCertificate(alert) => plan::unwelcome(rule, to, alert).into(),
        HttpFailure::Other(error) => {
            tracing::debug!(destination = %to, method, "request failed: {error}");
            Stopped::Failed(error)
        }
    }
}
