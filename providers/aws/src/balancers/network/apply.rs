//! Network Load Balancers: reads what is there, plans, and applies the plans.
//!
//! The order keeps traffic flowing: the load balancer, what Nodes let in, target groups with their targets, listeners; then deletion of whatever
//! is not needed any more.

use std::time::Duration;

use cloudwit_guest_sdk::cidr::source_ranges;
use cloudwit_guest_sdk::names::default_load_balancer_name;
use cloudwit_guest_sdk::prelude::*;

use crate::Aws;
use crate::api::endpoints::Service as Api;
use crate::api::error::AwsError;
use crate::balancers::annotations::Kind;
use crate::balancers::annotations::settings::Settings;
use crate::balancers::check_scheme;
use crate::balancers::find::Found;
use crate::balancers::network::plan::{create, listeners, update};
use crate::balancers::network::target_groups::security_group_name;
use crate::balancers::network::{Seen, Wanted, read, read_attributes};
use crate::balancers::security_groups::own::OwnGroup;
use crate::balancers::security_groups::plan::{NodeTraffic, front_rules, node_rules_network};
use crate::balancers::subnets::plan::Subnet;

/// How long a call waits for another one that changes the rules of the same Nodes.
const RULES_WAIT: Duration = Duration::from_secs(20);

/// When it is tried again after that.
const RULES_POLL: Duration = Duration::from_secs(1);

/// The lock for that. Rules for path MTU discovery belong to all load balancers together.
pub(crate) const RULES_LOCK: &str = "balancer-node-rules";

/// Poll interval of a load balancer without an address.
const BUILD_POLL: Duration = Duration::from_secs(5);

impl Aws {
    /// Creates the Service's load balancer or brings it in line.
    pub(crate) fn ensure_network(
        &self,
        service: &Service,
        targets: &[Target],
        settings: &Settings,
    ) -> Result<Vec<Ingress>, AwsError> {
        let wanted = self.network_wanted(service, settings);
        let found = self.find_network(&wanted.name)?;
        if let Some((seen, _)) = &found {
            check_scheme(&wanted.name, seen.internal, settings.internal)?;
        }
        let machines = self.target_instances(targets, settings)?;
        let (subnets, known) = self.balancer_subnets(settings)?;
        let groups = self.network_groups(service, settings, &wanted, found.as_ref().map(|(seen, _)| seen))?;
        let (seen, tags, new) = match found {
            Some((seen, tags)) => (seen, tags, false),
            None => (
                self.create_network(&wanted, &subnets, settings, groups.as_deref())?,
                wanted.tags.clone(),
                true,
            ),
        };
        let attributes = self.ask(
            Api::ElbV2,
            "DescribeLoadBalancerAttributes",
            &[("LoadBalancerArn", &seen.arn)],
        )?;
        self.run_all(&update(
            &wanted,
            &seen,
            &tags,
            &read_attributes(&attributes),
            groups.as_deref(),
        ))?;
        let traffic = node_traffic(self, service, &wanted, &seen, &known)?;
        self.bring_node_rules(Some(&seen.vpc), &machines.groups, &traffic, true)?;
        let known = if new { Vec::new() } else { self.listeners_of(&seen.arn)? };
        let attached = self.target_groups_of(&known)?;
        let arns = self.bring_target_groups(&wanted, &seen.vpc, &attached, &machines)?;
        self.change_listeners(&seen.arn, &listeners(&wanted, &seen.arn, &known, &arns))?;
        self.drop_target_groups(&attached, &arns)?;
        match seen.ingress() {
            ingress if !ingress.is_empty() => Ok(ingress),
            _ if seen.state == "failed" => Err(AwsError::unavailable(format!(
                "AWS could not build load balancer {}; delete it there, then it is made anew",
                wanted.name
            ))),
            _ => Err(AwsError::pending(
                BUILD_POLL,
                format!("AWS builds load balancer {}", wanted.name),
            )),
        }
    }

    /// Brings only targets and what lets traffic reach them in line.
    pub(crate) fn update_network_targets(
        &self,
        service: &Service,
        targets: &[Target],
        seen: &Seen,
    ) -> Result<(), AwsError> {
        let (settings, sound) = Settings::for_targets(service, Kind::Network)?;
        let wanted = self.network_wanted(service, &settings);
        let machines = self.target_instances(targets, &settings)?;
        // Rules follow from the annotations, and stay as they are while those make no sense.
        if sound {
            let (_, known) = self.balancer_subnets(&settings)?;
            let traffic = node_traffic(self, service, &wanted, seen, &known)?;
            self.bring_node_rules(Some(&seen.vpc), &machines.groups, &traffic, true)?;
        }
        for group in self.target_groups_of(&self.listeners_of(&seen.arn)?)? {
            if !sound || wanted.ports.iter().any(|port| group.can_be(&port.group)) {
                self.bring_targets(&group, &machines, false)?;
            }
        }
        Ok(())
    }

    /// The load balancer with its tags; one that is not ours is refused.
    fn find_network(&self, name: &str) -> Result<Option<(Seen, Vec<Pair>)>, AwsError> {
        Ok(match self.find_own(name, Kind::Network)? {
            Some(Found::Network(seen, tags)) => Some((*seen, tags)),
            _ => None,
        })
    }

    fn network_wanted(&self, service: &Service, settings: &Settings) -> Wanted {
        let tags = self.balancer_tags(service, settings);
        Wanted::of(
            self.context.keys(),
            &self.cluster.id,
            service,
            settings,
            &self.config,
            tags,
        )
    }

