//! Which routes the cloud should have, compared with those it has.
//!
//! Pure: cluster ranges, Nodes and listed routes in, a [`RoutePlan`] out. `route` applies its changes in batches and checks the plan
//! afterwards which Nodes have all their routes; `route::condition` turns that into conditions.
//! Rules: `spec/route-controller.md`, sections 4 and 5, with weak spots R3 (CIDRs are compared as networks), R4 (a route that is
//! in the way goes before the new one comes), R5 (nothing outside the cluster's ranges is made or deleted) and R7 (a
//! blackhole is replaced at once) put right. A Node that still waits for its cloud (the `uninitialized` taint) has no provider id to
//! route to: it keeps the routes it has and gets none, and nothing is said about it before the taint is off.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::rc::Rc;

use cloudwit_model::{NewRoute, NodeRef, Route};
use ipnet::IpNet;

use crate::kube::node::Node;
use crate::kube::node::view::{UNINITIALIZED, has_taint, node_ref};
use crate::work::step;

/// What has to change at one destination: deletions first, then the creation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteChange {
    /// The destination.
    pub network: IpNet,
    /// Routes that are in the way or no longer desired.
    pub delete: Vec<Route>,
    /// The route that is missing.
    pub create: Option<NewRoute>,
}

/// A Pod range that gets no route, whatever the cloud says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The Node.
    pub node: String,
    /// Its uid.
    pub uid: String,
    /// The Pod range as the Node has it.
    pub range: String,
    /// Why not, for an Event.
    pub reason: String,
}

/// The difference between the desired routes and those that exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoutePlan {
    /// By destination; empty when all is well.
    pub changes: Vec<RouteChange>,
    /// Pod ranges without a route.
    pub refused: Vec<Refusal>,
    /// Node to its destinations: every Node that has Pod ranges or that a route leads to.
    pub nodes: BTreeMap<String, BTreeSet<IpNet>>,
    /// Nodes that wait for their initialisation: too early to say whether they have their routes.
    pub waiting: BTreeSet<String>,
    /// Listed routes that are left out, since their destination is no CIDR, as `id (destination)`.
    pub ignored: BTreeSet<String>,
}

impl RoutePlan {
    /// Which Nodes have all their routes, given the destinations whose creation failed or is still to come. Nodes that have
    /// neither Pod ranges nor routes are not in the answer: their condition is none of our business. Nor are Nodes that wait.
    pub fn routes_created(&self, missing: &BTreeSet<IpNet>) -> BTreeMap<String, bool> {
        let refused: BTreeSet<&str> = self.refused.iter().map(|refusal| refusal.node.as_str()).collect();
        let complete = |(node, networks): (&String, &BTreeSet<IpNet>)| {
            let created = !networks.is_empty() && !refused.contains(node.as_str()) && networks.is_disjoint(missing);
            (node.clone(), created)
        };
        let nodes = self.nodes.iter().filter(|(node, _)| !self.waiting.contains(*node));
        nodes.map(complete).collect()
    }

    /// Keeps to these Nodes: the others have no owner, or a provider that sets no routes, and how they reach their Pods is not ours to
    /// say. Other undesired routes are still deleted.
    pub fn leave_to_others(&mut self, ours: &BTreeSet<&str>) {
        for change in &mut self.changes {
            if change
                .create
                .take_if(|route| !ours.contains(route.node.name.as_str()))
                .is_some()
            {
                change.delete.clear();
            }
        }
        self.changes
            .retain(|change| change.create.is_some() || !change.delete.is_empty());
        self.refused.retain(|refusal| ours.contains(refusal.node.as_str()));
        self.nodes.retain(|node, _| ours.contains(node.as_str()));
    }
}

/// Whether all of this destination lies in one of the cluster's ranges. Upstream checks the first or the last address only,
/// so it deletes routes that merely overlap.
pub fn responsible(cluster: &[IpNet], network: &IpNet) -> bool {
    cluster.iter().any(|range| range.contains(network))
}

