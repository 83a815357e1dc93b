//! Finding load balancers by name, of any owner, and their tags.

use std::collections::BTreeMap;
use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;
use cloudwit_guest_sdk::xml::Element;

use crate::Aws;
use crate::api::endpoints::Service as Api;
use crate::api::error::AwsError;
use crate::balancers::annotations::Kind;
use crate::balancers::asking::{members, unless};
use crate::balancers::{classic, network};

/// Names a classic load balancer in requests that take several.
const CLASSIC_NAME: &str = "LoadBalancerNames.member.1";

/// How long it is cached, where only targets are brought in line, that a load balancer has the cluster's tag.
const OWNED: Duration = Duration::from_secs(10 * 60);

/// Most load balancers or target groups whose tags are shown at once (`DescribeTags` of Elastic Load Balancing v2).
const TAGGED: usize = 20;

/// Most names in one request for load balancers (`DescribeLoadBalancers` of Elastic Load Balancing v2).
const DESCRIBED: usize = 20;

/// A load balancer that was found by its name.
pub(crate) enum Found {
    /// A classic one with its tags; without its attributes.
    Classic(Box<classic::Seen>),
    /// A network one with its tags.
    Network(Box<network::Seen>, Vec<Pair>),
}

impl Found {
    /// Its kind, where it is reached and its tags.
    pub(super) fn parts(&self) -> (&'static str, Vec<Ingress>, &[Pair]) {
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

impl Aws {
    /// Describes the load balancers of these names and this kind, without their tags. Where one of them does not exist AWS describes none: these are
    /// then left out, to be looked up one by one.
    pub(super) fn describe(
        &self,
        names: &[String],
        kind: Kind,
        found: &mut BTreeMap<String, Found>,
    ) -> Result<(), AwsError> {
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
                    let all = classic::read_all(&answer);
                    found.extend(all.map(|(name, seen)| (name.to_owned(), Found::Classic(Box::new(seen)))));
                }
                _ => {
                    let all = network::read_all(&answer);
                    found.extend(all.map(|(name, seen)| (name.to_owned(), Found::Network(Box::new(seen), Vec::new()))));
                }
            }
        }
        Ok(())
    }

    /// The load balancer of this name: of this kind, else of the other.
    pub(super) fn find_any(&self, name: &str, kind: Kind, known: bool) -> Result<Option<Found>, AwsError> {
        match self.find_with(name, kind, known)? {
            None => self.find_with(name, kind.other(), known),
            found => Ok(found),
        }
    }

    /// The load balancer of this name and kind with its tags, of any owner.
    pub(crate) fn find(&self, name: &str, kind: Kind) -> Result<Option<Found>, AwsError> {
        self.find_with(name, kind, false)
    }

    /// The same; if `known`, one that carried the cluster's tag some minutes ago has that one tag, and its other tags are not requested.
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
            Kind::Classic => classic::read(&answer).map(|seen| Found::Classic(Box::new(seen))),
            _ => network::read(&answer).map(|seen| Found::Network(Box::new(seen), Vec::new())),
        };
        described.map_or(Ok(None), |described| self.with_tags(name, described, known))
    }

    /// A load balancer that was described, with its tags; none when it is gone meanwhile.
    pub(super) fn with_tags(&self, name: &str, described: Found, known: bool) -> Result<Option<Found>, AwsError> {
        match described {
            Found::Network(seen, _) => {
                let tags = self.tags_of(&seen.arn, known, || self.network_tags(&seen.arn).map(Some))?;
                Ok(tags.map(|tags| Found::Network(seen, tags)))
            }
            Found::Classic(mut seen) => {
                let ask = || {
                    let tags = self.ask(Api::Elb, "DescribeTags", &[(CLASSIC_NAME, name)]);
                    Ok(unless(tags, "LoadBalancerNotFound")?.map(|tags| network::read_tags(&tags)))
                };
                let tags = self.tags_of(name, known, ask)?;
                Ok(tags.map(|tags| {
                    seen.tags = tags;
                    Found::Classic(seen)
                }))
            }
        }
    }

    /// The tags of a load balancer, which are requested unless only the cluster's tag counts and it was there some minutes ago.
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
                Ok(answer) => found.extend(answer.all(&["TagDescriptions", "member"]).map(network::read_tagged)),
                // One that is gone fails them all.
                Err(error) if part.len() > 1 && error.is(&["TargetGroupNotFound"]) => {
                    for arn in part {
                        let answer = self.ask(Api::ElbV2, "DescribeTags", &[("ResourceArns.member.1", arn)]);
                        let tagged = |answer: Element| (String::from(*arn), network::read_tags(&answer));
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
        Ok(network::read_tags(&answer))
    }
}
