//! Deleting what a Service has: its floating IP, its load balancer or its part of a shared one, its security group.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::reconcile::Steps;

use crate::balancers::annotations::table::{BALANCER_ADDRESS, BALANCER_ID, TABLE};
use crate::balancers::change::Change;
use crate::balancers::octavia::{LoadBalancer, Phase};
use crate::balancers::plan::next_removal;
use crate::balancers::sharing::Claim;
use crate::balancers::task::BalancerTask;
use crate::balancers::{in_error, waiting_on};

impl BalancerTask<'_> {
    /// Deletes everything. Success once nothing is left.
    pub(crate) fn delete(&self, steps: Option<Steps>) -> Result<Vec<AnnotationChange>, Failure> {
        let found = match self.find(steps.as_ref())? {
            Some(found) => Some(found),
            // One that is being deleted is waited for.
            None => self.single(self.named()?)?,
        };
        let stays = match found {
            None => {
                self.remove_orphan()?;
                false
            }
            Some(balancer) => {
                self.leave(balancer, steps)?;
                true
            }
        };
        self.remove_security_group()?;
        let mut removed = Vec::new();
        // The id of a load balancer that stays was written by a user to share it.
        for key in if stays {
            &[BALANCER_ADDRESS][..]
        } else {
            &[BALANCER_ADDRESS, BALANCER_ID]
        } {
            let key = TABLE.key(key);
            if self.service.annotation(&key).is_some() {
                removed.push(AnnotationChange::remove(key));
            }
        }
        Ok(removed)
    }

    /// Deletes the load balancer, which ends in `pending`, or takes this Service's part off one that others use.
    fn leave(&self, balancer: Box<LoadBalancer>, steps: Option<Steps>) -> Result<(), Failure> {
        if !matches!(balancer.phase(), Phase::Active | Phase::Error) {
            return Err(waiting_on(&balancer, steps));
        }
        let claim = self.claim(&balancer);
        let _lock = self.lock(&balancer)?;
        if claim.takes_it_along(&balancer) && (claim.owner || claim.holds(&balancer.tags)) {
            return self.delete_balancer(balancer, &claim, steps.as_ref());
        }
        self.empty(balancer, &claim, false, steps.as_ref()).map(drop)
    }

    fn delete_balancer(
        &self,
        balancer: Box<LoadBalancer>,
        claim: &Claim,
        former: Option<&Steps>,
    ) -> Result<(), Failure> {
        self.remove_floating_ip(&balancer)?;
        let cascade = self.config.cascade_delete.unwrap_or(true);
        let balancer = if cascade {
            balancer
        } else {
            self.empty(balancer, claim, true, former)?
        };
        let path = if cascade {
            format!("{}?cascade=true", balancer.id)
        } else {
            balancer.id.clone()
        };
        let change = Change::delete("loadbalancers", &path, "deleting the load balancer");
        match self.change(change) {
            Err(Failure {
                kind: FailureKind::FailedPrecondition,
                message: text,
                ..
            }) => {
                return Err(waiting_on(&balancer, None).context(&text));
            }
            result => result?,
        }
        match self.octavia.load_balancer(&balancer.id)? {
            None => Ok(()),
            Some(now) => Err(waiting_on(&now, None)),
        }
    }

    /// Takes away this Service's listeners and its tag, or all listeners and pools.
    fn empty(
        &self,
        mut balancer: Box<LoadBalancer>,
        claim: &Claim,
        all: bool,
        former: Option<&Steps>,
    ) -> Result<Box<LoadBalancer>, Failure> {
        let mut steps = Steps::continued(former, &balancer.id);
        loop {
            let tree = self.octavia.tree(&balancer.id)?;
            let Some(change) = next_removal(claim, &balancer, &tree, all) else {
                return Ok(balancer);
            };
            if balancer.phase() == Phase::Error {
                return Err(in_error(&balancer));
            }
            balancer = self.step(change, &mut steps)?;
        }
    }
}
