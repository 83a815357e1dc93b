//! One Service's load balancer: reads the cloud and returns the next change.

use std::cell::RefCell;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::reconcile;
use serde_json::json;

use super::balancer_name;
use super::plan::{self, Backends};
use super::seen::{BalancerService, External, Setting, Stack};
use super::wanted::Wanted;
use crate::Rancher;
use crate::api::{BALANCERS, Call, EXTERNALS, SETTINGS, STACKS};

/// Name and external id of the stack that upstream's controller makes, whose load balancers are used.
const STACK: (&str, &str) = ("kubernetes-loadbalancers", "kubernetes-loadbalancers://");

/// The setting with the image of load balancers.
const IMAGE: &str = "lb.instance.image";

/// What comes next.
pub type Next<T> = reconcile::Next<T, Call>;

/// Where a load balancer is reached, and what traffic does not reach yet.
type Reached = (Vec<Ingress>, Option<String>);

/// What several Services of a call share: the stack, and its external services, listed when they are needed, and again after a change.
pub struct Inventory<'a> {
    pub cloud: &'a Rancher,
    /// The stack's id, once it was seen. Read once for each call: a call that reads more than it writes makes no headway on a cloud that refuses requests.
    stack: RefCell<Option<String>>,
    pub(super) externals: RefCell<Option<(String, Vec<External>)>>,
}

impl<'a> Inventory<'a> {
    pub fn new(cloud: &'a Rancher) -> Self {
        Self {
            cloud,
            stack: RefCell::new(None),
            externals: RefCell::new(None),
        }
    }

    fn externals(&self, stack: &str) -> Result<Vec<External>, Failure> {
        if let Some((known, externals)) = &*self.externals.borrow()
            && known == stack
        {
            return Ok(externals.clone());
        }
        let mut externals: Vec<External> = self.cloud.api.list(EXTERNALS, &[("stackId", stack)])?;
        externals.retain(|one| one.stack_id.as_deref() == Some(stack));
        self.externals.replace(Some((stack.to_owned(), externals.clone())));
        Ok(externals)
    }
}

/// One call for a Service.
pub struct Task<'a> {
    pub inventory: &'a Inventory<'a>,
    /// The name of its load balancer.
    pub name: String,
}

impl<'a> Task<'a> {
    pub fn new(inventory: &'a Inventory<'a>, service: &Service) -> Self {
        Self {
            inventory,
            name: balancer_name(service),
        }
    }

    /// The load balancer.
    pub fn balancer(&self) -> Result<Option<BalancerService>, Failure> {
        let mut found: Vec<BalancerService> = self.inventory.cloud.api.list(BALANCERS, &[("name", &self.name)])?;
        found.retain(|one| one.name == self.name && !one.stage.is_gone());
        if found.len() > 1 {
            let ids: Vec<&str> = found.iter().map(|one| one.id.as_str()).collect();
            return Err(Failure::failed_precondition(format!(
                "several load balancers are named {}: {}; remove all but one",
                self.name,
                ids.join(", ")
            )));
        }
        Ok(found.pop())
    }

    fn stack(&self) -> Result<Option<Stack>, Failure> {
        let found: Vec<Stack> = self.inventory.cloud.api.list(STACKS, &[("name", STACK.0)])?;
        Ok(found
            .into_iter()
            .find(|one| one.name == STACK.0 && !one.stage.is_gone()))
    }

    /// The image of load balancers, as Rancher's own are made.
    fn image(&self) -> Result<String, Failure> {
        let found: Vec<Setting> = self.inventory.cloud.api.list(SETTINGS, &[("name", IMAGE)])?;
        let named = found.into_iter().find(|one| one.name.eq_ignore_ascii_case(IMAGE));
        let value = named.and_then(|one| one.value).filter(|value| !value.is_empty());
        let missing = || Failure::failed_precondition(format!("Rancher's setting {IMAGE} is not seen, or empty"));
        value.map(|value| format!("docker:{value}")).ok_or_else(missing)
    }

    /// The next change towards the desired load balancer. When there is none: where it is reached, and what traffic does not reach yet.
    pub fn next(&self, wanted: &Wanted) -> Result<Next<Reached>, Failure> {
        let seen = self.balancer()?;
        if let Some(seen) = seen.as_ref().filter(|seen| seen.stage.is_leaving()) {
            return Ok(Next::Wait(format!("{} is {}", self.name, seen.stage.text())));
        }
        let known = self.inventory.stack.borrow().clone();
        let stack = match (&seen, known) {
            (Some(seen), _) => seen.stack()?.to_owned(),
            (None, Some(known)) => known,
            (None, None) => match self.stack()? {
                Some(stack) if stack.stage.is_leaving() || stack.stage.state == "activating" => {
                    return Ok(Next::Wait(format!("the stack {} is {}", STACK.0, stack.stage.text())));
                }
                Some(stack) => {
                    self.inventory.stack.replace(Some(stack.id.clone()));
                    stack.id
                }
                None => {
                    let body = json!({ "name": STACK.0, "externalId": STACK.1 });
                    return Ok(Next::change(Call::create(STACKS, body)));
                }
            },
        };
        // Ports cannot be changed.
        if let Some(other) = seen.as_ref().filter(|seen| !seen.publishes(&wanted.published())) {
            let kept: Vec<String> = self.names(wanted, &stack)?;
            return self.removed(other, &stack, &kept);
        }
        let kept = match self.kept(wanted, &stack)? {
            Ok(kept) => kept,
            Err(next) => return Ok(next),
        };
        let Some(seen) = seen else {
            let rules = wanted.rules(&kept);
            let config = json!({ "ports": wanted.published(), "imageUuid": self.image()? });
            let body = json!({ "name": self.name, "stackId": stack, "launchConfig": config, "lbConfig": { "portRules": rules } });
            return Ok(Next::change(Call::create(BALANCERS, body)));
        };
        if let Some(next) = self.round(wanted, &seen, &stack, &kept)? {
            return Ok(next);
        }
        let stage = &seen.stage;
        if let Some(error) = stage.error() {
            return Err(Failure::unavailable(format!(
                "{} is {}: {error}",
                self.name, stage.state
            )));
        }
        let ingress = seen.ingress();
        Ok(match ingress.is_empty() {
            true => Next::Wait(format!("{} is {} and has no address yet", self.name, stage.text())),
            false => Next::Done((ingress, plan::lagging(&self.inventory.externals(&stack)?, &kept))),
        })
    }

