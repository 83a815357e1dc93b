//! The cloud itself: machines, load balancers in parts, routes. What a provider would find there.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cloudwit_model::{
    Address, AddressKind, Balancer, CloudError, Endpoint, Failure, Ingress, Instance, IpMode, NewRoute, Route,
    RouteOutcome, Service, Target,
};
use ipnet::IpNet;

/// A machine.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) stopped: bool,
    /// When it was last started after having been stopped.
    pub(crate) started: Option<Duration>,
    /// Counts machines; part of its address and of its Node's range of Pods.
    pub(crate) number: u64,
    /// Times that its address changed.
    pub(crate) moves: u64,
    /// From then on it is found.
    pub(crate) listed_from: Duration,
}

/// A load balancer: made, given its ports, given its nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BalancerState {
    pub(crate) service: String,
    pub(crate) number: u64,
    pub(crate) ports: BTreeSet<u64>,
    /// Nodes and the ids they were given with.
    pub(crate) targets: BTreeSet<String>,
    pub(crate) ready_at: Duration,
}

impl BalancerState {
    pub(crate) fn address(&self) -> String {
        format!("203.0.113.{}", self.number % 250 + 1)
    }
}

/// Deliberately wrong behaviour, to show that a promise is watched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Deceit {
    /// None.
    #[default]
    None,
    /// Load balancers are said to be there, and are not made.
    MakesNoBalancer,
    /// Load balancers are said to be deleted, and stay.
    KeepsBalancers,
    /// Routes are said to be there, and are not made.
    MakesNoRoute,
    /// Routes are said to be deleted, and stay.
    KeepsRoutes,
    /// Machines are said to have other addresses than they have.
    WrongAddresses,
    /// Machines that are gone are said to run.
    KeepsMachines,
}

/// Everything in the cloud.
#[derive(Debug, Default)]
pub(crate) struct CloudState {
    pub(crate) machines: BTreeMap<String, Machine>,
    /// Names of all machines there have ever been, by id.
    pub(crate) ever: BTreeMap<String, String>,
    /// By the uid of the Service.
    pub(crate) balancers: BTreeMap<String, BalancerState>,
    pub(crate) routes: BTreeMap<String, Route>,
    /// What was listed the last time.
    pub(crate) listed: Vec<Route>,
    pub(crate) deceit: Deceit,
    numbers: u64,
}

impl CloudState {
    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// A new machine; answers its id.
    pub(crate) fn add_machine(&mut self, name: &str, listed_from: Duration) -> String {
        let number = self.ever.len() as u64 + 1;
        let id = format!("sim://{name}-{number}");
        let name = name.to_owned();
        self.ever.insert(id.clone(), name.clone());
        self.machines.insert(
            id.clone(),
            Machine {
                name,
                stopped: false,
                started: None,
                number,
                moves: 0,
                listed_from,
            },
        );
        id
    }

    pub(crate) fn machine_named(&self, name: &str) -> Option<(&String, &Machine)> {
        self.machines.iter().find(|(_, machine)| machine.name == name)
    }

    /// The addresses a Node of this machine has.
    pub(crate) fn addresses(machine: &Machine) -> Vec<Address> {
        vec![
            Address::new(
                AddressKind::InternalIP,
                format!("10.1.{}.{}", machine.moves, machine.number % 250 + 1),
            ),
            Address::new(AddressKind::Hostname, machine.name.clone()),
        ]
    }

    pub(crate) fn instance(&self, id: &str, machine: &Machine) -> Instance {
        let mut addresses = Self::addresses(machine);
        if self.deceit == Deceit::WrongAddresses {
            addresses.push(Address::new(AddressKind::ExternalIP, "198.51.100.1"));
        }
        Instance {
            provider_id: id.to_owned(),
            instance_type: Some("small".into()),
            zone: Some("a".into()),
            region: Some("r".into()),
            addresses,
            ..Instance::default()
        }
    }

    fn balancer(state: &BalancerState) -> Balancer {
        let address = state.address().parse().expect("it is written as an address above");
        let endpoint = Endpoint::Ip(address, IpMode::Vip);
        Balancer {
            ingress: vec![Ingress {
                endpoint,
                ports: Vec::new(),
            }],
            annotations: Vec::new(),
            remaining: None,
        }
    }

    pub(crate) fn get_balancer(&self, service: &Service, now: Duration) -> Option<Balancer> {
        if self.deceit == Deceit::MakesNoBalancer {
            return Some(Self::balancer(&BalancerState::default()));
        }
        self.balancers
            .get(&service.uid)
            .filter(|state| now >= state.ready_at)
            .map(Self::balancer)
    }

