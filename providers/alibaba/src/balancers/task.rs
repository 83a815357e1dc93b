//! The load balancer of one Service: finding it, and what both kinds have in common.

use cloudwit_guest_sdk::config::given;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::reconcile::single;
use serde_json::Value;

use super::annotations::{self, ID_LABEL};
use super::fields::{shows, text};
use super::groups::Group;
use super::names::{Kind, Names, OWNER_TAG};
use super::wanted::Wanted;
use super::work::made_key;
use crate::Alibaba;
use crate::api::{Call, NLB, Paging, SLB};

/// Why it must not be changed by hand, where it must not; the reason that upstream gives.
pub fn reason(protection: &str) -> Option<&'static str> {
    (protection != "NonProtection").then_some("managed.by.ack")
}

/// What is to be done for a Service.
pub struct Task<'a> {
    pub cloud: &'a Alibaba,
    pub service: &'a Service,
    pub names: Names,
    pub kind: Kind,
}

/// A load balancer as the cloud shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub id: String,
    /// The whole answer.
    pub seen: Value,
    pub tags: Vec<(String, String)>,
    /// Whether it is the user's: given by annotation, and no controller's.
    pub is_users: bool,
}

impl Found {
    /// A text of the answer.
    pub fn text(&self, key: &str) -> &str {
        self.seen[key].as_str().unwrap_or_default()
    }

    /// The items of a list in the answer.
    pub fn items(&self, key: &str) -> impl Iterator<Item = &Value> {
        self.seen[key].as_array().into_iter().flatten()
    }

    /// A desired value at this place, where another one is there.
    pub fn lacks<V: ToString>(&self, path: &str, wanted: Option<V>) -> Option<V> {
        wanted.filter(|value| !shows(&self.seen, path, &value.to_string()))
    }

    fn owner(&self) -> Option<&str> {
        let tag = self.tags.iter().find(|(key, _)| key == OWNER_TAG);
        tag.map(|(_, value)| value.as_str())
    }
}

impl<'a> Task<'a> {
    pub fn new(cloud: &'a Alibaba, service: &'a Service) -> Self {
        Self {
            cloud,
            service,
            names: Names::new(service, cloud.global().cluster_id()),
            kind: Kind::of(service),
        }
    }

    /// An action of the API of its load balancer, on this one.
    pub fn call(&self, action: &'static str, found: &Found) -> Call {
        self.action(action).field("LoadBalancerId", &found.id)
    }

    fn action(&self, action: &'static str) -> Call {
        match self.kind {
            Kind::Clb => Call::new(SLB, action),
            Kind::Nlb => Call::new(NLB, action),
        }
    }

    /// Deletes the load balancer.
    pub fn deletion(&self, found: &Found) -> Call {
        self.call("DeleteLoadBalancer", found)
    }

    /// Resource group of a new load balancer.
    pub fn resource_group(&self) -> Option<&str> {
        annotations::text(self.service, "resource-group-id").or(given(&self.cloud.global().resource_group_id))
    }

    /// The load balancer: the one that the annotation `id` gives, else the Service's own.
    ///
    /// # Errors
    /// `not-found` when the annotation names none, `invalid` when it names another Service's; when there are several; the cloud's error.
    pub fn find(&self) -> Result<Option<Found>, Failure> {
        if let Some(id) = annotations::text(self.service, "id") {
            let text = || format!("there is no load balancer {id}, which the annotation id names");
            let mut found = self.by_id(id)?.ok_or_else(|| Failure::not_found(text()))?;
            match found.owner() {
                Some(owner) if owner != self.names.balancer => {
                    return Err(Failure::invalid(format!(
                        "the load balancer {id}, which the annotation id names, is another Service's"
                    )));
                }
                owner => found.is_users = owner.is_none(),
            }
            return Ok(Some(found));
        }
        let made = self.cloud.context.state().get(&made_key(&self.names.balancer));
        let made: Option<String> = made.map(|made| made.value);
        let label = self.service.labels.iter().find(|pair| pair.key == ID_LABEL);
        for id in made.iter().chain(label.map(|pair| &pair.value)) {
            // A label may be that of one that was given by annotation.
            if let Some(found) = self.by_id(id)?.filter(|found| self.is_own(found)) {
                return Ok(Some(found));
            }
        }
        let name = &self.names.balancer;
        let tag = [(OWNER_TAG.to_owned(), name.clone())];
        let mut found = self.list(self.listing().tags(&tag))?;
        if found.is_empty() {
            // One that was made and not marked any more.
            found = self.list(match self.kind {
                Kind::Clb => self.listing().field("LoadBalancerName", name),
                Kind::Nlb => self.listing().list("LoadBalancerNames", [name]),
            })?;
        }
        found.retain(|found| self.is_own(found));
        single(found, "load balancers of the Service", |found| &found.id)
    }

