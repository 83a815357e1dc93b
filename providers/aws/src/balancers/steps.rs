//! A request as data: what the plans give and what is then sent, in order, from one place.

use cloudwit_guest_sdk::Pair;
use cloudwit_guest_sdk::form::Form;

use crate::api::endpoints::Service;
use crate::tags::CLUSTER_PREFIX;

/// One request that changes something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// To whom.
    pub service: Service,
    /// The action's name.
    pub action: &'static str,
    /// Its parameters.
    pub form: Form,
    /// The error code that means that it was done already.
    pub done_by: &'static [&'static str],
}

impl Step {
    /// A request to EC2.
    pub fn ec2(action: &'static str, form: Form) -> Self {
        Self::new(Service::Ec2, action, form)
    }

    /// A request about a Classic Load Balancer.
    pub fn classic(action: &'static str, form: Form) -> Self {
        Self::new(Service::Elb, action, form)
    }

    /// A request about a Network Load Balancer.
    pub fn network(action: &'static str, form: Form) -> Self {
        Self::new(Service::ElbV2, action, form)
    }

    fn new(service: Service, action: &'static str, form: Form) -> Self {
        Self {
            service,
            action,
            form,
            done_by: &[],
        }
    }

    /// These error codes mean that it was done already.
    pub fn done_by(mut self, codes: &'static [&'static str]) -> Self {
        self.done_by = codes;
        self
    }

    /// Action and parameters as they are sent; for tests.
    #[cfg(test)]
    pub fn text(&self) -> String {
        format!("{}&{}", self.action, self.form.encode())
    }
}

/// The tags that are missing or have another value. A cluster's tag counts whatever its value: what was shared stays shared.
pub fn missing_tags(wanted: &[Pair], seen: &[Pair]) -> Vec<Pair> {
    let there = |tag: &Pair| {
        seen.iter()
            .any(|one| one == tag || (one.key == tag.key && tag.key.starts_with(CLUSTER_PREFIX)))
    };
    wanted.iter().filter(|tag| !there(tag)).cloned().collect()
}
