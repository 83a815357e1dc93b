//! Deleting a load balancer of either kind with everything that was made for it.
//!
//! What is left to do is looked up in the cloud each time, never remembered: rules in the Nodes' groups go first, while the load balancer
//! that leads to them is still there; its own group and its target groups go last and are found by name. Whatever is not the cluster's
//! alone (`owned`) stays.

use std::time::Duration;

use cloudwit_guest_sdk::names::default_load_balancer_name;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::sort;

use crate::Aws;
use crate::annotations::Kind;
use crate::annotations_settings::Settings;
use crate::classic_balancer::texts;
use crate::load_balancers::{Found, SERVICE_TAG};
use crate::network_apply::RULES_LOCK;
use crate::security_groups::{CLASSIC_PREFIX, Group};
use crate::security_groups_plan::{NodeTraffic, node_rules_classic, node_rules_network};
use crate::tags::{CLUSTER_PREFIX, tag};
use crate::target_groups::{self, GroupSeen, prefix, security_group_name};
use crate::{classic_plan, network_plan};

/// When to look again while the cloud holds on to something.
const RELEASE_POLL: Duration = Duration::from_secs(5);

/// How long a call waits for another one that changes the rules of the same Nodes.
const RULES_WAIT: Duration = Duration::from_secs(20);

/// Most things whose tags are shown at once (`DescribeTags`).
const TAGS: usize = 20;

impl Aws {
    /// Deletes whatever there is of the Service's load balancer. `kind` is what the annotations say, none when nobody can tell.
    pub(crate) fn delete_balancers(&self, service: &Service, kind: Option<Kind>) -> Result<(), Failure> {
        let name = default_load_balancer_name(&service.uid);
        let found = [self.find(&name, Kind::Classic)?, self.find(&name, Kind::Network)?];
        if found
            .iter()
            .flatten()
            .any(|found| !self.cluster.may_delete(found.tags()))
        {
            let text = [
                "load balancer ",
                &name,
                " is left as it is: it does not carry the tag ",
                &self.cluster.key(),
                "=owned",
            ]
            .concat();
            self.context
                .service_event(EventKind::Warning, "LoadBalancerLeft", &text);
            return Ok(());
        }
        let vpc = self.vpc_id()?;
        let names = [
            [CLASSIC_PREFIX, &name].concat(),
            security_group_name(self.context.keys(), &self.context.cluster().name, service),
        ];
        let mut own = self.security_groups("group-name", &names, Some(&vpc))?;
        own.retain(|group| self.is_own_group(group, service));
        for group in &own {
            self.distrust(&group.id)?;
        }
        let [classic, network] = found;
        if let Some(Found::Classic(seen)) = classic {
            self.distrust_unused(
                &name,
                seen.groups
                    .iter()
                    .filter(|id| !own.iter().any(|group| group.id == **id)),
            )?;
            self.run(&classic_plan::delete(&name))?;
        }
        match network {
            Some(Found::Network(seen, _)) => self.delete_network(service, &name, &vpc, Some(&seen.arn))?,
            _ if kind != Some(Kind::Classic) => self.delete_network(service, &name, &vpc, None)?,
            _ => {}
        }
        self.delete_groups(&own)
    }

    /// A network load balancer, if it is there, its target groups, and its rules in the Nodes' groups.
    fn delete_network(&self, service: &Service, name: &str, vpc: &str, balancer: Option<&str>) -> Result<(), Failure> {
        let attached: Vec<String> = match balancer {
            Some(arn) => self
                .listeners_of(arn)?
                .into_iter()
                .map(|listener| listener.group)
                .collect(),
            None => Vec::new(),
        };
        self.close_nodes(name, vpc, &attached)?;
        if let Some(arn) = balancer {
            self.run(&network_plan::delete(arn))?;
        }
        self.delete_target_groups(service, name, &attached)
    }

