//! Several clouds behind one [`Cloud`]: every question goes to the provider whose business it is.
//!
//! ```text
//!   lookup          each Node to its owner (see `owners`), all owners at once, answers back in order
//!   load balancers  the provider noted on the Service, else by class, annotation, or the default; only with its own Nodes as targets
//!   routes          everybody lists, and whoever cannot has its Nodes left out; a change goes to the owner of the Node, a deletion
//!                   to whoever listed the route
//! ```
//!
//! A provider that fails does so for its own objects alone. What one provider says about a machine never counts for another's: foreign
//! ids are not shown to it, and ids that it may not give out are not taken from it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use crate::join::join_all;
use crate::owners::{Owners, PROVIDER};
use crate::{
    Abilities, AnnotationChange, Answer, Balancer, Cloud, CloudError, Evidence, Failure, NewRoute, NodeRef, Presence,
    ProviderIdentity, Route, RouteOutcome, Service, Target,
};

/// Annotation of a Service: the provider in whose cloud its load balancer is, or may be. Written before the first call that can
/// create anything, removed with the load balancer.
pub const BALANCER_PROVIDER: &str = "cloudwit.dev/load-balancer-provider";

/// One provider.
#[derive(Clone)]
pub struct Member {
    /// The operator's name for it.
    pub name: String,
    /// Whom to ask.
    pub cloud: Arc<dyn Cloud>,
    /// The beginnings of its provider ids, where the operator says so instead of the provider itself.
    pub provider_id_prefixes: Option<Vec<String>>,
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Which Service is whose. The annotation [`PROVIDER`] always works.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceRules {
    /// `spec.loadBalancerClass` to the provider's name.
    pub classes: BTreeMap<String, String>,
    /// Further annotations, key and value, to the provider's name.
    pub annotations: BTreeMap<(String, String), String>,
}

/// Several clouds as one.
#[derive(Debug)]
pub struct Router {
    pub(crate) members: Vec<Member>,
    default: usize,
    rules: ServiceRules,
    /// Why each member could not list its routes the last time it was asked; before the first time, that it was not.
    pub(crate) failed: Mutex<Vec<Option<Failure>>>,
}

impl Router {
    /// Joins these providers; `default` is the name of the one that gets what names no other.
    ///
    /// # Errors
    /// All mistakes, a sentence each: names that are unknown, or provider ids that two of them would give out.
    pub fn new(members: Vec<Member>, default: &str, rules: ServiceRules) -> Result<Self, Vec<String>> {
        let names = [default].into_iter();
        let names = names.chain(rules.classes.values().map(String::as_str));
        let names: Vec<String> = names
            .chain(rules.annotations.values().map(String::as_str))
            .map(str::to_owned)
            .collect();
        let mut router = Self {
            failed: Mutex::new(vec![Some(Failure::Unavailable("not asked yet".into())); members.len()]),
            default: 0,
            rules,
            members,
        };
        let unknown = |name: &String| router.place_named(name).err();
        let mut mistakes: Vec<String> = names.iter().filter_map(unknown).collect();
        mistakes.extend(router.owners().clashes());
        mistakes.dedup();
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        router.default = router.place_named(default).map_err(|unknown| vec![unknown])?;
        Ok(router)
    }

    /// The place of the provider with this name; the error says which names there are.
    pub(crate) fn place_named(&self, name: &str) -> Result<usize, String> {
        let place = self.members.iter().position(|member| member.name == name);
        place.ok_or_else(|| {
            let known: Vec<&str> = self.members.iter().map(|member| member.name.as_str()).collect();
            format!("there is no provider {name:?}; known: {}", known.join(", "))
        })
    }

    /// The place of the provider that shall look after the Service.
    fn wanted(&self, service: &Service) -> Result<usize, Failure> {
        let by_class = service
            .load_balancer_class
            .as_ref()
            .and_then(|class| self.rules.classes.get(class));
        let by_annotation = || service.annotations.get(PROVIDER).filter(|name| !name.is_empty());
        let by_rule = || {
            let rules = self.rules.annotations.iter();
            let mut fits = rules.filter(|((key, value), _)| service.annotations.get(key) == Some(value));
            fits.next().map(|(_, name)| name)
        };
        match by_class.or_else(by_annotation).or_else(by_rule) {
            Some(name) => self.place_named(name).map_err(Failure::Invalid),
            None => Ok(self.default),
        }
    }

