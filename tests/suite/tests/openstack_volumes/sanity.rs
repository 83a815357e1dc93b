//! Kubernetes' own tests of drivers, on Cinder: all of the controller and of the identity.

use std::path::Path;

use cloudwit_csi::proto::Topology;
use cloudwit_host::Provider;
use cloudwit_host::grants::{Grants, SecretGrant, SecretUse};
use cloudwit_suite::common::csi_node_stub::NodeStub;
use cloudwit_suite::common::csi_sanity::{FEWEST, controller_passes};
use cloudwit_test_support::clouds::openstack::project::OpenStackProject;
use cloudwit_test_support::clouds::openstack::servers::ZONE;
use cloudwit_test_support::clouds::openstack::volumes::{HOST, MOST_DISKS};
use cloudwit_test_support::clouds::openstack::{OpenStackCloud, REGION, Service};
use serde_json::json;

use crate::driver::{ZONE_KEY, cloud_config};
use crate::served;

#[tokio::test(flavor = "multi_thread")]
async fn csi_sanity_finds_nothing_wrong_with_the_controller_on_cinder() {
    // A project of its own: it counts what is listed.
    let cloud = OpenStackCloud::shared().await;
    cloud.volumes_ready().await.unwrap();
    let project = cloud.project().await.unwrap();
    project.quota(Service::BlockStorage, "volumes", 100).await.unwrap();
    project.volume_pace(Some(0.0)).await.unwrap();
    let network = project.network("nodes", "10.1.0.0/24").await.unwrap();
    let server = project.server_with(&network, "node-1", json!({ "host": HOST })).await;
    let stub = NodeStub {
        id: server.unwrap().id,
        topology: Topology {
            segments: [(ZONE_KEY.to_owned(), ZONE.to_owned())].into(),
        },
        // The server's own disk takes a place.
        most: i64::try_from(MOST_DISKS).unwrap() - 1,
    };
    let secrets = tempfile::tempdir().unwrap();
    controller_passes(load(&project, secrets.path()).await, stub, FEWEST).await;
}

/// The component in the real host, with the password in this folder.
async fn load(project: &OpenStackProject<'_>, folder: &Path) -> Provider {
    let file = folder.join("password");
    std::fs::write(&file, &project.password).unwrap();
    let keystone = project.cloud.url(Service::Identity);
    let password = SecretGrant {
        name: "password".into(),
        file,
        hosts: vec![keystone.strip_prefix("http://").unwrap().to_owned()],
        uses: vec![SecretUse::Placeholder],
    };
    let grants = Grants {
        http: Service::ALL
            .map(|service| served::granted(project.cloud.url(service)))
            .into(),
        secrets: vec![password],
        ..Grants::default()
    };
    served::load("openstack", cloud_config(project, keystone, REGION), grants).await
}
