//! The load balancer itself: how it is made, and what of it is changed.

use cloudwit_guest_sdk::prelude::*;

use crate::api::{Call, NLB};
use crate::balancers::annotations::{TABLE, text};
use crate::balancers::clb::REASON;
use crate::balancers::fields;
use crate::balancers::task::{Found, Task};
use crate::balancers::wanted::Wanted;
use crate::balancers::work::CREATE;

/// A zone that it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Zone<'a> {
    zone: &'a str,
    vswitch: &'a str,
    /// Its private address there.
    address: Option<&'a str>,
    /// Elastic address there.
    elastic: Option<&'a str>,
}

/// Makes one.
///
/// # Errors
/// `invalid` for annotations that do not fit, `failed-precondition` where the configuration lacks something.
pub fn create(task: &Task<'_>, wanted: &Wanted<'_>) -> Result<Call, Failure> {
    let (service, global) = (wanted.service, task.cloud.global());
    let asked = |key: &str| text(service, key);
    let kind = address_type(service)?;
    if kind == "Internet" && global.disable_public_slb {
        return Err(Failure::invalid(
            "the cloud config has disablePublicSLB: write intranet into the annotation address-type",
        ));
    }
    let mut zones = zones(service)?;
    if zones.is_empty() {
        let of_config = global.vswitches();
        let zone = |at: usize| {
            of_config
                .get(at)
                .and_then(|vswitch| vswitch.zone.or(global.zone().filter(|_| of_config.len() == 1)))
        };
        let named = of_config.iter().enumerate();
        let named = named.filter_map(|(at, vswitch)| {
            Some(Zone {
                zone: zone(at)?,
                vswitch: vswitch.id,
                address: None,
                elastic: None,
            })
        });
        zones = named.collect();
    }
    if zones.len() < 2 {
        return Err(Failure::failed_precondition(format!(
            "a Network Load Balancer is in two zones at least: write {} or vswitchid of the cloud config like \
             cn-hangzhou-g:vsw-1,cn-hangzhou-h:vsw-2",
            TABLE.key("zone-maps")
        )));
    }
    let mut call = Call::new(NLB, CREATE)
        .field("LoadBalancerName", asked("name").unwrap_or(&task.names.balancer))
        .field("AddressType", kind)
        .field("VpcId", global.vpc()?)
        .field(
            "DeletionProtectionConfig.Enabled",
            asked("delete-protection") != Some("off"),
        )
        .opt("AddressIpVersion", asked("ip-version"))
        .opt("BandwidthPackageId", asked("bandwidth-package-id"))
        .opt(
            "ResourceGroupId",
            asked("resource-group-id").or(global.resource_group()),
        );
    let protection = asked("modification-protection").unwrap_or("ConsoleProtection");
    call = call.field("ModificationProtectionConfig.Status", protection);
    if protection != "NonProtection" {
        call = call.field("ModificationProtectionConfig.Reason", REASON);
    }
    Ok(with_zones(call, &zones).tags(&[task.names.tags(), wanted.tags.clone()].concat()))
}

