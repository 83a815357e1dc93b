//! Results of periodic drift checks of one load balancer.

use k8s_openapi::api::core::v1::LoadBalancerIngress;

use crate::kube::service::ingress_equal;

/// Where the periodic check of a load balancer stands.
#[derive(Debug, Clone, Default)]
enum Check {
    #[default]
    Idle,
    Due,
    /// The last one failed, for this reason.
    Failed(String),
}

/// What periodic drift checks have found about one load balancer.
#[derive(Debug, Clone, Default)]
pub struct DriftState {
    check: Check,
    /// Checks without a difference since the last full one.
    passed: u32,
    /// What the cloud showed when the load balancer was ensured again because of that.
    odd: Option<Vec<LoadBalancerIngress>>,
}

impl DriftState {
    /// Requests a check of the load balancer in the cloud.
    pub fn request_check(&mut self) {
        self.check = Check::Due;
    }

    /// Whether a check was requested and is not done.
    pub fn is_check_due(&self) -> bool {
        matches!(self.check, Check::Due)
    }

    /// The cloud did not answer, for this reason.
    pub fn check_failed(&mut self, reason: String) {
        self.check = Check::Failed(reason);
    }

    /// Why the last check failed, until one succeeds or is due.
    pub fn failure(&self) -> Option<&str> {
        match &self.check {
            Check::Failed(reason) => Some(reason),
            Check::Idle | Check::Due => None,
        }
    }

    /// Whether the load balancer that the cloud shows (none: there is none) is another one than the status says.
    ///
    /// One that looks the same as before an `ensure` that could not change it is how this provider shows it, and no drift;
    /// otherwise such a provider would cost an `ensure` for each check.
    pub fn observe(&mut self, shown: Option<Vec<LoadBalancerIngress>>, status: &[LoadBalancerIngress]) -> bool {
        self.check = Check::Idle;
        let Some(shown) = shown else { return true };
        if ingress_equal(&shown, status) {
            self.odd = None;
            return false;
        }
        let known = self.odd.as_ref().is_some_and(|odd| ingress_equal(odd, &shown));
        self.odd = Some(shown);
        !known
    }

    /// Counts a check that found nothing wrong. Whether it is the turn of one that requests more.
    pub fn is_full_check_due(&mut self, every: u32) -> bool {
        self.passed = (self.passed + 1) % every.max(1);
        self.passed == 0
    }
}
