//! From a machine to the presence of its Node, in the contract's terms. Pure.

use cloudwit_guest_sdk::lookup::Existing;
use cloudwit_guest_sdk::prelude::*;

use crate::instances::PREFIX;
use crate::instances::addresses::{AddressRules, Family, node_addresses};
use crate::instances::machine::Machine;
use crate::instances::metadata::configured_addresses;
use crate::instances::zones::Zone;

/// What else decides.
#[derive(Debug, Clone, Copy)]
pub struct Circumstances<'a> {
    /// The Node's, once it has one.
    pub provider_id: Option<&'a str>,
    /// Which addresses count.
    pub rules: &'a AddressRules,
    /// Which families.
    pub families: &'a [Family],
    /// For every Node.
    pub labels: &'a [Pair],
}

/// Whether it runs, and all that is known of it.
///
/// A machine that runs has a name and addresses, else its Node waits. One that does not run reports none any more (VMware Tools are off with it): that
/// is enough for a Node that was initialised before.
///
/// # Errors
/// When something is not known yet, or cannot be derived from what there is. The machine exists all the same.
pub fn presence(
    machine: &Machine,
    circumstances: &Circumstances<'_>,
    zone: Result<Option<Zone>, Failure>,
) -> Result<Existing, Failure> {
    let uuid = machine.uuid.as_ref();
    let uuid = uuid.ok_or_else(|| Failure::other(format!("{}: its BIOS UUID is not told", machine.name)))?;
    // The provider id of a Node stays as it is, in whatever case or order of bytes it was written.
    let own = format!("{PREFIX}{uuid}");
    let mut instance = Instance::new(circumstances.provider_id.map_or(own, String::from));
    instance.instance_type = machine.instance_type();
    instance.labels = circumstances.labels.to_vec();
    let forgiving = !machine.on && circumstances.provider_id.is_some();
    match zone {
        Ok(zone) => (instance.zone, instance.region) = zone.unzip(),
        Err(_) if forgiving => {}
        Err(failure) => return Err(failure.context(&machine.name)),
    }
    match addresses(machine, circumstances) {
        Ok(addresses) => instance.addresses = addresses,
        Err(_) if forgiving => {}
        Err(text) => return Err(Failure::other(format!("{}: {text}", machine.name))),
    }
    Ok(if machine.on {
        Existing::Running(instance)
    } else {
        Existing::Stopped(instance)
    })
}

/// The name the guest has, and its addresses.
fn addresses(machine: &Machine, circumstances: &Circumstances<'_>) -> Result<Vec<Address>, String> {
    let host_name = machine
        .host_name
        .as_ref()
        .ok_or("VMware Tools have told no host name yet; are they running?")?;
    let [metadata, encoding] = &machine.metadata;
    let configured = configured_addresses(metadata.as_deref(), encoding.as_deref())?;
    let mut addresses = vec![Address::new(AddressKind::Hostname, host_name.clone())];
    addresses.extend(node_addresses(
        &machine.nics,
        &configured,
        circumstances.rules,
        circumstances.families,
    )?);
    Ok(addresses)
}

#[cfg(test)]
mod tests;
