//! A load balancer's own security group: found, made, mended, deleted; and looking groups up.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;

use crate::Aws;
use crate::api::endpoints::Service as Api;
use crate::api::error::AwsError;
use crate::balancers::security_groups::plan::exact;
use crate::balancers::security_groups::{Group, Rule, create, read_group, tag_fields};
use crate::balancers::steps::{Step, missing_tags};
use crate::tags::CLUSTER_PREFIX;

/// Poll interval while the cloud still uses something.
const RELEASE_POLL: Duration = Duration::from_secs(5);

/// What a load balancer's own group should be.
pub struct OwnGroup<'a> {
    /// Its name.
    pub name: &'a str,
    /// Free text.
    pub description: &'a str,
    /// Tags that have to be there.
    pub tags: &'a [Pair],
    /// Its rules, no others.
    pub rules: &'a [Rule],
}

impl Aws {
    /// The groups with these ids; those that do not exist are left out.
    pub(crate) fn security_groups_by_id(&self, ids: &[String]) -> Result<Vec<Group>, AwsError> {
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        self.security_groups("group-id", &ids, None)
    }

    /// The groups that fit a filter, in this VPC if one is named.
    pub(crate) fn security_groups(
        &self,
        filter: &str,
        values: &[&str],
        vpc: Option<&str>,
    ) -> Result<Vec<Group>, AwsError> {
        let items = self.ask_filtered("DescribeSecurityGroups", filter, values, vpc, "securityGroupInfo")?;
        Ok(items.iter().map(read_group).collect())
    }

    /// The load balancer's own group as it should be. `seen` are groups that were looked up already; it is mostly among them.
    ///
    /// # Errors
    /// `invalid` when the group of this name is another cluster's; the error of AWS.
    pub(crate) fn own_group(&self, wanted: &OwnGroup<'_>, seen: &[Group]) -> Result<Group, AwsError> {
        let attached = seen.iter().find(|group| group.name == wanted.name).cloned();
        let mut group = match attached {
            Some(group) => group,
            None => self.find_or_create_group(wanted)?,
        };
        self.check_group(&group)?;
        let missing = missing_tags(wanted.tags, &group.tags);
        if !missing.is_empty() {
            let form = cloudwit_guest_sdk::form::Form::new().field("ResourceId.1", &group.id);
            self.run(&Step::ec2("CreateTags", tag_fields(form, "Tag.", &missing)))?;
        }
        self.run_all(&exact(&group, wanted.rules))?;
        group.rules = wanted.rules.to_vec();
        Ok(group)
    }

    fn find_or_create_group(&self, wanted: &OwnGroup<'_>) -> Result<Group, AwsError> {
        let vpc = self.vpc_id()?;
        let find = || {
            self.security_groups("group-name", &[wanted.name], Some(&vpc))
                .map(|mut found| found.pop())
        };
        if let Some(group) = find()? {
            return Ok(group);
        }
        let form = create(&vpc, wanted.name, wanted.description, wanted.tags);
        let step = Step::ec2("CreateSecurityGroup", form).done_by(&["InvalidGroup.Duplicate"]);
        let made = self.attempt(&step)?;
        match made {
            Some(answer) => Ok(Group {
                id: answer.text("groupId").unwrap_or_default().into(),
                name: wanted.name.into(),
                tags: wanted.tags.to_vec(),
                rules: Vec::new(),
            }),
            // Created meanwhile: most likely by Cloudwit itself, before a crash.
            None => find()?.ok_or_else(|| {
                AwsError::conflict(format!("security group {} exists and cannot be found yet", wanted.name))
            }),
        }
    }

    /// Refuses a group of our name that is another cluster's.
    fn check_group(&self, group: &Group) -> Result<(), AwsError> {
        let foreign = group.tags.iter().find(|tag| tag.key.starts_with(CLUSTER_PREFIX));
        match foreign {
            Some(tag) if !self.cluster.marks(&group.tags) => Err(AwsError::invalid(format!(
                "security group {} has the name {}, but carries the tag {} of another \
                  cluster; rename or delete it",
                group.id, group.name, tag.key
            ))),
            _ => Ok(()),
        }
    }

    /// Deletes groups that are the cluster's alone.
    ///
    /// # Errors
    /// `pending` while something of the cloud is still in one of them, which a load balancer is for some time after it was deleted.
    pub(crate) fn delete_groups(&self, groups: &[Group]) -> Result<(), AwsError> {
        let mut held = Vec::new();
        for group in groups {
            match self.ask(Api::Ec2, "DeleteSecurityGroup", &[("GroupId", &group.id)]) {
                Err(error) if error.is(&["DependencyViolation", "InvalidGroup.InUse", "ResourceInUse"]) => {
                    held.push(group.id.as_str())
                }
                Err(error) if error.is(&["InvalidGroup.NotFound", "InvalidGroupId.NotFound"]) => {}
                result => drop(result?),
            }
        }
        match held.is_empty() {
            true => Ok(()),
            false => Err(AwsError::pending(
                RELEASE_POLL,
                format!(
                    "security group {} is still in use; most likely by the load balancer that was just deleted",
                    held.join(", ")
                ),
            )),
        }
    }
}
