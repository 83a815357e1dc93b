//! Lists in pages: volumes and snapshots of the cluster. A page of ours is one of Cinder's, and the token of the next one the last id of it (`marker`).

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;
use serde_json::Value;

use crate::OpenStack;
use crate::api::wire::{Fields, Read};
use crate::api::{Call, Endpoint};
use crate::volumes::CLUSTER;
use crate::volumes::disk::{Disk, Status, is_id};

impl OpenStack {
    /// A list of what carries the cluster's name.
    pub(super) fn only_ours(&self, path: &str) -> Call<'_> {
        let cluster = self.context.cluster().name.replace('\\', "\\\\").replace('\'', "\\'");
        let filter = format!("{{'{CLUSTER}': '{cluster}'}}");
        self.api.get(Endpoint::BlockStorage, path).query("metadata", &filter)
    }

    /// A page of what this call lists, in Cinder's order. What cannot be read is left out, with a line in the log.
    ///
    /// # Errors
    /// `aborted` for a token that is not good any more; Cinder's error.
    pub(super) fn page<T>(
        &self,
        call: Call<'_>,
        collection: &str,
        (after, limit): (Option<&str>, u32),
        only_ours: bool,
        read: &dyn Fn(&Value) -> Read<T>,
    ) -> Result<(Vec<T>, Option<String>), Failure> {
        let mut call = call.query("limit", &limit.to_string());
        if let Some(after) = after {
            if !is_id(after) {
                return Err(Failure::aborted(
                    "the list goes on nowhere: the token is none of this provider's",
                ));
            }
            call = call.query("marker", after);
        }
        let cluster = self.context.cluster().name;
        // Which filters Cinder lets users have is configured.
        let is_ours = |json: &Value| {
            let owner = json.field("metadata").and_then(|metadata| metadata.text(CLUSTER));
            !only_ours || owner == Some(&cluster)
        };
        let page = call.read(|json| {
            let Value::Array(items) = json.need_field(collection)? else {
                return Err(format!("\"{collection}\" is no list"));
            };
            let mut found = Vec::new();
            for item in items.iter().filter(|item| is_ours(item)) {
                match read(item) {
                    Ok(one) => found.push(one),
                    Err(wrong) => warn!(id = item.text_or_empty("id"), reason = wrong, "left out of a list"),
                }
            }
            let links = json.items(&format!("{collection}_links"));
            let goes_on = links.iter().any(|link| link.text("rel") == Some("next"));
            let next = items.last().filter(|_| goes_on).and_then(|last| last.text("id"));
            Ok((found, next.map(String::from)))
        });
        page.map_err(|failure| match failure.is_not_found() && after.is_some() {
            // What the page before ended with is not there any more.
            true => Failure::aborted(failure.message),
            false => failure,
        })
    }
}

impl VolumeListing for OpenStack {
    fn list_volumes(&self, after: Option<&str>, limit: u32) -> Result<VolumePage, Failure> {
        let call = self.only_ours("/volumes/detail");
        let (disks, next) = self.page(call, "volumes", (after, limit), true, &Disk::read)?;
        let is_there = |disk: &&Disk| !matches!(disk.status, Status::Failed | Status::Deleting);
        let volumes = disks.iter().filter(is_there).map(|disk| self.volume(disk)).collect();
        Ok(VolumePage { volumes, next })
    }
}
