//! Answers of the cloud to the ids and names of a look-up.

use std::collections::BTreeMap;

use super::{Id, Key, Wanted};
use crate::types::Failure;

/// The answers to the ids and names of one look-up. Unrequested entries are ignored, so whole listings can be passed.
///
/// A machine counts before a failure, a failure before a denial.
#[derive(Debug)]
pub struct Answers<'n, M> {
    ids: BTreeMap<&'n str, Answer<M>>,
    names: BTreeMap<&'n str, Answer<M>>,
}

#[derive(Debug)]
struct Answer<M> {
    machines: Vec<M>,
    failure: Option<Failure>,
    denied: bool,
}

impl<'n, M> Answers<'n, M> {
    pub(super) fn to(wanted: &Wanted<'n>) -> Self {
        let open = |key| {
            let answer = Answer {
                machines: Vec::new(),
                failure: None,
                denied: false,
            };
            (key, answer)
        };
        Self {
            ids: wanted.ids.iter().map(|id| open(id.as_str())).collect(),
            names: wanted.names.iter().map(|name| open(name.name)).collect(),
        }
    }

    /// The cloud has this machine. Further ones are noted too: which of several is meant is not guessed.
    pub fn found(&mut self, key: Key<'_>, machine: M) {
        if let Some(answer) = self.of_mut(key) {
            answer.machines.push(machine);
        }
    }

    /// The cloud has these machines: [`found`](Self::found) for each, by its own id or name.
    pub fn found_all(&mut self, machines: impl IntoIterator<Item = M>, key: impl Fn(&M) -> Key<'_>) {
        for machine in machines {
            if let Some(answer) = self.of_mut(key(&machine)) {
                answer.machines.push(machine);
            }
        }
    }

    /// Exactly this id was requested and the cloud answers that there is no such machine: a Node with it may be deleted. A listing that may
    /// be cut, limited to a part of the cloud or late is no denial, nor is an error.
    pub fn denied(&mut self, id: Id<'_>) {
        if let Some(answer) = self.of_mut(Key::Id(id.as_str())) {
            answer.denied = true;
        }
    }

    /// Why nothing is known of it; the first failure counts.
    pub fn failed(&mut self, key: Key<'_>, failure: Failure) {
        if let Some(answer) = self.of_mut(key) {
            answer.failure.get_or_insert(failure);
        }
    }

    /// Whether it is looked up.
    pub fn wants(&self, key: Key<'_>) -> bool {
        self.of(key).is_some()
    }

    /// Whether there is a machine for it.
    pub fn has(&self, key: Key<'_>) -> bool {
        self.of(key).is_some_and(|answer| !answer.machines.is_empty())
    }

    /// Those of these ids for which there is no machine yet.
    pub fn missing<'i>(&self, ids: &[Id<'i>]) -> Vec<Id<'i>> {
        let missing = ids.iter().filter(|id| !self.has(Key::Id(id.as_str())));
        missing.copied().collect()
    }

    /// The one machine with this key; none when there is none.
    pub(super) fn machine(&self, key: Key<'_>, label: &dyn Fn(&M) -> String) -> Result<Option<&M>, Failure> {
        let Some(answer) = self.of(key) else {
            return Err(silence(key));
        };
        match (answer.machines.as_slice(), &answer.failure) {
            ([machine], _) => Ok(Some(machine)),
            ([], Some(failure)) => Err(failure.clone()),
            ([], None) if answer.denied || matches!(key, Key::Name(_)) => Ok(None),
            ([], None) => Err(silence(key)),
            // A guess would bind the Node to the wrong machine forever.
            (several, _) => {
                let labels: Vec<String> = several.iter().map(label).collect();
                let labels = labels.join(", ");
                Err(Failure::invalid(format!(
                    "several machines fit {}: {labels}; rename all but one, or set the Node's provider id",
                    key.text()
                )))
            }
        }
    }

    fn of(&self, key: Key<'_>) -> Option<&Answer<M>> {
        match key {
            Key::Id(id) => self.ids.get(id),
            Key::Name(name) => self.names.get(name),
        }
    }

    fn of_mut(&mut self, key: Key<'_>) -> Option<&mut Answer<M>> {
        match key {
            Key::Id(id) => self.ids.get_mut(id),
            Key::Name(name) => self.names.get_mut(name),
        }
    }
}

/// Silence is no absence.
pub(super) fn silence(key: Key<'_>) -> Failure {
    let key = key.text();
    Failure::unavailable(format!("the machine {key} was neither described nor denied"))
}
