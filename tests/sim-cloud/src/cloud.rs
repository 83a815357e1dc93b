//! What is in the cloud, and its rules. Everything behind one lock; no call waits while it holds it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::disks::Disks;
use crate::wire::*;

/// The API says no.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// HTTP status.
    pub(crate) status: u16,
    pub(crate) message: String,
}

pub(crate) fn refuse<T>(status: u16, message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal {
        status,
        message: message.into(),
    })
}

/// The cloud's content. Keys count up, so maps are ordered by creation.
pub(crate) struct Cloud {
    content: Mutex<Content>,
}

#[derive(Default)]
struct Content {
    machines: BTreeMap<u64, Machine>,
    machine_ids: BTreeMap<String, u64>,
    load_balancers: BTreeMap<u64, Built>,
    routes: BTreeMap<u64, RouteEntry>,
    /// Machines, load balancers and routes ever made.
    made: [u64; 3],
    build_time: Duration,
    disks: Disks,
}

struct Built {
    id: String,
    /// When it becomes active.
    active_at: Instant,
    address: String,
    spec: BalancerSpec,
}

struct RouteEntry {
    id: String,
    spec: RouteSpec,
}

impl Cloud {
    pub(crate) fn new(build_time: Duration) -> Self {
        Self {
            content: Mutex::new(Content {
                build_time,
                ..Content::default()
            }),
        }
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        // No method leaves the content half changed, so a panic of another thread does not matter.
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn reset(&self) {
        let mut content = self.content();
        *content = Content {
            build_time: content.build_time,
            disks: content.disks.emptied(),
            ..Content::default()
        };
    }

    /// Works with the disks, and with what tells the zone of a machine that exists.
    pub(crate) fn with_disks<T>(&self, work: impl FnOnce(&mut Disks, &dyn Fn(&str) -> Option<String>) -> T) -> T {
        let mut content = self.content();
        let Content {
            machines,
            machine_ids,
            disks,
            ..
        } = &mut *content;
        let zone_of = |id: &str| Some(machines.get(machine_ids.get(id)?)?.zone.clone());
        work(disks, &zone_of)
    }

    pub(crate) fn set_balancer_build_time(&self, time: Duration) {
        self.content().build_time = time;
    }

    pub(crate) fn add_machines(&self, wanted: impl IntoIterator<Item = NewMachine>) -> Vec<Machine> {
        let mut content = self.content();
        wanted.into_iter().map(|machine| content.add_machine(machine)).collect()
    }

    pub(crate) fn machines(&self) -> Vec<Machine> {
        self.content().machines.values().cloned().collect()
    }

    /// The machines with these ids, in that order. Those that do not exist are left out.
    pub(crate) fn machines_by_id(&self, ids: &[&str]) -> Vec<Machine> {
        let content = self.content();
        ids.iter()
            .filter_map(|id| content.machines.get(content.machine_ids.get(*id)?))
            .cloned()
            .collect()
    }

    pub(crate) fn change_tags(&self, id: &str, changes: &TagChanges) -> Result<(), Refusal> {
        let mut guard = self.content();
        let content = &mut *guard;
        let key = content.machine_ids.get(id);
        let Some(machine) = key.and_then(|key| content.machines.get_mut(key)) else {
            return refuse(404, format!("there is no machine {id}"));
        };
        machine.tags.extend(changes.set.clone());
        machine.tags.retain(|key, value| changes.remove.get(key) != Some(value));
        Ok(())
    }

    pub(crate) fn delete_machines<S: AsRef<str>>(&self, ids_or_names: impl IntoIterator<Item = S>) -> usize {
        let mut content = self.content();
        let keys = content.keys_of(ids_or_names);
        for key in &keys {
            if let Some(machine) = content.machines.remove(key) {
                content.machine_ids.remove(&machine.id);
                content.disks.forget_machine(&machine.id);
            }
        }
        keys.len()
    }

    pub(crate) fn set_state<S: AsRef<str>>(
        &self,
        ids_or_names: impl IntoIterator<Item = S>,
        state: MachineState,
    ) -> usize {
        let mut content = self.content();
        let keys = content.keys_of(ids_or_names);
        for key in &keys {
            if let Some(machine) = content.machines.get_mut(key) {
                machine.state = state;
            }
        }
        keys.len()
    }

    pub(crate) fn load_balancers(&self) -> Vec<LoadBalancer> {
        self.load_balancers_like(|_| true)
    }

    /// Those that fit. Only they are copied: each may have thousands of targets.
    pub(crate) fn load_balancers_like(&self, fits: impl Fn(&BalancerSpec) -> bool) -> Vec<LoadBalancer> {
        let content = self.content();
        let balancers = content.load_balancers.values();
        balancers
            .filter(|balancer| fits(&balancer.spec))
            .map(Built::show)
            .collect()
    }

    pub(crate) fn load_balancer(&self, id: &str) -> Result<LoadBalancer, Refusal> {
        let mut content = self.content();
        content.balancer_mut(id).map(|balancer| balancer.show())
    }

    pub(crate) fn create_load_balancer(&self, spec: BalancerSpec) -> Result<LoadBalancer, Refusal> {
        let mut content = self.content();
        let taken = |other: &Built| other.spec.cluster == spec.cluster && other.spec.name == spec.name;
        if let Some(other) = content.load_balancers.values().find(|other| taken(other)) {
            return refuse(
                409,
                format!(
                    "load balancer {} of cluster {} is named {} already",
                    other.id, spec.cluster, spec.name
                ),
            );
        }
        content.check_balancer(&spec, None)?;
        let number = content.next(1);
        let address = match &spec.requested_address {
            Some(address) => address.clone(),
            // The networks for documentation (RFC 5737) for public ones.
            None if spec.scheme == Scheme::Public => counted_ip([198, 51, 100, 0], number),
            None => counted_ip([10, 250, 0, 0], number),
        };
        let active_at = Instant::now() + content.build_time;
        let balancer = Built {
            id: format!("lb-{number}"),
            active_at,
            address,
            spec,
        };
        let shown = balancer.show();
        content.load_balancers.insert(number, balancer);
        Ok(shown)
    }

    /// Replaces what a load balancer shall be. Its address stays.
    pub(crate) fn update_load_balancer(&self, id: &str, spec: BalancerSpec) -> Result<LoadBalancer, Refusal> {
        let mut content = self.content();
        content.balancer_mut(id)?;
        content.check_balancer(&spec, Some(id))?;
        let balancer = content.balancer_mut(id)?;
        if (&balancer.spec.name, &balancer.spec.cluster) != (&spec.name, &spec.cluster) {
            return refuse(422, "name and cluster of a load balancer cannot be changed");
        }
        balancer.spec = spec;
        Ok(balancer.show())
    }

    pub(crate) fn update_targets(&self, id: &str, targets: Vec<String>) -> Result<LoadBalancer, Refusal> {
        let mut content = self.content();
        content.balancer_mut(id)?;
        content.check_targets(&targets)?;
        let balancer = content.balancer_mut(id)?;
        balancer.spec.targets = targets;
        Ok(balancer.show())
    }

    pub(crate) fn delete_load_balancer(&self, id: &str) -> Result<(), Refusal> {
        let mut content = self.content();
        content.balancer_mut(id)?;
        content.load_balancers.retain(|_, balancer| balancer.id != id);
        Ok(())
    }

    /// How many there ever were.
    pub(crate) fn load_balancers_made(&self) -> u64 {
        self.content().made[1]
    }

    pub(crate) fn set_address(&self, id: &str, address: &str) -> Result<(), Refusal> {
        self.content().balancer_mut(id)?.address = address.to_owned();
        Ok(())
    }

    pub(crate) fn finish_load_balancers(&self) {
        let now = Instant::now();
        for balancer in self.content().load_balancers.values_mut() {
            balancer.active_at = balancer.active_at.min(now);
        }
    }

    pub(crate) fn routes(&self) -> Vec<Route> {
        let content = self.content();
        content
            .routes
            .values()
            .map(|route| Route {
                id: route.id.clone(),
                blackhole: !content.machine_ids.contains_key(&route.spec.machine),
                spec: route.spec.clone(),
            })
            .collect()
    }

    /// How many there ever were.
    pub(crate) fn routes_made(&self) -> u64 {
        self.content().made[2]
    }

    pub(crate) fn delete_route(&self, id: &str) -> Result<(), Refusal> {
        let mut content = self.content();
        let Some(key) = content
            .routes
            .iter()
            .find(|(_, route)| route.id == id)
            .map(|(key, _)| *key)
        else {
            return refuse(404, format!("there is no route {id}"));
        };
        content.routes.remove(&key);
        Ok(())
    }

    /// Creates a route. The same one again is a success.
    pub(crate) fn create_route(&self, spec: RouteSpec) -> Result<(), Refusal> {
        let mut content = self.content();
        if !content.machine_ids.contains_key(&spec.machine) {
            return refuse(422, format!("there is no machine {}", spec.machine));
        }
        let taken =
            |other: &RouteEntry| other.spec.cluster == spec.cluster && other.spec.destination == spec.destination;
        match content.routes.values().find(|other| taken(other)) {
            Some(other) if other.spec.machine == spec.machine => return Ok(()),
            Some(other) => {
                return refuse(
                    409,
                    format!(
                        "route {} leads {} to machine {} already",
                        other.id, spec.destination, other.spec.machine
                    ),
                );
            }
            None => {}
        }
        let number = content.next(2);
        content.routes.insert(
            number,
            RouteEntry {
                id: format!("rt-{number}"),
                spec,
            },
        );
        Ok(())
    }
}

impl Content {
    /// The next number of machines (0), load balancers (1) or routes (2).
    fn next(&mut self, kind: usize) -> u64 {
        self.made[kind] += 1;
        self.made[kind]
    }

