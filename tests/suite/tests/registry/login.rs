//! Logins, tokens, redirects and authorities of registries.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use cloudwit_test_support::gate::Gate;

use crate::front::{LOGIN, Manner, TOKEN};
use crate::scene::{Scene, said, shown};

/// A docker config for the front, with this password.
fn docker_config(scene: &Scene, password: &str) -> std::path::PathBuf {
    let entry = format!("{{\"username\": \"{}\", \"password\": \"{password}\"}}", LOGIN.0);
    let address = &scene.front.address;
    scene.write(
        "config.json",
        format!("{{\"auths\": {{\"http://{address}/v2/\": {entry}}}}}"),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn basic_and_token_login_work_and_failures_are_reported() {
    let scene = Scene::new().await;
    scene.push(1).await;
    let tag = format!("{}/cloudwit/sim:1", scene.front.address);
    for (manner, anonymous, wrong) in [
        (Manner::Basic, "requires a user and a password", "registry answered 401"),
        (
            Manner::Token,
            "with no credentials",
            "with the credentials of registry.dockerConfig",
        ),
    ] {
        scene.front.is(manner);
        let text = said(&scene.provider(&["pin", &tag]).await, 1);
        assert!(text.contains(anonymous), "{text}");
        let config = docker_config(&scene, "not-this-one");
        let text = said(
            &scene.provider(&["pin", &tag, "--docker-config", shown(&config)]).await,
            1,
        );
        assert!(text.contains(wrong) && !text.contains("not-this-one"), "{text}");
        let config = docker_config(&scene, LOGIN.1);
        said(
            &scene.provider(&["pin", &tag, "--docker-config", shown(&config)]).await,
            0,
        );
        // With a login also for what is written.
        let file = scene.path("variant-1.wasm");
        said(
            &scene
                .provider(&["push", shown(&file), &tag, "--docker-config", shown(&config)])
                .await,
            0,
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn blob_elsewhere_is_fetched_without_the_credential() {
    let scene = Scene::new().await;
    let reference = scene.push(1).await;
    docker_config(&scene, LOGIN.1);
    let config = scene.write(
        "cloudwit.yaml",
        format!(
            "apiVersion: cloudwit.dev/v1alpha1\nkind: CloudwitConfiguration\nproviders:\n  - name: sim\n    component: {reference}\n    \
             registry: {{dockerConfig: config.json}}\n    cloudConfig: '{{\"endpoint\": \"http://127.0.0.1:1\"}}'\n"
        ),
    );
    let check = ["check", "sim", "--config", shown(&config)];
    scene.front.is(Manner::Token);
    let output = scene.provider(&check).await;
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    // It was loaded: it asks for grants.
    assert!(text.contains("add to grants.http"), "{text}");
    assert!(!text.contains(TOKEN) && !text.contains(LOGIN.1), "{text}");
    assert_eq!(scene.front.seen_elsewhere(), [None]);
    scene.front.is(Manner::LeadsToMetadata);
    let text = said(&scene.provider(&check).await, 1);
    assert!(
        text.contains("169.254.169.254 is") && text.contains("which a registry may not lead to"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn registry_of_a_private_authority_is_trusted_by_its_file_alone() {
    let scene = Scene::new().await;
    scene.push(1).await;
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(["127.0.0.1".to_owned()])
        .unwrap()
        .signed_by(&key, &ca)
        .unwrap();
    let authority = scene.write("ca.pem", ca.pem());
    let (certificate, secret) = (
        scene.write("server.pem", server.pem()),
        scene.write("server.key", key.serialize_pem()),
    );
    let url = format!("http://{}", scene.registry.address());
    let gate = Gate::tls_to_url(&url, &certificate, &secret).await.unwrap();
    let tag = format!("{}/cloudwit/sim:1", gate.url().replace("https://", ""));
    said(&scene.provider(&["pin", &tag, "--ca", shown(&authority)]).await, 0);
    let params = CertificateParams::default();
    let stranger = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
    let other = scene.write("other.pem", stranger.pem());
    let text = said(&scene.provider(&["pin", &tag, "--ca", shown(&other)]).await, 1);
    assert!(
        text.contains("no connection to 127.0.0.1") && text.contains("certificate"),
        "{text}"
    );
}
