//! Logging in: once for many calls, again when the session is over, never with a wrong password over and over; and how certificates are trusted.

use cloudwit_test_support::NodeBuilder;
use cloudwit_test_support::clouds::vcsim::{PASSWORD, USERNAME};
use cloudwit_test_support::objects::provider_id;

use crate::scene::Scene;

#[tokio::test(flavor = "multi_thread")]
async fn session_serves_all_calls_and_is_renewed_when_dropped() {
    let mut scene = Scene::new().await;
    scene.joins("/DC0/vm/DC0_H0_VM0", "node-1", "10.0.0.1").await;
    scene.joins("/DC0/vm/DC0_H0_VM1", "node-2", "10.0.0.2").await;
    scene.start(&[]);
    scene.initialised("node-1").await;
    scene.initialised("node-2").await;
    // One of the probe at the start, which the calls share unless they began before it was there.
    assert_eq!(scene.vcenter().calls("Login"), 1);
    assert!(scene.vcenter().vcsim.end_sessions().await.unwrap() >= 1);
    scene.joins("/DC1/vm/DC1_H0_VM0", "node-3", "10.0.0.3").await;
    scene.initialised("node-3").await;
    assert_eq!(scene.vcenter().calls("Login"), 2);
    let looks = scene.vcenter().calls("RetrievePropertiesEx");
    scene
        .settled("it goes on in the new session", || async {
            let now = scene.vcenter().calls("RetrievePropertiesEx");
            if now > looks + 3 {
                Ok(())
            } else {
                Err(format!("{now} calls"))
            }
        })
        .await;
    assert_eq!(scene.vcenter().calls("Login"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_password_is_one_event_per_node_without_lockout() {
    let mut scene = Scene::new().await;
    scene.password = "wrong-canary-password".into();
    scene.joins("/DC0/vm/DC0_H0_VM0", "joining", "10.0.0.1").await;
    let machine = scene
        .vcenter()
        .machine("/DC0/vm/DC0_H0_VM1", "silent", "10.0.0.2")
        .await;
    let silent = NodeBuilder::new("silent").initialised();
    let silent = silent.provider_id(&machine.provider_id()).create(&scene.client).await;
    silent.unwrap();
    scene.vcenter().vcsim.destroy(&machine.path).await.unwrap();
    scene.falls_silent("silent").await;
    scene.start(&[]);
    let said = "vCenter a: InvalidLogin";
    let told = [
        (
            "joining",
            scene.warned("joining", "InitializationFailed", &[said]).await,
        ),
        ("silent", scene.warned("silent", "MachineLookupFailed", &[said]).await),
    ];
    scene.waits("joining", &[said]).await;
    // They are looked for all the time: one that comes later is told after three attempts, while the others go on being tried.
    let later = NodeBuilder::new("later").initialised();
    let later = later.provider_id("vsphere://42000000-0000-0000-0000-000000000000");
    later.create(&scene.client).await.unwrap();
    scene.falls_silent("later").await;
    scene.warned("later", "MachineLookupFailed", &[said]).await;
    for (name, warning) in told {
        assert!(!warning.message.contains("wrong-canary-password"), "{warning:?}");
        assert_eq!(scene.warnings(name).await, [warning], "{name}");
    }
    assert!(scene.node("silent").await.is_some(), "silence is not absence");
    assert!(!scene.log().contains("wrong-canary-password"));
    // vCenter locks an account after five.
    assert!(
        (1..=2).contains(&scene.vcenter().calls("Login")),
        "{}",
        scene.vcenter().calls("Login")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn upstream_ini_with_password_and_thumbprint_works_as_is() {
    let mut scene = Scene::new().await;
    let machine = scene.joins("/DC1/vm/DC1_H0_VM0", "node-1", "10.0.0.1").await;
    scene.joins("/DC0/vm/DC0_H0_VM0", "node-2", "10.0.0.2").await;
    let sha256 = thumbprint(scene.vcenter().vcsim.certificate());
    scene.trust = Some(format!("thumbprints: ['{sha256}']"));
    let password = PASSWORD.replace('\\', "\\\\").replace('"', "\\\"");
    let config = format!(
        "# upstream's\n[Global]\nuser = {USERNAME}\npassword = \"{password}\"\nport = {}\nthumbprint = {sha256}\n\n\
         [VirtualCenter \"127.0.0.1\"]\ndatacenters = DC1\nsoap-roundtrip-count = 2\n\n\
         [Nodes]\ninternal-network-subnet-cidr = 10.0.0.0/8, 192.168.0.0/16\n",
        scene.vcenter().port()
    );
    scene.start_with(config, &[]);
    assert_eq!(
        provider_id(&scene.initialised("node-1").await),
        Some(machine.provider_id().as_str())
    );
    let other = scene.node("node-2").await.unwrap();
    assert_eq!(provider_id(&other), None, "its machine is in another datacenter");
}

fn thumbprint(certificate: &[u8]) -> String {
    let digest = sha256(certificate);
    digest
        .chunks(2)
        .map(|pair| std::str::from_utf8(pair).unwrap().to_uppercase())
        .collect::<Vec<_>>()
        .join(":")
}

/// SHA-256 in hexadecimal digits, by the system's own program.
fn sha256(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut program = std::process::Command::new("sha256sum")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    program.stdin.take().unwrap().write_all(bytes).unwrap();
    program.wait_with_output().unwrap().stdout[..64].to_vec()
}
