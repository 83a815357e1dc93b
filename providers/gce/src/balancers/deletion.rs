//! Deletes a load balancer of either kind, and those shared resources that are not used elsewhere.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;

use super::parts::{KINDS, Kind};
use super::wanted::Wanted;
use super::{Task, annotations, names};
use crate::work::Work;

/// How long other deletions leave what several share to the one that has deleted their check, unless it is recreated.
const TAKEN: Keep = Keep::at_most(Duration::from_secs(60));

/// How long they wait for its request.
const LOCKED: Duration = Duration::from_secs(10);

impl Task<'_> {
    /// Deletes what nothing needs any more. Returns whether there was something.
    pub(super) fn delete_all(&self, work: &mut Work<'_>) -> Result<bool, Failure> {
        // Where there was a rule, its kind is known.
        let kinds = match work.internal() {
            None => &KINDS[..],
            Some(false) => &KINDS[..1],
            Some(true) => &KINDS[1..],
        };
        let mut gone = self.remove(work, &self.rule_path())?;
        gone |= self.remove_firewall(work, &names::firewall(&self.name))?;
        if let Some(held) = self.held(work)? {
            work.delete_seen(&self.held_path(), &held)?;
            gone = true;
        }
        if gone {
            return Ok(true);
        }
        for kind in kinds {
            gone |= Self::remove_unseen(work, &self.place.regional(kind.target, &self.name))?;
        }
        if gone {
            return Ok(true);
        }
        for kind in kinds {
            gone |= self.remove_check(work, kind)?;
        }
        if gone {
            work.set_internal(None);
            return Ok(true);
        }
        match kinds {
            [kind] if self.shared_backend().is_none() => self.leave_shared(work, kind),
            _ => self.remove_shared(work),
        }
    }

    /// Deletes what may be there. Returns whether it was.
    fn remove_unseen(work: &mut Work<'_>, path: &str) -> Result<bool, Failure> {
        Ok(work.may_have(path)? && work.change("DELETE", path, None)?)
    }

    /// This one used the check of all Nodes. While others do, it stays; where it is gone, the deletion that took it takes the rest along too.
    fn leave_shared(&self, work: &mut Work<'_>, kind: &Kind) -> Result<bool, Failure> {
        let state = self.gce.context.state();
        let key = names::deleted_check(kind.check);
        let _lock = state.lock(&key, LOCKED);
        if state.get::<String>(&key).is_some() {
            return Ok(false);
        }
        let check = self.place.global(kind.check, &names::node_check(&self.cluster_id));
        let is_last = work.delete_unused(&check)? == Some(true);
        if is_last {
            state.put(&key, &self.name, TAKEN);
            work.set_internal(None);
        }
        Ok(is_last)
    }

    /// What no load balancer of the cluster uses any more: the cloud refuses to delete what is in use. Calls for others change it, so all of it is read now.
    fn remove_shared(&self, work: &mut Work<'_>) -> Result<bool, Failure> {
        if let Some(path) = self.shared_backend()
            && self.gce.api.find(&path)?.is_some()
        {
            work.delete_unused(&path)?;
            if work.is_running() {
                return Ok(true);
            }
        }
        let check = names::node_check(&self.cluster_id);
        for kind in &KINDS {
            let path = self.place.global(kind.check, &check);
            if self.gce.api.find(&path)?.is_some() {
                work.delete_unused(&path)?;
            } else {
                self.remove_firewall(work, &(kind.firewall)(&check))?;
            }
        }
        for group in self.seen_groups()? {
            work.delete_unused(&group)?;
        }
        Ok(work.is_running())
    }

    /// Of a Service that requests to share one.
    fn shared_backend(&self) -> Option<String> {
        let asked = annotations::read(self.service)
            .ok()
            .filter(|asked| asked.share_backend)?;
        let wanted = Wanted::new(self.service, asked, &[]).ok()?;
        Some(self.place.regional("backendServices", &self.backend_name(&wanted)))
    }

    /// In a shared VPC the network administrators may own the rules.
    pub(super) fn remove_firewall(&self, work: &mut Work<'_>, name: &str) -> Result<bool, Failure> {
        let path = self.place.of_network("firewalls", name);
        let result = match self.is_shared_vpc() {
            // One that is not there is not reported to the administrators.
            true => self.remove(work, &path),
            false => Self::remove_unseen(work, &path),
        };
        match result {
            Err(failure) if failure.kind == FailureKind::Denied && self.is_shared_vpc() => {
                let network = &self.place.network_project;
                let text = format!(
                    "Firewall change required by network admin: `gcloud compute firewall-rules delete {name} --project {network}`"
                );
                self.gce
                    .context
                    .service_event(EventKind::Normal, "LoadBalancerManualChange", &text);
                Ok(false)
            }
            result => result,
        }
    }
}
