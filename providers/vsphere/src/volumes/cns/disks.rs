//! Which machines have a disk: associations of First Class Disks, which the API of CNS does not have.

use std::collections::BTreeMap;

use cloudwit_guest_sdk::prelude::*;

use crate::vcenter::soap::Reference;
use crate::volumes::cns::{Cns, fault, id_element};

/// Disks in one request.
const PAGE: usize = 200;

/// Disks by id, and the machines that have each.
pub(crate) type Holders = BTreeMap<String, Vec<Reference>>;

impl Cns<'_> {
    /// The machines that have these disks, which are named with their datastores.
    ///
    /// # Errors
    /// The server's error.
    pub(crate) fn holders(&self, disks: &[(&str, &Reference)]) -> Result<Holders, Failure> {
        let mut holders = Holders::new();
        for page in disks.chunks(PAGE) {
            let asked = |(id, datastore): &(&str, &Reference)| {
                format!("<ids>{}{}</ids>", id_element("id", id), datastore.write("datastore"))
            };
            let what: String = page.iter().map(asked).collect();
            let answer = self.sessions.with(|session| {
                let manager = &session.disks;
                self.sessions
                    .call(session, "RetrieveVStorageObjectAssociations", manager, &what)
            })?;
            for one in answer.values() {
                let Some(id) = one.at(&["id", "id"]) else { continue };
                if let Some(localized) = one.child("fault") {
                    let failure = fault::failure(&fault::read(localized));
                    // The disk is gone: there is nothing that could have it.
                    if !failure.is_not_found() {
                        return Err(failure.context("looking for the machines of a disk"));
                    }
                }
                let machines = one.children("vmDiskAssociations");
                let machines = machines.filter_map(|one| one.text("vmId"));
                let machines = machines.map(|machine| Reference::new(crate::instances::machine::KIND, machine));
                holders.insert(id.own_text().into(), machines.collect());
            }
        }
        Ok(holders)
    }
}