    /// Makes what is missing, in three steps, of which the first `steps` are made.
    pub(crate) fn ensure(
        &mut self,
        service: &Service,
        targets: &[Target],
        ready_at: Duration,
        now: Duration,
        steps: u64,
    ) -> Result<Balancer, CloudError> {
        if self.deceit == Deceit::MakesNoBalancer {
            return Ok(Self::balancer(&BalancerState::default()));
        }
        if !self.balancers.contains_key(&service.uid) {
            let (number, service_key) = (self.number(), format!("{}/{}", service.namespace, service.name));
            let state = BalancerState {
                service: service_key,
                number,
                ready_at,
                ..BalancerState::default()
            };
            self.balancers.insert(service.uid.clone(), state);
        }
        let half = || Err(Failure::Unavailable("the cloud failed in the middle".into()).into());
        let state = self.balancers.get_mut(&service.uid).expect("it was made above");
        if steps < 2 {
            return half();
        }
        state.ports = service.ports.iter().map(|port| u64::from(port.port)).collect();
        if steps < 3 {
            return half();
        }
        state.targets = names(targets);
        if now < state.ready_at {
            let (after, token) = (Duration::from_secs(5), service.uid.clone());
            return Err(Failure::Pending {
                after,
                token,
                message: "building".into(),
            }
            .into());
        }
        Ok(Self::balancer(state))
    }

    pub(crate) fn update_targets(&mut self, service: &Service, targets: &[Target], half: bool) -> Result<(), Failure> {
        if self.deceit == Deceit::MakesNoBalancer {
            return Ok(());
        }
        let Some(state) = self.balancers.get_mut(&service.uid) else {
            return Err(Failure::NotFound("no such load balancer".into()));
        };
        if half {
            state.targets.extend(names(targets));
            return Err(Failure::Unavailable("the cloud failed in the middle".into()));
        }
        state.targets = names(targets);
        Ok(())
    }

    pub(crate) fn delete_balancer(&mut self, service: &Service, half: bool) -> Result<(), CloudError> {
        if self.deceit == Deceit::KeepsBalancers {
            return Ok(());
        }
        if half && let Some(state) = self.balancers.get_mut(&service.uid) {
            state.ports.clear();
            return Err(Failure::Unavailable("the cloud failed in the middle".into()).into());
        }
        self.balancers.remove(&service.uid);
        Ok(())
    }

    /// The routes, or with `stale` those of the last time.
    pub(crate) fn list_routes(&mut self, stale: bool) -> Vec<Route> {
        if !stale {
            self.listed = self.routes.values().cloned().collect();
        }
        self.listed.clone()
    }

    pub(crate) fn add_route(&mut self, destination: &str, node: Option<&str>, blackhole: bool) {
        let id = format!("route-{}", self.number());
        let route = Route {
            id: id.clone(),
            destination: destination.to_owned(),
            node: node.map(str::to_owned),
            next_hops: Vec::new(),
            blackhole,
        };
        self.routes.insert(id, route);
    }

    /// Deletions first, then creations, of which every other fails with `half`.
    pub(crate) fn apply_routes(&mut self, create: &[NewRoute], delete: &[Route], half: bool) -> RouteOutcome {
        let mut turn = 0;
        let mut fails = || {
            turn += 1;
            half && turn % 2 == 1
        };
        let failure = || Err(Failure::Unavailable("the cloud failed in the middle".into()));
        let mut outcome = RouteOutcome::default();
        for route in delete {
            if fails() {
                outcome.deleted.push(failure());
                continue;
            }
            if self.deceit != Deceit::KeepsRoutes {
                self.routes.remove(&route.id);
            }
            outcome.deleted.push(Ok(()));
        }
        for route in create {
            let network = |text: &str| text.parse::<IpNet>().ok();
            let other = self
                .routes
                .values()
                .find(|other| network(&other.destination) == network(&route.destination));
            let result = match other {
                _ if fails() => failure(),
                Some(other) if other.node.as_ref() == Some(&route.node.name) && !other.blackhole => Ok(()),
                Some(_) => Err(Failure::Conflict("another route has this destination".into())),
                None => {
                    if self.deceit != Deceit::MakesNoRoute {
                        self.add_route(&route.destination, Some(&route.node.name), false);
                    }
                    Ok(())
                }
            };
            outcome.created.push(result);
        }
        outcome
    }
}

fn names(targets: &[Target]) -> BTreeSet<String> {
    let label = |target: &Target| {
        format!(
            "{} {}",
            target.node.name,
            target.node.provider_id.as_deref().unwrap_or("-")
        )
    };
    targets.iter().map(label).collect()
}
