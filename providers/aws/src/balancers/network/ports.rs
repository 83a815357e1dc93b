//! What a Network Load Balancer's ports lead to: reads listeners, target groups and targets, and brings the latter two in line.
//!
//! Which target groups are the load balancer's is read from its listeners, not from the groups themselves.

use cloudwit_guest_sdk::prelude::*;

use crate::Aws;
use crate::api::endpoints::Service as Api;
use crate::api::error::AwsError;
use crate::balancers::asking::members;
use crate::balancers::network::plan::target_attributes;
use crate::balancers::network::target_groups::{self, GroupSeen, GroupWanted};
use crate::balancers::network::{Listener, Wanted, read_attributes, read_listener};
use crate::balancers::target_instances::Instances;

/// Most target groups that are shown at once.
const ARNS: usize = 20;

/// A target group, and whether it was made just now and has no targets yet.
struct Ready {
    group: GroupSeen,
    fresh: bool,
}

impl Aws {
    /// The load balancer's listeners.
    pub(crate) fn listeners_of(&self, balancer: &str) -> Result<Vec<Listener>, AwsError> {
        let items = self.ask_all(
            Api::ElbV2,
            "DescribeListeners",
            &[("LoadBalancerArn", balancer)],
            &["Listeners"],
        )?;
        Ok(items.iter().filter_map(read_listener).collect())
    }

    /// The target groups that these listeners lead to.
    pub(crate) fn target_groups_of(&self, listeners: &[Listener]) -> Result<Vec<GroupSeen>, AwsError> {
        let mut arns: Vec<&str> = listeners
            .iter()
            .map(|listener| listener.group.as_str())
            .filter(|arn| !arn.is_empty())
            .collect();
        arns.sort();
        arns.dedup();
        let mut groups = Vec::new();
        for part in arns.chunks(ARNS) {
            let numbered = members("TargetGroupArns", part);
            let fields: Vec<(&str, &str)> = numbered.iter().map(|(name, arn)| (name.as_str(), *arn)).collect();
            let items = self.ask_all(Api::ElbV2, "DescribeTargetGroups", &fields, &["TargetGroups"])?;
            groups.extend(items.iter().filter_map(target_groups::read));
        }
        Ok(groups)
    }

    /// Makes the target group of each port what it should be, with its targets. Gives their ids in the ports' order.
    pub(crate) fn bring_target_groups(
        &self,
        wanted: &Wanted,
        vpc: &str,
        attached: &[GroupSeen],
        machines: &Instances,
    ) -> Result<Vec<String>, AwsError> {
        let mut arns: Vec<String> = Vec::new();
        for port in &wanted.ports {
            // Two ports may lead to the same node port; each has a group of its own.
            let free = attached
                .iter()
                .filter(|group| !arns.contains(&group.arn) && group.can_be(&port.group));
            let (named, others): (Vec<_>, Vec<_>) = free.partition(|group| group.name == port.group.name);
            let ready = match named.first().or(others.first()) {
                Some(group) => Ready {
                    group: (*group).clone(),
                    fresh: false,
                },
                None => self.make_target_group(&port.group, vpc, &wanted.tags)?,
            };
            if !ready.fresh
                && let Some(step) = target_groups::modify(&port.group, &ready.group)
            {
                self.run(&step)?;
            }
            self.bring_targets(&ready.group, machines, ready.fresh)?;
            if !wanted.target_attributes.is_empty() {
                let of = [("TargetGroupArn", ready.group.arn.as_str())];
                let attributes = read_attributes(&self.ask(Api::ElbV2, "DescribeTargetGroupAttributes", &of)?);
                self.run_all(target_attributes(&ready.group.arn, &wanted.target_attributes, &attributes).as_slice())?;
            }
            arns.push(ready.group.arn);
        }
        Ok(arns)
    }

    /// Makes a target group, or takes the one that was made before a crash.
    fn make_target_group(&self, wanted: &GroupWanted, vpc: &str, tags: &[Pair]) -> Result<Ready, AwsError> {
        let step = target_groups::create(wanted, vpc, tags);
        let made = self.attempt(&step)?;
        let fresh = made.is_some();
        let answer = match made {
            Some(answer) => answer,
            None => self.ask(Api::ElbV2, "DescribeTargetGroups", &[("Names.member.1", &wanted.name)])?,
        };
        let group = answer.at(&["TargetGroups", "member"]).and_then(target_groups::read);
        let group = group.ok_or_else(|| Failure::unavailable(format!("AWS shows no target group {}", wanted.name)))?;
        if !fresh {
            let tags = self.network_tags(&group.arn)?;
            if !self.cluster.marks(&tags) || !group.can_be(wanted) {
                return Err(AwsError::invalid(format!(
                    "target group {} has the name that this Service needs, but not the tag {} or other ports: it is left alone; rename or delete it in AWS",
                    wanted.name,
                    self.cluster.key()
                )));
            }
        }
        Ok(Ready { group, fresh })
    }

    pub(crate) fn bring_targets(&self, group: &GroupSeen, machines: &Instances, fresh: bool) -> Result<(), AwsError> {
        let seen = if fresh {
            Vec::new()
        } else {
            self.targets_of(&group.arn)?
        };
        for step in target_groups::targets(&group.arn, group.port, &machines.ids, &seen) {
            if let Err(error) = self.attempt(&step) {
                if error.is(&["InvalidTarget"]) {
                    self.forget_instances();
                    return Err(AwsError::conflict(error.message.clone()));
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Instance and port of each target of a group.
    pub(crate) fn targets_of(&self, group: &str) -> Result<Vec<(String, u16)>, AwsError> {
        let answer = self.ask(Api::ElbV2, "DescribeTargetHealth", &[("TargetGroupArn", group)])?;
        Ok(target_groups::read_targets(&answer))
    }

    /// Deletes those target groups of ours that no listener leads to any more. One that cannot go yet goes with the load balancer.
    pub(crate) fn drop_target_groups(&self, attached: &[GroupSeen], needed: &[String]) -> Result<(), AwsError> {
        for group in attached.iter().filter(|group| !needed.contains(&group.arn)) {
            if self.cluster.may_delete(&self.network_tags(&group.arn)?) {
                let deleted = self.attempt(&target_groups::delete(&group.arn));
                deleted.map(drop).or_else(|error| {
                    if error.is(&["ResourceInUse"]) {
                        Ok(())
                    } else {
                        Err(error)
                    }
                })?;
            }
        }
        Ok(())
    }
}