    fn create_network(
        &self,
        wanted: &Wanted,
        subnets: &[String],
        settings: &Settings,
        groups: Option<&[String]>,
    ) -> Result<Seen, AwsError> {
        for (key, list) in [
            ("eip-allocations", &settings.eip_allocations),
            ("private-ipv4-addresses", &settings.private_addresses),
        ] {
            if !list.is_empty() && list.len() != subnets.len() {
                let counts = format!("{} entries, but there are {} subnets", list.len(), subnets.len());
                return Err(AwsError::invalid(format!(
                    "annotation service.beta.kubernetes.io/aws-load-balancer-{key} has {counts}: {}",
                    subnets.join(", ")
                )));
            }
        }
        let step = create(
            wanted,
            subnets,
            &settings.eip_allocations,
            &settings.private_addresses,
            groups.unwrap_or_default(),
        );
        let answer = self.attempt(&step)?;
        answer
            .as_ref()
            .and_then(read)
            .ok_or_else(|| AwsError::unavailable("CreateLoadBalancer: the answer shows no load balancer".into()))
    }

    /// The security groups it should have; none where it is left alone: groups are not managed, or it was made without and can get none.
    fn network_groups(
        &self,
        service: &Service,
        settings: &Settings,
        wanted: &Wanted,
        seen: Option<&Seen>,
    ) -> Result<Option<Vec<String>>, AwsError> {
        if !self.config.manages_network_groups() || seen.is_some_and(|seen| seen.groups.is_empty()) {
            return Ok(None);
        }
        if !settings.security_groups.is_empty() {
            return Ok(Some(settings.security_groups.clone()));
        }
        let ranges = ranges(service)?;
        let protocol = if wanted.ports.iter().any(|port| port.protocol == "UDP") {
            "udp"
        } else {
            "tcp"
        };
        let own = OwnGroup {
            name: &security_group_name(self.context.keys(), &self.context.cluster().name, service),
            description: "[k8s] Managed SecurityGroup for LoadBalancer",
            tags: &self.own_tags(settings),
            rules: &front_rules(wanted.ports.iter().map(|port| (protocol, port.port)), &ranges),
        };
        let attached = match seen {
            Some(seen) => self.security_groups_by_id(&seen.groups)?,
            None => Vec::new(),
        };
        Ok(Some(vec![self.own_group(&own, &attached)?.id]))
    }

    /// Makes `groups`, which are those of the targets, let this traffic in if `open`. The cluster's other groups in the VPC (in all where it is not
    /// known) let in nothing of it: Nodes that were targets once may have left rules there. Before a change they are read once more under a lock:
    /// several load balancers share them.
    ///
    /// # Errors
    /// `pending` while another call has the lock; the error of AWS.
    pub(crate) fn bring_node_rules(
        &self,
        vpc: Option<&str>,
        groups: &[String],
        traffic: &NodeTraffic,
        open: bool,
    ) -> Result<(), AwsError> {
        if self.config.global.disable_security_group_ingress {
            return Ok(());
        }
        let plan = || -> Result<Vec<_>, AwsError> {
            let [key, legacy] = self.cluster.keys();
            let mut seen = self.security_groups("tag-key", &[&key, &legacy], vpc)?;
            seen.retain(|group| self.cluster.marks(&group.tags));
            let mut further = groups.to_vec();
            further.retain(|id| !seen.iter().any(|group| group.id == *id));
            seen.append(&mut self.security_groups_by_id(&further)?);
            let mut steps = Vec::new();
            for group in &seen {
                steps.append(&mut node_rules_network(
                    group,
                    traffic,
                    open && groups.contains(&group.id),
                ));
            }
            Ok(steps)
        };
        if plan()?.is_empty() {
            return Ok(());
        }
        let lock = self.context.state().lock(RULES_LOCK, RULES_WAIT);
        let _lock = lock.ok_or_else(|| {
            AwsError::pending(
                RULES_POLL,
                "another call changes the rules of the same Nodes' security groups".into(),
            )
        })?;
        self.run_all(&plan()?)
    }
}

/// What the Nodes have to let in.
fn node_traffic(
    aws: &Aws,
    service: &Service,
    wanted: &Wanted,
    seen: &Seen,
    known: &[Subnet],
) -> Result<NodeTraffic, AwsError> {
    let mut ports: Vec<u16> = wanted.ports.iter().map(|port| port.group.port).collect();
    let mut health: Vec<u16> = wanted
        .ports
        .iter()
        .map(|port| port.group.health.number(port.group.port))
        .collect();
    for list in [&mut ports, &mut health] {
        list.sort();
        list.dedup();
    }
    let in_balancer = known.iter().filter(|subnet| seen.subnets.contains(&subnet.id));
    let mut subnets: Vec<String> = in_balancer
        .map(|subnet| subnet.cidr.clone())
        .filter(|cidr| !cidr.is_empty())
        .collect();
    subnets.sort();
    Ok(NodeTraffic {
        balancer: default_load_balancer_name(&service.uid),
        protocol: if wanted.ports.iter().any(|port| port.protocol == "UDP") {
            "udp"
        } else {
            "tcp"
        },
        ports,
        health_ports: health,
        clients: ranges(service)?,
        subnets,
        shared_health_port: aws.config.shared_health_check().map(|(port, _)| port),
    })
}

fn ranges(service: &Service) -> Result<Vec<String>, AwsError> {
    Ok(source_ranges(service)?.iter().map(ToString::to_string).collect())
}
