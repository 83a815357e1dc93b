//! Load balancers for Services: which kind, whose it is, and the way to `classic_*` and `network_*`.
//!
//! ```text
//!   annotations -> Settings ----+
//!   subnets, target_instances --+-> wanted --+
//!   DescribeLoadBalancers, ... -----> seen --+-> *_plan (pure) -> steps -> sent one after the other
//! ```
//!
//! A load balancer is found by its name, which holds the Service's uid, and is ours when it carries the cluster's tag. One of the name
//! without that tag is never touched. Everything is made with its tags, and whatever a crash leaves undone shows as a difference the next time.

use std::collections::BTreeMap;
use std::time::Duration;

use cloudwit_guest_sdk::names::default_load_balancer_name;
use cloudwit_guest_sdk::one_by_one;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;
use cloudwit_guest_sdk::xml::Element;

use crate::Aws;
use crate::annotations::{ANNOTATIONS, Kind};
use crate::annotations_settings::Settings;
use crate::api_error::AwsError;
use crate::asking::{members, unless};
use crate::config::Config;
use crate::endpoints::Service as Api;
use crate::tags::ClusterTag;
use crate::{classic_balancer, network_balancer};

/// Tag with `<namespace>/<name>` of the Service (`clouds/aws.md`).
pub const SERVICE_TAG: &str = "kubernetes.io/service-name";

/// Names a classic load balancer in requests that take several.
const CLASSIC_NAME: &str = "LoadBalancerNames.member.1";

/// kube-proxy's health check (kubernetes/cloud-provider-aws, `defaultKubeProxyHealthCheckPort` and `…Path`).
const KUBE_PROXY_HEALTH: (u16, &str) = (10256, "/healthz");

/// How long it is believed, where only targets are brought in line, that a load balancer carries the cluster's tag.
const OWNED: Duration = Duration::from_secs(10 * 60);

/// Most load balancers or target groups whose tags are shown at once (`DescribeTags` of Elastic Load Balancing v2).
const TAGGED: usize = 20;

/// Most names in one request for load balancers (`DescribeLoadBalancers` of Elastic Load Balancing v2).
const DESCRIBED: usize = 20;

/// A load balancer that was found by its name.
pub(crate) enum Found {
    /// A classic one with its tags; without its attributes.
    Classic(Box<classic_balancer::Seen>),
    /// A network one with its tags.
    Network(Box<network_balancer::Seen>, Vec<Pair>),
}

impl Found {
    /// Its kind, where it is reached and its tags.
    fn parts(&self) -> (&'static str, Vec<Ingress>, &[Pair]) {
        match self {
            Self::Classic(seen) => ("Classic", seen.ingress(), &seen.tags),
            Self::Network(seen, tags) => ("Network", seen.ingress(), tags),
        }
    }

