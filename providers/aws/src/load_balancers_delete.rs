//! Deleting a load balancer of either kind with everything that was made for it.
//!
//! What is left to do is looked up in the cloud each time, never remembered: rules in the Nodes' groups go first, while the load balancer
//! that leads to them is still there; its own group and its target groups go last and are found by name. Whatever is not the cluster's
//! alone (`owned`) stays.

use core::time::Duration;

use cloudwit_guest_sdk::names::default_load_balancer_name;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::sort;
use cloudwit_guest_sdk::text;

use cloudwit_guest_sdk::xml::Element;

use crate::Aws;
use crate::annotations::Kind;
use crate::annotations_settings::Settings;
use crate::api_error::AwsError;
use crate::endpoints::Service as Api;
use crate::load_balancers::{Found, SERVICE_TAG};
use crate::security_groups::{CLASSIC_PREFIX, Group};
use crate::security_groups_plan::{NodeTraffic, node_rules_classic};
use crate::tags::{CLUSTER_PREFIX, tag};
use crate::target_groups::{self, prefix, security_group_name};
use crate::{classic_plan, network_plan};

/// When to look again while the cloud holds on to something.
const RELEASE_POLL: Duration = Duration::from_secs(5);

impl Aws {
    /// Deletes whatever there is of the Service's load balancer. `kind` is what the annotations say, none when nobody can tell.
    pub(crate) fn delete_balancers(&self, service: &Service, kind: Option<Kind>) -> Result<(), AwsError> {
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
        let mut own = self.security_groups("group-name", &[&names[0], &names[1]], Some(&vpc))?;
        own.retain(|group| self.is_own_group(group, service));
        for group in &own {
            self.distrust(&group.id)?;
        }
        let [classic, network] = found;
        if let Some(Found::Classic(seen)) = classic {
            self.distrust_unused(&name, &seen.groups, &own)?;
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
    fn delete_network(&self, service: &Service, name: &str, vpc: &str, balancer: Option<&str>) -> Result<(), AwsError> {
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
    fn close_nodes(&self, name: &str, vpc: &str, attached: &[String]) -> Result<(), AwsError> {
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
        self.bring_node_rules(vpc, &machines.groups, &traffic, false)
    }

    /// The target groups that were attached, and those of the Service that a crash left behind.
    fn delete_target_groups(&self, service: &Service, name: &str, attached: &[String]) -> Result<(), AwsError> {
        let prefix = prefix(service);
        let of = [&service.namespace, "/", &service.name].concat();
        let page = [("PageSize", "400")];
        let all = self.ask_all(Api::ElbV2, "DescribeTargetGroups", &page, &["TargetGroups"])?;
        let mut held = false;
        for group in all.iter().filter_map(target_groups::read) {
            // One that also serves somebody else's load balancer stays: the cloud would not let it go.
            let only_ours = group
                .balancers
                .iter()
                .all(|balancer| text::find(balancer, name).is_some());
            if !group.name.starts_with(&prefix) || !only_ours {
                continue;
            }
            let tags = self.network_tags(&group.arn)?;
            let made_for_it = self.cluster.may_delete(&tags) && tag(&tags, SERVICE_TAG) == Some(&of);
            // Old versions of upstream gave their target groups no tags.
            let untagged = attached.contains(&group.arn) && !tags.iter().any(|tag| tag.key.starts_with(CLUSTER_PREFIX));
            if !made_for_it && !untagged {
                continue;
            }
            match self.attempt(&target_groups::delete(&group.arn)) {
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

    /// Groups that are not this load balancer's own lose the Nodes' trust when no other classic load balancer is in them.
    fn distrust_unused(&self, name: &str, groups: &[String], own: &[Group]) -> Result<(), AwsError> {
        let foreign = |id: &&String| !own.iter().any(|group| group.id == **id);
        if self.config.global.disable_security_group_ingress || !groups.iter().any(|id| foreign(&id)) {
            return Ok(());
        }
        let page = [("PageSize", "400")];
        let mut others = self.ask_all(Api::Elb, "DescribeLoadBalancers", &page, &["LoadBalancerDescriptions"])?;
        others.retain(|one| one.text("LoadBalancerName") != Some(name));
        for id in groups.iter().filter(foreign) {
            let used = |one: &Element| {
                one.all(&["SecurityGroups", "member"])
                    .any(|group| group.own_text() == id)
            };
            if others.iter().any(used) {
                continue;
            }
            let mut trusting = self.security_groups("ip-permission.group-id", &[id], None)?;
            trusting.retain(|one| self.cluster.marks(&one.tags));
            self.run_all(&node_rules_classic(&trusting, &[], id))?;
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
