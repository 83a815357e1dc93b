//! Assigns each Node and each Service to one of the configured providers. Pure.
//!
//! ```text
//!   Node     its provider id's prefix, else its label, else the default
//!   Service  the provider noted on it (there its load balancer is), else by class, annotation, rule, else the default
//! ```
//!
//! A Node that carries a provider id belongs to the provider that gives out ids with such a prefix, and to no provider where there is
//! none. So no machine is looked up at another cloud's provider, whose "not found" would be meaningless.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use cloudwit_model::{
    Abilities, AnnotationChange, Cloud, Evidence, Failure, NodeRef, Presence, ProviderIdentity, Service, VolumeCloud,
};

/// Label of a Node that has no provider id yet, and annotation of a Service: the name of the provider that shall look after it.
pub const PROVIDER: &str = "cloudwit.dev/provider";

/// Annotation of a Service: the provider in whose cloud its load balancer is, or may be. Written before the first call that can
/// create anything, removed with the load balancer.
pub const BALANCER_PROVIDER: &str = "cloudwit.dev/load-balancer-provider";

/// One configured provider.
#[derive(Clone)]
pub struct Provider {
    /// The operator's name for it.
    pub name: String,
    /// The cloud that it speaks for.
    pub cloud: Arc<dyn Cloud>,
    /// The beginnings of its provider ids, where the operator says so instead of the provider itself.
    pub provider_id_prefixes: Option<Vec<String>>,
    /// Its volumes, where they are served.
    pub volumes: Option<NodeVolumes>,
}

/// Volumes that are served: each of the provider's Nodes gets the CSI annotation.
#[derive(Clone)]
pub struct NodeVolumes {
    /// Name of the CSI driver.
    pub driver: String,
    /// Knows the machines.
    pub cloud: Arc<dyn VolumeCloud>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Provider {
    /// Who it is, under the operator's name and prefixes.
    pub fn identity(&self) -> ProviderIdentity {
        let mut identity = self.cloud.identity();
        identity.name.clone_from(&self.name);
        if let Some(prefixes) = &self.provider_id_prefixes {
            identity.provider_id_prefixes.clone_from(prefixes);
        }
        identity
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

/// All providers of a process.
#[derive(Debug, Clone)]
pub struct Providers {
    list: Vec<Provider>,
    default: String,
    rules: ServiceRules,
}

impl From<Arc<dyn Cloud>> for Providers {
    /// A single one under its own name.
    fn from(cloud: Arc<dyn Cloud>) -> Self {
        let name = cloud.identity().name;
        let provider = Provider {
            name: name.clone(),
            cloud,
            provider_id_prefixes: None,
            volumes: None,
        };
        Self {
            list: vec![provider],
            default: name,
            rules: ServiceRules::default(),
        }
    }
}

impl<C: Cloud + 'static> From<Arc<C>> for Providers {
    fn from(cloud: Arc<C>) -> Self {
        Self::from(cloud as Arc<dyn Cloud>)
    }
}

impl Providers {
    /// These providers; `default` is the name of the one that gets what names no other.
    ///
    /// # Errors
    /// All mistakes, a sentence each: names that are unknown, or provider ids that two of them would give out.
    pub fn new(list: Vec<Provider>, default: &str, rules: ServiceRules) -> Result<Self, Vec<String>> {
        let providers = Self {
            list,
            default: default.to_owned(),
            rules,
        };
        let assignment = providers.assignment();
        let rules = &providers.rules;
        let names = [&providers.default].into_iter().chain(rules.classes.values());
        let names = names.chain(rules.annotations.values());
        let mut mistakes: Vec<String> = names.filter_map(|name| assignment.named(name).err()).collect();
        mistakes.extend(assignment.clashes());
        mistakes.dedup();
        if mistakes.is_empty() {
            Ok(providers)
        } else {
            Err(mistakes)
        }
    }

    /// The same, with the volumes that are served, in the order of [`list`](Self::list).
    #[must_use]
    pub fn with_volumes(mut self, served: Vec<Option<NodeVolumes>>) -> Self {
        for (provider, volumes) in self.list.iter_mut().zip(served) {
            provider.volumes = volumes;
        }
        self
    }

    /// All of them, always in the same order.
    pub fn list(&self) -> &[Provider] {
        &self.list
    }

    /// Whether there is more than one.
    pub fn are_several(&self) -> bool {
        self.list.len() > 1
    }

    /// Who is assigned what right now: a swap can change prefixes and abilities.
    pub fn assignment(&self) -> Assignment<'_> {
        let member = |provider: &Provider| Member {
            identity: provider.identity(),
            abilities: provider.cloud.abilities(),
        };
        Assignment {
            members: self.list.iter().map(member).collect(),
            providers: self,
        }
    }
}

/// A provider as the assignment sees it.
#[derive(Debug, Clone)]
pub struct Member {
    /// Under the operator's name and prefixes.
    pub identity: ProviderIdentity,
    /// Its interfaces.
    pub abilities: Abilities,
}

/// A snapshot: taken once for a pass over all Nodes, then read for each of them.
#[derive(Debug, Clone)]
pub struct Assignment<'a> {
    members: Vec<Member>,
    providers: &'a Providers,
}

