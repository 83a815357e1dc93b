//! Where machines were found last, kept for later calls: a machine that was found once is read where it was, without a search.
//!
//! Only a hint. What is read there has to have the id that is asked for.

use std::collections::BTreeMap;
use std::time::Duration;

use cloudwit_guest_sdk::state::{Keep, State};

use crate::inventory::Want;
use crate::machine::KIND;
use crate::soap::Reference;
use crate::uuid::Uuid;

/// Machines that nobody has asked for in so long are looked for anew.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// More than this are not remembered: 5,000 are some 300 kilobytes.
const MOST: usize = 5_000;

/// Machines of one vCenter by their ids.
#[derive(Debug)]
pub struct Remembered {
    state: State,
    key: String,
}

impl Remembered {
    /// Those of the vCenter with this name.
    pub fn new(state: State, vcenter: &str) -> Self {
        Self {
            state,
            key: ["machines/", vcenter].concat(),
        }
    }

    fn all(&self) -> BTreeMap<String, String> {
        self.state.get(&self.key).map(|stored| stored.value).unwrap_or_default()
    }

    /// Where each was; none where that is not known.
    pub fn references(&self, wants: &[&Want]) -> Vec<Option<Reference>> {
        let all = self.all();
        let known = |want: &&Want| match want {
            Want::Id(uuid) => all.get(uuid.as_str()).map(|value| Reference::new(KIND, value)),
            Want::Name { .. } => None,
        };
        wants.iter().map(known).collect()
    }

    /// Whether the server refused to give single settings of machines.
    pub fn gives_all_settings(&self) -> bool {
        self.state.get::<bool>(&self.settings_key()).is_some()
    }

    /// The server refuses to give single settings of machines.
    pub fn remember_all_settings(&self) {
        self.state.put(&self.settings_key(), &true, Keep::at_most(KEPT));
    }

    fn settings_key(&self) -> String {
        [&self.key, "/settings"].concat()
    }

    /// Adds machines, or corrects where they are.
    pub fn add<'a>(&self, found: impl Iterator<Item = (&'a Uuid, &'a Reference)>) {
        let mut all = self.all();
        let mut changed = false;
        for (uuid, reference) in found {
            if all.get(uuid.as_str()) == Some(&reference.value) {
                continue;
            }
            if all.len() >= MOST {
                all.clear();
            }
            all.insert(uuid.as_str().into(), reference.value.clone());
            changed = true;
        }
        if changed {
            // One of two calls at the same time may lose what it found; it is found again.
            self.state.put(&self.key, &all, Keep::at_most(KEPT));
        }
    }
}