    /// The same for the rules of a load balancer that is there, whatever else is wrong with it.
    pub fn next_of_targets(&self, wanted: &Wanted) -> Result<Next<()>, Failure> {
        let missing = || Failure::not_found(format!("there is no load balancer {}", self.name));
        let seen = self.balancer()?.ok_or_else(missing)?;
        if seen.stage.is_leaving() {
            return Err(missing());
        }
        let stack = seen.stack()?;
        let kept = match self.kept(wanted, stack)? {
            Ok(kept) => kept,
            Err(next) => return Ok(next),
        };
        let next = self.round(wanted, &seen, stack, &kept)?;
        if let Some(next) = next {
            return Ok(next);
        }
        let lagging = plan::lagging(&self.inventory.externals(stack)?, &kept);
        Ok(lagging.map_or(Next::Done(()), Next::Wait))
    }

    /// Ids of the external services when all are there; else what comes before.
    fn kept<T>(&self, wanted: &Wanted, stack: &str) -> Result<Result<Vec<String>, Next<T>>, Failure> {
        let externals = self.inventory.externals(stack)?;
        Ok(match plan::backends(wanted, &externals, stack) {
            Backends::There(kept) => Ok(kept),
            Backends::Calls(calls) => Err(Next::Changes(calls)),
            Backends::Waits(name) => Err(Next::Wait(format!("the external service {name} is being removed"))),
        })
    }

    /// Ids of the external services that have desired names, whatever else they are.
    fn names(&self, wanted: &Wanted, stack: &str) -> Result<Vec<String>, Failure> {
        let externals = self.inventory.externals(stack)?.into_iter();
        let wanted = externals.filter(|one| wanted.backends.contains_key(&one.name));
        Ok(wanted.map(|one| one.id).collect())
    }

    /// Rules, what is not active yet, and what is not needed any more; none where all is right.
    fn round<T>(
        &self,
        wanted: &Wanted,
        seen: &BalancerService,
        stack: &str,
        kept: &[String],
    ) -> Result<Option<Next<T>>, Failure> {
        let (externals, rules) = (self.inventory.externals(stack)?, wanted.rules(kept));
        if seen.rules() != rules {
            let marks = plan::marks(seen, &externals, kept);
            if !marks.is_empty() {
                return Ok(Next::changes(marks));
            }
            if !seen.stage.allows("update") {
                return Ok(Some(Next::Wait(format!("{} is {}", self.name, seen.stage.text()))));
            }
            let body = json!({ "lbConfig": seen.config(&rules) });
            return Ok(Some(Next::change(Call::update(BALANCERS, &seen.id, body))));
        }
        let starts = plan::activation(seen, &externals, kept);
        if !starts.is_empty() {
            return Ok(Next::changes(starts));
        }
        if seen.stage.is_unsettled() {
            return Ok(Some(Next::Wait(format!("{} is {}", self.name, seen.stage.text()))));
        }
        self.left(&externals, kept).map(Next::changes)
    }

    /// External services that nothing uses any more.
    fn left(&self, externals: &[External], kept: &[String]) -> Result<Vec<Call>, Failure> {
        if !plan::may_leave(externals, kept) {
            return Ok(Vec::new());
        }
        let all: Vec<BalancerService> = self.inventory.cloud.api.list(BALANCERS, &[])?;
        Ok(plan::sweep(externals, kept, &all))
    }

    /// Removes the load balancer, after what only it refers to has been marked.
    fn removed<T>(&self, seen: &BalancerService, stack: &str, kept: &[String]) -> Result<Next<T>, Failure> {
        let marks = plan::marks(seen, &self.inventory.externals(stack)?, kept);
        Ok(Next::changes(marks).unwrap_or_else(|| Next::change(Call::delete(BALANCERS, &seen.id))))
    }

    /// What comes next until nothing is left. The stack stays, as with upstream's controller.
    pub fn next_deletion(&self) -> Result<Next<()>, Failure> {
        if let Some(seen) = self.balancer()? {
            return match seen.stage.is_leaving() {
                true => Ok(Next::Wait(format!("{} is {}", self.name, seen.stage.text()))),
                false => self.removed(&seen, seen.stack()?, &[]),
            };
        }
        let Some(stack) = self.stack()? else {
            return Ok(Next::Done(()));
        };
        let left = self.left(&self.inventory.externals(&stack.id)?, &[])?;
        Ok(Next::changes_or(left, ()))
    }
}
