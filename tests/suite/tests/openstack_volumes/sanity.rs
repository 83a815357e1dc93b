//! Kubernetes' own tests of drivers, on Cinder: all of the controller and of the identity.

use std::path::Path;
use std::sync::Arc;

use cloudwit_csi::proto::Topology;
use cloudwit_host::destination::Scheme;
use cloudwit_host::grants::{Grants, HttpGrant, SecretGrant, SecretUse};
use cloudwit_host::{HostOptions, Provider, ProviderSettings};
use cloudwit_suite::hosting::{Hosting, settings};
use cloudwit_test_support::guests;
use cloudwit_test_support::openstack_cloud::{OpenStackCloud, REGION, Service};
use cloudwit_test_support::openstack_project::OpenStackProject;
use cloudwit_test_support::openstack_servers::ZONE;
use cloudwit_test_support::openstack_volumes::{HOST, MOST_DISKS};
use serde_json::json;

use crate::driver::ZONE_KEY;
use crate::node_stub::{self, NodeStub};
use crate::sanity_run::{CONTROLLER, FEWEST, passed, run};
use crate::served::Served;

#[tokio::test(flavor = "multi_thread")]
async fn csi_sanity_finds_nothing_wrong_with_the_controller_on_cinder() {
    // A project of its own: it counts what is listed.
    let cloud = OpenStackCloud::shared().await;
    cloud.volumes_ready().await.unwrap();
    let project = cloud.project().await.unwrap();
    project.quota(Service::BlockStorage, "volumes", 100).await.unwrap();
    project.volume_pace(Some(0.0)).await.unwrap();
    let network = project.network("nodes", "10.1.0.0/24").await.unwrap();
    let server = project
        .server_with(&network, "node-1", json!({ "host": HOST }))
        .await
        .unwrap();
    let secrets = tempfile::tempdir().unwrap();
    let served = Served::start(Arc::new(load(&project, secrets.path()).await)).await;
    let node = served.folder().join("node.sock");
    let stub = NodeStub {
        id: server.id,
        topology: Topology {
            segments: [(ZONE_KEY.to_owned(), ZONE.to_owned())].into(),
        },
        // The server's own disk takes a place.
        most: i64::try_from(MOST_DISKS).unwrap() - 1,
    };
    node_stub::serve(stub, served.driver.clone(), &node);
    let specs = run(&served, &node, served.folder(), Some(CONTROLLER)).await;
    assert!(passed(&specs, |_| true) >= FEWEST, "{specs:?}");
}

/// The component in the real host, with the password in this folder.
async fn load(project: &OpenStackProject<'_>, folder: &Path) -> Provider {
    let http = Service::ALL.map(|service| {
        let (_, port) = project.cloud.url(service).rsplit_once(':').unwrap();
        HttpGrant {
            scheme: Scheme::Http,
            host: "127.0.0.1".to_owned(),
            port: Some(port.parse().unwrap()),
            allow_loopback: true,
            ..HttpGrant::default()
        }
    });
    let file = folder.join("password");
    std::fs::write(&file, &project.password).unwrap();
    let keystone = project.cloud.url(Service::Identity).strip_prefix("http://").unwrap();
    let password = SecretGrant {
        name: "password".into(),
        file,
        hosts: vec![keystone.to_owned()],
        uses: vec![SecretUse::Placeholder],
    };
    let grants = Grants {
        http: http.into(),
        secrets: vec![password],
        ..Grants::default()
    };
    let config_text = format!(
        "[Global]\nauth-url = {}\nusername = {name}\ntenant-name = {name}\ndomain-name = Default\nregion = {REGION}\n",
        project.cloud.auth_url(),
        name = project.name
    );
    let settings = ProviderSettings {
        config_text,
        grants,
        ..settings()
    };
    let component = tokio::task::spawn_blocking(|| guests::provider("openstack"))
        .await
        .unwrap();
    Hosting::new(HostOptions::default())
        .load_file(&component, settings)
        .await
        .unwrap()
}