impl Assignment<'_> {
    fn are_several(&self) -> bool {
        self.members.len() > 1
    }

    /// The provider with this name; the error says which names there are.
    fn named(&self, name: &str) -> Result<&Member, String> {
        let mut members = self.members.iter();
        members.find(|member| member.identity.name == name).ok_or_else(|| {
            let known: Vec<&str> = self
                .members
                .iter()
                .map(|member| member.identity.name.as_str())
                .collect();
            format!("there is no provider {name:?}; known: {}", known.join(", "))
        })
    }

    /// The default for what has this ability, else the first that has it.
    fn fallback(&self, able: fn(&Abilities) -> bool) -> Option<&Member> {
        let mut members = self.named(&self.providers.default).into_iter().chain(&self.members);
        members.find(|member| able(&member.abilities))
    }

    /// A Node's provider. `provider_id` is `spec.providerID`, `label` the value of the label [`PROVIDER`], which only matters with several
    /// providers. None: the Node is of no provider.
    pub fn of_node(&self, provider_id: Option<&str>, label: Option<&str>) -> Option<&Member> {
        match (provider_id, label) {
            (Some(id), _) => self.of_id(id),
            (None, Some(name)) if self.are_several() => self.named(name).ok(),
            (None, _) => self.named(&self.providers.default).ok(),
        }
    }

    /// With several providers one without prefixes owns no id: its machines could not be distinguished from those of the others. An id that two
    /// claim (a swap can bring that about) is of neither, so that neither can say that the other's machine is gone.
    fn of_id(&self, id: &str) -> Option<&Member> {
        if let [only] = self.members.as_slice()
            && only.identity.provider_id_prefixes.is_empty()
        {
            return Some(only);
        }
        let claims = |member: &&Member| {
            let mut prefixes = member.identity.provider_id_prefixes.iter();
            prefixes.any(|prefix| id.starts_with(prefix.as_str()))
        };
        let mut claimants = self.members.iter().filter(claims);
        claimants.next().filter(|_| claimants.next().is_none())
    }

    /// Whose controllers answer for a Node: its provider's, else the default's, which say why it is not initialised.
    pub fn explains(&self, provider_id: Option<&str>, label: Option<&str>) -> Option<&str> {
        let owner = self.of_node(provider_id, label);
        let able = |abilities: &Abilities| abilities.instances;
        let able_owner = owner.filter(|member| able(&member.abilities));
        Some(&able_owner.or_else(|| self.fallback(able))?.identity.name)
    }

    /// Why there is no provider for this Node; none when there is.
    pub fn stray(&self, node: &NodeRef) -> Option<Failure> {
        let (id, label) = (node.provider_id.as_deref(), node.provider.as_deref());
        let what = match (self.of_node(id, label), id, label) {
            (Some(member), ..) if member.abilities.instances => return None,
            (Some(_), ..) => "its provider cannot be asked about machines".to_owned(),
            (None, Some(id), _) => format!("the provider id {id} is not of a configured provider, or of more than one"),
            (None, None, Some(name)) => {
                format!("its label {PROVIDER} names the provider {name:?}, which is not configured")
            }
            (None, None, None) => "no provider is configured for it".to_owned(),
        };
        Some(Failure::Invalid(what.into()))
    }

    /// An answer of this provider, unless it is about a machine that cannot be its own.
    pub fn checked(&self, name: &str, node: &NodeRef, answer: Presence) -> Result<Presence, Failure> {
        if let Some(instance) = answer.instance() {
            let id = &instance.provider_id;
            let owner = self.of_id(id).map(|member| member.identity.name.as_str());
            let nameless = |member: &Member| member.identity.provider_id_prefixes.is_empty();
            let may_be_own = owner.is_none() && self.named(name).is_ok_and(nameless);
            if owner != Some(name) && !may_be_own {
                return Err(Failure::Other(
                    format!("provider {name:?} answers with the machine {id}, whose id is not one of its own").into(),
                ));
            }
        }
        Ok(match answer {
            Presence::Absent(_) if node.provider_id.is_none() => Presence::Absent(Evidence::ByName),
            other => other,
        })
    }

    /// The provider that shall look after the Service; none where there is only one, and nothing to choose.
    ///
    /// # Errors
    /// [`Failure::Invalid`] when the Service names a provider that is not configured.
    pub fn wanted(&self, service: &Service) -> Result<Option<&str>, Failure> {
        if !self.are_several() {
            return Ok(None);
        }
        let rules = &self.providers.rules;
        let class = service.load_balancer_class.as_ref();
        let by_class = class.and_then(|class| rules.classes.get(class));
        let by_annotation = || service.annotations.get(PROVIDER).filter(|name| !name.is_empty());
        let by_rule = || {
            let mut annotations = rules.annotations.iter();
            let fits = annotations.find(|((key, value), _)| service.annotations.get(key) == Some(value));
            fits.map(|(_, name)| name)
        };
        let name = by_class.or_else(by_annotation).or_else(by_rule);
        let member = self.named(name.unwrap_or(&self.providers.default));
        Ok(Some(
            &member.map_err(|what| Failure::Invalid(what.into()))?.identity.name,
        ))
    }

    /// The provider to call for the Service now: the one that has the load balancer, else the one that shall have it.
    ///
    /// # Errors
    /// [`Failure::Invalid`] when it is not configured, or offers no load balancers.
    pub fn of_service(&self, service: &Service) -> Result<&str, Failure> {
        let member = match (service.annotations.get(BALANCER_PROVIDER), self.members.as_slice()) {
            (_, [only]) => return Ok(&only.identity.name),
            (Some(name), _) => self.named(name).map_err(|_| {
                Failure::Invalid(format!(
                    "its load balancer is in the cloud of provider {name:?} (annotation {BALANCER_PROVIDER}), which is not configured; \
                     configure it again, or remove the annotation when nothing is left there"
                ).into())
            })?,
            (None, _) => {
                let wanted = self.wanted(service)?.unwrap_or(&self.providers.default);
                self.named(wanted).map_err(|what| Failure::Invalid(what.into()))?
            }
        };
        let name = &member.identity.name;
        if member.abilities.load_balancers {
            return Ok(name);
        }
        Err(Failure::Invalid(
            format!("provider {name:?} offers no load balancers; name another one in the annotation {PROVIDER}").into(),
        ))
    }

    /// Whose controllers a Service is given to. One whose provider cannot be called goes to the default's, which report it.
    pub fn balances(&self, service: &Service) -> Option<&str> {
        let fallback = || self.fallback(|abilities| abilities.load_balancers);
        let of = self.of_service(service).ok();
        of.or_else(|| fallback().map(|member| member.identity.name.as_str()))
    }

    /// Pairs of providers that would claim the same ids, in one sentence each. Empty when every id has one owner at most.
    pub fn clashes(&self) -> Vec<String> {
        let mut clashes = Vec::new();
        for (at, one) in self.members.iter().map(|member| &member.identity).enumerate() {
            for other in self.members[at + 1..].iter().map(|member| &member.identity) {
                let mine = one.provider_id_prefixes.iter();
                let pairs = mine.flat_map(|mine| other.provider_id_prefixes.iter().map(move |theirs| (mine, theirs)));
                let overlap = |(mine, theirs): &(&String, &String)| {
                    mine.starts_with(theirs.as_str()) || theirs.starts_with(mine.as_str())
                };
                clashes.extend(pairs.filter(overlap).map(|(mine, theirs)| {
                    format!(
                        "providers {:?} and {:?} both give out provider ids that begin with {:?}; say which ids are whose \
                         with providerIDPrefixes under routing.nodes",
                        one.name,
                        other.name,
                        if mine.len() > theirs.len() { mine } else { theirs }
                    )
                }));
            }
        }
        clashes
    }
}

/// What a provider requests to write, without whose the load balancer is and shall be: that is not for it to say.
pub fn strip_reserved(mut changes: Vec<AnnotationChange>) -> Vec<AnnotationChange> {
    changes.retain(|change| change.key != BALANCER_PROVIDER && change.key != PROVIDER);
    changes
}

#[cfg(test)]
mod tests;
