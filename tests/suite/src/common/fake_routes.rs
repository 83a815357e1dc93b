//! A cloud with routes, in memory. Scripted destinations fail.

use std::collections::BTreeMap;
use std::sync::Mutex;

use cloudwit_model::{
    Abilities, AnnotationChange, Answer, Balancer, Cloud, CloudError, Failure, FaultKind, NewRoute, NodeRef, Presence,
    ProviderFault, ProviderIdentity, Route, RouteOutcome, RouteTokens, Service, Target, TargetUpdate,
};

#[derive(Default)]
struct State {
    routes: Vec<Route>,
    lists: usize,
    /// Destinations of the creations and ids of the deletions of each call.
    applies: Vec<(Vec<String>, Vec<String>)>,
    /// Destinations that fail so many more times.
    failing: BTreeMap<String, usize>,
    list_failures: usize,
}

#[derive(Default)]
pub struct FakeRoutes(Mutex<State>);

impl FakeRoutes {
    /// `node destination` of all routes, sorted.
    pub fn routes(&self) -> Vec<String> {
        let describe = |route: &Route| format!("{} {}", route.node.as_deref().unwrap_or("-"), route.destination);
        let mut routes: Vec<String> = self.0.lock().unwrap().routes.iter().map(describe).collect();
        routes.sort();
        routes
    }

    pub fn add(&self, node: Option<&str>, destination: &str, blackhole: bool) {
        let route = Route {
            id: format!("by hand: {destination}"),
            destination: destination.into(),
            node: node.map(str::to_owned),
            next_hops: Vec::new(),
            blackhole,
        };
        self.0.lock().unwrap().routes.push(route);
    }

    pub fn lists(&self) -> usize {
        self.0.lock().unwrap().lists
    }

    /// Destinations created and ids deleted, for each call.
    pub fn applies(&self) -> Vec<(Vec<String>, Vec<String>)> {
        self.0.lock().unwrap().applies.clone()
    }

    pub fn fail(&self, destination: &str, times: usize) {
        self.0.lock().unwrap().failing.insert(destination.into(), times);
    }

    pub fn fail_lists(&self, times: usize) {
        self.0.lock().unwrap().list_failures = times;
    }
}

impl State {
    fn try_one(&mut self, destination: &str) -> Result<(), Failure> {
        match self.failing.get_mut(destination) {
            Some(times) if *times > 0 => {
                *times -= 1;
                Err(Failure::Other("the route table is full".into()))
            }
            _ => Ok(()),
        }
    }
}

fn not_exported<T: Send + 'static>() -> Answer<'static, T> {
    let fault = ProviderFault {
        provider: "fake".into(),
        kind: FaultKind::NotExported,
        message: "only routes".into(),
        output: String::new(),
    };
    Box::pin(std::future::ready(Err(fault.into())))
}

impl Cloud for FakeRoutes {
    fn identity(&self) -> ProviderIdentity {
        ProviderIdentity {
            name: "fake".into(),
            ..ProviderIdentity::default()
        }
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            routes: true,
            ..Abilities::default()
        }
    }

    fn lookup<'a>(&'a self, _: &'a [NodeRef]) -> Answer<'a, Vec<Result<Presence, Failure>>> {
        not_exported()
    }

    fn get_balancer<'a>(&'a self, _: &'a Service) -> Answer<'a, Option<Balancer>> {
        not_exported()
    }

    fn ensure_balancer<'a>(&'a self, _: &'a Service, _: &'a [Target], _: Option<&'a str>) -> Answer<'a, Balancer> {
        not_exported()
    }

    fn update_targets_of<'a>(
        &'a self,
        _: &'a [TargetUpdate<'a>],
        _: &'a [Target],
    ) -> Answer<'a, Vec<Result<Vec<AnnotationChange>, Failure>>> {
        not_exported()
    }

    fn delete_balancer<'a>(&'a self, _: &'a Service, _: Option<&'a str>) -> Answer<'a, Vec<AnnotationChange>> {
        not_exported()
    }

    fn list_routes(&self) -> Answer<'_, Vec<Route>> {
        Box::pin(async {
            let mut state = self.0.lock().unwrap();
            state.lists += 1;
            if state.list_failures > 0 {
                state.list_failures -= 1;
                return Err(CloudError::from(Failure::Unavailable("the cloud is down".into())));
            }
            Ok(state.routes.clone())
        })
    }

    fn apply_routes<'a>(
        &'a self,
        create: &'a [NewRoute],
        delete: &'a [Route],
        _: &'a RouteTokens,
    ) -> Answer<'a, RouteOutcome> {
        Box::pin(async move {
            let mut state = self.0.lock().unwrap();
            let created = create.iter().map(|route| route.destination.clone()).collect();
            let deleted = delete.iter().map(|route| route.id.clone()).collect();
            state.applies.push((created, deleted));
            let mut outcome = RouteOutcome::default();
            for route in delete {
                let result = state.try_one(&route.id);
                if result.is_ok() {
                    state.routes.retain(|existing| existing.id != route.id);
                }
                outcome.deleted.push(result);
            }
            for route in create {
                let result = state.try_one(&route.destination);
                if result.is_ok() {
                    state.routes.push(Route {
                        id: format!("{} {}", route.name_hint, route.destination),
                        destination: route.destination.clone(),
                        node: Some(route.node.name.clone()),
                        next_hops: Vec::new(),
                        blackhole: false,
                    });
                }
                outcome.created.push(result);
            }
            Ok(outcome)
        })
    }
}
