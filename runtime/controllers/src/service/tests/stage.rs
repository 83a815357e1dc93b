//! For the tests of the loop: a cloud in memory, an API server that only takes patches and Events, and a running controller
//! between them. Time is tokio's paused clock.

use std::collections::{HashMap, HashSet, VecDeque};

use cloudwit_model::{
    Abilities, AnnotationChange, Answer, Balancer, Cloud, CloudError, Endpoint, Failure, Ingress, IpMode, NewRoute,
    NodeRef, Presence, ProviderIdentity, RemainingWork, Route, RouteOutcome, RouteTokens, Target, TargetUpdate,
};
use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::assign::{Provider, Providers, ServiceRules};
use crate::kube::events::Events;
use crate::kube::writer::Apply;
use crate::options::Options;
use crate::scope::Scope;
use crate::service::*;

pub(super) const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) operation: &'static str,
    pub(super) service: String,
    pub(super) targets: usize,
    pub(super) at: Duration,
}

/// A cloud that succeeds unless an operation is told to fail, and that can hold calls about one Service.
pub(super) struct FakeCloud {
    pub(super) began: Instant,
    pub(super) calls: Mutex<Vec<Call>>,
    pub(super) failures: Mutex<VecDeque<(&'static str, Failure)>>,
    pub(super) always: Mutex<Option<(&'static str, Failure)>>,
    pub(super) ingress: Mutex<Vec<Ingress>>,
    /// What `get` shows; none: what `ensure` gives.
    pub(super) shown: Mutex<Option<Option<Balancer>>>,
    /// So long each call takes.
    pub(super) takes: Mutex<Duration>,
    pub(super) held: watch::Sender<Option<(&'static str, &'static str)>>,
    /// The Services of each call for targets, its tokens, and those on which such a call faults.
    pub(super) batches: Mutex<Vec<Vec<String>>>,
    pub(super) tokens: Mutex<Vec<String>>,
    pub(super) faulty: Mutex<HashSet<&'static str>>,
    /// What `ensure` requests to write.
    pub(super) annotations: Mutex<Vec<AnnotationChange>>,
    /// What remains after the next calls of `ensure`, and the tokens that they had.
    pub(super) remaining: Mutex<VecDeque<RemainingWork>>,
    pub(super) ensure_tokens: Mutex<Vec<Option<String>>>,
    /// Another one is another provider.
    pub(super) digest: Mutex<&'static str>,
}

impl FakeCloud {
    pub(super) fn new() -> Arc<Self> {
        let endpoint = Endpoint::Ip("203.0.113.7".parse().unwrap(), IpMode::Vip);
        Arc::new(Self {
            began: Instant::now(),
            calls: Mutex::default(),
            failures: Mutex::default(),
            always: Mutex::default(),
            ingress: Mutex::new(vec![Ingress {
                endpoint,
                ports: Vec::new(),
            }]),
            shown: Mutex::default(),
            takes: Mutex::default(),
            held: watch::Sender::new(None),
            batches: Mutex::default(),
            tokens: Mutex::default(),
            faulty: Mutex::default(),
            annotations: Mutex::default(),
            remaining: Mutex::default(),
            ensure_tokens: Mutex::default(),
            digest: Mutex::default(),
        })
    }

    pub(super) fn calls(&self, operation: &str) -> Vec<Call> {
        lock(&self.calls)
            .iter()
            .filter(|call| call.operation == operation)
            .cloned()
            .collect()
    }

    /// Seconds from one call of this operation to the next.
    pub(super) fn pauses(&self, operation: &str) -> Vec<f64> {
        let at: Vec<Duration> = self.calls(operation).iter().map(|call| call.at).collect();
        at.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect()
    }

    pub(super) async fn call(
        &self,
        operation: &'static str,
        service: &cloudwit_model::Service,
        targets: usize,
    ) -> Result<(), CloudError> {
        self.begin(operation, &[service], targets).await;
        Ok(self.result(operation)?)
    }

    /// One call about these Services, up to its end.
    async fn begin(&self, operation: &'static str, services: &[&cloudwit_model::Service], targets: usize) {
        let at = self.began.elapsed();
        lock(&self.calls).extend(services.iter().map(|service| Call {
            operation,
            service: service.name.clone(),
            targets,
            at,
        }));
        let takes = *lock(&self.takes);
        if !takes.is_zero() {
            sleep(takes).await;
        }
        let mut held = self.held.subscribe();
        let is_about = |held: &str| services.iter().any(|service| service.name == held);
        held.wait_for(|held| held.is_none_or(|(op, name)| op != operation || !is_about(name)))
            .await
            .unwrap();
    }

    fn result(&self, operation: &str) -> Result<(), Failure> {
        let mut failures = lock(&self.failures);
        if failures.front().is_some_and(|(failing, _)| *failing == operation)
            && let Some((_, failure)) = failures.pop_front()
        {
            return Err(failure);
        }
        match &*lock(&self.always) {
            Some((failing, failure)) if *failing == operation => Err(failure.clone()),
            _ => Ok(()),
        }
    }
}

pub(super) fn never<T>() -> Answer<'static, T> {
    Box::pin(async { Err(Failure::Other("not asked in these tests".into()).into()) })
}

impl Cloud for FakeCloud {
    fn identity(&self) -> ProviderIdentity {
        ProviderIdentity {
            digest: (*lock(&self.digest)).into(),
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
        never()
    }

    fn get_balancer<'a>(&'a self, service: &'a cloudwit_model::Service) -> Answer<'a, Option<Balancer>> {
        Box::pin(async {
            self.call("get", service, 0).await?;
            let shown = lock(&self.shown).clone();
            Ok(shown.unwrap_or_else(|| {
                Some(Balancer {
                    ingress: lock(&self.ingress).clone(),
                    ..Balancer::default()
                })
            }))
        })
    }

    fn ensure_balancer<'a>(
        &'a self,
        service: &'a cloudwit_model::Service,
        targets: &'a [Target],
        token: Option<&'a str>,
    ) -> Answer<'a, Balancer> {
        Box::pin(async move {
            lock(&self.ensure_tokens).push(token.map(str::to_owned));
            self.call("ensure", service, targets.len()).await?;
            Ok(Balancer {
                ingress: lock(&self.ingress).clone(),
                annotations: lock(&self.annotations).clone(),
                remaining: lock(&self.remaining).pop_front(),
            })
        })
    }