    /// Its tags.
    pub(crate) fn tags(&self) -> &[Pair] {
        self.parts().2
    }
}

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
        // Neither the annotations nor what they were matter: what is there is looked for, of both kinds.
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
        // What is there counts, not what it should be: whoever asks for another kind gets an Event from `ensure`, and new Nodes from here.
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

    /// Describes the load balancers of these names and this kind, without their tags. Where one of them does not exist AWS describes none: these are
    /// then left out, to be looked for one by one.
    fn describe(&self, names: &[String], kind: Kind, found: &mut BTreeMap<String, Found>) -> Result<(), AwsError> {
        let (api, key) = match kind {
            Kind::Classic => (Api::Elb, "LoadBalancerNames"),
            _ => (Api::ElbV2, "Names"),
        };
        for part in names.chunks(DESCRIBED) {
            let part: Vec<&str> = part.iter().map(String::as_str).collect();
            let numbered = members(key, &part);
            let fields: Vec<(&str, &str)> = numbered.iter().map(|(name, value)| (name.as_str(), *value)).collect();
            let answer = self.ask(api, "DescribeLoadBalancers", &fields);
            let Some(answer) = unless(answer, "LoadBalancerNotFound")? else {
                continue;
            };
            match kind {
                Kind::Classic => {
                    let all = classic_balancer::read_all(&answer);
                    found.extend(all.map(|(name, seen)| (name.to_owned(), Found::Classic(Box::new(seen)))));
                }
                _ => {
                    let all = network_balancer::read_all(&answer);
                    found.extend(all.map(|(name, seen)| (name.to_owned(), Found::Network(Box::new(seen), Vec::new()))));
                }
            }
        }
        Ok(())
    }

    /// The load balancer of this name: of this kind, else of the other.
    fn find_any(&self, name: &str, kind: Kind, known: bool) -> Result<Option<Found>, AwsError> {
        match self.find_with(name, kind, known)? {
            None => self.find_with(name, kind.other(), known),
            found => Ok(found),
        }
    }

    /// The load balancer of this name and kind with its tags, whoever's it is.
    pub(crate) fn find(&self, name: &str, kind: Kind) -> Result<Option<Found>, AwsError> {
        self.find_with(name, kind, false)
    }

    /// The same; if `known`, one that carried the cluster's tag some minutes ago has that one tag, and is not asked for more.
    fn find_with(&self, name: &str, kind: Kind, known: bool) -> Result<Option<Found>, AwsError> {
        let (api, key) = match kind {
            Kind::Classic => (Api::Elb, CLASSIC_NAME),
            _ => (Api::ElbV2, "Names.member.1"),
        };
        let answer = self.ask(api, "DescribeLoadBalancers", &[(key, name)]);
        let Some(answer) = unless(answer, "LoadBalancerNotFound")? else {
            return Ok(None);
        };
        let described = match kind {
            Kind::Classic => classic_balancer::read(&answer).map(|seen| Found::Classic(Box::new(seen))),
            _ => network_balancer::read(&answer).map(|seen| Found::Network(Box::new(seen), Vec::new())),
        };
        described.map_or(Ok(None), |described| self.with_tags(name, described, known))
    }

    /// A load balancer that was described, with its tags; none when it is gone meanwhile.
    fn with_tags(&self, name: &str, described: Found, known: bool) -> Result<Option<Found>, AwsError> {
        match described {
            Found::Network(seen, _) => {
                let tags = self.tags_of(&seen.arn, known, || self.network_tags(&seen.arn).map(Some))?;
                Ok(tags.map(|tags| Found::Network(seen, tags)))
            }
            Found::Classic(mut seen) => {
                let ask = || {
                    let tags = self.ask(Api::Elb, "DescribeTags", &[(CLASSIC_NAME, name)]);
                    Ok(unless(tags, "LoadBalancerNotFound")?.map(|tags| network_balancer::read_tags(&tags)))
                };
                let tags = self.tags_of(name, known, ask)?;
                Ok(tags.map(|tags| {
                    seen.tags = tags;
                    Found::Classic(seen)
                }))
            }
        }
    }

    /// The tags of a load balancer, which are asked for unless only the cluster's tag counts and it was there some minutes ago.
    fn tags_of(
        &self,
        id: &str,
        known: bool,
        ask: impl FnOnce() -> Result<Option<Vec<Pair>>, AwsError>,
    ) -> Result<Option<Vec<Pair>>, AwsError> {
        let (state, key) = (self.context.state(), format!("owned/{id}"));
        if known && state.get::<String>(&key).is_some() {
            return Ok(Some(vec![Pair::new(self.cluster.key(), "")]));
        }
        let tags = ask()?;
        match tags.as_ref().is_some_and(|tags| self.cluster.marks(tags)) {
            true => drop(state.put(&key, "", Keep::at_most(OWNED))),
            false => state.remove(&key),
        }
        Ok(tags)
    }

    /// The tags of many target groups, in as few requests as there can be. Those that are gone have none.
    pub(crate) fn network_tags_of(&self, arns: &[&str]) -> Result<Vec<(String, Vec<Pair>)>, AwsError> {
        let mut found = Vec::new();
        for part in arns.chunks(TAGGED) {
            let numbered = members("ResourceArns", part);
            let fields: Vec<(&str, &str)> = numbered.iter().map(|(name, arn)| (name.as_str(), *arn)).collect();
            match self.ask(Api::ElbV2, "DescribeTags", &fields) {
                Ok(answer) => found.extend(
                    answer
                        .all(&["TagDescriptions", "member"])
                        .map(network_balancer::read_tagged),
                ),
                // One that is gone fails them all.
                Err(error) if part.len() > 1 && error.is(&["TargetGroupNotFound"]) => {
                    for arn in part {
                        let answer = self.ask(Api::ElbV2, "DescribeTags", &[("ResourceArns.member.1", arn)]);
                        let tagged = |answer: Element| (String::from(*arn), network_balancer::read_tags(&answer));
                        found.extend(unless(answer, "TargetGroupNotFound")?.map(tagged));
                    }
                }
                Err(error) if error.is(&["TargetGroupNotFound"]) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// The tags of a network load balancer, target group or listener.
    pub(crate) fn network_tags(&self, arn: &str) -> Result<Vec<Pair>, AwsError> {
        let answer = self.ask(Api::ElbV2, "DescribeTags", &[("ResourceArns.member.1", arn)])?;
        Ok(network_balancer::read_tags(&answer))
    }

    /// Finds the Service's load balancer of this kind, and refuses one that is not ours. When there is none, none of the other kind
    /// may be there either: the type of a load balancer cannot be changed.
    ///
    /// # Errors
    /// `invalid` for one that is not ours or of the other kind; what AWS says.
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

    /// The tags of everything that is made, security groups too. Nobody takes the cluster's away by an annotation.
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
    /// Whether something with these tags may be deleted: it is the cluster's alone, or has only the legacy tag, which knows no sharing.
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
