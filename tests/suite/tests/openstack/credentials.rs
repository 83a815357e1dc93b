//! Who Cloudwit is in Keystone: every kind of credentials, wrong ones, and tokens that end in the middle.

use cloudwit_test_support::clouds::openstack::Service;
use cloudwit_test_support::gate::Point;
use cloudwit_test_support::{NodeBuilder, ServiceBuilder};
use http::Method;
use serde_json::Value;

use crate::scene::Scene;

fn logins(scene: &Scene) -> usize {
    scene
        .gate(Service::Identity)
        .count(&Point::before(Method::POST, "/v3/auth/tokens"))
}

#[tokio::test(flavor = "multi_thread")]
async fn password_in_cloud_conf_works_as_upstream() {
    let mut scene = Scene::new().await;
    scene.global += &format!("password = \"{}\"\n", scene.project.password);
    scene.joins("one", "10.244.1.0/24").await;
    scene.start(&[], &[]);
    scene.initialised("one").await;
    assert!(!scene.log().contains(&scene.project.password), "it is in the log");
    assert_eq!(logins(&scene), 1, "all calls share one token");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_credential_works_by_id_and_by_name() {
    for by_name in [false, true] {
        let mut scene = Scene::new().await;
        let credential = scene.project.application_credential("cloudwit").await.unwrap();
        let (auth, region): (Vec<&str>, Vec<&str>) = (
            scene.global.lines().take(2).collect(),
            scene.global.lines().filter(|line| line.starts_with("region")).collect(),
        );
        let who = if by_name {
            format!(
                "application-credential-name = {}\nusername = {}\nuser-domain-name = Default",
                credential.name, scene.project.name
            )
        } else {
            format!("application-credential-id = {}", credential.id)
        };
        scene.global = format!("{}\n{who}\n{}\n", auth.join("\n"), region.join("\n"));
        scene.joins("one", "10.244.1.0/24").await;
        scene.start(&[("application-credential-secret", &credential.secret)], &[]);
        scene.initialised("one").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_credentials_change_nothing_and_emit_one_event() {
    let mut scene = Scene::new().await;
    let silent = scene.project.server(&scene.network, "silent").await.unwrap();
    let node = NodeBuilder::new("silent").initialised();
    let node = node.provider_id(&silent.provider_id()).create(&scene.client).await;
    node.unwrap();
    scene.project.delete_server(&silent).await.unwrap();
    scene.falls_silent("silent").await;
    scene.joins("joining", "10.244.2.0/24").await;
    ServiceBuilder::new("web").create(&scene.client).await.unwrap();
    scene.start(&[("password", "canary-7391-wrong")], &[]);
    let mut told = Vec::new();
    for (name, reason) in [
        ("silent", "MachineLookupFailed"),
        ("joining", "InitializationFailed"),
        ("web", "SyncLoadBalancerFailed"),
    ] {
        told.push((name, scene.warned(name, reason, &["requires authentication"]).await));
    }
    let before = logins(&scene);
    scene
        .settled("Keystone was asked again and again", || async {
            let again = logins(&scene) - before;
            if again >= 3 {
                Ok(())
            } else {
                Err(format!("{again} logins"))
            }
        })
        .await;
    for (name, mut first) in told {
        let mut now = scene.warnings(name).await;
        // A Service is tried again each time its pause is over, and the Event that is there counts that.
        if name == "web" {
            first.count = 0;
            now.iter_mut().for_each(|warning| warning.count = 0);
        }
        assert!(!first.message.contains("canary-7391"), "{first:?}");
        assert_eq!(now, [first], "{name}");
    }
    assert!(scene.node("silent").await.is_some(), "silence is not absence");
    assert!(!scene.log().contains("canary-7391"));
    for service in [Service::Compute, Service::Network, Service::LoadBalancer] {
        assert_eq!(scene.project.calls(service).await.unwrap(), [], "{service:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_revoked_or_ends_in_the_middle_is_replaced() {
    let mut scene = Scene::new().await;
    scene.joins("one", "10.244.1.0/24").await;
    scene.start_with_password(&[]);
    scene.initialised("one").await;
    let before = logins(&scene);
    scene.project.revoke_tokens().await.unwrap();
    scene.joins("two", "10.244.2.0/24").await;
    scene.initialised("two").await;
    assert!(logins(&scene) > before, "it asked for another one");
    // From now on tokens live for 20 s, and Nova and Neutron refuse the one in use as soon as it is over.
    scene.project.token_lifetime(20).await.unwrap();
    scene.project.revoke_tokens().await.unwrap();
    let before = logins(&scene);
    scene
        .settled("the revoked token and one that was over were replaced", || async {
            let asked = logins(&scene) - before;
            if asked >= 2 {
                Ok(())
            } else {
                Err(format!("{asked} logins"))
            }
        })
        .await;
    scene.joins("three", "10.244.3.0/24").await;
    scene.initialised("three").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_credential_is_reported_and_deletes_no_node() {
    let mut scene = Scene::new().await;
    let credential = scene.project.application_credential("cloudwit").await.unwrap();
    let keys = |key: &str| -> String { scene.global.lines().filter(|line| line.starts_with(key)).collect() };
    scene.global = format!(
        "[Global]\n{}\n{}\napplication-credential-id = {}\n",
        keys("auth-url"),
        keys("region"),
        credential.id
    );
    scene.joins("kept", "10.244.1.0/24").await;
    scene.start(&[("application-credential-secret", &credential.secret)], &[]);
    scene.initialised("kept").await;
    let path = format!(
        "/v3/users/{}/application_credentials/{}",
        scene.project.user, credential.id
    );
    let deleted = scene.project.ask(Service::Identity, Method::DELETE, &path, Value::Null);
    assert_eq!(deleted.await.unwrap().0, 204);
    scene.falls_silent("kept").await;
    // Keystone does not say 401 then, but 404.
    let said = ["Could not find Application Credential"];
    let told = scene.warned("kept", "MachineLookupFailed", &said).await;
    let before = logins(&scene);
    scene
        .settled("Keystone was asked again and again", || async {
            let again = logins(&scene) - before;
            if again >= 3 {
                Ok(())
            } else {
                Err(format!("{again} logins"))
            }
        })
        .await;
    // Whether its route was there before the credential went is a matter of time: one more thing may be told.
    let mut warnings = scene.warnings("kept").await;
    warnings.retain(|warning| warning.reason == told.reason);
    assert_eq!(warnings, [told]);
    assert!(
        scene.node("kept").await.is_some(),
        "who is not known has not seen that it is gone"
    );
    assert!(!scene.log().contains(&credential.secret), "it is in the log");
}
