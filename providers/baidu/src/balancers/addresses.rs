//! Public addresses: which one a load balancer gets, whose it is, and what comes next for that. Pure.

use cloudwit_guest_sdk::prelude::*;
use serde_json::{Value, json};

use super::annotations::{self, AskedEip};
use super::names;
use super::seen::{Blb, Eip, SERVICE_TAG};
use super::task::Next;
use crate::api::Call;
use crate::config::Product;

/// One Service's addresses.
pub struct Addresses<'a> {
    pub service: &'a Service,
    /// The name that its load balancer has without an annotation.
    pub default_name: &'a str,
    /// The name that its load balancer has; none while there is none, or it is the user's.
    pub blb_name: Option<&'a str>,
    /// All of the account.
    pub eips: &'a [Eip],
}

impl<'a> Addresses<'a> {
    /// Whether it is deleted with the Service: Cloudwit made it, or Baidu's controller did. One that the Service names is the user's.
    pub fn is_own(&self, eip: &Eip) -> bool {
        if self.service.fixed_ip() == Some(&eip.eip) {
            return false;
        }
        if let Some(owner) = eip.owner() {
            return owner == self.service.uid;
        }
        let name = eip.name.as_deref().unwrap_or_default();
        let asked = |key: &str| annotations::value(self.service, key);
        let mut names = [asked("elastic-ip-name"), asked("load-balancer-lb-name"), self.blb_name]
            .into_iter()
            .flatten();
        let added = annotations::added_eip(self.service) == Some(&eip.eip);
        name == names::of_address(self.default_name) || (added && names.any(|known| names::of_address(known) == name))
    }

    /// The one that is bound to this load balancer.
    pub fn bound(&self, blb: &Blb) -> Option<&'a Eip> {
        self.eips.iter().find(|eip| eip.bound_to() == Some(&blb.blb_id))
    }

    /// The next change towards the desired address of the load balancer: the address when there is none.
    ///
    /// # Errors
    /// `invalid` for one that is not there or is bound elsewhere; for what cannot be changed.
    pub fn next(&self, blb: &Blb, asked: &AskedEip<'_>) -> Result<Next<&'a Eip>, Failure> {
        let bound = self.bound(blb);
        let wanted = match self.service.fixed_ip() {
            Some(ip) => Some(self.named(ip)?),
            None => bound.or_else(|| {
                self.eips
                    .iter()
                    .find(|eip| self.is_own(eip) && eip.bound_to().is_none())
            }),
        };
        if let Some(bound) = bound.filter(|bound| wanted != Some(bound)) {
            return unbind(bound);
        }
        let Some(eip) = wanted else {
            return Ok(Next::change(self.create(blb, asked)));
        };
        if let Some(wait) = eip.standing().before_change()? {
            return Ok(wait);
        }
        if let Some(other) = eip.bound_to().filter(|_| bound.is_none()) {
            let text = format!("spec.loadBalancerIP is {}, which is bound to {other}", eip.eip);
            return Err(Failure::invalid(text));
        }
        if bound.is_none() {
            let body = json!({ "instanceType": "BLB", "instanceId": blb.blb_id });
            let call = Call::new(Product::Eip, "PUT", path(eip)).query("bind", "").json(body);
            return Ok(Next::change(call));
        }
        let differs =
            |asked: Option<&str>, seen: &Option<String>| asked.is_some_and(|asked| seen.as_deref() != Some(asked));
        if self.service.fixed_ip().is_none() {
            if differs(asked.payment, &eip.payment_timing) || differs(asked.billing, &eip.billing_method) {
                let text = format!(
                    "payment timing and billing method of the EIP {} cannot be changed; delete the Service and make it anew",
                    eip.eip
                );
                return Err(Failure::invalid(text));
            }
            if let Some(bandwidth) = asked.bandwidth.filter(|bandwidth| *bandwidth != eip.bandwidth_in_mbps) {
                let call = Call::new(Product::Eip, "PUT", path(eip)).query("resize", "");
                return Ok(Next::change(call.json(json!({ "newBandwidthInMbps": bandwidth }))));
            }
        }
        Ok(Next::Done(eip))
    }

    /// What comes next so that no address of the Service is left but for `kept`. One that is paid in advance can only be unbound.
    ///
    /// # Errors
    /// `failed-precondition` for one that nothing can be done with.
    pub fn released(&self, kept: Option<&Eip>) -> Result<Next<()>, Failure> {
        let left = self.eips.iter().filter(|eip| Some(*eip) != kept && self.is_own(eip));
        for eip in left {
            if eip.bound_to().is_some() {
                return unbind(eip);
            }
            if eip.payment_timing.as_deref() == Some("Prepaid") {
                continue;
            }
            return Ok(match eip.standing().before_change()? {
                Some(wait) => wait,
                None => Next::change(Call::new(Product::Eip, "DELETE", path(eip))),
            });
        }
        Ok(Next::Done(()))
    }

    fn named(&self, ip: &str) -> Result<&'a Eip, Failure> {
        self.eips.iter().find(|eip| eip.eip == ip).ok_or_else(|| {
            Failure::invalid(format!(
                "spec.loadBalancerIP is {ip}, which is no EIP of this account and region"
            ))
        })
    }

    fn create(&self, blb: &Blb, asked: &AskedEip<'_>) -> Call {
        let name = names::of_address(asked.name.unwrap_or(&blb.name));
        let mut body = asked.new_one();
        if let Some(body) = body.as_object_mut() {
            body.insert("name".into(), name.into());
            body.insert("tags".into(), tags(self.service));
        }
        Call::new(Product::Eip, "POST", "/v1/eip").json(body)
    }
}

/// Tags of what is made for a Service: it is found by them when a process ends before any other mark of its owner is written.
pub fn tags(service: &Service) -> Value {
    json!([{ "tagKey": SERVICE_TAG, "tagValue": service.uid }])
}

/// Unbinds, once no change of the address is in flight.
///
/// # Errors
/// `failed-precondition` for one that nothing can be done with.
pub fn unbind<T>(eip: &Eip) -> Result<Next<T>, Failure> {
    Ok(match eip.standing().before_change()? {
        Some(wait) => wait,
        None => Next::change(Call::new(Product::Eip, "PUT", path(eip)).query("unbind", "")),
    })
}

fn path(eip: &Eip) -> String {
    format!("/v1/eip/{}", eip.eip)
}
