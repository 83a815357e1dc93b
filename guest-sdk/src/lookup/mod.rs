//! Look-ups: many Nodes in few requests, one answer for each in its place.
//!
//! A provider implements [`Machines`], or [`Listing`] where its cloud has a list of all machines and no filter for many ids, and has [`Instances`] with it:
//!
//! ```text
//!   nodes -> key -> ids and names, each once -> batches -> by_ids, by_names -> Answers -> describe -> one answer for each Node
//! ```
//!
//! Done here for all clouds: a failure of one machine stays its own, several machines of one name are a failure, and only a Node whose
//! provider id the cloud denied ([`Answers::denied`]) is absent "by id", which lets the controller delete it. Silence is a failure.

mod answers;
mod each;
mod listing;
mod together;

use std::collections::{BTreeMap, BTreeSet};

use crate::provider::{Instances, Provider};
use crate::types::{Evidence, Failure, Instance, NodeRef, Presence, id_after};

pub use answers::Answers;
use answers::silence;
pub use each::{ask_each, ask_each_where_any};
pub use listing::Listing;
pub use together::ask_together_where_any;

/// Bytes of what separates two keys in a URL: `%2C`, or `&id=`.
const SEPARATOR: usize = 3;

/// By what a machine is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key<'n> {
    /// By its id, and by nothing else.
    Id(&'n str),
    /// By the name that its Node has.
    Name(&'n str),
}

impl<'n> Key<'n> {
    /// The id behind `prefix` in the Node's provider id; its name where it has none.
    ///
    /// # Errors
    /// `invalid` for the provider id of another cloud.
    pub fn of(node: &'n NodeRef, prefix: &str) -> Result<Self, Failure> {
        let Some(provider_id) = &node.provider_id else {
            return Ok(Self::Name(&node.name));
        };
        id_after(prefix, provider_id)
            .map(Self::Id)
            .ok_or_else(|| Failure::invalid(format!("the provider id {provider_id} does not begin with {prefix}")))
    }

    /// The id that `read` finds in the Node's provider id; its name where it has none. `whose` provider ids are (`Lab's`), and an example of one, are for
    /// messages.
    ///
    /// # Errors
    /// `invalid` for the provider id of another cloud.
    pub fn read(
        node: &'n NodeRef,
        read: impl FnOnce(&'n str) -> Option<&'n str>,
        whose: &str,
        example: &str,
    ) -> Result<Self, Failure> {
        let Some(provider_id) = &node.provider_id else {
            return Ok(Self::Name(&node.name));
        };
        read(provider_id).map(Self::Id).ok_or_else(|| {
            Failure::invalid(format!(
                "the provider id {provider_id} is none of {whose}; they look like {example}"
            ))
        })
    }
}

impl Key<'_> {
    fn text(&self) -> &str {
        let (Self::Id(text) | Self::Name(text)) = self;
        text
    }
}

/// An id that is looked up. Only a look-up makes them, so that nothing else can be [denied](Answers::denied).
#[derive(Debug, Clone, Copy)]
pub struct Id<'n> {
    id: &'n str,
    node: &'n NodeRef,
}

impl<'n> Id<'n> {
    /// The id in the cloud.
    pub fn as_str(&self) -> &'n str {
        self.id
    }

    /// The Node that has it; the first where several have.
    pub fn node(&self) -> &'n NodeRef {
        self.node
    }
}

impl AsRef<str> for Id<'_> {
    fn as_ref(&self) -> &str {
        self.id
    }
}

/// A name that is looked up.
#[derive(Debug, Clone, Copy)]
pub struct Name<'n> {
    /// The name.
    pub name: &'n str,
    /// The Node, whose other fields may help to find its machine.
    pub node: &'n NodeRef,
}

impl AsRef<str> for Name<'_> {
    fn as_ref(&self) -> &str {
        self.name
    }
}

