//! Kubernetes' own tests of drivers, on EBS in moto: all of the controller and of the identity.

use std::path::Path;

use cloudwit_csi::proto::Topology;
use cloudwit_host::Provider;
use cloudwit_host::grants::{Grants, SecretGrant, SecretUse};
use cloudwit_test_support::clouds::moto::{AwsCluster, Credentials, Moto};
use cloudwit_test_support::files::aws::cloud_config;
use serde_json::json;

use crate::node_stub::NodeStub;
use crate::sanity_run::{FEWEST, controller_passes};
use crate::scene::policy;
use crate::served;

#[tokio::test(flavor = "multi_thread")]
async fn csi_sanity_finds_nothing_wrong_with_the_controller_on_ebs() {
    // Of its own: it counts what is listed.
    let moto = Moto::start().await.unwrap();
    let cluster = moto.cluster("sanity").await.unwrap();
    let key = moto.user("sanity", &policy()).await.unwrap();
    let machine = json!({ "ImageId": "ami-12c6146b", "InstanceType": "d3.8xlarge", "MinCount": 1, "MaxCount": 1,
        "SubnetId": cluster.subnets[0].id });
    let machine = moto.call("ec2", "run_instances", machine).await.unwrap();
    let segments = ["topology.kubernetes.io/zone", "topology.ebs.csi.aws.com/zone"];
    let stub = NodeStub {
        id: machine["Instances"][0]["InstanceId"].as_str().unwrap().into(),
        topology: Topology {
            segments: segments.map(|key| (key.to_owned(), "us-east-1a".to_owned())).into(),
        },
        // The fewest that any type takes, beside its own disk.
        most: 2,
    };
    let secrets = tempfile::tempdir().unwrap();
    let provider = load(&moto, &cluster, &key, secrets.path()).await;
    controller_passes(provider, stub, FEWEST).await;
}

/// The component in the real host, with the key's secrets in this folder.
async fn load(moto: &Moto, cluster: &AwsCluster, key: &Credentials, folder: &Path) -> Provider {
    let secret = |name: &str, value: &str, usage, hosts: Vec<String>| {
        let file = folder.join(name);
        std::fs::write(&file, value).unwrap();
        let name = name.to_owned();
        SecretGrant {
            name,
            file,
            hosts,
            uses: vec![usage],
        }
    };
    let host = moto.url().strip_prefix("http://").unwrap().to_owned();
    let grants = Grants {
        http: vec![served::granted(moto.url())],
        secrets: vec![
            secret("access-key-id", &key.access_key, SecretUse::Placeholder, vec![host]),
            secret("secret-access-key", &key.secret_key, SecretUse::Hmac, Vec::new()),
        ],
        ..Grants::default()
    };
    served::load("aws", cloud_config(cluster, moto.url()), grants).await
}
