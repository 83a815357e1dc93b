//! Nodes: initialised with all that is known, found by either order of their ids, switched off, deleted, adopted.

use cloudwit_test_support::NodeBuilder;
use cloudwit_test_support::objects::{addresses, is_shut_down, provider_id};
use kube::ResourceExt;

use crate::scene::{Scene, soap, swapped};

const CATEGORIES: &str = "labels:\n  zone: k8s-zone\n  region: k8s-region\n";

#[tokio::test(flavor = "multi_thread")]
async fn nodes_get_id_type_zone_region_and_addresses_of_machines() {
    let mut scene = Scene::new().await;
    scene.config = CATEGORIES.into();
    let vcsim = &scene.vcenter().vcsim;
    vcsim.tag("k8s-zone", "rack-7", "/DC0/host/DC0_C0").await.unwrap();
    vcsim.tag("k8s-region", "north", "/DC0").await.unwrap();
    vcsim.tag("k8s-zone", "elsewhere", "/DC0").await.unwrap();
    vcsim.tag("backup", "daily", "/DC0/host/DC0_C0").await.unwrap();
    let by_name = scene.joins("/DC0/vm/DC0_C0_RP0_VM0", "node-1", "10.0.0.5").await;
    let by_address = scene
        .vcenter()
        .machine("/DC0/vm/DC0_C0_RP0_VM1", "guest-2", "10.0.0.6")
        .await;
    NodeBuilder::new("10.0.0.6").create(&scene.client).await.unwrap();
    scene.start(&[]);
    for (name, machine, host_name, ip) in [
        ("node-1", &by_name, "node-1", "10.0.0.5"),
        ("10.0.0.6", &by_address, "guest-2", "10.0.0.6"),
    ] {
        let node = scene.initialised(name).await;
        assert_eq!(provider_id(&node), Some(machine.provider_id().as_str()));
        for (key, value) in [
            ("node.kubernetes.io/instance-type", "vsphere-vm.cpu-1.mem-0gb.os-other"),
            ("topology.kubernetes.io/zone", "rack-7"),
            ("topology.kubernetes.io/region", "north"),
        ] {
            assert_eq!(
                node.labels().get(key).map(String::as_str),
                Some(value),
                "{key} of {name}"
            );
        }
        let expected = [
            format!("Hostname {host_name}"),
            format!("InternalIP {ip}"),
            format!("ExternalIP {ip}"),
        ];
        assert_eq!(addresses(&node), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn node_is_found_by_firmware_uuid_in_either_byte_order() {
    let mut scene = Scene::new().await;
    let (one, other) = ("/DC0/vm/DC0_H0_VM0", "/DC1/vm/DC1_H0_VM0");
    let vcenter = scene.vcenter();
    let one = vcenter.machine(one, "guest-1", "10.0.0.1").await;
    let other = vcenter.machine(other, "guest-2", "10.0.0.2").await;
    // Both names are another machine's: the id counts.
    vcenter.machine("/DC0/vm/DC0_H0_VM1", "node-1", "10.0.0.3").await;
    let node = |name: &str, uuid: &str| NodeBuilder::new(name).system_uuid(uuid);
    node("node-1", &one.bios_uuid.to_uppercase())
        .create(&scene.client)
        .await
        .unwrap();
    node("node-2", &swapped(&other.bios_uuid))
        .create(&scene.client)
        .await
        .unwrap();
    scene.start(&[]);
    for (name, machine) in [("node-1", &one), ("node-2", &other)] {
        let node = scene.initialised(name).await;
        assert_eq!(provider_id(&node), Some(machine.provider_id().as_str()), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_machine_taints_and_destroyed_one_deletes_its_node() {
    let mut scene = Scene::new().await;
    let off = scene.joins("/DC0/vm/DC0_H0_VM0", "off", "10.0.0.1").await;
    let gone = scene.joins("/DC0/vm/DC0_H0_VM1", "gone", "10.0.0.2").await;
    scene.joins("/DC1/vm/DC1_H0_VM0", "silent", "10.0.0.3").await;
    scene.start(&["--node-status-update-frequency=1h"]);
    for name in ["off", "gone", "silent"] {
        scene.initialised(name).await;
    }
    let vcenter = scene.vcenter();
    vcenter.vcsim.power_off(&off.path).await.unwrap();
    vcenter.vcsim.destroy(&gone.path).await.unwrap();
    // Every word that the machine is gone comes from a read of the whole inventory.
    let whole = || vcenter.gate.count(&soap("RetrievePropertiesEx").with("ContainerView"));
    let whole_before = whole();
    for name in ["off", "gone", "silent"] {
        scene.falls_silent(name).await;
    }
    scene
        .settled(
            "the Node of the destroyed machine is gone, that of the one that is off tainted",
            || async {
                let (off, gone) = (scene.node("off").await.unwrap(), scene.node("gone").await);
                if is_shut_down(&off) && gone.is_none() {
                    Ok(())
                } else {
                    Err(format!("{}, {}", is_shut_down(&off), gone.is_some()))
                }
            },
        )
        .await;
    assert!(
        whole() >= whole_before + 2,
        "{} looks at the inventory",
        whole() - whole_before
    );
    let silent = scene.node("silent").await.unwrap();
    assert!(!is_shut_down(&silent), "it runs, only its kubelet is silent");
}

/// A machine can leave the inventory for a while: while its host is being moved, or when a vCenter comes back from a backup.
#[tokio::test(flavor = "multi_thread")]
async fn node_missing_from_inventory_stays_until_confirmed() {
    let mut scene = Scene::new().await;
    let machine = scene.joins("/DC0/vm/DC0_H0_VM0", "missing", "10.0.0.1").await;
    scene.start(&["--node-status-update-frequency=1h", "--node-deletion-confirm-after=1h"]);
    let uid = scene.initialised("missing").await.metadata.uid;
    let vcsim = &scene.vcenter().vcsim;
    vcsim.power_off(&machine.path).await.unwrap();
    vcsim.govc(&["vm.unregister", &machine.path]).await.unwrap();
    scene.falls_silent("missing").await;
    let said = [&*machine.provider_id(), "not found", "3600 s"];
    let told = scene.warned("missing", "MachineNotFound", &said).await;
    // Every word that it is missing comes from a read of the whole inventory.
    let whole = || {
        let read = soap("RetrievePropertiesEx").with("ContainerView");
        scene.vcenter().gate.count(&read)
    };
    let before = whole();
    scene
        .settled("it was looked for again and again", || async {
            match whole() - before {
                looks if looks >= 4 => Ok(()),
                looks => Err(format!("{looks} looks")),
            }
        })
        .await;
    assert_eq!(scene.node("missing").await.unwrap().metadata.uid, uid);
    assert_eq!(scene.warnings("missing").await, [told]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_waits_for_vmware_tools_and_is_not_lost_without_them() {
    let mut scene = Scene::new().await;
    let machine = scene.vcenter().vcsim.machine("DC0_H0_VM0").await.unwrap();
    NodeBuilder::new("late")
        .system_uuid(&machine.bios_uuid)
        .create(&scene.client)
        .await
        .unwrap();
    scene.start(&[]);
    scene.waits("late", &["VMware Tools"]).await;
    scene.vcenter().machine(&machine.path, "late", "10.0.0.1").await;
    assert_eq!(
        provider_id(&scene.initialised("late").await),
        Some(machine.provider_id().as_str())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn node_left_by_upstream_is_adopted_without_write() {
    let mut scene = Scene::new().await;
    scene.config = CATEGORIES.into();
    let vcsim = &scene.vcenter().vcsim;
    vcsim.tag("k8s-zone", "rack-7", "/DC0/host/DC0_H0").await.unwrap();
    vcsim.tag("k8s-region", "north", "/DC0").await.unwrap();
    let machine = scene.vcenter().machine("/DC0/vm/DC0_H0_VM0", "kept", "10.0.0.1").await;
    let node = NodeBuilder::new("kept")
        .provider_id(&machine.provider_id())
        .label("node.kubernetes.io/instance-type", "vsphere-vm.cpu-1.mem-0gb.os-other")
        .label("beta.kubernetes.io/instance-type", "vsphere-vm.cpu-1.mem-0gb.os-other")
        .label("topology.kubernetes.io/zone", "rack-7")
        .label("failure-domain.beta.kubernetes.io/zone", "rack-7")
        .label("topology.kubernetes.io/region", "north")
        .label("failure-domain.beta.kubernetes.io/region", "north")
        .initialised();
    let mut built = node.build();
    let address = |kind: &str, value: &str| k8s_openapi::api::core::v1::NodeAddress {
        type_: kind.into(),
        address: value.into(),
    };
    built.status.as_mut().unwrap().addresses = Some(vec![
        address("Hostname", "kept"),
        address("InternalIP", "10.0.0.1"),
        address("ExternalIP", "10.0.0.1"),
    ]);
    let before = scene.nodes().create(&Default::default(), &built).await.unwrap();
    // What shows that the Node was looked at: one that joins is initialised, and the machine is read again and again.
    scene.joins("/DC0/vm/DC0_H0_VM1", "fresh", "10.0.0.2").await;
    scene.start(&[]);
    scene.initialised("fresh").await;
    let asked = || {
        scene
            .vcenter()
            .gate
            .count(&soap("RetrievePropertiesEx").with(format!(">{}<", machine.reference)))
    };
    scene
        .settled("the machine was looked at several times", || async {
            if asked() >= 3 {
                Ok(())
            } else {
                Err(format!("{} times", asked()))
            }
        })
        .await;
    let after = scene.node("kept").await.unwrap();
    assert_eq!(
        before.metadata.resource_version, after.metadata.resource_version,
        "{after:?}"
    );
}
