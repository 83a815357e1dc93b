//! Look-ups of volumes by id, few one by one and many in a list, and by name.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use cloudwit_guest_sdk::prelude::*;
use serde_json::Value;

use crate::OpenStack;
use crate::api::Endpoint;
use crate::api::wire::{Fields, Read};
use crate::volumes::CLUSTER;
use crate::volumes::disk::{Disk, is_id};

/// So many are requested one by one; more are taken from the list of the project's.
const FEW: usize = 3;

/// Items of a page of Cinder's (`osapi_max_limit`).
pub(crate) const PAGE: &str = "1000";

/// Volumes or snapshots by id; none for what Cinder reports as not found.
#[derive(Debug)]
pub(crate) struct ById<T>(BTreeMap<String, Result<Option<T>, Failure>>);

impl<T> ById<T> {
    /// The one of this id.
    ///
    /// # Errors
    /// What prevented its look-up.
    pub(crate) fn get(&self, id: &str) -> Result<Option<&T>, Failure> {
        match self.0.get(&id.to_ascii_lowercase()) {
            Some(found) => found.as_ref().map(Option::as_ref).map_err(Failure::clone),
            None => Ok(None),
        }
    }
}

/// The failure for a volume that does not exist.
pub(crate) fn no_volume(id: &str) -> Failure {
    Failure::not_found(format!("there is no volume {id}"))
}

impl OpenStack {
    /// The volumes of these ids.
    ///
    /// # Errors
    /// What prevents every look-up.
    pub(crate) fn disks<'i>(&self, ids: impl Iterator<Item = &'i str>) -> Result<ById<Disk>, Failure> {
        self.by_id("volumes", ids, &Disk::read)
    }

    /// The volume of this id; none for an id that Cinder cannot have given out.
    ///
    /// # Errors
    /// Cinder's error.
    pub(crate) fn optional_disk(&self, id: &str) -> Result<Option<Disk>, Failure> {
        match is_id(id) {
            true => self.one("volumes", id, &Disk::read),
            false => Ok(None),
        }
    }

    /// The volume of this id.
    ///
    /// # Errors
    /// `not-found`; Cinder's error.
    pub(crate) fn disk(&self, id: &str) -> Result<Disk, Failure> {
        self.optional_disk(id)?.ok_or_else(|| no_volume(id))
    }

    /// Those of this collection (`volumes`, `snapshots`) with these ids.
    pub(crate) fn by_id<'i, T>(
        &self,
        collection: &str,
        ids: impl Iterator<Item = &'i str>,
        read: &dyn Fn(&Value) -> Read<T>,
    ) -> Result<ById<T>, Failure> {
        let mut ids: Vec<String> = ids.filter(|id| is_id(id)).map(str::to_ascii_lowercase).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut found = BTreeMap::new();
        if ids.len() > FEW {
            let call = self.api.get(Endpoint::BlockStorage, &format!("/{collection}/detail"));
            self.api.pages(call.query("limit", PAGE), collection, &mut |json| {
                let id = json.need("id")?.to_ascii_lowercase();
                if ids.contains(&id) {
                    found.insert(id, Ok(Some(read(json)?)));
                }
                Ok(())
            })?;
        }
        // What a list lacks need not be gone: it may have moved from one page to another meanwhile.
        for id in ids {
            if let Entry::Vacant(missing) = found.entry(id) {
                let one = self.one(collection, missing.key(), read);
                missing.insert(one);
            }
        }
        Ok(ById(found))
    }

    /// The one of this id; none only when Cinder itself reports it as not found.
    pub(crate) fn one<T>(
        &self,
        collection: &str,
        id: &str,
        read: &dyn Fn(&Value) -> Read<T>,
    ) -> Result<Option<T>, Failure> {
        let call = self.api.get(Endpoint::BlockStorage, &format!("/{collection}/{id}"));
        let Some(response) = call.send_present()? else {
            return Ok(None);
        };
        let key = collection.trim_end_matches('s');
        call.parse(&response, |json| read(json.need_field(key)?)).map(Some)
    }

    /// Those of this name that are this cluster's, or no cluster's: upstream's driver marks clusters only where one is configured.
    pub(crate) fn named<T>(
        &self,
        collection: &str,
        name: &str,
        read: &dyn Fn(&Value) -> Read<T>,
    ) -> Result<Vec<T>, Failure> {
        let call = self.api.get(Endpoint::BlockStorage, &format!("/{collection}/detail"));
        let cluster = self.context.cluster().name;
        let mut found = Vec::new();
        self.api
            .pages(call.query("name", name).query("limit", PAGE), collection, &mut |json| {
                let owner = json.field("metadata").and_then(|metadata| metadata.text(CLUSTER));
                // Some databases compare without regard to case.
                if json.text("name") == Some(name) && owner.is_none_or(|owner| owner.is_empty() || owner == cluster) {
                    found.push(read(json)?);
                }
                Ok(())
            })?;
        Ok(found)
    }
}
