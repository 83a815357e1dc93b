//! Creating a load balancer: everything that could fail is checked first, then one POST creates all of it.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::targets::address;

use crate::api::Endpoint;
use crate::api::wire::Fields;
use crate::balancers::annotations::barbican_path;
use crate::balancers::annotations::table::TABLE;
use crate::balancers::change::Change;
use crate::balancers::floating_ips::recorded_address;
use crate::balancers::members::server_id;
use crate::balancers::names;
use crate::balancers::octavia::bodies::{Frame, balancer as body};
use crate::balancers::octavia::{LoadBalancer, Tree};
use crate::balancers::sharing::Claim;
use crate::balancers::task::BalancerTask;
use crate::balancers::wanted::family;
use crate::balancers::{in_error, waiting_on};
use crate::config::given;

impl BalancerTask<'_> {
    /// Makes the load balancer. Octavia then needs time, so this is never a success.
    pub(crate) fn create(&self, targets: &[&Target]) -> Failure {
        match self.try_create(targets) {
            Ok(pending) => pending,
            Err(failure) => failure,
        }
    }

    fn try_create(&self, targets: &[&Target]) -> Result<Failure, Failure> {
        self.check_before()?;
        let node_subnet = self.node_subnet(targets)?;
        let mut vip = self.asked.vip;
        vip.subnet_id = vip.subnet_id.or(node_subnet.as_deref());
        let wanted = self.wanted(targets, vip.subnet_id)?;
        let frame = Frame {
            description: names::description(&self.cluster, self.service),
            provider: given(&self.config.lb_provider).unwrap_or("amphora"),
            flavor_id: self.asked.flavor_id.filter(|_| self.features.flavors),
            availability_zone: self.asked.availability_zone.filter(|_| self.features.zones),
            vip,
            vip_address: self.service.load_balancer_ip.as_deref().filter(|_| self.is_internal()),
            tagged: self.features.tags,
            whole: !self.config.provider_requires_serial_api_calls,
        };
        let change = Change::create(
            "loadbalancers",
            "loadbalancer",
            body(&frame, &wanted),
            "making the load balancer",
        );
        let answer = change.make(self.api)?;
        let text = answer.as_ref().map(Response::text).unwrap_or_default();
        let id = crate::api::wire::parse(&text)
            .and_then(|json| json.need_field("loadbalancer")?.need("id"))
            .map_err(|wrong| {
                Failure::unavailable(format!("making the load balancer: the answer cannot be read: {wrong}"))
            })?;
        let made = LoadBalancer {
            id,
            status: "PENDING_CREATE".into(),
            ..LoadBalancer::default()
        };
        Ok(waiting_on(&made, None))
    }

    /// Whatever a load balancer would later fail for, so that nothing is half made.
    fn check_before(&self) -> Result<(), Failure> {
        // A misspelt annotation could make public what was meant to be internal.
        let unknown = TABLE.unknown(self.service);
        if !unknown.is_empty() {
            return Err(Failure::invalid(unknown.join("; ")));
        }
        if let Some(id) = self.asked.balancer_id {
            // Written back for one that served and was then deleted from outside: there will be a new one.
            if recorded_address(self.service).is_none() {
                let text = [
                    "there is no load balancer ",
                    id,
                    ", which the annotation load-balancer-id names; remove the annotation",
                ];
                return Err(Failure::invalid(text.concat()));
            }
            let text = format!("load balancer {id} was deleted by somebody else; a new one is made");
            self.context
                .service_event(EventKind::Warning, "LoadBalancerGone", &text);
        }
        self.check_certificate(&Tree::default())?;
        self.check_floating_ip()
    }

    /// Whether Barbican has the certificate that no listener has yet.
    pub(crate) fn check_certificate(&self, tree: &Tree) -> Result<(), Failure> {
        let Some(container) = self.asked.tls_container else {
            return Ok(());
        };
        let store = given(&self.config.container_store).unwrap_or("barbican");
        let used = tree
            .listeners
            .iter()
            .any(|listener| listener.tls_container == container);
        let Some(path) = barbican_path(container).filter(|_| store == "barbican" && !used) else {
            return Ok(());
        };
        let found = self
            .api
            .get(Endpoint::KeyManager, &format!("/v1/{path}"))
            .send_optional()?;
        let gone = || Failure::invalid(format!("default-tls-container-ref: Barbican has no {path}"));
        found.map(drop).ok_or_else(gone)
    }

    /// The subnet of the first Node that has one, where no subnet is configured for the virtual IP.
    fn node_subnet(&self, targets: &[&Target]) -> Result<Option<String>, Failure> {
        let asked = &self.asked.vip;
        if asked.port_id.is_some() || asked.subnet_id.is_some() || asked.network_id.is_some() {
            return Ok(None);
        }
        let family = family(self.service);
        for target in targets {
            let (Some(server), Some(address)) = (server_id(&target.node), address(&target.node, family)) else {
                continue;
            };
            let subnet = self.subnet_of(server, address)?;
            if subnet.is_some() {
                return Ok(subnet);
            }
        }
        Err(Failure::unavailable(
            "no Node has a port in a subnet for the virtual IP yet; wait for Nodes, or set subnet-id in the cloud config",
        ))
    }

    /// The subnet of a server's address.
    fn subnet_of(&self, server: &str, address: &str) -> Result<Option<String>, Failure> {
        let call = self
            .api
            .get(Endpoint::Network, "/v2.0/ports")
            .query("device_id", server);
        let subnets = self.api.list(call, "ports", |port| {
            let ips = port.items("fixed_ips").iter();
            let mut subnets = ips.filter(|ip| ip.text("ip_address") == Some(address));
            Ok(subnets.next().map(|ip| ip.text_or_empty("subnet_id")))
        })?;
        Ok(subnets.into_iter().flatten().next())
    }

    /// One that could not be built is removed, so that the next call makes another. One that has served, or serves others, stays.
    pub(crate) fn broken(&self, balancer: &LoadBalancer, claim: &Claim) -> Failure {
        let fresh = claim.owner && claim.takes_it_along(balancer) && recorded_address(self.service).is_none();
        if !fresh {
            return in_error(balancer);
        }
        let path = format!("{}?cascade=true", balancer.id);
        let removed = self.remove_floating_ip(balancer).and_then(|()| {
            self.change(Change::delete(
                "loadbalancers",
                &path,
                "removing the load balancer in ERROR",
            ))
        });
        match removed {
            Ok(()) => {
                let text = [
                    "load balancer ",
                    &balancer.id,
                    " could not be built (ERROR) and is removed; another one will be made",
                ];
                Failure::unavailable(text.concat())
            }
            Err(failure) => failure,
        }
    }
}