/// Compares. Routes whose destination is no CIDR are left out: one odd route must not hold up the others. The work grows with the lists and
/// not with their product, whatever is in them.
pub fn plan<'a>(cluster: &[IpNet], nodes: impl IntoIterator<Item = &'a Node>, routes: &[Route]) -> RoutePlan {
    let mut plan = RoutePlan::default();
    let existing = Existing::of(routes, &mut plan);
    let wanted = wanted(nodes, &existing, &mut plan);
    for (node, _) in routes.iter().filter_map(|route| Some((route.node.as_deref()?, route))) {
        if let Some(networks) = wanted.networks_of.get(node) {
            plan.nodes.entry(node.to_owned()).or_insert_with(|| networks.clone());
        }
    }
    for (network, claim) in &wanted.claims {
        let none = Vec::new();
        plan_wanted(
            cluster,
            network,
            claim,
            existing.by_network.get(network).unwrap_or(&none),
            &mut plan,
        );
    }
    for (network, routes) in &existing.by_network {
        if !wanted.claims.contains_key(network) && responsible(cluster, network) {
            let delete = routes.iter().map(|route| (*route).clone()).collect();
            plan.changes.push(RouteChange {
                network: *network,
                delete,
                create: None,
            });
        }
    }
    plan.changes.sort_by_key(|change| change.network);
    plan
}

/// A Node's wish for a route.
struct Claim<'a> {
    node: &'a Node,
    seen: Rc<SeenNode>,
    range: String,
    /// Whether it has its route.
    served: bool,
}

/// A Node's fields that routes depend on.
struct SeenNode {
    view: NodeRef,
    /// Its addresses, once they are requested: most clouds route to machines and not to addresses.
    reached_at: OnceCell<HashSet<Hop>>,
}

/// An address as next hops are compared: by what it means, or as text where it is no IP address.
#[derive(PartialEq, Eq, Hash)]
enum Hop {
    Ip(IpAddr),
    Text(String),
}

impl Hop {
    fn of(value: &str) -> Self {
        value.parse().map_or_else(|_| Self::Text(value.to_owned()), Self::Ip)
    }
}

struct Wanted<'a> {
    claims: BTreeMap<IpNet, Claim<'a>>,
    /// The destinations of every Node that exists, also where that is none.
    networks_of: BTreeMap<String, BTreeSet<IpNet>>,
}

/// The listed routes.
struct Existing<'a> {
    by_network: BTreeMap<IpNet, Vec<&'a Route>>,
    /// By destination and the Node they lead to.
    leading: HashMap<(IpNet, &'a str), Vec<&'a Route>>,
}

impl<'a> Existing<'a> {
    fn of(routes: &'a [Route], plan: &mut RoutePlan) -> Self {
        let mut existing = Self {
            by_network: BTreeMap::new(),
            leading: HashMap::new(),
        };
        for route in routes {
            let Ok(network) = route.destination.parse::<IpNet>() else {
                plan.ignored.insert(format!("{} ({})", route.id, route.destination));
                continue;
            };
            let network = network.trunc();
            existing.by_network.entry(network).or_default().push(route);
            if let Some(node) = route.node.as_deref() {
                existing.leading.entry((network, node)).or_default().push(route);
            }
        }
        existing
    }

    /// Whether a route to this destination leads to the Node.
    fn serve(&self, network: IpNet, seen: &SeenNode) -> bool {
        let leading = self.leading.get(&(network, seen.view.name.as_str()));
        leading.is_some_and(|routes| routes.iter().any(|route| serves(route, seen)))
    }
}

fn wanted<'a>(nodes: impl IntoIterator<Item = &'a Node>, existing: &Existing<'_>, plan: &mut RoutePlan) -> Wanted<'a> {
    let mut nodes: Vec<&Node> = nodes.into_iter().collect();
    nodes.sort_by(|left, right| {
        let age = |node: &Node| node.metadata.creation_timestamp.clone();
        (age(left), &left.metadata.name).cmp(&(age(right), &right.metadata.name))
    });
    let mut wanted = Wanted {
        claims: BTreeMap::new(),
        networks_of: BTreeMap::new(),
    };
    for node in nodes {
        let seen = Rc::new(SeenNode {
            view: node_ref(node),
            reached_at: OnceCell::new(),
        });
        let name = &seen.view.name;
        if waits(node) {
            plan.waiting.insert(name.clone());
        }
        let mut networks = BTreeSet::new();
        let ranges = node
            .spec
            .as_ref()
            .and_then(|spec| spec.pod_cidrs.as_deref())
            .unwrap_or_default();
        for range in ranges {
            let Ok(network) = range.parse::<IpNet>() else {
                plan.refused.push(refusal(node, range, "it is not a CIDR".into()));
                continue;
            };
            let network = network.trunc();
            // A range that a Node has twice is one wish.
            if networks.insert(network) {
                let claim = Claim {
                    node,
                    seen: seen.clone(),
                    range: range.clone(),
                    served: existing.serve(network, &seen),
                };
                wanted.claim(network, claim, plan);
            }
        }
        if !ranges.is_empty() {
            plan.nodes.insert(name.clone(), networks.clone());
        }
        wanted.networks_of.insert(name.clone(), networks);
    }
    wanted
}

