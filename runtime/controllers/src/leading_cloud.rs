//! A cloud that is changed only while this process leads. Questions pass; calls that change something are refused when the term is over
//! and given up when it ends during the call, so that a successor does not meet them.

use std::collections::BTreeMap;
use std::sync::Arc;

use cloudwit_model::{
    Abilities, AnnotationChange, Answer, Balancer, Cloud, CloudError, Failure, NewRoute, NodeRef, Owners, Presence,
    ProviderIdentity, Route, RouteOutcome, Service, Target,
};

use crate::leadership::{Leadership, NotLeading};

/// A cloud behind a [`Leadership`].
pub struct LeadingCloud {
    cloud: Arc<dyn Cloud>,
    leadership: Leadership,
}

impl LeadingCloud {
    /// This cloud, changed only while this leadership lasts.
    pub fn new(cloud: Arc<dyn Cloud>, leadership: Leadership) -> Self {
        Self { cloud, leadership }
    }

    fn change<'a, T: Send + 'a>(&'a self, call: Answer<'a, T>) -> Answer<'a, T> {
        Box::pin(async move {
            self.leadership
                .write(call)
                .await
                .unwrap_or_else(|error| Err(refused(error)))
        })
    }
}

fn refused(error: NotLeading) -> CloudError {
    Failure::Unavailable(error.to_string()).into()
}

impl Cloud for LeadingCloud {
    fn identity(&self) -> ProviderIdentity {
        self.cloud.identity()
    }

    fn owners(&self) -> Owners {
        self.cloud.owners()
    }

    fn balancer_provider(&self, service: &Service) -> Result<Option<String>, Failure> {
        self.cloud.balancer_provider(service)
    }

    fn abilities(&self) -> Abilities {
        self.cloud.abilities()
    }

    fn unlisted(&self) -> BTreeMap<usize, String> {
        self.cloud.unlisted()
    }

    fn lookup_limit(&self) -> usize {
        self.cloud.lookup_limit()
    }

    fn lookup<'a>(&'a self, nodes: &'a [NodeRef]) -> Answer<'a, Vec<Result<Presence, Failure>>> {
        self.cloud.lookup(nodes)
    }

    fn balancer_name<'a>(&'a self, service: &'a Service) -> Answer<'a, String> {
        self.cloud.balancer_name(service)
    }

    fn get_balancer<'a>(&'a self, service: &'a Service) -> Answer<'a, Option<Balancer>> {
        self.cloud.get_balancer(service)
    }

    fn ensure_balancer<'a>(
        &'a self,
        service: &'a Service,
        targets: &'a [Target],
        token: Option<&'a str>,
    ) -> Answer<'a, Balancer> {
        self.change(self.cloud.ensure_balancer(service, targets, token))
    }

    fn update_targets<'a>(
        &'a self,
        service: &'a Service,
        targets: &'a [Target],
        token: Option<&'a str>,
    ) -> Answer<'a, Vec<AnnotationChange>> {
        self.change(self.cloud.update_targets(service, targets, token))
    }

    fn delete_balancer<'a>(
        &'a self,
        service: &'a Service,
        token: Option<&'a str>,
    ) -> Answer<'a, Vec<AnnotationChange>> {
        self.change(self.cloud.delete_balancer(service, token))
    }

    fn list_routes(&self) -> Answer<'_, Vec<Route>> {
        self.cloud.list_routes()
    }

    fn apply_routes<'a>(&'a self, create: &'a [NewRoute], delete: &'a [Route]) -> Answer<'a, RouteOutcome> {
        self.change(self.cloud.apply_routes(create, delete))
    }
}
