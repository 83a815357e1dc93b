//! Hot swap of a provider: component, configuration, grants, limits and secrets.
//!
//! ```text
//!   new files -> load beside -> same as what runs? -> lost something? -> grants -> check -> probe -> switch
//!                    |                 unchanged           |               |         |        |
//!                    +------------------ refused: the last good one keeps running ------------+
//! ```
//!
//! Calls in flight end on the provider they began with, since they hold it; the next call takes the new one. When to try is the manager's
//! business: it watches the files.

pub(crate) mod digest;
mod labels;
mod ssh_keys;
pub(crate) mod status;
mod volumes;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use cloudwit_model::volume_cloud::Each;
use cloudwit_model::{
    Abilities, AnnotationChange, Answer, Balancer, Cloud, Failure, FaultKind, NewRoute, NodeRef, Presence,
    ProviderFault, ProviderIdentity, Route, RouteOutcome, RouteTokens, Service, TagChange, Tags, Target, TargetUpdate,
};
use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};

use crate::LoadError;
use crate::call::LastFault;
use crate::call::instance::Outside;
use crate::contract::adapter::Problem;
use crate::egress::budget::BudgetStatus;
use crate::host::{Host, ProviderSettings};
use crate::load::requests::MissingGrant;
use crate::provider::Provider;
use crate::swap::status::{ProviderStatus, Swap, SwapResult};

/// A provider whose component and settings can change. The model's `Cloud` for as long as the process lives.
pub struct SwappableProvider {
    host: Arc<Host>,
    outside: Outside,
    name: String,
    current: RwLock<Provider>,
    history: Mutex<History>,
    /// One attempt at a time.
    turn: tokio::sync::Mutex<()>,
}

struct History {
    since: Timestamp,
    last_swap: Option<Swap>,
    /// Of those that ran before.
    last_fault: Option<LastFault>,
}

/// A candidate that does not get the place, and why.
struct Refused {
    result: SwapResult,
    message: String,
    may_pass_later: bool,
}

/// Why there is nothing to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoSuccessor {
    result: SwapResult,
    message: String,
    may_pass_later: bool,
}

impl NoSuccessor {
    /// The component cannot be had from its registry, now.
    pub fn not_pulled(message: String) -> Self {
        Self {
            result: SwapResult::Pull,
            message,
            may_pass_later: true,
        }
    }
}

impl From<String> for NoSuccessor {
    /// The settings have these mistakes.
    fn from(message: String) -> Self {
        Self {
            result: SwapResult::Settings,
            message,
            may_pass_later: false,
        }
    }
}

impl Refused {
    fn new(result: SwapResult, message: String) -> Self {
        Self {
            result,
            message,
            may_pass_later: false,
        }
    }
}

impl std::fmt::Debug for SwappableProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SwappableProvider")
            .field("name", &self.name)
            .field("current", &self.current())
            .finish_non_exhaustive()
    }
}

impl SwappableProvider {
    /// Loads the provider to begin with, as [`Host::load`] does. Missing grants are logged, once.
    pub async fn load(
        host: Arc<Host>,
        component: PathBuf,
        settings: ProviderSettings,
        outside: Outside,
    ) -> Result<Self, LoadError> {
        let name = settings.name.clone();
        let provider = host.load(&component, settings, outside.clone()).await?;
        for missing in provider.missing_grants() {
            if missing.optional {
                tracing::info!(provider = name, "optional grants not given; to use them, add {missing}");
            } else {
                tracing::warn!(provider = name, "missing grants; add {missing}");
            }
        }
        host.metrics().runs(&name);
        Ok(Self {
            host,
            outside,
            name,
            current: RwLock::new(provider),
            history: Mutex::new(History {
                since: Timestamp::now(),
                last_swap: None,
                last_fault: None,
            }),
            turn: tokio::sync::Mutex::default(),
        })
    }

    /// The operator's name for it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The provider that takes the next call.
    pub fn current(&self) -> Provider {
        self.current.read().clone()
    }

    /// What runs, since when, and what came of the last change. Cheap: no call of the provider.
    pub fn status(&self) -> ProviderStatus {
        let provider = self.current();
        let history = self.history.lock();
        let status = ProviderStatus::of(&self.name, &provider, history.since);
        ProviderStatus {
            last_swap: history.last_swap.clone(),
            last_fault: status.last_fault.or_else(|| history.last_fault.clone()),
            ..status
        }
    }

    /// What is left of the request budget at each API host with requests. Cheap too.
    pub fn budgets(&self) -> Vec<BudgetStatus> {
        self.current().env().egress.budgets()
    }