/// What the annotations have otherwise than it is.
///
/// # Errors
/// `invalid` for annotations that are wrong.
pub fn changes(task: &Task<'_>, wanted: &Wanted<'_>, found: &Found) -> Result<Vec<Call>, Failure> {
    let service = wanted.service;
    let of = |action| Call::new(NLB, action).field("LoadBalancerId", &found.id);
    let mut calls: Vec<Call> = task.tag(wanted, found).into_iter().collect();
    if let Some(name) = text(service, "name").filter(|name| *name != found.text("LoadBalancerName")) {
        calls.push(of("UpdateLoadBalancerAttribute").field("LoadBalancerName", name));
    }
    let is_on = |key: &str| text(service, key).map(|value| value.eq_ignore_ascii_case("on"));
    if let Some(on) = is_on("cross-zone-enabled").filter(|on| found.seen["CrossZoneEnabled"] != *on) {
        calls.push(of("UpdateLoadBalancerAttribute").field("CrossZoneEnabled", on));
    }
    let kind = address_type(service)?;
    if text(service, "address-type").is_some() && kind != found.text("AddressType") {
        calls.push(of("UpdateLoadBalancerAddressTypeConfig").field("AddressType", kind));
    }
    let zones = zones(service)?;
    let mut there: Vec<(String, String)> = found.seen["ZoneMappings"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|zone| (fields::text(&zone["ZoneId"]), fields::text(&zone["VSwitchId"])))
        .collect();
    let mut here: Vec<(String, String)> = zones
        .iter()
        .map(|zone| (zone.zone.into(), zone.vswitch.into()))
        .collect();
    there.sort_unstable();
    here.sort_unstable();
    if !zones.is_empty() && there != here {
        calls.push(with_zones(of("UpdateLoadBalancerZones"), &zones));
    }
    if let Some(wanted) = TABLE.read(service).list("security-group-ids") {
        let there: Vec<String> = found.seen["SecurityGroupIds"]
            .as_array()
            .into_iter()
            .flatten()
            .map(fields::text)
            .collect();
        let join: Vec<&str> = wanted
            .iter()
            .copied()
            .filter(|id| there.iter().all(|known| known != id))
            .collect();
        let leave: Vec<&String> = there.iter().filter(|id| !wanted.contains(&id.as_str())).collect();
        if !join.is_empty() {
            calls.push(of("LoadBalancerJoinSecurityGroup").list("SecurityGroupIds", join));
        }
        if !leave.is_empty() {
            calls.push(of("LoadBalancerLeaveSecurityGroup").list("SecurityGroupIds", leave));
        }
    }
    let package = found.text("BandwidthPackageId");
    if let Some(wanted) = text(service, "bandwidth-package-id").filter(|wanted| *wanted != package) {
        if !package.is_empty() {
            calls.push(of("DetachCommonBandwidthPackageFromLoadBalancer").field("BandwidthPackageId", package));
        }
        calls.push(of("AttachCommonBandwidthPackageToLoadBalancer").field("BandwidthPackageId", wanted));
    }
    calls.extend(protections(service, found));
    Ok(calls)
}

fn protections(service: &Service, found: &Found) -> Option<Call> {
    let deletion = text(service, "delete-protection").map(|value| value.eq_ignore_ascii_case("on"));
    let deletion = deletion.filter(|on| found.seen["DeletionProtectionConfig"]["Enabled"] != *on);
    let modification = text(service, "modification-protection");
    let modification = modification.filter(|value| found.seen["ModificationProtectionConfig"]["Status"] != **value);
    let call = Call::new(NLB, "UpdateLoadBalancerProtection")
        .field("LoadBalancerId", &found.id)
        .opt("DeletionProtectionEnabled", deletion)
        .opt("ModificationProtectionStatus", modification)
        .opt(
            "ModificationProtectionReason",
            modification.filter(|value| *value != "NonProtection").map(|_| REASON),
        );
    (deletion.is_some() || modification.is_some()).then_some(call)
}

/// Takes the protection from deletion away, where there is one.
pub fn unprotect(found: &Found) -> Option<Call> {
    let call = Call::new(NLB, "UpdateLoadBalancerProtection")
        .field("LoadBalancerId", &found.id)
        .field("DeletionProtectionEnabled", false);
    (found.seen["DeletionProtectionConfig"]["Enabled"] == true).then_some(call)
}

fn with_zones(call: Call, zones: &[Zone<'_>]) -> Call {
    zones.iter().enumerate().fold(call, |call, (at, zone)| {
        let name = |field: &str| format!("ZoneMappings.{}.{field}", at + 1);
        call.field(name("ZoneId"), zone.zone)
            .field(name("VSwitchId"), zone.vswitch)
            .opt(&name("PrivateIPv4Address"), zone.address)
            .opt(&name("AllocationId"), zone.elastic)
    })
}

/// `zone-maps`: `zone:vswitch:address:elastic address`, the last two of which may be missing.
fn zones(service: &Service) -> Result<Vec<Zone<'_>>, Failure> {
    let mut reader = TABLE.read(service);
    let mut zones = Vec::new();
    for entry in reader.list("zone-maps").unwrap_or_default() {
        let parts: Vec<&str> = entry.split(':').collect();
        let part = |at: usize| parts.get(at).copied().filter(|part| !part.is_empty());
        match (part(0), part(1)) {
            (Some(zone), Some(vswitch)) if parts.len() <= 4 => zones.push(Zone {
                zone,
                vswitch,
                address: part(2),
                elastic: part(3),
            }),
            _ => drop(reader.wrong::<()>("zone-maps", "a list like cn-hangzhou-g:vsw-1,cn-hangzhou-h:vsw-2")),
        }
    }
    reader.finish().map(|()| zones)
}

fn address_type(service: &Service) -> Result<&'static str, Failure> {
    let mut reader = TABLE.read(service);
    let kind = reader.word("address-type", &[("internet", "Internet"), ("intranet", "Intranet")]);
    reader.finish().map(|()| kind.unwrap_or("Internet"))
}
