//! A cloud with load balancers, in memory. It does what it is told unless a script says otherwise, and can hold calls.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Mutex;

use cloudwit_model::{
    Abilities, AnnotationChange, Answer, Balancer, Cloud, CloudError, Endpoint, Failure, FaultKind, Ingress, IpMode,
    NewRoute, NodeRef, Presence, ProviderFault, ProviderIdentity, Route, RouteOutcome, RouteTokens, Service, Target,
    TargetUpdate,
};
use futures::future::join_all;
use tokio::sync::watch;

/// A load balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeBalancer {
    pub name: String,
    pub targets: Vec<String>,
    pub ports: Vec<u16>,
}

/// A call as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub operation: &'static str,
    pub name: String,
    pub token: Option<String>,
    pub targets: Vec<String>,
}

#[derive(Default)]
struct State {
    /// By uid of the Service.
    balancers: BTreeMap<String, FakeBalancer>,
    calls: Vec<Call>,
    failures: VecDeque<(&'static str, Failure)>,
    annotations: Vec<AnnotationChange>,
    removed_annotations: Vec<AnnotationChange>,
    busy: BTreeSet<String>,
    overlapped: bool,
}

pub struct FakeBalancers {
    state: Mutex<State>,
    /// The operation whose calls wait before they do anything.
    held: watch::Sender<Option<&'static str>>,
}

/// Notices when two calls for one Service overlap.
struct Busy<'a>(&'a FakeBalancers, String);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.state.lock().unwrap().busy.remove(&self.1);
    }
}

impl FakeBalancers {
    pub fn new() -> Self {
        Self {
            state: Mutex::default(),
            held: watch::Sender::new(None),
        }
    }

    pub fn balancers(&self) -> Vec<FakeBalancer> {
        self.state.lock().unwrap().balancers.values().cloned().collect()
    }

    /// The load balancer of the only Service.
    pub fn only(&self) -> Option<FakeBalancer> {
        self.balancers().first().cloned()
    }

    pub fn calls(&self) -> Vec<Call> {
        self.state.lock().unwrap().calls.clone()
    }

    pub fn count(&self, operation: &str) -> usize {
        self.calls().iter().filter(|call| call.operation == operation).count()
    }

    pub fn overlapped(&self) -> bool {
        self.state.lock().unwrap().overlapped
    }

    /// The next call of this operation fails like this.
    pub fn fail_next(&self, operation: &'static str, failure: Failure) {
        self.state.lock().unwrap().failures.push_back((operation, failure));
    }

    /// What `ensure` asks to have annotated, and `delete` to have removed.
    pub fn annotate(&self, key: &str, value: &str) {
        let mut state = self.state.lock().unwrap();
        state.annotations.push(AnnotationChange {
            key: key.into(),
            value: Some(value.into()),
        });
        state.removed_annotations.push(AnnotationChange {
            key: key.into(),
            value: None,
        });
    }

    /// Somebody deletes everything behind our back.
    pub fn lose_all(&self) {
        self.state.lock().unwrap().balancers.clear();
    }

    pub fn hold(&self, operation: &'static str) {
        self.held.send_replace(Some(operation));
    }

    pub fn release(&self) {
        self.held.send_replace(None);
    }

    async fn enter(
        &self,
        operation: &'static str,
        service: &Service,
        targets: &[Target],
        token: Option<&str>,
    ) -> Busy<'_> {
        {
            let mut state = self.state.lock().unwrap();
            state.overlapped |= !state.busy.insert(service.uid.clone());
            state.calls.push(Call {
                operation,
                name: service.name.clone(),
                token: token.map(str::to_owned),
                targets: names(targets),
            });
        }
        let busy = Busy(self, service.uid.clone());
        self.held
            .subscribe()
            .wait_for(|held| *held != Some(operation))
            .await
            .unwrap();
        busy
    }

    fn give(&self, uid: &str, targets: &[Target]) -> Result<Vec<AnnotationChange>, Failure> {
        match self.state.lock().unwrap().balancers.get_mut(uid) {
            Some(balancer) => balancer.targets = names(targets),
            None => return Err(Failure::NotFound("no such load balancer".into())),
        }
        Ok(Vec::new())
    }

    fn scripted(&self, operation: &str) -> Result<(), CloudError> {
        let mut state = self.state.lock().unwrap();
        let position = state.failures.iter().position(|(scripted, _)| *scripted == operation);
        match position.and_then(|position| state.failures.remove(position)) {
            Some((_, failure)) => Err(failure.into()),
            None => Ok(()),
        }
    }
}

