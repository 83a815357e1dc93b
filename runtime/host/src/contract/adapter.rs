//! Trait that each version of the contract implements.
//!
//! `provider` calls it and is independent of the version; `v0_1` is one implementation.

use std::pin::Pin;

use cloudwit_model::volume_cloud::Each;
use cloudwit_model::{
    Abilities, AnnotationChange, Balancer, Failure, NewRoute, NodeRef, Presence, Route, RouteOutcome, RouteTokens,
    Service, TagChange, Tags, Target, TargetUpdate,
};
use wasmtime::Store;

use crate::call::answer::InvalidResponse;
use crate::call::instance::CallState;
use crate::contract::label_adapter::LabelAdapter;
use crate::contract::small_adapter::SmallAdapter;
use crate::contract::volume_adapter::VolumeAdapter;
use crate::grants::SecretUse;
use crate::load::version::Contract;

/// Why a call has no answer, before it is converted for the controllers.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The guest could not be instantiated, trapped, or was stopped.
    Guest(wasmtime::Error),
    /// It answered invalid.
    InvalidResponse(InvalidResponse),
    /// It does not export this interface.
    NotExported(&'static str),
}

impl From<wasmtime::Error> for CallError {
    fn from(error: wasmtime::Error) -> Self {
        Self::Guest(error)
    }
}

impl From<InvalidResponse> for CallError {
    fn from(invalid: InvalidResponse) -> Self {
        Self::InvalidResponse(invalid)
    }
}

/// A call under way. The inner failure is the provider's own answer.
pub(crate) type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<Result<T, Failure>, CallError>> + Send + 'a>>;

/// An interface whose types are not those of the contract.
#[derive(Debug)]
pub(crate) struct Mismatch {
    pub interface: &'static str,
    /// The first difference, as wasmtime says it.
    pub problem: String,
}

/// A loaded component of one version of the contract. Each call instantiates it in the store it is given.
pub(crate) trait Adapter: VolumeAdapter + LabelAdapter + SmallAdapter + Send + Sync {
    /// The version of the contract that is spoken with the component.
    fn contract(&self) -> Contract;
    /// The interfaces the component exports.
    fn abilities(&self) -> Abilities;
    /// Instantiates once and compares the type of every exported function; wasmtime does that at no earlier step.
    fn mismatch<'a>(&'a self, store: &'a mut Store<CallState>) -> Reply<'a, Option<Mismatch>>;
    fn describe<'a>(&'a self, store: &'a mut Store<CallState>) -> Reply<'a, Description>;
    fn check<'a>(&'a self, store: &'a mut Store<CallState>) -> Reply<'a, Vec<Problem>>;
    fn probe<'a>(&'a self, store: &'a mut Store<CallState>) -> Reply<'a, ()>;
    fn lookup<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        nodes: &'a [NodeRef],
    ) -> Reply<'a, Vec<Result<Presence, Failure>>>;
    fn balancer_name<'a>(&'a self, store: &'a mut Store<CallState>, service: &'a Service) -> Reply<'a, String>;
    fn get_balancer<'a>(&'a self, store: &'a mut Store<CallState>, service: &'a Service)
    -> Reply<'a, Option<Balancer>>;
    fn ensure_balancer<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        service: &'a Service,
        targets: &'a [Target],
        token: Option<&'a str>,
    ) -> Reply<'a, Balancer>;
    fn update_targets<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        updates: &'a [TargetUpdate<'a>],
        targets: &'a [Target],
    ) -> Reply<'a, Vec<Result<Vec<AnnotationChange>, Failure>>>;
    fn delete_balancer<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        service: &'a Service,
        token: Option<&'a str>,
    ) -> Reply<'a, Vec<AnnotationChange>>;
    fn list_routes<'a>(&'a self, store: &'a mut Store<CallState>) -> Reply<'a, Listed<Route>>;
    fn apply_routes<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        create: &'a [NewRoute],
        delete: &'a [Route],
        tokens: &'a RouteTokens,
    ) -> Reply<'a, RouteOutcome>;
    fn change_tags<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        change: TagChange,
        nodes: &'a [NodeRef],
        tags: &'a Tags,
    ) -> Reply<'a, Each<()>>;
}

/// The items of a list that are valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed<T> {
    pub items: Vec<T>,
    /// How many were left out.
    pub left_out: usize,
    /// What was wrong with the first of these.
    pub first_problem: Option<String>,
}

/// What a provider says about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Description {
    /// Short name, lower case.
    pub name: String,
    /// The provider's own version.
    pub version: String,
    /// Prefixes of the provider ids it gives out.
    pub provider_id_prefixes: Vec<String>,
    /// Destinations it requests with the configuration it has.
    pub http: Vec<HttpGrantRequest>,
    /// Secrets it requests with the configuration it has.
    pub secrets: Vec<SecretGrantRequest>,
    /// Views of the cluster it requests.
    pub cluster: Vec<ClusterGrantRequest>,
    /// Most Nodes in one call.
    pub lookup_batch: u32,
    /// Finalizers that another controller of this cloud leaves on Services.
    pub service_finalizers: Vec<String>,
    /// The label by which another controller of this cloud notes on Nodes which tags their machines have.
    pub tagging_label: Option<String>,
    /// Interfaces it exports and does not offer with the configuration it has.
    pub disabled_interfaces: Vec<String>,
}

/// A destination that a provider requests to be granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpGrantRequest {
    /// `https` or `http`.
    pub scheme: String,
    /// Host name or IP address; a leading `*.` stands for one or more labels.
    pub host: String,
    /// Port; none for the scheme's default.
    pub port: Option<u16>,
    /// Methods, upper case.
    pub methods: Vec<String>,
    /// What it is needed for.
    pub reason: String,
}

/// A secret that a provider requests to be granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretGrantRequest {
    /// The name by which the provider requests it.
    pub name: String,
    /// What it is.
    pub reason: String,
    /// All that is done with it.
    pub uses: Vec<SecretUse>,
    /// Where placeholders for it are sent, as grants have it; empty for all destinations that are requested.
    pub hosts: Vec<String>,
    /// Whether the provider works without it.
    pub optional: bool,
}

/// A view of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterGrantView {
    /// All Nodes.
    Nodes,
    /// All Services of type `LoadBalancer`.
    Services,
}

/// A view of the cluster that a provider requests to be granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterGrantRequest {
    /// Which.
    pub view: ClusterGrantView,
    /// What it is needed for.
    pub reason: String,
    /// Whether the provider works without it.
    pub optional: bool,
}

/// What a problem of the configuration means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The provider is not used with this configuration.
    Error,
    /// It is shown, and nothing else.
    Warning,
}

/// Something wrong that a provider found in its configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Whether the provider can be used all the same.
    pub severity: Severity,
    /// Where: a key of the cloud config.
    pub at: String,
    /// What is wrong and how to put it right.
    pub message: String,
}

impl Problem {
    /// Whether the provider is not to be used.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.at, self.message)
    }
}
