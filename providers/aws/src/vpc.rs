//! Which VPC the cluster lives in: the configured one, else that of its instances.

use std::time::Duration;

use cloudwit_guest_sdk::state::Keep;
use cloudwit_guest_sdk::xml::Element;

use crate::Aws;
use crate::api::error::AwsError;
use crate::api::reading::texts;
use crate::tags::ec2_tags;

/// How long the answer is cached. A cluster does not move to another VPC.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a call waits for another one with the same request.
const WAIT: Duration = Duration::from_secs(20);

impl Aws {
    /// The id of the cluster's VPC.
    ///
    /// # Errors
    /// `invalid` when it is not configured and the cluster's instances are in none or in several; the error of AWS.
    pub(crate) fn vpc_id(&self) -> Result<String, AwsError> {
        if !self.config.global.vpc.is_empty() {
            return Ok(self.config.global.vpc.clone());
        }
        let ask = || Ok(self.vpc_of_instances()?);
        Ok(self
            .context
            .state()
            .get_or_make("vpc", Keep::at_most(KEPT), WAIT, ask)?)
    }

    fn vpc_of_instances(&self) -> Result<String, AwsError> {
        let call = self.api.ec2("DescribeVpcs").filter("tag-key", &self.cluster.keys()[..]);
        let ours = |item: &Element| self.cluster.marks(&ec2_tags(item));
        let mut found: Vec<String> = Vec::new();
        call.pages(&["vpcSet"], |vpc| {
            if ours(vpc) {
                found.append(&mut texts(vpc, &["vpcId"]));
            }
            Ok(())
        })?;
        if found.is_empty() {
            let call = self
                .api
                .ec2("DescribeInstances")
                .filter("tag-key", &self.cluster.keys()[..]);
            let call = call.filter("instance-state-name", &["pending", "running"][..]);
            call.field("MaxResults", "1000")
                .pages(&["reservationSet"], |reservation| {
                    for instance in reservation.all(&["instancesSet", "item"]).filter(|one| ours(one)) {
                        found.append(&mut texts(instance, &["vpcId"]));
                    }
                    Ok(())
                })?;
        }
        found.sort();
        found.dedup();
        match found.as_slice() {
            [only] => Ok(only.clone()),
            [] => Err(AwsError::invalid(format!(
                "no VPC and no instance carries the tag {}; write VPC = vpc-... below [Global]",
                self.cluster.key()
            ))),
            several => {
                let several = several.join(", ");
                let advice = "; write VPC = vpc-... below [Global]";
                Err(AwsError::invalid(format!(
                    "the cluster is in several VPCs: {several}{advice}"
                )))
            }
        }
    }
}