fn names(targets: &[Target]) -> Vec<String> {
    targets.iter().map(|target| target.node.name.clone()).collect()
}

fn not_exported<T: Send + 'static>() -> Answer<'static, T> {
    let fault = ProviderFault {
        provider: "fake".into(),
        kind: FaultKind::NotExported,
        message: "only load balancers".into(),
        output: String::new(),
    };
    Box::pin(std::future::ready(Err(fault.into())))
}

fn address() -> Vec<Ingress> {
    vec![Ingress {
        endpoint: Endpoint::Ip("203.0.113.7".parse().unwrap(), IpMode::Vip),
        ports: Vec::new(),
    }]
}

impl Cloud for FakeBalancers {
    fn identity(&self) -> ProviderIdentity {
        ProviderIdentity {
            name: "fake".into(),
            ..ProviderIdentity::default()
        }
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            load_balancers: true,
            ..Abilities::default()
        }
    }

    fn lookup<'a>(&'a self, _: &'a [NodeRef]) -> Answer<'a, Vec<Result<Presence, Failure>>> {
        not_exported()
    }

    fn get_balancer<'a>(&'a self, service: &'a Service) -> Answer<'a, Option<Balancer>> {
        Box::pin(async {
            let _busy = self.enter("get", service, &[], None).await;
            let exists = self.state.lock().unwrap().balancers.contains_key(&service.uid);
            Ok(exists.then(|| Balancer {
                ingress: address(),
                ..Balancer::default()
            }))
        })
    }

    fn ensure_balancer<'a>(
        &'a self,
        service: &'a Service,
        targets: &'a [Target],
        token: Option<&'a str>,
    ) -> Answer<'a, Balancer> {
        Box::pin(async move {
            let _busy = self.enter("ensure", service, targets, token).await;
            self.scripted("ensure")?;
            let mut state = self.state.lock().unwrap();
            let ports = service.ports.iter().map(|port| port.port).collect();
            let balancer = FakeBalancer {
                name: service.name.clone(),
                targets: names(targets),
                ports,
            };
            state.balancers.insert(service.uid.clone(), balancer);
            Ok(Balancer {
                ingress: address(),
                annotations: state.annotations.clone(),
                remaining: None,
            })
        })
    }

    fn update_targets_of<'a>(
        &'a self,
        updates: &'a [TargetUpdate<'a>],
        targets: &'a [Target],
    ) -> Answer<'a, Vec<Result<Vec<AnnotationChange>, Failure>>> {
        Box::pin(async move {
            let enter = |update: &'a TargetUpdate<'a>| self.enter("update", update.service, targets, update.token);
            let _busy = join_all(updates.iter().map(enter)).await;
            let mut results = Vec::new();
            for update in updates {
                results.push(match self.scripted("update") {
                    Ok(()) => self.give(&update.service.uid, targets),
                    Err(CloudError::Failure(failure)) => Err(failure),
                    Err(fault) => return Err(fault),
                });
            }
            Ok(results)
        })
    }

    fn delete_balancer<'a>(
        &'a self,
        service: &'a Service,
        token: Option<&'a str>,
    ) -> Answer<'a, Vec<AnnotationChange>> {
        Box::pin(async move {
            let _busy = self.enter("delete", service, &[], token).await;
            self.scripted("delete")?;
            let mut state = self.state.lock().unwrap();
            state.balancers.remove(&service.uid);
            Ok(state.removed_annotations.clone())
        })
    }

    fn list_routes(&self) -> Answer<'_, Vec<Route>> {
        not_exported()
    }

    fn apply_routes<'a>(&'a self, _: &'a [NewRoute], _: &'a [Route], _: &'a RouteTokens) -> Answer<'a, RouteOutcome> {
        not_exported()
    }
}
