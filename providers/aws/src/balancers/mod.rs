//! Load balancers for Services: which kind, whose it is, and the way to `classic` and `network`.
//!
//! ```text
//!   annotations -> Settings ----+
//!   subnets, target_instances --+-> wanted --+
//!   DescribeLoadBalancers, ... -----> seen --+-> plan (pure) -> steps -> sent one after the other
//! ```
//!
//! A load balancer is found by its name, which holds the Service's uid, and is ours when it carries the cluster's tag. One of the name
//! without that tag is never touched. Everything is made with its tags, and whatever a crash leaves undone shows as a difference the next time.

pub mod annotations;
pub mod asking;
pub mod classic;
pub mod delete;
pub mod find;
mod listener_changes;
pub mod network;
pub mod security_groups;
pub mod steps;
pub mod subnets;
pub mod target_instances;
#[cfg(test)]
pub(crate) mod testing;

use std::collections::BTreeMap;

use cloudwit_guest_sdk::names::default_load_balancer_name;
use cloudwit_guest_sdk::one_by_one;
use cloudwit_guest_sdk::prelude::*;

use crate::Aws;
use crate::api::error::AwsError;
use crate::balancers::annotations::settings::Settings;
use crate::balancers::annotations::{ANNOTATIONS, Kind};
use crate::balancers::find::Found;
use crate::config::Config;
use crate::tags::ClusterTag;

/// Tag with `<namespace>/<name>` of the Service (`clouds/aws.md`).
pub const SERVICE_TAG: &str = "kubernetes.io/service-name";

/// kube-proxy's health check (kubernetes/cloud-provider-aws, `defaultKubeProxyHealthCheckPort` and `…Path`).
const KUBE_PROXY_HEALTH: (u16, &str) = (10256, "/healthz");

impl LoadBalancers for Aws {
    fn get(&self, service: &Service) -> Result<Option<Balancer>, Failure> {
        let name = default_load_balancer_name(&service.uid);
        let found = match Kind::of(service) {
            Kind::Elsewhere => return Ok(None),
            kind => self.find_any(&name, kind, false)?,
        };
        let ours = found
            .as_ref()
            .map(Found::parts)
            .filter(|(_, _, tags)| self.cluster.marks(tags));
        Ok(ours.map(|(_, ingress, _)| Balancer::at(ingress)))
    }

    fn ensure(&self, service: &Service, targets: &[Target], _token: Option<&str>) -> Result<Balancer, Failure> {
        let kind = Kind::of(service);
        if kind == Kind::Elsewhere {
            return Err(elsewhere());
        }
        let settings = Settings::read(service, kind)?;
        ANNOTATIONS.warn_unknown(service, &self.context);
        for warning in &settings.warnings {
            self.context
                .service_event(EventKind::Warning, "AnnotationCountsInPart", warning);
        }
        let ingress = match kind {
            Kind::Network => self.ensure_network(service, targets, &settings)?,
            _ => self.ensure_classic(service, targets, &settings)?,
        };
        Ok(Balancer::at(ingress))
    }

    fn update_targets(
        &self,
        service: &Service,
        targets: &[Target],
        _token: Option<&str>,
    ) -> Result<Vec<AnnotationChange>, Failure> {
        self.give_targets(service, targets, None)
    }

    /// Load balancers of one kind are described together.
    fn update_targets_of(
        &self,
        updates: &[TargetUpdate],
        targets: &[Target],
    ) -> Result<Vec<Result<Vec<AnnotationChange>, Failure>>, Failure> {
        let mut described = BTreeMap::new();
        for kind in [Kind::Classic, Kind::Network] {
            let of_kind = updates.iter().filter(|update| Kind::of(&update.service) == kind);
            let names: Vec<String> = of_kind
                .map(|update| default_load_balancer_name(&update.service.uid))
                .collect();
            self.describe(&names, kind, &mut described)?;
        }
        Ok(one_by_one(updates, |update| {
            let name = default_load_balancer_name(&update.service.uid);
            self.give_targets(&update.service, targets, described.remove(&name))
        }))
    }

    fn delete(&self, service: &Service, _token: Option<&str>) -> Result<Vec<AnnotationChange>, Failure> {
        // Neither present nor earlier annotations matter: both kinds are looked up.
        let kind = Kind::of(service);
        if kind != Kind::Elsewhere {
            self.delete_balancers(service, kind)?;
        }
        Ok(Vec::new())
    }
}