    /// Removes the load balancer's rules from all groups with the cluster's tag, and from those of its targets.
    fn close_nodes(&self, name: &str, vpc: &str, attached: &[String]) -> Result<(), Failure> {
        if self.config.global.disable_security_group_ingress {
            return Ok(());
        }
        let mut ids: Vec<String> = Vec::new();
        for group in attached {
            ids.extend(self.targets_of(group)?.into_iter().map(|(id, _)| id));
        }
        sort::sort(&mut ids);
        ids.dedup();
        let machines = self.known_instances(&ids)?;
        let traffic = NodeTraffic {
            balancer: name.into(),
            protocol: "tcp",
            ports: Vec::new(),
            health_ports: Vec::new(),
            clients: Vec::new(),
            subnets: Vec::new(),
            shared_health_port: self.config.shared_health_check().map(|(port, _)| port),
        };
        let plan = || -> Result<Vec<_>, Failure> {
            let mut groups = self.security_groups("tag-key", &[self.cluster.key()], Some(vpc))?;
            let known: Vec<&String> = groups.iter().map(|group| &group.id).collect();
            let further: Vec<String> = machines
                .groups
                .iter()
                .filter(|id| !known.contains(id))
                .cloned()
                .collect();
            groups.extend(self.security_groups_by_id(&further)?);
            Ok(groups
                .iter()
                .flat_map(|group| node_rules_network(group, &traffic, false))
                .collect())
        };
        if plan()?.is_empty() {
            return Ok(());
        }
        let _lock = self.context.state().lock(RULES_LOCK, RULES_WAIT);
        self.run_all(&plan()?)
    }

    /// The target groups that were attached, and those of the Service that a crash left behind.
    fn delete_target_groups(&self, service: &Service, name: &str, attached: &[String]) -> Result<(), Failure> {
        let prefix = prefix(service);
        let of = [&service.namespace, "/", &service.name].concat();
        let all = self.api.elb_v2("DescribeTargetGroups").field("PageSize", 400);
        let all = all.pages(&["TargetGroups"], |item| Ok(target_groups::read(item)))?;
        let named = all
            .into_iter()
            .flatten()
            .filter(|group| group.name.starts_with(&prefix));
        // One that also serves somebody else's load balancer stays: the cloud would not let it go.
        let only_ours = |group: &GroupSeen| group.balancers.iter().all(|balancer| balancer.contains(name));
        let ours = named.filter(only_ours);
        let arns: Vec<String> = ours.map(|group| group.arn).collect();
        let mut held = false;
        for part in arns.chunks(TAGS) {
            for (arn, tags) in self.network_tags(part)? {
                let made_for_it = self.cluster.may_delete(&tags) && tag(&tags, SERVICE_TAG) == Some(&of);
                // Old versions of upstream gave their target groups no tags.
                let untagged = attached.contains(&arn) && !tags.iter().any(|tag| tag.key.starts_with(CLUSTER_PREFIX));
                if !made_for_it && !untagged {
                    continue;
                }
                let step = target_groups::delete(&arn);
                match self
                    .api
                    .call(step.service, step.action)
                    .form(&step.form)
                    .send_unless(step.done_by)
                {
                    Err(error) if error.is(&["ResourceInUse"]) => held = true,
                    result => drop(result?),
                }
            }
        }
        match held {
            false => Ok(()),
            true => Err(Failure::pending(
                RELEASE_POLL,
                "",
                "target groups are still in use by the load balancer that was just deleted",
            )),
        }
    }

    /// Groups that are not this load balancer's own lose the Nodes' trust when no other classic load balancer is in them.
    fn distrust_unused<'a>(&self, name: &str, groups: impl Iterator<Item = &'a String>) -> Result<(), Failure> {
        let groups: Vec<&String> = groups.collect();
        if groups.is_empty() || self.config.global.disable_security_group_ingress {
            return Ok(());
        }
        let others = self.api.elb("DescribeLoadBalancers").field("PageSize", 400);
        let others = others.pages(&["LoadBalancerDescriptions"], |item| {
            let groups = item.child("SecurityGroups").map(texts).unwrap_or_default();
            Ok(if item.text("LoadBalancerName") == Some(name) {
                Vec::new()
            } else {
                groups
            })
        })?;
        let used: Vec<String> = others.into_iter().flatten().collect();
        for group in groups.into_iter().filter(|group| !used.contains(group)) {
            let mut trusting = self.security_groups("ip-permission.group-id", &[group], None)?;
            trusting.retain(|one| self.cluster.marks(&one.tags));
            self.run_all(&node_rules_classic(&trusting, &[], group))?;
        }
        Ok(())
    }

    /// Whether a group of our name was made by us for this Service, and is neither configured nor named by it.
    fn is_own_group(&self, group: &Group, service: &Service) -> bool {
        self.cluster.may_delete(&group.tags)
            && group.id != self.config.global.elb_security_group
            && !Settings::names_group(service, &group.id)
    }
}