/// All that is looked up in one call, each once and in the order of the Nodes.
#[derive(Debug, Clone, Default)]
pub struct Wanted<'n> {
    /// Ids.
    pub ids: Vec<Id<'n>>,
    /// Names.
    pub names: Vec<Name<'n>>,
}

impl<'n> Wanted<'n> {
    fn of(nodes: &'n [NodeRef], keys: &[Result<Key<'n>, Failure>]) -> Self {
        let (mut wanted, mut ids, mut names) = (Self::default(), BTreeSet::new(), BTreeSet::new());
        for (node, key) in nodes.iter().zip(keys) {
            match *key {
                Ok(Key::Id(id)) if ids.insert(id) => wanted.ids.push(Id { id, node }),
                Ok(Key::Name(name)) if names.insert(name) => wanted.names.push(Name { name, node }),
                _ => {}
            }
        }
        wanted
    }
}

/// How much is requested at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// Most ids.
    pub ids: usize,
    /// Most names.
    pub names: usize,
    /// Most bytes of ids or names with what separates them: servers take URLs of twice the default.
    pub bytes: usize,
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            ids: 1_000,
            names: 1_000,
            bytes: 30_000,
        }
    }
}

/// A machine that was found, and the Node it was found for; the first where one key is several Nodes'.
#[derive(Debug)]
pub struct Found<'a, M> {
    /// The Node.
    pub node: &'a NodeRef,
    /// Its machine.
    pub machine: &'a M,
}

/// A machine that exists, in the contract's words.
#[derive(Debug, Clone, PartialEq)]
pub enum Existing {
    /// It runs.
    Running(Instance),
    /// It is switched off.
    Stopped(Instance),
}

/// Machines behind Nodes, the part that differs from cloud to cloud. Every implementation of it has [`Instances`].
pub trait Machines: Provider {
    /// A machine as the cloud returns it.
    type Machine;