impl Aws {
    /// Brings the targets of the Service's load balancer up to date, which may be `described` already.
    fn give_targets(
        &self,
        service: &Service,
        targets: &[Target],
        described: Option<Found>,
    ) -> Result<Vec<AnnotationChange>, Failure> {
        let name = default_load_balancer_name(&service.uid);
        // What is there counts, not what it should be: a Service that requests another kind gets an Event from `ensure`, and new Nodes from here.
        let found = match (Kind::of(service), described) {
            (Kind::Elsewhere, _) => return Err(elsewhere()),
            (_, Some(described)) => self.with_tags(&name, described, true)?,
            (kind, None) => self.find_any(&name, kind, true)?,
        };
        match found {
            None => {
                return Err(Failure::not_found(format!(
                    "Service {} has no load balancer {name}",
                    service.name
                )));
            }
            Some(found) if !self.cluster.marks(found.tags()) => return Err(self.foreign(&name).into()),
            Some(Found::Classic(seen)) => self.update_classic_targets(service, targets, &seen)?,
            Some(Found::Network(seen, _)) => self.update_network_targets(service, targets, &seen)?,
        }
        Ok(Vec::new())
    }

    /// Finds the Service's load balancer of this kind, and refuses one that is not ours. When there is none, none of the other kind
    /// may be there either: the type of a load balancer cannot be changed.
    ///
    /// # Errors
    /// `invalid` for one that is not ours or of the other kind; the error of AWS.
    pub(crate) fn find_own(&self, name: &str, kind: Kind) -> Result<Option<Found>, AwsError> {
        let Some(found) = self.find(name, kind)? else {
            return match self.find(name, kind.other())? {
                Some(found) if self.cluster.marks(found.parts().2) => Err(other_kind(name, found.parts().0)),
                _ => Ok(None),
            };
        };
        if let Found::Network(seen, _) = &found
            && seen.kind != "network"
        {
            return Err(AwsError::invalid(format!(
                "load balancer {name} is of type {}, not network: rename or delete it in AWS",
                seen.kind
            )));
        }
        if !self.cluster.marks(found.parts().2) {
            return Err(self.foreign(name));
        }
        Ok(Some(found))
    }

    fn foreign(&self, name: &str) -> AwsError {
        let key = self.cluster.key();
        AwsError::invalid(format!(
            "load balancer {name} has the name that this Service needs, but not the tag {key}: it is left alone; to have it \
              adopted give it the tag {key}=owned, else delete it in AWS"
        ))
    }

    /// The tags of everything that is made for a Service.
    pub(crate) fn balancer_tags(&self, service: &Service, settings: &Settings) -> Vec<Pair> {
        let mut tags = self.own_tags(settings);
        let name = format!("{}/{}", service.namespace, service.name);
        tags.retain(|tag| tag.key != SERVICE_TAG);
        tags.push(Pair::new(SERVICE_TAG, name));
        tags
    }

    /// The tags of everything that is made, security groups too. An annotation cannot remove the cluster's.
    pub(crate) fn own_tags(&self, settings: &Settings) -> Vec<Pair> {
        let owned = self.cluster.owned();
        let further = settings
            .tags
            .iter()
            .filter(|tag| !owned.iter().any(|own| own.key == tag.key));
        further.chain(&owned).cloned().collect()
    }
}

impl ClusterTag {
    /// Whether something with these tags may be deleted: it is the cluster's alone, or has only the legacy tag, which has no sharing.
    pub(crate) fn may_delete(&self, tags: &[Pair]) -> bool {
        let key = self.key();
        self.owns(tags) || (self.marks(tags) && !tags.iter().any(|tag| tag.key == key))
    }
}

impl Config {
    /// Port and path of the health check that all Services with `externalTrafficPolicy: Cluster` share, where the operator chose so.
    pub fn shared_health_check(&self) -> Option<(u16, &str)> {
        let global = &self.global;
        let path = Some(global.shared_health_probe_path.as_str()).filter(|path| !path.is_empty());
        (global.health_probe_mode == "Shared").then(|| {
            (
                global.shared_health_probe_port.unwrap_or(KUBE_PROXY_HEALTH.0),
                path.unwrap_or(KUBE_PROXY_HEALTH.1),
            )
        })
    }

    /// Whether network load balancers get a security group of their own.
    pub fn manages_network_groups(&self) -> bool {
        self.global.nlb_security_group_mode == "Managed"
    }
}

/// Refuses to turn an internal load balancer into one on the Internet, or back: the cloud cannot.
pub(crate) fn check_scheme(name: &str, internal: bool, wanted: bool) -> Result<(), AwsError> {
    if internal == wanted {
        return Ok(());
    }
    let word = |internal| if internal { "internal" } else { "on the Internet" };
    Err(AwsError::invalid(format!(
        "load balancer {name} is {} and cannot become {}: put the annotation \
          service.beta.kubernetes.io/aws-load-balancer-internal back, or make the Service anew",
        word(internal),
        word(wanted)
    )))
}

fn other_kind(name: &str, is: &str) -> AwsError {
    AwsError::invalid(format!(
        "load balancer {name} is a {is} Load Balancer, and its type cannot be changed: put the annotation \
          service.beta.kubernetes.io/aws-load-balancer-type back, or make the Service anew"
    ))
}

fn elsewhere() -> Failure {
    Failure::implemented_elsewhere(
        "service.beta.kubernetes.io/aws-load-balancer-type leaves this Service to the AWS Load Balancer Controller",
    )
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod groups_tests;