    /// The provider to ask about the Service now: the one that has the load balancer, else the one that shall have it.
    fn member_of(&self, service: &Service) -> Result<(usize, &Member), Failure> {
        let place = match service.annotations.get(BALANCER_PROVIDER) {
            Some(name) => self.place_named(name).map_err(|_| {
                Failure::Invalid(format!(
                    "its load balancer is in the cloud of provider {name:?} (annotation {BALANCER_PROVIDER}), which is not configured; \
                     configure it again, or remove the annotation when nothing is left there"
                ))
            })?,
            None => self.wanted(service)?,
        };
        let member = &self.members[place];
        if member.cloud.abilities().load_balancers {
            Ok((place, member))
        } else {
            let name = &member.name;
            Err(Failure::Invalid(format!(
                "provider {name:?} offers no load balancers; name another one in the annotation {PROVIDER}"
            )))
        }
    }

    /// A call about a Service to its provider.
    fn about<'a, T: Send + 'a>(
        &'a self,
        service: &'a Service,
        call: impl FnOnce(&'a dyn Cloud) -> Answer<'a, T>,
    ) -> Answer<'a, T> {
        match self.member_of(service) {
            Ok((_, member)) => call(member.cloud.as_ref()),
            Err(failure) => Box::pin(std::future::ready(Err(failure.into()))),
        }
    }

    /// Those targets that are machines of the provider at this place.
    fn own(&self, place: usize, targets: &[Target]) -> Vec<Target> {
        let owners = self.owners();
        let own = |target: &&Target| owners.place_of(&target.node) == Some(place);
        targets.iter().filter(own).cloned().collect()
    }

    async fn lookup_split(&self, nodes: &[NodeRef]) -> Result<Vec<Result<Presence, Failure>>, CloudError> {
        let owners = self.owners();
        let mut batches: Vec<(Vec<usize>, Vec<NodeRef>)> = vec![Default::default(); self.members.len()];
        let mut answers: Vec<Option<Result<Presence, Failure>>> = vec![None; nodes.len()];
        for (at, node) in nodes.iter().enumerate() {
            match owners.place_of(node).filter(|place| owners.abilities(*place).instances) {
                Some(place) => {
                    batches[place].0.push(at);
                    batches[place].1.push(node.clone());
                }
                None => answers[at] = Some(Err(self.nobodys(node, &owners))),
            }
        }
        let asked: Vec<usize> = (0..batches.len())
            .filter(|place| !batches[*place].0.is_empty())
            .collect();
        let calls = asked
            .iter()
            .map(|place| self.members[*place].cloud.lookup(&batches[*place].1));
        let results = join_all(calls.collect()).await;
        let alone = asked.len() == 1 && batches[asked[0]].0.len() == nodes.len();
        for (place, result) in asked.into_iter().zip(results) {
            let (places, refs) = &batches[place];
            match result {
                Ok(found) => {
                    for ((at, node), answer) in places.iter().zip(refs).zip(found) {
                        answers[*at] = Some(self.checked(place, node, answer, &owners));
                    }
                }
                // Whoever asks one provider alone gets its error as it is.
                Err(error) if alone => return Err(error),
                Err(error) => {
                    let failure = as_failure(&self.members[place].name, error);
                    places.iter().for_each(|at| answers[*at] = Some(Err(failure.clone())));
                }
            }
        }
        let missing = || Err(Failure::Other("the provider gave no answer about this Node".into()));
        Ok(answers
            .into_iter()
            .map(|answer| answer.unwrap_or_else(missing))
            .collect())
    }

    /// Why nobody can be asked about the Node.
    pub(crate) fn nobodys(&self, node: &NodeRef, owners: &Owners) -> Failure {
        let what = match (&node.provider_id, &node.provider) {
            _ if owners.place_of(node).is_some() => "its provider cannot be asked about machines".to_owned(),
            (Some(id), _) => format!("the provider id {id} is not of a configured provider, or of more than one"),
            (None, Some(name)) => format!("its label {PROVIDER} names the provider {name:?}, which is not configured"),
            (None, None) => "no provider is configured for it".to_owned(),
        };
        Failure::Invalid(what)
    }