    fn update_targets_of<'a>(
        &'a self,
        updates: &'a [TargetUpdate<'a>],
        targets: &'a [Target],
    ) -> Answer<'a, Vec<Result<Vec<AnnotationChange>, Failure>>> {
        Box::pin(async {
            lock(&self.batches).push(updates.iter().map(|update| update.service.name.clone()).collect());
            lock(&self.tokens).extend(updates.iter().filter_map(|update| update.token.map(str::to_owned)));
            let services: Vec<_> = updates.iter().map(|update| update.service).collect();
            self.begin("update", &services, targets.len()).await;
            if services
                .iter()
                .any(|service| lock(&self.faulty).contains(&*service.name))
            {
                return Err(crate::testing::fault(cloudwit_model::FaultKind::Trap));
            }
            Ok(updates
                .iter()
                .map(|_| self.result("update").map(|()| Vec::new()))
                .collect())
        })
    }

    fn delete_balancer<'a>(
        &'a self,
        service: &'a cloudwit_model::Service,
        _: Option<&'a str>,
    ) -> Answer<'a, Vec<AnnotationChange>> {
        Box::pin(async {
            self.call("delete", service, 0).await?;
            Ok(Vec::new())
        })
    }

    fn list_routes(&self) -> Answer<'_, Vec<Route>> {
        never()
    }

    fn apply_routes<'a>(&'a self, _: &'a [NewRoute], _: &'a [Route], _: &'a RouteTokens) -> Answer<'a, RouteOutcome> {
        never()
    }
}

/// What the API server was asked, and how it answers patches beside 200.
#[derive(Default)]
pub(super) struct FakeApi {
    pub(super) events: Mutex<Vec<(String, String)>>,
    pub(super) counted_up: Mutex<Vec<String>>,
    pub(super) patches: Mutex<usize>,
    pub(super) refusals: Mutex<VecDeque<StatusCode>>,
    pub(super) services: Mutex<HashMap<String, Service>>,
}

