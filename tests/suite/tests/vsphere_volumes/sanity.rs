//! Kubernetes' own tests of drivers, on CNS in vcsim: all of the controller and of the identity.

use std::sync::Arc;

use cloudwit_csi::proto::Topology;
use cloudwit_host::grants::{Grants, HttpGrant, SecretGrant, SecretUse};
use cloudwit_host::{HostOptions, Provider, ProviderSettings};
use cloudwit_suite::hosting::{Hosting, settings};
use cloudwit_test_support::clouds::vcsim::{PASSWORD, USERNAME, Vcsim, VolumeOptions};
use cloudwit_test_support::programs::guests;

use crate::driver::{ZONE, ZONE_KEY, config, vcenter};
use crate::node_stub::{self, NodeStub};
use crate::sanity_run::{CONTROLLER, FEWEST, passed, run};
use crate::served::Served;

#[tokio::test(flavor = "multi_thread")]
async fn csi_sanity_finds_nothing_wrong_with_the_controller_on_cns() {
    let vcsim = vcenter(VolumeOptions::default()).await;
    let machine = vcsim.machines().await.unwrap().remove(0);
    let secrets = tempfile::tempdir().unwrap();
    let limit = 3;
    let volumes = format!(", maxVolumesPerNode: {limit}");
    let provider = load(&vcsim, &volumes, secrets.path()).await;
    let served = Served::start(Arc::new(provider)).await;
    let node = served.folder().join("node.sock");
    let segments = [(ZONE_KEY, ZONE), ("topology.csi.vmware.com/k8s-region", "north")];
    let stub = NodeStub {
        id: machine.bios_uuid,
        topology: Topology {
            segments: segments.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        },
        most: limit,
    };
    node_stub::serve(stub, served.driver.clone(), &node);
    let specs = run(&served, &node, served.folder(), Some(CONTROLLER)).await;
    assert!(passed(&specs, |_| true) >= FEWEST, "{specs:?}");
}

/// The component in the real host, with the secrets in this folder.
async fn load(vcsim: &Vcsim, volumes: &str, folder: &std::path::Path) -> Provider {
    let port = vcsim.port();
    let secret = |name: &str, value: &str| {
        let file = folder.join(name);
        std::fs::write(&file, value).unwrap();
        SecretGrant {
            name: format!("127.0.0.1.{name}"),
            file,
            hosts: vec![format!("127.0.0.1:{port}")],
            uses: vec![SecretUse::Placeholder],
        }
    };
    let grants = Grants {
        http: vec![HttpGrant {
            host: "127.0.0.1".into(),
            port: Some(port),
            methods: vec!["GET".into(), "POST".into()],
            ca: Some(vcsim.authority().to_owned()),
            allow_loopback: true,
            ..HttpGrant::default()
        }],
        secrets: vec![secret("username", USERNAME), secret("password", PASSWORD)],
        ..Grants::default()
    };
    let settings = ProviderSettings {
        config_text: config(&port.to_string(), volumes),
        grants,
        ..settings()
    };
    let component = tokio::task::spawn_blocking(|| guests::provider("vsphere"))
        .await
        .unwrap();
    let hosting = Hosting::new(HostOptions::default());
    hosting.load_file(&component, settings).await.unwrap()
}
