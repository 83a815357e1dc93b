//! A loaded provider: implements the model's traits over a component.
//!
//! Here `Cloud`, in `volumes` `VolumeCloud`, in `labels` `VolumeLabels`, in `small` the traits of the small interfaces.

mod labels;
mod small;
mod tagging;
mod volumes;

use std::sync::Arc;

use cloudwit_model::volume_cloud::Each;
use cloudwit_model::{
    Abilities, AnnotationChange, Answer, Balancer, Cloud, CloudError, Failure, FaultKind, NewRoute, NodeRef, Presence,
    ProviderFault, ProviderIdentity, Route, RouteOutcome, RouteTokens, Service, TagChange, Tags, Target, TargetUpdate,
};
use data_encoding::HEXLOWER;
use ring::digest::{Context, SHA256};

use crate::call::answer::limits::TARGET_UPDATES;
use crate::call::guest_memory::GuestMemoryUse;
use crate::call::instance::{Env, Subjects};
use crate::call::{Caller, LastFault, LoadFacts, answer};
use crate::contract::adapter::{Adapter, Description, Problem};
use crate::load::code::Code;
use crate::load::requests::{self, MissingGrant};
use crate::metrics::{ItemKind, Operation};

/// A provider that was loaded. Clones share everything; calls may run at the same time.
#[derive(Clone)]
pub struct Provider(Arc<Inner>);

struct Inner {
    caller: Caller,
    adapter: Box<dyn Adapter>,
    description: Description,
    code: Code,
    /// Of the component and of all that was set for it.
    digest: String,
    facts: LoadFacts,
}

impl std::fmt::Debug for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Provider")
            .field("description", &self.0.description)
            .field("component", &self.0.code.digest)
            .finish()
    }
}

impl Provider {
    pub(crate) fn new(
        caller: Caller,
        adapter: Box<dyn Adapter>,
        description: Description,
        code: Code,
        facts: LoadFacts,
    ) -> Self {
        let mut digest = Context::new(&SHA256);
        digest.update(code.digest.as_bytes());
        digest.update(&caller.env().settings_digest);
        caller.described_as(&description.name, &description.version, &code.digest);
        Self(Arc::new(Inner {
            caller,
            adapter,
            description,
            code,
            digest: HEXLOWER.encode(digest.finish().as_ref()),
            facts,
        }))
    }

    /// The provider's description; read once, when it was loaded.
    pub fn description(&self) -> &Description {
        &self.0.description
    }

    /// How it was loaded.
    pub fn load_facts(&self) -> LoadFacts {
        self.0.facts
    }

    /// SHA-256 of the component, unpacked, in hexadecimal. [`Cloud::identity`] has another digest, into which its settings and secrets go too.
    pub fn component_digest(&self) -> &str {
        &self.0.code.digest
    }

    /// The version of the contract that is spoken with it, such as `0.1`.
    pub fn contract(&self) -> String {
        self.0.adapter.contract().to_string()
    }

    /// The names of all it exports and of all it imports, with their versions.
    pub fn interfaces(&self) -> (Vec<String>, Vec<String>) {
        let component = &self.code().component;
        let (kind, engine) = (component.component_type(), component.engine());
        (
            kind.exports(engine).map(|(name, _)| name.to_owned()).collect(),
            kind.imports(engine).map(|(name, _)| name.to_owned()).collect(),
        )
    }

    /// Grants that it requests with the configuration it has, and does not have.
    pub fn missing_grants(&self) -> Vec<MissingGrant> {
        requests::missing_grants(&self.0.description, &self.env().grants)
    }

    /// The last call in which it misbehaved.
    pub fn last_fault(&self) -> Option<LastFault> {
        self.0.caller.last_fault()
    }

    /// The text without the secrets that it was given, those in its configuration included.
    pub fn redacted(&self, text: &str) -> String {
        self.env().secrets.redactor.redact(text.to_owned())
    }

    /// The first texts it wrote (log lines, failures, Events) with a secret in them, as they are without it. There should be none.
    pub fn redacted_texts(&self) -> Vec<String> {
        self.env().secrets.redactor.noted()
    }

    /// Memory of its calls, and of those of the provider whose place it took or may take.
    pub fn guest_memory(&self) -> GuestMemoryUse {
        self.env().memory.in_use()
    }

    pub(crate) fn env(&self) -> &Env {
        self.0.caller.env()
    }

    pub(crate) fn code(&self) -> &Code {
        &self.0.code
    }

    /// Whether nothing would be different if it took the other one's place: component, settings, secrets, authorities.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.0.digest == other.0.digest && self.env().egress.has_clients_of(&other.env().egress)
    }

    /// All problems the provider finds in its configuration; empty when there is none. Uses no network.
    pub async fn check(&self) -> Result<Vec<Problem>, ProviderFault> {
        let Inner { caller, adapter, .. } = self.0.as_ref();
        let asked = caller.ask(Operation::Check, adapter.as_ref(), |adapter, store| {
            adapter.check(store)
        });
        asked.await
    }

    /// One cheap authenticated call to the cloud: are address and credentials right?
    pub async fn probe(&self) -> Result<(), CloudError> {
        let mut session = self.0.caller.begin(Operation::Probe, Subjects::default()).await?;
        session.call.run(self.0.adapter.probe(&mut session.store)).await
    }

    /// The presence of a machine whose id this provider may give out.
    fn own(&self, node: &NodeRef, presence: Presence) -> Result<Presence, Failure> {
        let prefixes = &self.0.description.provider_id_prefixes;
        answer::own_id(prefixes, node, presence).map_err(|invalid| self.0.caller.screen().invalid(&invalid))
    }

    fn too_many(&self, count: usize, of: &str, most: usize) -> ProviderFault {
        let text = format!("it was called with {count} {of} at once, at most {most} are allowed");
        self.0.caller.fault(FaultKind::Host, text, String::new())
    }
}