    fn add_machine(&mut self, wanted: NewMachine) -> Machine {
        let number = self.next(0);
        let NewMachine {
            name,
            id,
            kind,
            zone,
            addresses,
            labels,
            stopped,
        } = wanted;
        let turn = usize::try_from(number - 1).unwrap_or_default() % ZONES.len();
        let zone = zone.unwrap_or_else(|| ZONES[turn].0.into());
        let region = ZONES
            .iter()
            .find(|(known, _)| *known == zone)
            .map_or("elsewhere", |(_, region)| region);
        let machine = Machine {
            id: id.unwrap_or_else(|| format!("vm-{number}")),
            name,
            kind: kind.unwrap_or_else(|| "small".into()),
            region: region.into(),
            zone,
            state: if stopped {
                MachineState::Stopped
            } else {
                MachineState::Running
            },
            addresses: addresses.unwrap_or_else(|| {
                vec![MachineAddress {
                    network: Network::Private,
                    ip: counted_ip([10, 0, 0, 0], number),
                }]
            }),
            labels,
            tags: BTreeMap::new(),
        };
        self.machine_ids.insert(machine.id.clone(), number);
        self.machines.insert(number, machine.clone());
        machine
    }

    fn keys_of<S: AsRef<str>>(&self, ids_or_names: impl IntoIterator<Item = S>) -> Vec<u64> {
        let wanted: std::collections::BTreeSet<String> =
            ids_or_names.into_iter().map(|text| text.as_ref().to_owned()).collect();
        let is_wanted = |machine: &Machine| wanted.contains(&machine.id) || wanted.contains(&machine.name);
        self.machines
            .iter()
            .filter(|(_, machine)| is_wanted(machine))
            .map(|(key, _)| *key)
            .collect()
    }