impl<'a> Wanted<'a> {
    /// Two Nodes with the same range: the one that has the route keeps it, else the older one gets it.
    fn claim(&mut self, network: IpNet, new: Claim<'a>, plan: &mut RoutePlan) {
        let Some(first) = self.claims.remove(&network) else {
            self.claims.insert(network, new);
            return;
        };
        let (winner, loser) = if new.served && !first.served {
            (new, first)
        } else {
            (first, new)
        };
        let reason = format!("node {} has the same range", winner.seen.view.name);
        plan.refused.push(refusal(loser.node, &loser.range, reason));
        self.claims.insert(network, winner);
    }
}

fn refusal(node: &Node, range: &str, reason: String) -> Refusal {
    Refusal {
        node: node.metadata.name.clone().unwrap_or_default(),
        uid: node.metadata.uid.clone().unwrap_or_default(),
        range: range.to_owned(),
        reason,
    }
}

fn plan_wanted(cluster: &[IpNet], network: &IpNet, claim: &Claim<'_>, routes: &[&Route], plan: &mut RoutePlan) {
    if !responsible(cluster, network) {
        if !claim.served {
            let ranges: Vec<String> = cluster.iter().map(ToString::to_string).collect();
            let reason = format!(
                "it is outside of the cluster's ranges {} (--cluster-cidr)",
                ranges.join(",")
            );
            plan.refused.push(refusal(claim.node, &claim.range, reason));
        }
        return;
    }
    let waits = waits(claim.node);
    // A waiting Node's addresses are not all there yet, so next hops say nothing.
    let keeps = |route: &Route| serves(route, &claim.seen) || (waits && leads_to(route, &claim.seen));
    let delete: Vec<Route> = routes
        .iter()
        .filter(|route| !keeps(route))
        .map(|route| (*route).clone())
        .collect();
    let create = (!claim.served && !waits).then(|| NewRoute {
        name_hint: claim.node.metadata.uid.clone().unwrap_or_default(),
        destination: claim.range.clone(),
        node: claim.seen.view.clone(),
    });
    if create.is_some() || !delete.is_empty() {
        plan.changes.push(RouteChange {
            network: *network,
            delete,
            create,
        });
    }
}

/// Whether the Node waits for its initialisation.
pub fn waits(node: &Node) -> bool {
    has_taint(node, UNINITIALIZED)
}

fn leads_to(route: &Route, seen: &SeenNode) -> bool {
    step();
    route.node.as_deref() == Some(seen.view.name.as_str()) && !route.blackhole
}

/// Whether the route leads to the Node. Where a cloud routes to addresses, the Node must still have them.
fn serves(route: &Route, seen: &SeenNode) -> bool {
    let reached_at = || {
        let addresses = seen.view.addresses.iter().inspect(|_| step());
        addresses.map(|address| Hop::of(&address.value)).collect()
    };
    leads_to(route, seen)
        && route.next_hops.iter().all(|hop| {
            step();
            seen.reached_at.get_or_init(reached_at).contains(&Hop::of(&hop.value))
        })
}

/// Cuts changes into batches of about `size` single operations. A change is never cut apart, so that its deletions and its
/// creation travel together and stay in order.
pub fn batches(changes: &[RouteChange], size: usize) -> Vec<&[RouteChange]> {
    let mut batches = Vec::new();
    let (mut start, mut operations) = (0, 0);
    for (index, change) in changes.iter().enumerate() {
        let count = change.delete.len() + usize::from(change.create.is_some());
        if operations > 0 && operations + count > size {
            batches.push(&changes[start..index]);
            (start, operations) = (index, 0);
        }
        operations += count;
    }
    if start < changes.len() {
        batches.push(&changes[start..]);
    }
    batches
}

/// What an update of a Node has to change before routes are checked: Pod ranges or addresses (`spec/route-controller.md`, section 3.2),
/// or whether it waits for its initialisation.
pub fn concerns_routes(old: &Node, new: &Node) -> bool {
    let ranges = |node: &Node| {
        node.spec
            .as_ref()
            .and_then(|spec| spec.pod_cidrs.clone())
            .unwrap_or_default()
    };
    let addresses = |node: &Node| {
        node.status
            .as_ref()
            .and_then(|status| status.addresses.clone())
            .unwrap_or_default()
    };
    ranges(old) != ranges(new) || addresses(old) != addresses(new) || waits(old) != waits(new)
}

#[cfg(test)]
mod tests;