impl Provider {
    /// The name the provider gives to the Service's load balancer.
    ///
    /// # Errors
    /// As of every call.
    pub async fn balancer_name(&self, service: &Service) -> Result<String, CloudError> {
        let subjects = Subjects::service(service, &[]);
        let mut session = self.0.caller.begin(Operation::BalancerName, subjects).await?;
        session
            .call
            .run(self.0.adapter.balancer_name(&mut session.store, service))
            .await
    }
}

impl Cloud for Provider {
    fn identity(&self) -> ProviderIdentity {
        let Description {
            name,
            version,
            provider_id_prefixes,
            service_finalizers,
            tagging_label,
            ..
        } = self.0.description.clone();
        ProviderIdentity {
            name,
            version,
            digest: self.0.digest.clone(),
            provider_id_prefixes,
            service_finalizers,
            tagging_label,
        }
    }

    fn abilities(&self) -> Abilities {
        let off = &self.0.description.disabled_interfaces;
        self.0.adapter.abilities().without(off)
    }

    fn lookup_limit(&self) -> usize {
        usize::try_from(self.0.description.lookup_batch).unwrap_or(usize::MAX)
    }

    fn lookup<'a>(&'a self, nodes: &'a [NodeRef]) -> Answer<'a, Vec<Result<Presence, Failure>>> {
        Box::pin(async move {
            if nodes.is_empty() {
                return Ok(Vec::new());
            }
            if nodes.len() > self.lookup_limit() {
                return Err(self.too_many(nodes.len(), "Nodes", self.lookup_limit()).into());
            }
            let mut session = self.0.caller.begin(Operation::Lookup, Subjects::nodes(nodes)).await?;
            let asked = self.0.adapter.lookup(&mut session.store, nodes);
            let answers = session.call.run(asked).await?;
            let answers: Vec<_> = nodes
                .iter()
                .zip(answers)
                .map(|(node, answer)| self.own(node, answer?))
                .collect();
            session.call.count_invalid(ItemKind::Node, &answers);
            Ok(answers)
        })
    }

    fn get_balancer<'a>(&'a self, service: &'a Service) -> Answer<'a, Option<Balancer>> {
        Box::pin(async move {
            let subjects = Subjects::service(service, &[]);
            let mut session = self.0.caller.begin(Operation::GetBalancer, subjects).await?;
            session
                .call
                .run(self.0.adapter.get_balancer(&mut session.store, service))
                .await
        })
    }

    fn ensure_balancer<'a>(
        &'a self,
        service: &'a Service,
        targets: &'a [Target],
        token: Option<&'a str>,
    ) -> Answer<'a, Balancer> {
        Box::pin(async move {
            let subjects = Subjects::service(service, targets);
            let mut session = self.0.caller.begin(Operation::EnsureBalancer, subjects).await?;
            session
                .call
                .run(
                    self.0
                        .adapter
                        .ensure_balancer(&mut session.store, service, targets, token),
                )
                .await
        })
    }

    fn update_targets_of<'a>(
        &'a self,
        updates: &'a [TargetUpdate<'a>],
        targets: &'a [Target],
    ) -> Answer<'a, Vec<Result<Vec<AnnotationChange>, Failure>>> {
        Box::pin(async move {
            if updates.is_empty() {
                return Ok(Vec::new());
            }
            if updates.len() > TARGET_UPDATES {
                return Err(self.too_many(updates.len(), "Services", TARGET_UPDATES).into());
            }
            let subjects = Subjects::services(updates, targets);
            let mut session = self.0.caller.begin(Operation::UpdateTargets, subjects).await?;
            let asked = self.0.adapter.update_targets(&mut session.store, updates, targets);
            let results = session.call.run(asked).await?;
            session.call.count_invalid(ItemKind::Service, &results);
            Ok(results)
        })
    }

    fn delete_balancer<'a>(
        &'a self,
        service: &'a Service,
        token: Option<&'a str>,
    ) -> Answer<'a, Vec<AnnotationChange>> {
        Box::pin(async move {
            let subjects = Subjects::service(service, &[]);
            let mut session = self.0.caller.begin(Operation::DeleteBalancer, subjects).await?;
            session
                .call
                .run(self.0.adapter.delete_balancer(&mut session.store, service, token))
                .await
        })
    }

    fn list_routes(&self) -> Answer<'_, Vec<Route>> {
        Box::pin(async move {
            let mut session = self.0.caller.begin(Operation::ListRoutes, Subjects::default()).await?;
            let listed = session.call.run(self.0.adapter.list_routes(&mut session.store)).await?;
            Ok(session.call.valid_items(ItemKind::Route, listed))
        })
    }

    fn apply_routes<'a>(
        &'a self,
        create: &'a [NewRoute],
        delete: &'a [Route],
        tokens: &'a RouteTokens,
    ) -> Answer<'a, RouteOutcome> {
        Box::pin(async move {
            let subjects = Subjects::nodes(create.iter().map(|route| &route.node));
            let mut session = self.0.caller.begin(Operation::ApplyRoutes, subjects).await?;
            let applied = self.0.adapter.apply_routes(&mut session.store, create, delete, tokens);
            let outcome = session.call.run(applied).await?;
            session.call.count_invalid(ItemKind::RouteChange, &outcome.created);
            session.call.count_invalid(ItemKind::RouteChange, &outcome.deleted);
            Ok(outcome)
        })
    }

    fn change_tags<'a>(&'a self, change: TagChange, nodes: &'a [NodeRef], tags: &'a Tags) -> Answer<'a, Each<()>> {
        Box::pin(self.changed_tags(change, nodes, tags))
    }
}
