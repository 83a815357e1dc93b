//! Thousands of instances: one call for a thousand Nodes, within the memory that a provider has by default.

use std::time::Duration;

use cloudwit_host::destination::Scheme;
use cloudwit_host::grants::{Grants, HttpGrant, SecretGrant, SecretUse};
use cloudwit_host::{HostOptions, Limits, ProviderSettings};
use cloudwit_model::{Cloud, NodeRef, Presence};
use cloudwit_suite::hosting::{Hosting, node, settings};
use cloudwit_test_support::clouds::moto::{AwsMachine, Moto};
use cloudwit_test_support::files::aws::cloud_config;
use cloudwit_test_support::programs::guests;

/// What the provider may reach: this moto, with its administrator's key.
fn grants(moto: &Moto, folder: &std::path::Path) -> Grants {
    let port = moto.url().rsplit_once(':').unwrap().1;
    let key = moto.administrator();
    let secret = |name: &str, value: &str, hosts: Vec<String>, usage| {
        std::fs::write(folder.join(name), value).unwrap();
        SecretGrant {
            name: name.into(),
            file: folder.join(name),
            hosts,
            uses: vec![usage],
        }
    };
    Grants {
        http: vec![HttpGrant {
            scheme: Scheme::Http,
            host: "127.0.0.1".into(),
            port: Some(port.parse().unwrap()),
            methods: vec!["POST".into()],
            allow_loopback: true,
            response_timeout_seconds: 600,
            ..HttpGrant::default()
        }],
        secrets: vec![
            secret(
                "access-key-id",
                &key.access_key,
                vec![format!("127.0.0.1:{port}")],
                SecretUse::Placeholder,
            ),
            secret("secret-access-key", &key.secret_key, Vec::new(), SecretUse::Hmac),
        ],
        ..Grants::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn five_thousand_instances_are_five_calls() {
    let moto = Moto::start().await.unwrap();
    let cluster = moto.cluster("large").await.unwrap();
    let mut machines: Vec<AwsMachine> = Vec::new();
    for _ in 0..5 {
        machines.extend(cluster.machines(&moto, 0, 1_000).await.unwrap());
    }
    let folder = tempfile::tempdir().unwrap();
    let hosting = Hosting::new(HostOptions::default());
    let settings = ProviderSettings {
        config_text: cloud_config(&cluster, moto.url()),
        grants: grants(&moto, folder.path()),
        // On a busy machine moto may need minutes for a thousand instances.
        limits: Limits {
            wall_time: Duration::from_secs(600),
            ..Limits::default()
        },
        ..settings()
    };
    let component = tokio::task::spawn_blocking(|| guests::provider("aws")).await.unwrap();
    let provider = hosting.load_file(&component, settings).await.unwrap();
    moto.forget_calls().await.unwrap();
    for page in machines.chunks(1_000) {
        let nodes: Vec<NodeRef> = page
            .iter()
            .map(|machine| NodeRef {
                provider_id: Some(machine.provider_id()),
                ..node(&machine.private_dns)
            })
            .collect();
        let answers = provider.lookup(&nodes).await.unwrap();
        for (answer, machine) in answers.iter().zip(page) {
            let Ok(Presence::Running(instance)) = answer else {
                panic!("{answer:?}")
            };
            assert_eq!(
                (instance.provider_id.as_str(), &*instance.addresses[0].value),
                (&*machine.provider_id(), &*machine.private_ip)
            );
        }
    }
    let calls = moto.calls().await.unwrap();
    let count = |action: &str| calls.iter().filter(|call| call.action == action).count();
    assert_eq!(count("DescribeInstances"), 5);
    assert_eq!(
        (count("DescribeAvailabilityZones"), count("DescribeInstanceTopology")),
        (1, 1),
        "once for all"
    );
    assert_eq!(calls.len(), 7);
}
