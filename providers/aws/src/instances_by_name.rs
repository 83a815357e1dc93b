//! Instances by private DNS name, which is the name of a Node unless somebody chose another: for Nodes without a provider id.

use cloudwit_guest_sdk::prelude::*;

use crate::Aws;
use crate::api_error::AwsError;
use crate::instances_by_id::{Answers, Found};
use crate::instances_machine::{Machine, described};

/// The most values in one filter (EC2: `FilterLimitExceeded`).
pub(crate) const MOST_VALUES: usize = 200;

/// All states but `terminated` (upstream's `aliveFilter`): after an instance has ended, its name may be another's.
const ALIVE: [&str; 5] = ["pending", "running", "shutting-down", "stopping", "stopped"];

impl Aws {
    /// What AWS says about each of these names.
    ///
    /// # Errors
    /// What prevents every look-up.
    pub(crate) fn find_by_names(&self, names: &[&str], answers: &mut Answers) -> Result<(), AwsError> {
        for page in names.chunks(MOST_VALUES) {
            let call = self.api.ec2("DescribeInstances").filter("private-dns-name", page);
            let call = call
                .filter("instance-state-name", &ALIVE[..])
                .field("MaxResults", "1000");
            let mut machines = described(call)?;
            for name in page {
                // A machine moves into its answer, so no name is decided twice.
                if !answers.contains_key(*name) {
                    answers.insert((*name).to_owned(), self.decide(name, &mut machines));
                }
            }
        }
        Ok(())
    }

    fn decide(&self, name: &str, machines: &mut [Machine]) -> Found {
        let (mut ours, mut others): (Vec<&mut Machine>, Vec<&mut Machine>) = (Vec::new(), Vec::new());
        for machine in machines.iter_mut().filter(|machine| machine.private_dns == name) {
            let list = if self.cluster.marks(&machine.tags) {
                &mut ours
            } else {
                &mut others
            };
            list.push(machine);
        }
        match (ours.as_mut_slice(), others.first()) {
            ([only], _) => Found::from(std::mem::take(*only)),
            ([], None) => Found::Gone,
            ([], Some(other)) => {
                let text = [
                    "the instance ",
                    &other.id,
                    " is named ",
                    name,
                    " but does not carry the tag ",
                ];
                let text = format!(
                    "{}{}; add it, or set the Node's provider id",
                    text.concat(),
                    self.cluster.key()
                );
                Found::Failed(Failure::invalid(text))
            }
            // To guess would bind the Node to the wrong machine for ever.
            (several, _) => {
                let ids: Vec<&str> = several.iter().map(|machine| machine.id.as_str()).collect();
                let text = [
                    "several instances are named ",
                    name,
                    ": ",
                    &ids.join(", "),
                    "; set the Node's provider id",
                ];
                Found::Failed(Failure::invalid(text.concat()))
            }
        }
    }
}
