//! Instances by private DNS name, which is the name of a Node unless another was configured: for Nodes without a provider id.

use cloudwit_guest_sdk::lookup::{Answers, Key, Name};
use cloudwit_guest_sdk::prelude::*;

use crate::Aws;
use crate::api::error::AwsError;
use crate::instances::machine::{Machine, MachineState, described};

/// The most values in one filter (EC2: `FilterLimitExceeded`).
pub(crate) const MOST_VALUES: usize = 200;

/// All states but `terminated` (upstream's `aliveFilter`): after an instance has ended, its name may be another's.
const ALIVE: [&str; 5] = ["pending", "running", "shutting-down", "stopping", "stopped"];

impl Aws {
    /// Notes AWS's answer for each of these names. Another cluster's machine of a name does not count.
    ///
    /// # Errors
    /// What prevents every look-up.
    pub(crate) fn find_by_names(
        &self,
        names: &[Name<'_>],
        answers: &mut Answers<'_, Box<Machine>>,
    ) -> Result<(), AwsError> {
        let call = self.api.ec2("DescribeInstances").filter("private-dns-name", names);
        let call = call.filter("instance-state-name", &ALIVE[..]);
        for machine in described(call.field("MaxResults", "1000"))? {
            if machine.state == MachineState::Terminated {
                continue;
            }
            let name = machine.private_dns.clone();
            if self.cluster.marks(&machine.tags) {
                answers.found(Key::Name(&name), Box::new(machine));
                continue;
            }
            let text = [
                "the instance ",
                &machine.id,
                " is named ",
                &name,
                " but does not carry the tag ",
            ];
            let advice = "; add it, or set the Node's provider id";
            let text = format!("{}{}{advice}", text.concat(), self.cluster.key());
            answers.failed(Key::Name(&name), Failure::invalid(text));
        }
        Ok(())
    }
}
