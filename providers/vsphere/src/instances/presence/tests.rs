//! From a machine to what is reported for its Node.

use data_encoding::BASE64;

use super::*;
use crate::instances::addresses::GuestNic;
use crate::instances::machine::KIND;
use crate::instances::uuid::Uuid;
use crate::vcenter::soap::Reference;

fn machine() -> Machine {
    Machine {
        reference: Reference::new(KIND, "vm-1"),
        name: "vm one".into(),
        uuid: Uuid::parse("422e4956-ad22-1139-6d72-59cc8f26bc90"),
        guest_id: "ubuntu64Guest".into(),
        cpus: Some(4),
        memory_mb: Some(16_383),
        host_name: Some("one".into()),
        nics: vec![GuestNic {
            device: 4000,
            network: "n".into(),
            addresses: vec!["10.0.0.1".into(), "10.0.0.2".into()],
        }],
        on: true,
        host: None,
        pool: None,
        metadata: [None, None],
    }
}

fn of(machine: &Machine, provider_id: Option<&str>, zone: Result<Option<Zone>, Failure>) -> Result<Existing, Failure> {
    let rules = AddressRules::default();
    let circumstances = Circumstances {
        provider_id,
        rules: &rules,
        families: &[Family::V4],
        labels: &[],
    };
    presence(machine, &circumstances, zone)
}

#[test]
fn running_machine_has_all_fields() {
    let zone = Some(("z".to_owned(), "r".to_owned()));
    let Ok(Existing::Running(instance)) = of(&machine(), None, Ok(zone)) else {
        panic!()
    };
    assert_eq!(instance.provider_id, "vsphere://422e4956-ad22-1139-6d72-59cc8f26bc90");
    assert_eq!(
        instance.instance_type.as_deref(),
        Some("vsphere-vm.cpu-4.mem-15gb.os-ubuntu")
    );
    assert_eq!(
        (instance.zone.as_deref(), instance.region.as_deref()),
        (Some("z"), Some("r"))
    );
    assert_eq!(instance.addresses[0], Address::new(AddressKind::Hostname, "one"));
}

#[test]
fn machine_without_vmware_tools_is_running_without_addresses() {
    for change in [
        (|machine: &mut Machine| machine.host_name = None) as fn(&mut Machine),
        |machine| machine.nics.clear(),
        |machine| machine.nics[0].addresses.clear(),
    ] {
        let mut silent = machine();
        change(&mut silent);
        for provider_id in [None, Some("vsphere://x")] {
            assert!(
                matches!(of(&silent, provider_id, Ok(None)), Err(Failure { kind: FailureKind::Other, message: text, .. }) if text.contains("vm one"))
            );
        }
        // Switched off it reports nothing either, which is enough for a Node with an id.
        silent.on = false;
        let Ok(Existing::Stopped(instance)) = of(&silent, Some("vsphere://x"), Ok(None)) else {
            panic!()
        };
        assert_eq!(
            (instance.provider_id.as_str(), instance.addresses.len()),
            ("vsphere://x", 0)
        );
        assert!(of(&silent, None, Ok(None)).is_err());
    }
}

#[test]
fn unknown_zone_delays_node_unless_machine_is_stopped() {
    let unknown = || Err(Failure::not_found("no tags"));
    assert!(
        matches!(of(&machine(), Some("vsphere://x"), unknown()), Err(Failure { kind: FailureKind::NotFound, message: text, .. }) if text == "vm one: no tags")
    );
    let off = Machine { on: false, ..machine() };
    assert!(matches!(
        of(&off, Some("vsphere://x"), unknown()),
        Ok(Existing::Stopped(_))
    ));
    assert!(of(&off, None, unknown()).is_err());
}

#[test]
fn metadata_addresses_come_first_and_bad_ones_are_reported() {
    let with = |text: &str| Machine {
        metadata: [Some(BASE64.encode(text.as_bytes())), Some("base64".into())],
        ..machine()
    };
    let Ok(Existing::Running(instance)) = of(
        &with("network: {ethernets: {e: {addresses: [10.0.0.2/24]}}}"),
        None,
        Ok(None),
    ) else {
        panic!()
    };
    assert_eq!(instance.addresses[1].value, "10.0.0.2");
    assert!(
        matches!(of(&with("network: ["), None, Ok(None)), Err(Failure { kind: FailureKind::Other, message: text, .. }) if text.contains("guestinfo.metadata"))
    );
}