    /// By what the machine of this Node is found; often [`Key::of`].
    ///
    /// # Errors
    /// This Node's failure, such as a provider id of another cloud.
    fn key<'n>(&self, node: &'n NodeRef) -> Result<Key<'n>, Failure>;

    /// How much goes into one request.
    fn batch(&self) -> Batch {
        Batch::default()
    }

    /// Requests these ids, at most a [`batch`](Self::batch), and notes the cloud's answer for each.
    ///
    /// # Errors
    /// What prevents every look-up.
    fn by_ids(&self, ids: &[Id<'_>], answers: &mut Answers<'_, Self::Machine>) -> Result<(), Failure>;

    /// Requests these names, at most a [`batch`](Self::batch). One without a machine and without a failure is absent "by name".
    ///
    /// # Errors
    /// What prevents every look-up.
    fn by_names(&self, names: &[Name<'_>], answers: &mut Answers<'_, Self::Machine>) -> Result<(), Failure>;

    /// Requests all, in batches. To be replaced where one listing answers for ids and names alike.
    ///
    /// # Errors
    /// What prevents every look-up.
    fn find(&self, wanted: &Wanted<'_>, answers: &mut Answers<'_, Self::Machine>) -> Result<(), Failure> {
        let batch = self.batch();
        for ids in batches(&wanted.ids, batch.ids, batch.bytes) {
            self.by_ids(ids, answers)?;
        }
        for names in batches(&wanted.names, batch.names, batch.bytes) {
            self.by_names(names, answers)?;
        }
        Ok(())
    }

    /// What operators identify a machine by: to distinguish several of one name.
    fn label(&self, machine: &Self::Machine) -> String;

    /// Descriptions of these machines for their Nodes, in their order, with what else has to be requested for that: for all at once. The provider
    /// id counts for Nodes without one; in others it stays as it is.
    ///
    /// # Errors
    /// What prevents every look-up.
    fn describe(&self, found: &[Found<'_, Self::Machine>]) -> Result<Vec<Result<Existing, Failure>>, Failure>;
}

impl<P: Machines> Instances for P {
    fn lookup(&self, nodes: &[NodeRef]) -> Result<Vec<Result<Presence, Failure>>, Failure> {
        let keys: Vec<_> = nodes.iter().map(|node| self.key(node)).collect();
        let wanted = Wanted::of(nodes, &keys);
        let mut answers = Answers::to(&wanted);
        self.find(&wanted, &mut answers)?;
        let told = conclude(self, &wanted, &answers)?;
        let answer = |(node, key): (&NodeRef, Result<Key<'_>, Failure>)| {
            let key = key?;
            // Only the id in the Node counts, not one that was read out of its name.
            let given = node.provider_id.as_ref().filter(|id| !id.is_empty());
            let machine = told.get(&key).cloned().unwrap_or(Ok(None))?;
            Ok(match (machine, key, given) {
                (Some(Existing::Running(instance)), ..) => Presence::Running(keep_id(instance, given)),
                (Some(Existing::Stopped(instance)), ..) => Presence::Stopped(keep_id(instance, given)),
                (None, Key::Id(_), Some(_)) => Presence::Absent(Evidence::ById),
                (None, ..) => Presence::Absent(Evidence::ByName),
            })
        };
        Ok(nodes.iter().zip(keys).map(answer).collect())
    }
}

/// The result for each key: a machine, none, or a failure.
type Told<'n> = BTreeMap<Key<'n>, Result<Option<Existing>, Failure>>;

fn conclude<'n, P: Machines>(
    provider: &P,
    wanted: &Wanted<'n>,
    answers: &Answers<'n, P::Machine>,
) -> Result<Told<'n>, Failure> {
    let ids = wanted.ids.iter().map(|id| (Key::Id(id.id), id.node));
    let names = wanted.names.iter().map(|name| (Key::Name(name.name), name.node));
    let label = |machine: &P::Machine| provider.label(machine);
    let machines: Vec<_> = ids
        .chain(names)
        .map(|(key, node)| (key, node, answers.machine(key, &label)))
        .collect();
    let found = machines.iter().filter_map(|(_, node, machine)| match *machine {
        Ok(Some(machine)) => Some(Found { node, machine }),
        _ => None,
    });
    let found: Vec<_> = found.collect();
    let described = match found.as_slice() {
        [] => Vec::new(),
        found => provider.describe(found)?,
    };
    let (told, asked) = (described.len(), found.len());
    if told != asked {
        // They cannot be assigned to their Nodes.
        return Err(Failure::other(format!(
            "{asked} machines were to be described, and {told} are"
        )));
    }
    let mut described = described.into_iter();
    let told = machines.into_iter().map(|(key, _, machine)| {
        let existing = match machine {
            Ok(Some(_)) => described.next().unwrap_or_else(|| Err(silence(key))).map(Some),
            Ok(None) => Ok(None),
            Err(failure) => Err(failure),
        };
        (key, existing)
    });
    Ok(told.collect())
}

/// A provider id is written once: a Node keeps the form that it has.
fn keep_id(mut instance: Instance, given: Option<&String>) -> Instance {
    if let Some(id) = given {
        instance.provider_id.clone_from(id);
    }
    instance
}

/// Keys in parts of at most so many, and of at most so many bytes with what separates them.
pub fn batches<K: AsRef<str>>(keys: &[K], most: usize, bytes: usize) -> impl Iterator<Item = &[K]> {
    let mut rest = keys;
    std::iter::from_fn(move || {
        let mut length = 0;
        let fits = |key: &&K| {
            length += key.as_ref().len() + SEPARATOR;
            length <= bytes
        };
        let count = rest.iter().take(most).take_while(fits).count();
        // One that is too long by itself is requested alone.
        let (batch, left) = rest.split_at(count.max(1).min(rest.len()));
        rest = left;
        (!batch.is_empty()).then_some(batch)
    })
}

#[cfg(test)]
mod tests;
