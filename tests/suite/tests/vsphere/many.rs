//! Many machines: found by few calls, page by page.

use cloudwit_test_support::NodeBuilder;
use cloudwit_test_support::clouds::vcsim::VcsimOptions;
use cloudwit_test_support::objects::provider_id;
use kube::ResourceExt;

use crate::scene::{Scene, soap};

/// Machines on the one host, and as many in the one cluster.
const MACHINES: u16 = 150;

/// Nodes that join.
const NODES: usize = 120;

#[tokio::test(flavor = "multi_thread")]
async fn node_wave_takes_one_call_per_inventory_page() {
    let options = VcsimOptions {
        datacenters: 1,
        machines: MACHINES,
        ..VcsimOptions::default()
    };
    let mut scene = Scene::with(&[options]).await;
    let machines = scene.vcenter().vcsim.machines().await.unwrap();
    assert_eq!(machines.len(), 2 * usize::from(MACHINES));
    let joining: Vec<_> = machines.iter().step_by(2).take(NODES).cloned().enumerate().collect();
    let vcsim = &scene.vcenter().vcsim;
    for some in joining.chunks(8) {
        let told = some.iter().map(|(number, machine)| async move {
            let (name, address) = (format!("node-{number}"), format!("10.1.0.{}", number + 1));
            vcsim.set_guest(&machine.path, &name, &address).await.unwrap();
        });
        futures::future::join_all(told).await;
    }
    for (number, machine) in &joining {
        let node = NodeBuilder::new(&format!("node-{number}")).system_uuid(&machine.bios_uuid);
        node.create(&scene.client).await.unwrap();
    }
    scene.start(&["--node-status-update-frequency=1h"]);
    for (number, machine) in &joining {
        let node = scene.initialised(&format!("node-{number}")).await;
        assert_eq!(
            provider_id(&node),
            Some(machine.provider_id().as_str()),
            "{}",
            node.name_any()
        );
    }
    let vcenter = scene.vcenter();
    let calls = [
        "FindByUuid",
        "FindAllByDnsName",
        "RetrievePropertiesEx",
        "ContinueRetrievePropertiesEx",
        "Login",
    ];
    let counted: Vec<(&str, usize)> = calls.iter().map(|method| (*method, vcenter.calls(method))).collect();
    println!("{NODES} Nodes among {} machines: {counted:?}", machines.len());
    // The wave may come in a few batches, as Nodes are seen; each batch reads the inventory and its machines (a hundred a page).
    let total: usize = counted.iter().map(|(_, count)| count).sum();
    assert!(total < 40, "{counted:?}");
    assert!(vcenter.calls("ContinueRetrievePropertiesEx") >= 1, "{counted:?}");
    let views = vcenter.gate.count(&soap("CreateContainerView"));
    assert_eq!(views, 1, "views live as long as their session");
}
