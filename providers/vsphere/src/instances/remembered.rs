//! Where machines were found last, kept for later calls: a machine that was found once is read where it was, without a search.
//!
//! Only a hint. What is read there has to have the id that is requested.

use std::collections::BTreeMap;
use std::time::Duration;

use cloudwit_guest_sdk::state::State;

use crate::instances::inventory::Want;
use crate::instances::machine::KIND;
use crate::instances::uuid::Uuid;
use crate::table::Table;
use crate::vcenter::soap::Reference;

/// After so long machines are looked up again.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// Most that is cached, in bytes: some 6,000 machines. What is beyond is looked up in each call.
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
            key: format!("machines/{vcenter}"),
        }
    }

    /// Where each was; none where that is not known.
    pub fn references(&self, wants: &[&Want]) -> Vec<Option<Reference>> {
        let all = Table::kept(&self.state, &self.key);
        let places: BTreeMap<&str, &str> = all.pairs().into_iter().collect();
        let known = |want: &&Want| match want {
            Want::Id(uuid) => places.get(uuid.as_str()).map(|value| Reference::new(KIND, value)),
            Want::Name { .. } => None,
        };
        wants.iter().map(known).collect()
    }

    /// Where all of them were.
    pub fn all(&self) -> Vec<Reference> {
        let all = Table::kept(&self.state, &self.key);
        let places = all.pairs().into_iter();
        places.map(|(_, value)| Reference::new(KIND, value)).collect()
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
        format!("{}/settings", self.key)
    }

    /// Adds machines, or corrects where they are. Where not all fit, those of this call come first: the next call for them finds the same ones.
    pub fn add<'a>(&self, found: impl Iterator<Item = (&'a Uuid, &'a Reference)>) {
        let before = Table::kept(&self.state, &self.key);
        let places: BTreeMap<&str, &str> = before.pairs().into_iter().collect();
        let found: BTreeMap<&str, &str> = found
            .map(|(uuid, reference)| (uuid.as_str(), reference.value.as_str()))
            .collect();
        if found.iter().all(|(uuid, place)| places.get(*uuid) == Some(place)) {
            return;
        }
        let others = before
            .pairs()
            .into_iter()
            .filter(|(uuid, _)| !found.contains_key(*uuid));
        let rows = found.iter().map(|(uuid, place)| (*uuid, *place)).chain(others);
        Table::of_rows(rows, MOST).keep(&self.state, &self.key, KEPT);
    }
}

#[cfg(test)]
mod tests {
    use cloudwit_guest_sdk::testing::FakeHost;

    use super::*;

    fn machine(number: usize) -> (Uuid, Reference) {
        let uuid = Uuid::parse(&format!("{number:08x}-0000-4000-8000-000000000000")).unwrap();
        (uuid, Reference::new(KIND, &format!("vm-{number}")))
    }

    fn add(remembered: &Remembered, numbers: std::ops::Range<usize>) {
        let machines: Vec<_> = numbers.map(machine).collect();
        remembered.add(machines.iter().map(|(uuid, reference)| (uuid, reference)));
    }

    fn known(remembered: &Remembered, numbers: std::ops::Range<usize>) -> usize {
        let wants: Vec<Want> = numbers.map(|number| Want::Id(machine(number).0)).collect();
        let wants: Vec<&Want> = wants.iter().collect();
        remembered.references(&wants).iter().flatten().count()
    }

    #[test]
    fn full_memory_keeps_what_fits() {
        let host = FakeHost::new();
        let remembered = Remembered::new(host.context().state(), "vc");
        add(&remembered, 0..8_000);
        let kept = known(&remembered, 0..8_000);
        assert!((6_000..7_000).contains(&kept), "{kept}");
        add(&remembered, 0..8_000);
        assert_eq!(known(&remembered, 0..kept), kept, "the same machines stay");
    }

    #[test]
    fn full_memory_takes_machines_of_the_last_call() {
        let host = FakeHost::new();
        let remembered = Remembered::new(host.context().state(), "vc");
        add(&remembered, 0..8_000);
        add(&remembered, 9_000..9_010);
        assert_eq!(known(&remembered, 9_000..9_010), 10);
        assert!(known(&remembered, 0..8_000) > 6_000);
    }

    #[test]
    fn moved_machine_is_corrected() {
        let host = FakeHost::new();
        let remembered = Remembered::new(host.context().state(), "vc");
        add(&remembered, 0..3);
        let (uuid, _) = machine(1);
        let moved = Reference::new(KIND, "vm-77");
        remembered.add([(&uuid, &moved)].into_iter());
        assert_eq!(remembered.references(&[&Want::Id(uuid)]), [Some(moved)]);
        assert_eq!(known(&remembered, 0..3), 3);
    }
}
