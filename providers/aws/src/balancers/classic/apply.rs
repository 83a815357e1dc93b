//! Classic Load Balancers: reads what is there, plans by [`crate::balancers::classic::plan`], and applies the plan.

use cloudwit_guest_sdk::cidr::source_ranges;
use cloudwit_guest_sdk::names::default_load_balancer_name;
use cloudwit_guest_sdk::prelude::*;

use crate::Aws;
use crate::api::endpoints::Service as Api;
use crate::api::error::AwsError;
use crate::balancers::annotations::Kind;
use crate::balancers::annotations::settings::Settings;
use crate::balancers::check_scheme;
use crate::balancers::classic::plan::{
    apply_groups, create, instances, just_created, same_set, update, update_tls_policy,
};
use crate::balancers::classic::{Attributes, Seen, Wanted, health_check, listeners};
use crate::balancers::find::Found;
use crate::balancers::security_groups::own::OwnGroup;
use crate::balancers::security_groups::plan::{distrust, front_rules, node_rules_classic};
use crate::balancers::security_groups::{CLASSIC_PREFIX, Group};
use crate::balancers::target_instances::Instances;

/// AWS's error codes for an instance that does not exist (any more).
const NO_INSTANCE: &[&str] = &["InvalidInstance", "InvalidEndPoint"];

/// Most security groups of a load balancer (quotas of Elastic Load Balancing, "Security groups per load balancer").
const MOST_GROUPS: usize = 5;

impl Seen {
    /// Where it is reached.
    pub fn ingress(&self) -> Vec<Ingress> {
        let name = Some(&self.dns_name).filter(|name| !name.is_empty());
        name.into_iter().map(Ingress::hostname).collect()
    }
}

impl Aws {
    /// Creates the Service's load balancer or brings it in line.
    pub(crate) fn ensure_classic(
        &self,
        service: &Service,
        targets: &[Target],
        settings: &Settings,
    ) -> Result<Vec<Ingress>, AwsError> {
        let name = default_load_balancer_name(&service.uid);
        let seen = self.find_classic(&name)?;
        if let Some(seen) = &seen {
            check_scheme(&name, seen.internal, settings.internal)?;
        }
        let machines = self.target_instances(targets, settings)?;
        let (subnets, _) = self.balancer_subnets(settings)?;
        let mut wanted = self.classic_wanted(service, settings, name, subnets);
        let attached = seen.as_ref().map(|seen| seen.groups.as_slice()).unwrap_or_default();
        let mut groups = self.security_groups_by_id(&joined(attached, &machines.groups))?;
        wanted.groups = self.classic_groups(service, settings, &wanted, &mut groups)?;
        let seen = match seen {
            Some(mut seen) => {
                let answer = self.ask(
                    Api::Elb,
                    "DescribeLoadBalancerAttributes",
                    &[("LoadBalancerName", &wanted.name)],
                )?;
                seen.attributes = Attributes::read(&answer);
                seen
            }
            None => {
                let answer = self.attempt(&create(&wanted))?;
                let name = answer.as_ref().and_then(|answer| answer.text("DNSName"));
                just_created(&wanted, name.unwrap_or_default().into())
            }
        };
        let leaving = self.leaving_groups(&wanted, &seen, &groups);
        let between = between(&wanted.groups, &leaving);
        let last = std::mem::replace(&mut wanted.groups, between);
        self.change_listeners(&wanted.name, &update(&wanted, &seen))?;
        let attached = std::mem::replace(&mut wanted.groups, last);
        self.classic_instances(&wanted, &seen, &machines, &groups)?;
        if !leaving.is_empty() {
            self.distrust_unused(&wanted.name, &leaving, &machines.ids)?;
            if !same_set(&attached, &wanted.groups) {
                self.run(&apply_groups(&wanted))?;
            }
        }
        self.drop_replaced_group(&wanted, &seen, &groups);
        Ok(seen.ingress())
    }

    /// The groups that the load balancer is in, shall leave, and that Nodes may trust for its sake. Where it stays in its own group, they trust that one.
    fn leaving_groups(&self, wanted: &Wanted, seen: &Seen, groups: &[Group]) -> Vec<String> {
        let name = format!("{CLASSIC_PREFIX}{}", wanted.name);
        let own = groups.iter().find(|group| group.name == name).map(|group| &group.id);
        let in_own = |list: &[String]| own.is_some_and(|own| list.contains(own));
        if in_own(&seen.groups) && in_own(&wanted.groups) {
            return Vec::new();
        }
        let leaving = seen.groups.iter().filter(|id| !wanted.groups.contains(id));
        leaving.cloned().collect()
    }

    /// Brings only instances and what lets traffic reach them in line.
    pub(crate) fn update_classic_targets(
        &self,
        service: &Service,
        targets: &[Target],
        seen: &Seen,
    ) -> Result<(), AwsError> {
        let name = default_load_balancer_name(&service.uid);
        let (settings, sound) = Settings::for_targets(service, Kind::Classic)?;
        let machines = self.target_instances(targets, &settings)?;
        let groups = self.security_groups_by_id(&joined(&seen.groups, &machines.groups))?;
        let mut wanted = self.classic_wanted(service, &settings, name, seen.subnets.clone());
        let own = groups
            .iter()
            .find(|group| group.name == format!("{CLASSIC_PREFIX}{}", wanted.name));
        wanted.groups = match (
            own,
            settings.security_groups.first(),
            self.config.global.elb_security_group.as_str(),
        ) {
            (_, Some(first), _) => vec![first.clone()],
            (Some(own), None, "") => vec![own.id.clone()],
            (_, None, "") => seen.groups.clone(),
            (_, None, global) => vec![global.into()],
        };
        if sound {
            self.run_all(&update_tls_policy(&wanted, seen))?;
        }
        self.classic_instances(&wanted, seen, &machines, &groups)
    }

