//! `provider pin`, `push` and `sign`, judged by cosign.

use crate::front::Manner;
use crate::scene::{Scene, said, shown};

#[tokio::test(flavor = "multi_thread")]
async fn pushed_component_is_pinned_signed_and_verified_by_cosign() {
    let scene = Scene::new().await;
    let reference = scene.push(1).await;
    let tag = format!("{}/cloudwit/sim:1", scene.registry.address());
    let line = said(&scene.provider(&["pin", &tag]).await, 0);
    assert_eq!(scene.at_front(&line), reference);
    assert_eq!(scene.push(1).await, reference, "the same component has the same digest");
    let at = scene.at_registry(&reference);
    let verify = |key: &'static str| {
        let at = at.clone();
        let scene = &scene;
        async move {
            scene
                .cosign(&["verify", "--key", key, "--insecure-ignore-tlog=true", &at])
                .await
        }
    };
    assert!(!verify("ours.pub").await.status.success());
    scene.sign(&tag, "ours.pem").await;
    let verified = said(&verify("ours.pub").await, 0);
    assert!(verified.contains(at.rsplit('@').next().unwrap()), "{verified}");
    assert!(!verify("other.pub").await.status.success());
    // A second signer's is beside the first one's.
    scene.sign(&tag, "other.pem").await;
    said(&verify("other.pub").await, 0);
    said(&verify("ours.pub").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_push_pin_and_sign_are_reported() {
    let scene = Scene::new().await;
    let reference = scene.push(1).await;
    let at = scene.at_registry(&reference);
    let address = scene.registry.address().to_owned();
    let text = scene.write("text.wasm", "no component");
    let refused = async |words: &[&str], code: i32, part: &str| {
        let text = said(&scene.provider(words).await, code);
        assert!(text.contains(part), "{part:?} is missing in {text}");
    };
    let component = scene.path("variant-1.wasm");
    refused(
        &["push", shown(&text), &format!("{address}/a:1")],
        1,
        "is not WebAssembly",
    )
    .await;
    refused(&["push", shown(&component), &at], 1, "has a digest, which follows").await;
    refused(&["push", shown(&component), "nowhere"], 2, "names no repository").await;
    refused(
        &["pin", &format!("{address}/cloudwit/sim:gone")],
        1,
        "has no \"gone\" in cloudwit/sim",
    )
    .await;
    refused(&["pin", "registry.invalid/a:1"], 1, "no connection to registry.invalid").await;
    refused(
        &["sign", &at, "--key", shown(&scene.path("ours.pub"))],
        1,
        "is not a private key",
    )
    .await;
    scene.front.is(Manner::GarbageManifest);
    refused(
        &["pin", &format!("{}/cloudwit/sim:1", scene.front.address)],
        1,
        "it is not an OCI manifest",
    )
    .await;
    // Help has an example.
    for command in ["pin", "push", "sign"] {
        let help = said(&scene.provider(&[command, "--help"]).await, 0);
        assert!(help.contains("Example:") && help.contains("Exit codes:"), "{help}");
    }
}
