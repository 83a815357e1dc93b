//! Deleting a load balancer of either kind with everything that was made for it.
//!
//! What is left to do is looked up in the cloud each time, never cached: rules in the Nodes' groups go first, while the load balancer
//! that leads to them is still there; its own group and its target groups go last and are found by name. Whatever is not the cluster's
//! alone (`owned`) stays.

use std::time::Duration;

use cloudwit_guest_sdk::names::default_load_balancer_name;
use cloudwit_guest_sdk::prelude::*;

use cloudwit_guest_sdk::xml::Element;

use crate::Aws;
use crate::api::endpoints::Service as Api;
use crate::api::error::AwsError;
use crate::balancers::SERVICE_TAG;
use crate::balancers::annotations::Kind;
use crate::balancers::annotations::settings::Settings;
use crate::balancers::find::Found;
use crate::balancers::network::Seen;
use crate::balancers::network::target_groups::{self, GroupSeen, prefix, security_group_name};
use crate::balancers::security_groups::plan::{NodeTraffic, node_rules_classic};
use crate::balancers::security_groups::{CLASSIC_PREFIX, Group};
use crate::balancers::{classic, network};
use crate::tags::{CLUSTER_PREFIX, tag};

/// Poll interval while the cloud still uses something.
const RELEASE_POLL: Duration = Duration::from_secs(5);

impl Aws {
    /// Deletes whatever there is of the Service's load balancer. `kind` is that of the annotations. Which VPC the cluster is in does not matter: it
    /// may be known no more.
    pub(crate) fn delete_balancers(&self, service: &Service, kind: Kind) -> Result<(), AwsError> {
        let name = default_load_balancer_name(&service.uid);
        let found = [self.find(&name, Kind::Classic)?, self.find(&name, Kind::Network)?];
        if found
            .iter()
            .flatten()
            .any(|found| !self.cluster.may_delete(found.tags()))
        {
            let text = format!(
                "load balancer {name} is left as it is: it does not carry the tag {}=owned",
                self.cluster.key()
            );
            self.context
                .service_event(EventKind::Warning, "LoadBalancerLeft", &text);
            return Ok(());
        }
        let names = [
            format!("{CLASSIC_PREFIX}{name}"),
            security_group_name(self.context.keys(), &self.context.cluster().name, service),
        ];
        let mut own = self.security_groups("group-name", &[&names[0], &names[1]], None)?;
        own.retain(|group| self.is_own_group(group, service));
        for group in &own {
            self.distrust(&group.id)?;
        }
        let [classic, network] = found;
        if let Some(Found::Classic(seen)) = classic {
            let mut groups = seen.groups.clone();
            groups.retain(|id| !own.iter().any(|group| group.id == *id));
            let others = self.distrust_unused(&name, &groups, &seen.instances)?;
            self.run(&classic::plan::delete(&name))?;
            if others {
                // Those may have been deleted meanwhile, and each left the rules to the other.
                self.distrust_unused(&name, &groups, &seen.instances)?;
            }
        } else if kind == Kind::Classic && network.is_none() {
            // A call that ended between the two may have left rules for the common group. Of a Service's own choice it is not known that it was used.
            let global = Some(self.config.global.elb_security_group.clone()).filter(|id| !id.is_empty());
            self.distrust_unused(&name, global.as_slice(), &[])?;
        }
        match network {
            Some(Found::Network(seen, _)) => self.delete_network(service, &name, Some(&seen))?,
            _ if kind == Kind::Network => self.delete_network(service, &name, None)?,
            _ => {}
        }
        self.delete_groups(&own)
    }

    /// A network load balancer, if it is there, its target groups, and its rules in the Nodes' groups.
    fn delete_network(&self, service: &Service, name: &str, balancer: Option<&Seen>) -> Result<(), AwsError> {
        let attached: Vec<String> = match balancer {
            Some(seen) => self
                .listeners_of(&seen.arn)?
                .into_iter()
                .map(|listener| listener.group)
                .collect(),
            None => Vec::new(),
        };
        self.close_nodes(name, balancer.map(|seen| seen.vpc.as_str()), &attached)?;
        if let Some(seen) = balancer {
            self.run(&network::plan::delete(&seen.arn))?;
        }
        self.delete_target_groups(service, name, &attached)
    }