    fn find_classic(&self, name: &str) -> Result<Option<Seen>, AwsError> {
        Ok(match self.find_own(name, Kind::Classic)? {
            Some(Found::Classic(seen)) => Some(*seen),
            _ => None,
        })
    }

    fn classic_wanted(&self, service: &Service, settings: &Settings, name: String, subnets: Vec<String>) -> Wanted {
        Wanted {
            name,
            internal: settings.internal,
            listeners: listeners(service, settings),
            health: health_check(service, settings, &self.config),
            attributes: Attributes::wanted(settings),
            proxy_protocol: settings.proxy_protocol,
            tls_policy: settings.tls_policy.clone(),
            tags: self.balancer_tags(service, settings),
            subnets,
            groups: Vec::new(),
        }
    }

    /// The ids of its security groups: those of the annotation, else the operator's, else one of its own; and the further ones. The first
    /// is the one that Nodes let in.
    fn classic_groups(
        &self,
        service: &Service,
        settings: &Settings,
        wanted: &Wanted,
        seen: &mut Vec<Group>,
    ) -> Result<Vec<String>, AwsError> {
        let global = &self.config.global.elb_security_group;
        let mut ids = if !settings.security_groups.is_empty() {
            settings.security_groups.clone()
        } else if !global.is_empty() {
            vec![global.clone()]
        } else {
            let ranges: Vec<String> = source_ranges(service)?.iter().map(ToString::to_string).collect();
            let rules = front_rules(wanted.listeners.iter().map(|listener| ("tcp", listener.port)), &ranges);
            let of = format!("{}/{}", service.namespace, service.name);
            let own = OwnGroup {
                name: &format!("{CLASSIC_PREFIX}{}", wanted.name),
                description: &format!("Security group for Kubernetes ELB {} ({of})", wanted.name),
                tags: &self.own_tags(settings),
                rules: &rules,
            };
            let group = self.own_group(&own, seen)?;
            let id = group.id.clone();
            seen.retain(|one| one.id != id);
            seen.push(group);
            vec![id]
        };
        for id in &settings.extra_security_groups {
            if !ids.contains(id) {
                ids.push(id.clone());
            }
        }
        Ok(ids)
    }

    /// Deletes the load balancer's own group after others replaced it. One that cannot go yet is found by its name when the load balancer is deleted.
    fn drop_replaced_group(&self, wanted: &Wanted, seen: &Seen, groups: &[Group]) {
        let name = format!("{CLASSIC_PREFIX}{}", wanted.name);
        let replaced = groups
            .iter()
            .find(|group| group.name == name && seen.groups.contains(&group.id) && !wanted.groups.contains(&group.id));
        if let Some(group) = replaced.filter(|group| self.cluster.may_delete(&group.tags)) {
            let done = self
                .distrust(&group.id)
                .and_then(|()| self.delete_groups(std::slice::from_ref(group)));
            if let Err(error) = done {
                info!(
                    group = group.id,
                    "a replaced security group stays for now: {}",
                    Failure::from(error).message()
                );
            }
        }
    }

    /// Lets traffic in before instances come, and shuts it out again before the last instance of a group leaves.
    fn classic_instances(
        &self,
        wanted: &Wanted,
        seen: &Seen,
        machines: &Instances,
        groups: &[Group],
    ) -> Result<(), AwsError> {
        let keeps = !self.config.global.disable_security_group_ingress;
        let trusted = wanted.groups.first().filter(|_| keeps);
        if let Some(trusted) = trusted {
            self.run_all(&node_rules_classic(groups, &machines.groups, trusted))?;
        }
        let (register, deregister) = instances(&wanted.name, &machines.ids, &seen.instances);
        if let Some(step) = register
            && let Err(error) = self.attempt(&step)
        {
            if error.is(NO_INSTANCE) {
                self.forget_instances();
                return Err(AwsError::conflict(error.message.clone()));
            }
            return Err(error);
        }
        let Some(step) = deregister else { return Ok(()) };
        if let Some(trusted) = trusted {
            let trusting = self.security_groups("ip-permission.group-id", &[trusted], None)?;
            self.run_all(&node_rules_classic(&trusting, &machines.groups, trusted))?;
        }
        self.run(&step)
    }

    /// Takes this group out of the rules of all others.
    pub(crate) fn distrust(&self, group: &str) -> Result<(), AwsError> {
        if self.config.global.disable_security_group_ingress {
            return Ok(());
        }
        let trusting = self.security_groups("ip-permission.group-id", &[group], None)?;
        self.run_all(&distrust(&trusting, group))
    }
}

/// The groups of a load balancer until Nodes trust those that leave no more: those as well, so that a call which ends early leaves them to be seen.
/// Without them where there is no room for all.
fn between(wanted: &[String], leaving: &[String]) -> Vec<String> {
    let both = joined(wanted, leaving);
    if both.len() <= MOST_GROUPS {
        both
    } else {
        wanted.to_vec()
    }
}

fn joined(a: &[String], b: &[String]) -> Vec<String> {
    let further = b.iter().filter(|id| !a.contains(id));
    a.iter().chain(further).cloned().collect()
}