    /// An answer, unless it is about a machine that cannot be this provider's.
    fn checked(
        &self,
        place: usize,
        node: &NodeRef,
        answer: Result<Presence, Failure>,
        owners: &Owners,
    ) -> Result<Presence, Failure> {
        let presence = answer?;
        if let Some(instance) = presence.instance() {
            let (id, member) = (&instance.provider_id, &self.members[place]);
            let owner = owners.place_of_id(id);
            let nameless = owners.providers()[place].provider_id_prefixes.is_empty();
            if owner != Some(place) && !(nameless && owner.is_none()) {
                return Err(Failure::Other(format!(
                    "provider {:?} answers with the machine {id}, whose id is not one of its own",
                    member.name
                )));
            }
        }
        Ok(match presence {
            Presence::Absent(_) if node.provider_id.is_none() => Presence::Absent(Evidence::ByName),
            other => other,
        })
    }
}

/// One provider's error where the others have an answer.
pub(crate) fn as_failure(name: &str, error: CloudError) -> Failure {
    match error {
        CloudError::Failure(failure) => failure,
        other => Failure::Unavailable(format!("provider {name:?}: {other}")),
    }
}

/// Whose a load balancer is and shall be is not for the provider to say.
fn without_ours(mut changes: Vec<AnnotationChange>) -> Vec<AnnotationChange> {
    changes.retain(|change| change.key != BALANCER_PROVIDER && change.key != PROVIDER);
    changes
}

impl Cloud for Router {
    fn identity(&self) -> ProviderIdentity {
        let owners = self.owners();
        let join = |part: fn(&ProviderIdentity) -> &str| -> String {
            owners.providers().iter().map(part).collect::<Vec<_>>().join(", ")
        };
        ProviderIdentity {
            name: join(|one| &one.name),
            version: join(|one| &one.version),
            digest: join(|one| &one.digest),
            provider_id_prefixes: owners
                .providers()
                .iter()
                .flat_map(|one| one.provider_id_prefixes.clone())
                .collect(),
        }
    }

    fn owners(&self) -> Owners {
        let providers = self.members.iter().map(|member| {
            let mut identity = member.cloud.identity();
            identity.name.clone_from(&member.name);
            if let Some(prefixes) = &member.provider_id_prefixes {
                identity.provider_id_prefixes.clone_from(prefixes);
            }
            (identity, member.cloud.abilities())
        });
        Owners::several(providers.collect(), self.default)
    }

    fn balancer_provider(&self, service: &Service) -> Result<Option<String>, Failure> {
        self.wanted(service).map(|place| Some(self.members[place].name.clone()))
    }

    fn abilities(&self) -> Abilities {
        let all = self.members.iter().map(|member| member.cloud.abilities());
        all.fold(Abilities::default(), |any, one| Abilities {
            instances: any.instances || one.instances,
            load_balancers: any.load_balancers || one.load_balancers,
            routes: any.routes || one.routes,
        })
    }

    fn lookup_limit(&self) -> usize {
        let limits = self.members.iter().map(|member| member.cloud.lookup_limit());
        limits.min().unwrap_or(1)
    }

    fn lookup<'a>(&'a self, nodes: &'a [NodeRef]) -> Answer<'a, Vec<Result<Presence, Failure>>> {
        Box::pin(self.lookup_split(nodes))
    }

    fn get_balancer<'a>(&'a self, service: &'a Service) -> Answer<'a, Option<Balancer>> {
        self.about(service, |cloud| cloud.get_balancer(service))
    }

    fn ensure_balancer<'a>(
        &'a self,
        service: &'a Service,
        targets: &'a [Target],
        token: Option<&'a str>,
    ) -> Answer<'a, Balancer> {
        Box::pin(async move {
            let (place, member) = self.member_of(service)?;
            let own = self.own(place, targets);
            let mut balancer = member.cloud.ensure_balancer(service, &own, token).await?;
            balancer.annotations = without_ours(balancer.annotations);
            Ok(balancer)
        })
    }

    fn update_targets<'a>(
        &'a self,
        service: &'a Service,
        targets: &'a [Target],
        token: Option<&'a str>,
    ) -> Answer<'a, Vec<AnnotationChange>> {
        Box::pin(async move {
            let (place, member) = self.member_of(service)?;
            let own = self.own(place, targets);
            member
                .cloud
                .update_targets(service, &own, token)
                .await
                .map(without_ours)
        })
    }

    fn delete_balancer<'a>(
        &'a self,
        service: &'a Service,
        token: Option<&'a str>,
    ) -> Answer<'a, Vec<AnnotationChange>> {
        Box::pin(async move {
            let (_, member) = self.member_of(service)?;
            let mut changes = without_ours(member.cloud.delete_balancer(service, token).await?);
            changes.push(AnnotationChange {
                key: BALANCER_PROVIDER.to_owned(),
                value: None,
            });
            Ok(changes)
        })
    }

    fn list_routes(&self) -> Answer<'_, Vec<Route>> {
        Box::pin(self.list_all())
    }

    fn unlisted(&self) -> BTreeMap<usize, String> {
        self.unlisted_members()
    }

    fn apply_routes<'a>(&'a self, create: &'a [NewRoute], delete: &'a [Route]) -> Answer<'a, RouteOutcome> {
        Box::pin(self.apply_split(create, delete))
    }
}

#[cfg(test)]
mod tests;
