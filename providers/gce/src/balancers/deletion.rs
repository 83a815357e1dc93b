//! Deletes a load balancer of either kind, and what nobody else uses of what several share.

use cloudwit_guest_sdk::prelude::*;

use super::wanted::Wanted;
use super::{Task, annotations, names};
use crate::work::Work;

impl Task<'_> {
    /// Deletes what nothing needs any more. Tells whether there was something.
    pub(super) fn delete_all(&self, work: &mut Work<'_>) -> Result<bool, Failure> {
        let (place, name) = (&self.place, &self.name);
        let mut gone = self.remove(work, &self.rule_path())?;
        gone |= self.remove_firewall(work, &names::firewall(name))?;
        if let Some(held) = self.held()? {
            work.delete_seen(&self.held_path(), &held)?;
            gone = true;
        }
        if gone {
            return Ok(true);
        }
        gone |= self.remove(work, &place.regional("targetPools", name))?;
        gone |= self.remove(work, &place.regional("backendServices", name))?;
        if gone {
            return Ok(true);
        }
        gone |= self.remove(work, &place.global("httpHealthChecks", name))?;
        gone |= self.remove(work, &place.global("healthChecks", name))?;
        gone |= self.remove_firewall(work, &names::external_check_firewall(name))?;
        gone |= self.remove_firewall(work, &names::internal_check_firewall(name))?;
        if gone {
            return Ok(true);
        }
        self.remove_shared(work)
    }

    /// What no load balancer of the cluster uses any more: the cloud refuses to delete what is in use.
    fn remove_shared(&self, work: &mut Work<'_>) -> Result<bool, Failure> {
        let check = names::node_check(&self.cluster_id);
        let kinds = [
            ("httpHealthChecks", names::external_check_firewall(&check)),
            ("healthChecks", names::internal_check_firewall(&check)),
        ];
        if let Some(path) = self.shared_backend()
            && self.gce.api.find(&path)?.is_some()
        {
            work.delete_unused(&path)?;
            if work.is_running() {
                return Ok(true);
            }
        }
        for (collection, firewall) in kinds {
            let path = self.place.global(collection, &check);
            if self.gce.api.find(&path)?.is_some() {
                work.delete_unused(&path)?;
            } else {
                self.remove_firewall(work, &firewall)?;
            }
        }
        for group in self.seen_groups()? {
            work.delete_unused(&group)?;
        }
        Ok(work.is_running())
    }

    /// Of a Service that asks to share one.
    fn shared_backend(&self) -> Option<String> {
        let asked = annotations::read(self.service)
            .ok()
            .filter(|asked| asked.share_backend)?;
        let wanted = Wanted::new(self.service, asked, &[]).ok()?;
        Some(self.place.regional("backendServices", &self.backend_name(&wanted)))
    }

    /// In a shared VPC rules may be the network administrators' business.
    fn remove_firewall(&self, work: &mut Work<'_>, name: &str) -> Result<bool, Failure> {
        let result = self.remove(work, &self.place.of_network("firewalls", name));
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