impl FakeApi {
    pub(super) fn answer(&self, method: &Method, path: &str, body: &[u8]) -> Response<Body> {
        let body: Value = serde_json::from_slice(body).unwrap();
        if *method == Method::POST {
            let text = |field: &str| body[field].as_str().unwrap_or_default().to_owned();
            lock(&self.events).push((text("reason"), text("message")));
            return Response::new(Body::from(serde_json::to_vec(&body).unwrap()));
        }
        // An Event that came again within its time of folding.
        if path.contains("/events/") {
            lock(&self.counted_up).push(body["message"].as_str().unwrap_or_default().to_owned());
            let answer = json!({ "metadata": {}, "involvedObject": {}, "count": body["count"] });
            return Response::new(Body::from(serde_json::to_vec(&answer).unwrap()));
        }
        *lock(&self.patches) += 1;
        if let Some(status) = lock(&self.refusals).pop_front() {
            let answer = json!({ "kind": "Status", "status": "Failure", "code": status.as_u16(), "message": "refused", "reason": "x" });
            return Response::builder()
                .status(status)
                .body(Body::from(serde_json::to_vec(&answer).unwrap()))
                .unwrap();
        }
        let name = path.split('/').rev().nth(1).unwrap_or_default();
        let mut services = lock(&self.services);
        let service = services.get_mut(name).expect("only known Services are patched");
        patch(service, &body);
        Response::new(Body::from(serde_json::to_vec(&*service).unwrap()))
    }
}

/// Enough of a strategic merge patch for what this controller sends.
pub(super) fn patch(service: &mut Service, body: &Value) {
    let finalizers = service.metadata.finalizers.get_or_insert_default();
    if body["metadata"]["finalizers"].is_array() {
        finalizers.push(FINALIZER.into());
    }
    if body["metadata"]["$deleteFromPrimitiveList/finalizers"].is_array() {
        finalizers.retain(|name| name != FINALIZER);
    }
    for (name, value) in body["metadata"]["annotations"].as_object().into_iter().flatten() {
        let annotations = service.metadata.annotations.get_or_insert_default();
        match value.as_str() {
            Some(value) => annotations.insert(name.clone(), value.to_owned()),
            None => annotations.remove(name),
        };
    }
    if body["status"].is_object() {
        service.status = serde_json::from_value(body["status"].clone()).unwrap();
    }
    let version: u64 = service
        .metadata
        .resource_version
        .as_deref()
        .unwrap_or("1")
        .parse()
        .unwrap();
    service.metadata.resource_version = Some((version + 1).to_string());
}