    /// Removes the load balancer's rules from all groups with the cluster's tag, and from those of its targets.
    fn close_nodes(&self, name: &str, vpc: Option<&str>, attached: &[String]) -> Result<(), AwsError> {
        if self.config.global.disable_security_group_ingress {
            return Ok(());
        }
        let mut ids: Vec<String> = Vec::new();
        for group in attached {
            ids.extend(self.targets_of(group)?.into_iter().map(|(id, _)| id));
        }
        let groups = self.groups_of(ids)?;
        let traffic = NodeTraffic {
            balancer: name.into(),
            protocol: "tcp",
            ports: Vec::new(),
            health_ports: Vec::new(),
            clients: Vec::new(),
            subnets: Vec::new(),
            shared_health_port: self.config.shared_health_check().map(|(port, _)| port),
        };
        self.bring_node_rules(vpc, &groups, &traffic, false)
    }

    /// The groups that let traffic in to these instances. Where that is ambiguous none was ever opened, and nothing keeps a load balancer from being
    /// deleted.
    fn groups_of(&self, mut ids: Vec<String>) -> Result<Vec<String>, AwsError> {
        ids.sort();
        ids.dedup();
        match self.known_instances(&ids) {
            Ok(machines) => Ok(machines.groups),
            Err(error) if *error.kind() == FailureKind::Invalid => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// The target groups that were attached, and those of the Service that a crash left behind.
    fn delete_target_groups(&self, service: &Service, name: &str, attached: &[String]) -> Result<(), AwsError> {
        let prefix = prefix(service);
        let of = format!("{}/{}", service.namespace, service.name);
        let page = [("PageSize", "400")];
        let all = self.ask_all(Api::ElbV2, "DescribeTargetGroups", &page, &["TargetGroups"])?;
        // One that also serves another load balancer stays: the cloud would not let it go.
        let only_ours = |group: &GroupSeen| {
            let mut balancers = group.balancers.iter();
            balancers.all(|balancer| balancer.find(name).is_some())
        };
        let mut groups: Vec<GroupSeen> = all.iter().filter_map(target_groups::read).collect();
        groups.retain(|group| group.name.starts_with(&prefix) && only_ours(group));
        let arns: Vec<&str> = groups.iter().map(|group| group.arn.as_str()).collect();
        let mut held = false;
        for (arn, tags) in self.network_tags_of(&arns)? {
            let made_for_it = self.cluster.may_delete(&tags) && tag(&tags, SERVICE_TAG) == Some(&of);
            // Old versions of upstream gave their target groups no tags.
            let untagged = attached.contains(&arn) && !tags.iter().any(|tag| tag.key.starts_with(CLUSTER_PREFIX));
            if !made_for_it && !untagged {
                continue;
            }
            match self.attempt(&target_groups::delete(&arn)) {
                Err(error) if error.is(&["ResourceInUse"]) => held = true,
                result => drop(result?),
            }
        }
        match held {
            false => Ok(()),
            true => Err(AwsError::pending(
                RELEASE_POLL,
                "target groups are still in use by the load balancer that was just deleted".into(),
            )),
        }
    }

    /// These groups, which are not this load balancer's own, lose the Nodes' trust where no other classic load balancer is in them: the rules go from
    /// the groups with the cluster's tag, and from those of these instances. Whether there are such others.
    pub(crate) fn distrust_unused(
        &self,
        name: &str,
        groups: &[String],
        instances: &[String],
    ) -> Result<bool, AwsError> {
        if self.config.global.disable_security_group_ingress || groups.is_empty() {
            return Ok(false);
        }
        let page = [("PageSize", "400")];
        let mut others = self.ask_all(Api::Elb, "DescribeLoadBalancers", &page, &["LoadBalancerDescriptions"])?;
        others.retain(|one| one.text("LoadBalancerName") != Some(name));
        let mut shared = false;
        for id in groups {
            let used = |one: &Element| {
                one.all(&["SecurityGroups", "member"])
                    .any(|group| group.own_text() == id)
            };
            if others.iter().any(used) {
                shared = true;
                continue;
            }
            let trusting = self.security_groups("ip-permission.group-id", &[id], None)?;
            let (marked, others): (Vec<Group>, Vec<Group>) =
                trusting.into_iter().partition(|one| self.cluster.marks(&one.tags));
            self.run_all(&node_rules_classic(&marked, &[], id))?;
            if !others.is_empty() {
                let of_nodes = self.groups_of(instances.to_vec())?;
                let others: Vec<Group> = others.into_iter().filter(|one| of_nodes.contains(&one.id)).collect();
                self.run_all(&node_rules_classic(&others, &[], id))?;
            }
        }
        Ok(shared)
    }

    /// Whether a group of Cloudwit's name was made by Cloudwit for this Service, and is neither configured nor named by it.
    fn is_own_group(&self, group: &Group, service: &Service) -> bool {
        self.cluster.may_delete(&group.tags)
            && group.id != self.config.global.elb_security_group
            && !Settings::names_group(service, &group.id)
    }
}
