//! Scope of one set of controllers: the Nodes and Services of its provider.

use std::sync::Arc;

use cloudwit_model::{Failure, NodeRef, Presence, ProviderIdentity, Service};

use crate::assign::{Assignment, Provider, Providers};
use crate::kube::node::Node;
use crate::kube::node::view::{provider_id_text, provider_label};
use crate::kube::service::view::lenient_service_view;

/// The provider of a set of controllers. With a single provider everything is its own; clones share it.
#[derive(Debug, Clone)]
pub struct Scope {
    providers: Arc<Providers>,
    own: Provider,
}

impl Scope {
    /// One for each provider.
    pub fn all(providers: &Arc<Providers>) -> Vec<Self> {
        let scope = |own: &Provider| Self {
            providers: providers.clone(),
            own: own.clone(),
        };
        providers.list().iter().map(scope).collect()
    }

    /// The provider.
    pub fn provider(&self) -> &Provider {
        &self.own
    }

    /// Who it is right now.
    pub fn identity(&self) -> ProviderIdentity {
        self.own.identity()
    }

    /// Whether there are others.
    pub fn are_several(&self) -> bool {
        self.providers.are_several()
    }

    /// Selects the Nodes of this provider, as of now.
    pub fn owns_node(&self) -> impl Fn(&Node) -> bool {
        let assignment = self.providers.assignment();
        let name = &self.own.name;
        move |node: &Node| {
            let owner = assignment.of_node(provider_id_text(node), provider_label(node));
            owner.is_some_and(|member| member.identity.name == *name)
        }
    }

    /// Selects the Nodes that this provider's controllers report on, as of now: its own, and as the default those of no provider.
    pub fn explains(&self) -> impl Fn(&Node) -> bool {
        let assignment = self.are_several().then(|| self.providers.assignment());
        let name = &self.own.name;
        move |node: &Node| {
            let explains =
                |all: &Assignment<'_>| all.explains(provider_id_text(node), provider_label(node)) == Some(name);
            assignment.as_ref().is_none_or(explains)
        }
    }

    /// The failure of Nodes without a provider to call.
    pub fn stray(&self) -> impl Fn(&NodeRef) -> Option<Failure> {
        let assignment = self.providers.assignment();
        move |node| assignment.stray(node)
    }

    /// Each answer of this provider, unless it cannot be its own.
    pub fn checked(&self) -> impl Fn(&NodeRef, Presence) -> Result<Presence, Failure> {
        let assignment = self.are_several().then(|| self.providers.assignment());
        let name = &self.own.name;
        move |node, answer| match &assignment {
            Some(assignment) => assignment.checked(name, node, answer),
            None => Ok(answer),
        }
    }

    /// Selects the Services of this provider's controllers, as of now.
    pub fn owns_service(&self) -> impl Fn(&k8s_openapi::api::core::v1::Service) -> bool {
        let assignment = self.are_several().then(|| self.providers.assignment());
        let name = &self.own.name;
        move |service: &k8s_openapi::api::core::v1::Service| {
            let owns = |all: &Assignment<'_>| all.balances(&lenient_service_view(service)) == Some(name);
            assignment.as_ref().is_none_or(owns)
        }
    }

    /// The provider that shall look after the Service; none with a single one.
    ///
    /// # Errors
    /// [`Failure::Invalid`] when the Service names a provider that is not configured.
    pub fn wanted(&self, service: &Service) -> Result<Option<String>, Failure> {
        Ok(self.providers.assignment().wanted(service)?.map(str::to_owned))
    }

    /// Fails when the cloud of this provider is not the one to call for the Service.
    ///
    /// # Errors
    /// Why there is no provider to call.
    pub fn may_ask_about(&self, service: &Service) -> Result<(), Failure> {
        if !self.are_several() {
            return Ok(());
        }
        let assignment = self.providers.assignment();
        match assignment.of_service(service)? {
            name if name == self.own.name => Ok(()),
            name => Err(Failure::Unavailable(
                format!("its load balancer is handed over to provider {name:?}").into(),
            )),
        }
    }
}