/// A running controller with everything around it.
pub(super) struct Stage {
    pub(super) controller: Arc<ServiceLb>,
    pub(super) cloud: Arc<FakeCloud>,
    pub(super) api: Arc<FakeApi>,
    pub(super) nodes: Mutex<Vec<Node>>,
    pub(super) tasks: Vec<JoinHandle<()>>,
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Stage {
    pub(super) fn new(services: Vec<Service>, nodes: usize, workers: usize, leading: bool) -> Self {
        // The clock is moved by hours in some tests; looks for drift have tests of their own.
        let options = crate::options::ServiceOptions {
            concurrent_syncs: workers,
            drift_period: None,
            ..Default::default()
        };
        Self::build(services, nodes, options, leading, false, &["sim"])
    }

    /// With one node and other options.
    pub(super) fn with(services: Vec<Service>, change: impl FnOnce(&mut crate::options::ServiceOptions)) -> Self {
        let mut options = crate::options::ServiceOptions::default();
        change(&mut options);
        Self::build(services, 1, options, true, false, &["sim"])
    }

    /// The same in a dry run.
    pub(super) fn dry(services: Vec<Service>, change: impl FnOnce(&mut crate::options::ServiceOptions)) -> Self {
        let mut options = crate::options::ServiceOptions::default();
        change(&mut options);
        Self::build(services, 1, options, true, true, &["sim"])
    }

    /// With several providers and a worker for each. A Service is of the provider in its annotation `cloudwit.dev/provider`, else of the first.
    pub(super) fn several(services: Vec<Service>, dry_run: bool, providers: &[&str]) -> Self {
        let options = crate::options::ServiceOptions {
            concurrent_syncs: 1,
            drift_period: None,
            ..Default::default()
        };
        Self::build(services, 1, options, true, dry_run, providers)
    }

    fn build(
        services: Vec<Service>,
        nodes: usize,
        service: crate::options::ServiceOptions,
        leading: bool,
        dry_run: bool,
        providers: &[&str],
    ) -> Self {
        let (cloud, api) = (FakeCloud::new(), Arc::<FakeApi>::default());
        let served = api.clone();
        let server = tower::service_fn(move |request: Request<Body>| {
            let api = served.clone();
            async move {
                let (method, path) = (request.method().clone(), request.uri().path().to_owned());
                let body = request.into_body().collect_bytes().await?;
                Ok::<_, kube::Error>(api.answer(&method, &path, &body))
            }
        });
        let client = Client::new(server, "default");
        let options = Options {
            service,
            ..Options::default()
        };
        let metrics = crate::metrics::Metrics::new(&mut prometheus_client::registry::Registry::default());
        let nodes_cache = Arc::default();
        let (events, writer) = Events::new(
            client.clone(),
            metrics.clone(),
            Arc::clone(&nodes_cache),
            Arc::default(),
        );
        let leads = if leading {
            crate::leadership::Leadership::always()
        } else {
            crate::leadership::Leadership::elected(Arc::new(|| std::time::Duration::ZERO)).1
        };
        let apply = Apply::new(client, metrics.clone(), leads, dry_run);
        let guarded = crate::leadership::dry_run::guarded(cloud.clone(), apply.dry_run());
        let list = providers.iter().map(|name| Provider {
            name: (*name).into(),
            cloud: cloud.clone(),
            provider_id_prefixes: None,
            volumes: None,
        });
        let providers = Providers::new(list.collect(), providers[0], ServiceRules::default()).unwrap();
        let scopes = Scope::all(&Arc::new(providers));
        let context = Context {
            lookups: crate::cloud::lookups::NodeLookups::new(scopes[0].clone(), metrics.clone()),
            machines: Arc::default(),
            scope: scopes[0].clone(),
            cloud: guarded,
            reports: crate::report::snapshot::Reports::default(),
            nodes: nodes_cache,
            services: Arc::default(),
            apply,
            events,
            metrics,
            options: Arc::new(options),
            shutdown: tokio_util::sync::CancellationToken::new(),
        };
        let controllers = scopes.into_iter().map(|scope| {
            let context = Context {
                scope,
                ..context.clone()
            };
            Arc::new(ServiceLb::new(context))
        });
        let controllers: Vec<Arc<ServiceLb>> = controllers.collect();
        let mut tasks = vec![tokio::spawn(
            writer.run(crate::leadership::Leadership::always(), dry_run),
        )];
        for controller in &controllers {
            controller.listen();
            tasks.push(tokio::spawn(run_all(controller.clone())));
        }
        let controller = controllers[0].clone();
        let stage = Self {
            controller,
            cloud,
            api,
            nodes: Mutex::default(),
            tasks,
        };
        stage.set_nodes(nodes);
        stage.set_services(services);
        stage
    }

    pub(super) fn set_nodes(&self, count: usize) {
        let node = |index: usize| -> Node {
            let node = json!({ "metadata": { "name": format!("n{index}"), "uid": format!("n{index}"), "resourceVersion": "1" } });
            serde_json::from_value(node).unwrap()
        };
        let nodes: Vec<Node> = (0..count).map(node).collect();
        self.controller.context.nodes.fill(nodes.clone());
        *lock(&self.nodes) = nodes;
    }

    pub(super) fn set_services(&self, services: Vec<Service>) {
        *lock(&self.api.services) = services
            .iter()
            .map(|service| (service.metadata.name.clone().unwrap(), service.clone()))
            .collect();
        self.controller.context.services.fill(services);
    }

    /// Moves the clock until it holds, for ten minutes at most.
    pub(super) async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        for _ in 0..60_000 {
            if holds(self) {
                return;
            }
            sleep(Duration::from_millis(10)).await;
        }
        panic!("not within ten minutes: {what}; calls: {:?}", lock(&self.cloud.calls));
    }

    pub(super) async fn until_finalizer_is_off(&self, name: &str) {
        let finalizers = |stage: &Self| lock(&stage.api.services)[name].metadata.finalizers.clone();
        self.until("the finalizer is off", |stage| {
            finalizers(stage).is_none_or(|left| left.is_empty())
        })
        .await;
    }

    pub(super) fn count(&self, operation: &str) -> usize {
        self.cloud.calls(operation).len()
    }

    pub(super) fn event(&self, reason: &str) -> Option<String> {
        lock(&self.api.events)
            .iter()
            .find(|(found, _)| found == reason)
            .map(|(_, message)| message.clone())
    }

    pub(super) fn has_record(&self, name: &str) -> bool {
        self.controller.records.contains(&format!("default/{name}"))
    }
}

/// A Service that carries the finalizer already, so that nothing needs to be written before the first call.
pub(super) fn service(name: &str, kind: &str) -> Service {
    let finalizers = if kind == "LoadBalancer" {
        json!([FINALIZER])
    } else {
        json!([])
    };
    serde_json::from_value(json!({
        "metadata": {
            "name": name, "namespace": "default", "uid": format!("uid-{name}"), "resourceVersion": "10", "finalizers": finalizers,
        },
        "spec": { "type": kind, "ports": [{ "port": 80, "protocol": "TCP" }] },
    }))
    .unwrap()
}

pub(super) fn balancer(name: &str) -> Service {
    service(name, "LoadBalancer")
}
