//! Where machines were found last, kept for later calls: a machine that was found once is read where it was, without a search.
//!
//! Only a hint. What is read there has to have the id that is asked for.

use core::time::Duration;

use cloudwit_guest_sdk::state::State;
use cloudwit_guest_sdk::without_std::prelude::*;

use crate::inventory::Want;
use crate::machine::KIND;
use crate::soap::Reference;
use crate::table::Table;
use crate::uuid::Uuid;

/// After so long machines are looked for anew.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// More is not remembered, in bytes: some 6,000 machines.
const MOST: usize = 300_000;

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

    /// Where each was; none where that is not known.
    pub fn references(&self, wants: &[&Want]) -> Vec<Option<Reference>> {
        let all = Table::kept(&self.state, &self.key);
        let pairs = all.pairs();
        let known = |want: &&Want| match want {
            Want::Id(uuid) => {
                let found = pairs.iter().find(|(key, _)| *key == uuid.as_str());
                found.map(|(_, value)| Reference::new(KIND, value))
            }
            Want::Name { .. } => None,
        };
        wants.iter().map(known).collect()
    }

    /// Whether the server refused to give single settings of machines.
    pub fn gives_all_settings(&self) -> bool {
        Table::kept(&self.state, &self.settings_key()).get("all").is_some()
    }

    /// The server refuses to give single settings of machines.
    pub fn remember_all_settings(&self) {
        let mut settings = Table::default();
        settings.set("all", &[]);
        settings.keep(&self.state, &self.settings_key(), KEPT);
    }

    fn settings_key(&self) -> String {
        [&self.key, "/settings"].concat()
    }

    /// Adds machines, or corrects where they are.
    pub fn add<'a>(&self, found: impl Iterator<Item = (&'a Uuid, &'a Reference)>) {
        let mut all = Table::kept(&self.state, &self.key);
        let pairs = all.pairs();
        let is_new = |(uuid, reference): &(&Uuid, &Reference)| {
            let known = pairs.iter().find(|(key, _)| *key == uuid.as_str());
            known.is_none_or(|(_, value)| *value != reference.value)
        };
        let new: Vec<(&Uuid, &Reference)> = found.filter(is_new).collect();
        for (uuid, reference) in new {
            all.set(uuid.as_str(), &[&reference.value]);
        }
        all.bound(MOST);
        all.keep(&self.state, &self.key, KEPT);
    }
}