    /// Follows a change: the component and the settings as they are now, or why there are none. Counts, logs and keeps the result.
    pub async fn swap(&self, next: Result<(PathBuf, ProviderSettings), NoSuccessor>) -> Swap {
        let _turn = self.turn.lock().await;
        let started = Instant::now();
        let ended = match next {
            Ok((component, settings)) => self.attempt(component, settings).await,
            Err(none) => Err(Refused {
                result: none.result,
                message: none.message,
                may_pass_later: none.may_pass_later,
            }),
        };
        let (result, message, may_pass_later) = match ended {
            Ok((result, message)) => (result, message, false),
            Err(refused) => (refused.result, one_line(&refused.message), refused.may_pass_later),
        };
        let swap = Swap {
            at: Timestamp::now(),
            result,
            message,
            took: started.elapsed(),
            may_pass_later,
        };
        self.host.metrics().swap(&self.name, result);
        let was_refused = {
            let mut history = self.history.lock();
            let last = history.last_swap.as_ref();
            let was_refused = last.is_some_and(|last| last.result.is_refusal());
            // That nothing changed is only news when something had.
            if result != SwapResult::Unchanged || was_refused {
                history.last_swap = Some(swap.clone());
            }
            was_refused
        };
        self.log(&swap, was_refused);
        swap
    }

    /// One line for what came of a change. The look after each start finds nothing changed, which is no news.
    fn log(&self, swap: &Swap, was_refused: bool) {
        let Swap { result, message, .. } = swap;
        let (provider, took_seconds) = (&self.name, swap.took.as_secs_f64());
        match result {
            SwapResult::Swapped => {
                let current = self.current();
                let digest = current.component_digest();
                tracing::info!(provider, result = result.label(), digest, took_seconds, "{message}");
            }
            SwapResult::Unchanged if was_refused => {
                tracing::info!(provider, result = result.label(), took_seconds, "{message}");
            }
            SwapResult::Unchanged => tracing::debug!(provider, result = result.label(), took_seconds, "{message}"),
            _ => tracing::warn!(
                provider,
                step = result.label(),
                took_seconds,
                "change refused; previous provider keeps running: {message}"
            ),
        }
    }

    async fn attempt(&self, component: PathBuf, settings: ProviderSettings) -> Result<(SwapResult, String), Refused> {
        let before = self.current();
        let candidate = self
            .host
            .load_after(&component, settings, self.outside.clone(), Some(&before))
            .await
            .map_err(not_loaded)?;
        let who = format!(
            "{} {} ({})",
            candidate.description().name,
            candidate.description().version,
            component.display()
        );
        if candidate.is_like(&before) {
            return Ok((SwapResult::Unchanged, format!("nothing changed: {who} keeps running")));
        }
        compare(&before, &candidate)?;
        let problems = candidate
            .check()
            .await
            .map_err(|fault| faulty(SwapResult::Check, &fault))?;
        let (errors, warnings): (Vec<Problem>, Vec<Problem>) = problems.into_iter().partition(Problem::is_error);
        for warning in warnings {
            tracing::warn!(provider = self.name, %warning, "questionable configuration");
        }
        if !errors.is_empty() {
            let text = format!("{who} does not accept its configuration: {}", list(&errors));
            return Err(Refused::new(SwapResult::Check, text));
        }
        candidate.probe().await.map_err(|error| Refused {
            result: SwapResult::Probe,
            message: format!("{who} cannot use the cloud: {error}"),
            // Whatever it says: an outage passes, and a new token may take a moment to be known everywhere.
            may_pass_later: true,
        })?;
        self.switch(&before, candidate);
        Ok((SwapResult::Swapped, format!("{who} runs")))
    }

    /// The next call takes the new one.
    fn switch(&self, before: &Provider, candidate: Provider) {
        candidate.env().state.take_over(&before.env().state);
        *self.current.write() = candidate;
        let mut history = self.history.lock();
        history.since = Timestamp::now();
        if let Some(fault) = before.last_fault() {
            history.last_fault = Some(fault);
        }
    }
}

fn not_loaded(error: LoadError) -> Refused {
    let message = error.to_string();
    match error {
        LoadError::Settings { .. } => Refused::new(SwapResult::Settings, message),
        LoadError::Hanging { .. } => Refused {
            result: SwapResult::Settings,
            message,
            may_pass_later: true,
        },
        LoadError::Start { fault, .. } => Refused {
            message,
            ..faulty(SwapResult::Load, &fault)
        },
        LoadError::Compile { fault, .. } => Refused {
            result: SwapResult::Load,
            message,
            may_pass_later: fault.may_pass_later(),
        },
        _ => Refused::new(SwapResult::Load, message),
    }
}

