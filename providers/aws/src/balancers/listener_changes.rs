//! Changes of listeners, which are not repeated while they lead to nothing.
//!
//! A listener of a Classic Load Balancer is changed by deleting it and making another one, and on a network load balancer another listener may be in
//! the way. Where the new one is refused, or is changed back, the next call would do the same again: connections end each time.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;

use crate::Aws;
use crate::api::error::AwsError;
use crate::balancers::steps::Step;

/// For so long the same listeners are not made again.
const PAUSE: Duration = Duration::from_secs(60);

impl Aws {
    /// Sends the requests of a plan that may change listeners of this load balancer.
    ///
    /// # Errors
    /// `other`, before anything is sent, when the same listeners were made a short time ago in the place of others, or refused because
    /// there are others; the error of AWS.
    pub(crate) fn change_listeners(&self, balancer: &str, steps: &[Step]) -> Result<(), AwsError> {
        let (state, key) = (self.context.state(), format!("listeners/{balancer}"));
        let made = made(steps);
        if made.is_empty() {
            return self.run_all(steps);
        }
        if state.get::<String>(&key).is_some_and(|kept| kept.value == made) {
            let text = [
                "the listeners of load balancer ",
                balancer,
                " are not changed for a minute: they were just now, and are others again or were refused; does another controller or a person \
                 change them?",
            ];
            return Err(AwsError::other(text.concat()));
        }
        let replaced = steps
            .iter()
            .any(|step| matches!(step.action, "DeleteListener" | "DeleteLoadBalancerListeners"));
        let result = self.run_all(steps);
        let remember = match &result {
            Ok(()) => replaced,
            Err(error) => matches!(error.kind(), FailureKind::Conflict | FailureKind::AlreadyExists),
        };
        if remember {
            state.put(&key, &made, Keep::at_most(PAUSE));
        }
        result
    }
}

/// The listeners that a plan makes, as they are sent.
fn made(steps: &[Step]) -> String {
    let makes = |step: &&Step| matches!(step.action, "CreateListener" | "CreateLoadBalancerListeners");
    let texts: Vec<String> = steps.iter().filter(makes).map(|step| step.form.encode()).collect();
    texts.join("\n")
}

#[cfg(test)]
mod tests;