    fn balancer_mut(&mut self, id: &str) -> Result<&mut Built, Refusal> {
        match self.load_balancers.values_mut().find(|balancer| balancer.id == id) {
            Some(balancer) => Ok(balancer),
            None => refuse(404, format!("there is no load balancer {id}")),
        }
    }

    fn check_balancer(&self, spec: &BalancerSpec, but: Option<&str>) -> Result<(), Refusal> {
        if spec.ports.is_empty() {
            return refuse(422, "a load balancer needs a port");
        }
        if let Some(address) = &spec.requested_address {
            if address.parse::<std::net::IpAddr>().is_err() {
                return refuse(422, format!("requested address {address} is no IP address"));
            }
            let mut others = self
                .load_balancers
                .values()
                .filter(|other| Some(other.id.as_str()) != but);
            if let Some(other) = others.find(|other| other.address == *address) {
                return refuse(
                    409,
                    format!("load balancer {} has the address {address} already", other.id),
                );
            }
        }
        self.check_targets(&spec.targets)
    }

    fn check_targets(&self, targets: &[String]) -> Result<(), Refusal> {
        match targets.iter().find(|target| !self.machine_ids.contains_key(*target)) {
            Some(target) => refuse(422, format!("there is no machine {target}")),
            None => Ok(()),
        }
    }
}

impl Built {
    fn show(&self) -> LoadBalancer {
        let active = Instant::now() >= self.active_at;
        LoadBalancer {
            id: self.id.clone(),
            state: if active {
                BalancerState::Active
            } else {
                BalancerState::Building
            },
            address: active.then(|| self.address.clone()),
            spec: self.spec.clone(),
        }
    }
}

/// The address `number` steps after `base`, leaving out those that end in 0 or 255.
fn counted_ip(base: [u8; 4], number: u64) -> String {
    let (row, place) = ((number - 1) / 254, (number - 1) % 254 + 1);
    let offset = u32::try_from(row * 256 + place).unwrap_or(u32::MAX);
    std::net::Ipv4Addr::from(u32::from_be_bytes(base).wrapping_add(offset)).to_string()
}