    /// The load balancer, where there has to be one.
    ///
    /// # Errors
    /// `not-found` when there is none; as [`find`](Self::find).
    pub fn found(&self) -> Result<Found, Failure> {
        let none = || Failure::not_found(format!("Service {} has no load balancer", self.service.name));
        self.find()?.ok_or_else(none)
    }

    /// The load balancer, for a deletion: one of the user's that is gone, and one of another Service, are none.
    pub fn find_to_delete(&self) -> Result<Option<Found>, Failure> {
        let given = annotations::text(self.service, "id").is_some();
        match self.find() {
            Err(failure) if given && matches!(failure.kind, FailureKind::NotFound | FailureKind::Invalid) => Ok(None),
            found => found,
        }
    }

    /// Server groups of the Service, from this list; `of` begins the names of their fields.
    pub fn groups(&self, call: &Call, paging: Paging, list: &str, of: &str) -> Result<Vec<Group>, Failure> {
        let seen: Vec<Value> = self.cloud.api.list(call, paging, list)?;
        let groups = seen.into_iter().map(|seen| Group {
            id: text(&seen[format!("{of}Id")]),
            name: text(&seen[format!("{of}Name")]),
            seen,
        });
        Ok(groups.filter(|group| self.names.is_own(&group.name)).collect())
    }

    /// By its tag; by its name, which nothing else has, where it has no such tag.
    fn is_own(&self, found: &Found) -> bool {
        match found.owner() {
            Some(owner) => owner == self.names.balancer,
            None => found.text("LoadBalancerName") == self.names.balancer,
        }
    }

    fn by_id(&self, id: &str) -> Result<Option<Found>, Failure> {
        let call = match self.kind {
            Kind::Clb => self.listing().field("LoadBalancerId", id),
            Kind::Nlb => self.listing().list("LoadBalancerIds", [id]),
        };
        Ok(self.list(call)?.into_iter().find(|found| found.id == id))
    }

    fn listing(&self) -> Call {
        match self.kind {
            Kind::Clb => Call::new(SLB, "DescribeLoadBalancers"),
            Kind::Nlb => Call::new(NLB, "ListLoadBalancers"),
        }
    }

    fn list(&self, call: Call) -> Result<Vec<Found>, Failure> {
        let (paging, items) = match self.kind {
            Kind::Clb => (Paging::Number, "LoadBalancers.LoadBalancer"),
            Kind::Nlb => (Paging::Token("MaxResults"), "LoadBalancers"),
        };
        let found: Vec<Value> = self.cloud.api.list(&call, paging, items)?;
        Ok(found.into_iter().map(|seen| self.read(seen)).collect())
    }

    fn read(&self, seen: Value) -> Found {
        let (list, key, value) = match self.kind {
            Kind::Clb => (&seen["Tags"]["Tag"], "TagKey", "TagValue"),
            Kind::Nlb => (&seen["Tags"], "Key", "Value"),
        };
        let tags = list.as_array().into_iter().flatten();
        let tags = tags.map(|tag| (text(&tag[key]), text(&tag[value])));
        Found {
            id: text(&seen["LoadBalancerId"]),
            tags: tags.collect(),
            is_users: false,
            seen,
        }
    }

    /// Tags that it lacks, in one call: Cloudwit's on its own, those of the annotation on all.
    pub fn tag(&self, wanted: &Wanted<'_>, found: &Found) -> Option<Call> {
        let own = if found.is_users { Vec::new() } else { self.names.tags() };
        let missing: Vec<(String, String)> = own
            .into_iter()
            .chain(wanted.tags.clone())
            .filter(|tag| !found.tags.contains(tag))
            .collect();
        let call = self.tagging("TagResources", found);
        (!missing.is_empty()).then(|| call.tags(&missing))
    }

    /// Removes Cloudwit's tags, where there are any.
    pub fn untag(&self, found: &Found) -> Option<Call> {
        let own = self.names.tags().into_iter().map(|(key, _)| key);
        let own: Vec<String> = own
            .filter(|key| found.tags.iter().any(|(known, _)| known == key))
            .collect();
        let call = self.tagging("UntagResources", found);
        (!own.is_empty()).then(|| call.list("TagKey", own))
    }

    fn tagging(&self, action: &'static str, found: &Found) -> Call {
        let kind = match self.kind {
            Kind::Clb => "instance",
            Kind::Nlb => "loadbalancer",
        };
        let call = self.action(action).field("ResourceType", kind);
        call.list("ResourceId", [&found.id])
    }
}