/// A fault that time or room caused may not come again.
fn faulty(result: SwapResult, fault: &ProviderFault) -> Refused {
    Refused {
        result,
        message: fault.to_string(),
        may_pass_later: matches!(fault.kind, FaultKind::Deadline | FaultKind::Host),
    }
}

/// What runs must stay possible: the controllers are started by the abilities of the first one, and Nodes carry its provider ids.
fn compare(before: &Provider, candidate: &Provider) -> Result<(), Refused> {
    let (old, new) = (before.abilities(), candidate.abilities());
    let kept = new.names();
    let lost: Vec<String> = old
        .names()
        .into_iter()
        .filter(|name| !kept.contains(name))
        .map(|name| format!("`{name}`"))
        .collect();
    if !lost.is_empty() {
        let text = format!(
            "it no longer exports {} (or its configuration disables that), which the running provider does and the controllers use; restart to run \
             without",
            lost.join(", ")
        );
        return Err(Refused::new(SwapResult::Abilities, text));
    }
    let prefixes = &candidate.description().provider_id_prefixes;
    let known = &before.description().provider_id_prefixes;
    if let Some(prefix) = known.iter().find(|prefix| !prefixes.contains(prefix)) {
        let text = format!(
            "it does not declare the provider-id prefix {prefix:?}, which Nodes may carry; a provider has to declare all prefixes of the one it \
             replaces"
        );
        return Err(Refused::new(SwapResult::Abilities, text));
    }
    if old != new {
        tracing::warn!("new provider offers more interfaces; restart to run the controllers that use them");
    }
    let accepted = before.missing_grants();
    let lacking: Vec<MissingGrant> = candidate.missing_grants();
    let lacking: Vec<String> = lacking
        .iter()
        .filter(|lack| !lack.optional && !accepted.contains(lack))
        .map(ToString::to_string)
        .collect();
    if lacking.is_empty() {
        return Ok(());
    }
    let text = format!("missing grants; add {}", lacking.join("; add "));
    Err(Refused::new(SwapResult::Grants, text))
}

fn list(problems: &[Problem]) -> String {
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

/// For Events, health pages and logs alike.
fn one_line(text: &str) -> String {
    text.split('\n').map(str::trim).collect::<Vec<_>>().join(" ")
}

impl Cloud for SwappableProvider {
    fn identity(&self) -> ProviderIdentity {
        self.current().identity()
    }

    fn abilities(&self) -> Abilities {
        self.current().abilities()
    }

    fn lookup_limit(&self) -> usize {
        self.current().lookup_limit()
    }

    fn lookup<'a>(&'a self, nodes: &'a [NodeRef]) -> Answer<'a, Vec<Result<Presence, Failure>>> {
        let provider = self.current();
        Box::pin(async move { provider.lookup(nodes).await })
    }

    fn get_balancer<'a>(&'a self, service: &'a Service) -> Answer<'a, Option<Balancer>> {
        let provider = self.current();
        Box::pin(async move { provider.get_balancer(service).await })
    }

    fn ensure_balancer<'a>(
        &'a self,
        service: &'a Service,
        targets: &'a [Target],
        token: Option<&'a str>,
    ) -> Answer<'a, Balancer> {
        let provider = self.current();
        Box::pin(async move { provider.ensure_balancer(service, targets, token).await })
    }

    fn update_targets_of<'a>(
        &'a self,
        updates: &'a [TargetUpdate<'a>],
        targets: &'a [Target],
    ) -> Answer<'a, Vec<Result<Vec<AnnotationChange>, Failure>>> {
        let provider = self.current();
        Box::pin(async move { provider.update_targets_of(updates, targets).await })
    }

    fn delete_balancer<'a>(
        &'a self,
        service: &'a Service,
        token: Option<&'a str>,
    ) -> Answer<'a, Vec<AnnotationChange>> {
        let provider = self.current();
        Box::pin(async move { provider.delete_balancer(service, token).await })
    }

    fn list_routes(&self) -> Answer<'_, Vec<Route>> {
        let provider = self.current();
        Box::pin(async move { provider.list_routes().await })
    }

    fn apply_routes<'a>(
        &'a self,
        create: &'a [NewRoute],
        delete: &'a [Route],
        tokens: &'a RouteTokens,
    ) -> Answer<'a, RouteOutcome> {
        let provider = self.current();
        Box::pin(async move { provider.apply_routes(create, delete, tokens).await })
    }

    fn change_tags<'a>(&'a self, change: TagChange, nodes: &'a [NodeRef], tags: &'a Tags) -> Answer<'a, Each<()>> {
        let provider = self.current();
        Box::pin(async move { provider.change_tags(change, nodes, tags).await })
    }
}
