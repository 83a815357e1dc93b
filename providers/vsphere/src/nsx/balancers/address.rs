//! The address of a load balancer: an allocation of an IP pool, which NSX makes later than it is requested.

use cloudwit_guest_sdk::prelude::*;
use serde_json::Value;

use super::bodies::Owner;
use super::seen::is_there;
use super::work::{Work, path};
use crate::nsx::api::Nsx;
use crate::nsx::object::{has_tags, text};
use crate::nsx::realized::{self, Realized};

/// The allocations of a Service in a pool.
///
/// # Errors
/// The error of NSX.
pub fn allocations(nsx: &Nsx<'_>, pool: &str, owner: &Owner<'_>) -> Result<Vec<Value>, Failure> {
    let scopes = owner.scopes();
    let own = |allocation: &Value| is_there(allocation) && has_tags(allocation, &scopes);
    nsx.list(&collection(pool), own)
}

/// Where the allocations of a pool are.
fn collection(pool: &str) -> String {
    format!("/infra/ip-pools/{pool}/ip-allocations")
}

/// What an address is for.
pub struct Place<'a> {
    /// Id of the pool.
    pub pool: &'a str,
    /// Id of an allocation that is made.
    pub id: &'a str,
    pub owner: &'a Owner<'a>,
    /// The address of virtual servers that are there.
    pub used: Option<&'a str>,
    /// The one that the Service requests.
    pub asked: Option<&'a str>,
}

impl Place<'_> {
    /// The address: of the allocation that is there, else of a new one.
    ///
    /// # Errors
    /// `pending` while NSX allocates it; `exhausted` where it cannot.
    pub fn address(&self, work: &mut Work<'_>) -> Result<String, Failure> {
        let found = allocations(work.nsx, self.pool, self.owner)?;
        let mut addresses = Vec::new();
        for allocation in &found {
            addresses.push((allocation, self.of(work, allocation)?));
        }
        // One that virtual servers have, else one that is ready, else the first.
        let ready = |(_, address): &&(&Value, Result<String, Realized>)| address.is_ok();
        let used = |(_, address): &&(&Value, Result<String, Realized>)| {
            self.used.is_some() && address.as_deref().ok() == self.used
        };
        let mut known = addresses.iter();
        let best = known.clone().find(used).or_else(|| known.find(ready));
        if let Some((allocation, address)) = best.or(addresses.first()) {
            return match address {
                Ok(address) => Ok(address.clone()),
                Err(Realized::Failed(why)) => self.give_up(work, allocation, why),
                Err(_) => Err(self.waits(work)),
            };
        }
        let ip = self.used.or(self.asked);
        let new = work.put(
            &format!("{}/{}", collection(self.pool), self.id),
            &self.owner.allocation(ip),
            None,
        )?;
        match self.of(work, &new)? {
            Ok(address) => Ok(address),
            Err(Realized::Failed(why)) => self.give_up(work, &new, &why),
            Err(_) => Err(self.waits(work)),
        }
    }

    fn of(&self, work: &Work<'_>, allocation: &Value) -> Result<Result<String, Realized>, Failure> {
        realized::address(work.nsx, path(allocation))
    }

    fn waits(&self, work: &Work<'_>) -> Failure {
        work.pending(&format!("NSX is allocating an address of IP pool {}", self.pool))
    }

    /// One that failed does not recover by itself: it is deleted, so that the next attempt starts from nothing.
    fn give_up(&self, work: &mut Work<'_>, allocation: &Value, why: &str) -> Result<String, Failure> {
        work.delete(path(allocation))?;
        let asked = text(allocation, "allocation_ip");
        if let Some(used) = self.used {
            let text = format!(
                "the address {used} of its virtual servers is not the cluster's in IP pool {}: {why}",
                self.pool
            );
            work.nsx
                .context
                .service_event(EventKind::Warning, "AddressNotAllocated", &text);
            return Ok(used.into());
        }
        let what = if asked.is_empty() {
            String::from("an address")
        } else {
            format!("the address {asked}")
        };
        Err(Failure::exhausted(format!(
            "IP pool {} does not give {what}: {why}",
            self.pool
        )))
    }
}
